//! steward-agent: reads Slurm job cgroups and /proc, exports Prometheus metrics.
//!
//! `kernel` turns the kernel's files into types, `scan` puts them together into nodes with jobs,
//! `collector` turns those into samples under catalogue names, `output` writes them.

pub mod catalogue;
pub mod check;
pub mod cli;
pub mod collector;
pub mod config;
pub mod file_class;
mod group;
mod host;
pub mod kernel;
mod ledger;
mod names;
pub mod node;
pub mod once;
pub mod output;
pub mod publish;
pub mod quiet;
mod run;
pub mod sample;
pub mod scan;
pub mod shutdown;
mod span;
mod state;
pub mod threads;

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use anyhow::Context;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use collector::own::Own;
use config::Config;
use kernel::error::Errors;
use output::push::Pusher;
use publish::{NodeSamples, Pushes, Snapshot};
use sample::Samples;
use scan::Scanner;
use shutdown::Shutdown;
use state::State;

/// An agent that has its listener and is ready to run.
#[derive(Debug)]
pub struct Agent {
    config: Config,
    rounds: Rounds,
    listener: Option<TcpListener>,
    pusher: Option<Pusher>,
}

impl Agent {
    /// Takes the listener and looks at the node; nothing is exported yet.
    ///
    /// # Errors
    /// If a setting makes no sense, the address is taken, or there are no cgroups.
    pub async fn new(config: Config) -> anyhow::Result<Self> {
        config.check()?;
        if !config.scrape.enabled && config.push.gateway.is_none() {
            anyhow::bail!(
                "nobody would see anything: switch scrape.enabled on or set push.gateway"
            );
        }
        let pushes = Arc::new(Pushes::default());
        let pusher = Pusher::new(&config.push, config.interval.0, Arc::clone(&pushes))?;
        let mut scanner = Scanner::new(config.clone())?;
        if let Some(trouble) = &scanner.host().trouble {
            tracing::warn!("slurm.conf: {trouble}");
        }
        let listener = if config.scrape.enabled {
            let address = config.scrape.listen;
            let listener = TcpListener::bind(address).await;
            Some(listener.with_context(|| format!("scrape.listen: cannot listen on {address}"))?)
        } else {
            None
        };
        let state = (config.paths.state != Path::new(""))
            .then(|| State::new(&config.paths.state, config.node.as_ref(), &config.paths.proc));
        if let Some(Err(trouble)) = state.as_ref().map(|state| scanner.resume(state)) {
            tracing::warn!("{trouble}: counters of running jobs start anew");
        }
        let pushes = pusher.is_some().then_some(pushes);
        let rounds = Rounds { state, ..Rounds::new(&config, scanner, pushes) };
        Ok(Self { config, rounds, listener, pusher })
    }

    /// Where it listens, if it does.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.as_ref()?.local_addr().ok()
    }

    /// Scans, serves and pushes until `shutdown`, then takes back what it pushed.
    ///
    /// # Errors
    /// If the listener or a scan fails as a whole.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> anyhow::Result<()> {
        let interval = self.config.interval.0;
        tracing::info!(
            interval = %self.config.interval,
            listen = self.address().map(tracing::field::display),
            push = self.config.push.gateway,
            cgroup = self.rounds.scanner.hierarchy().version(),
            "steward-agent {} started", env!("CARGO_PKG_VERSION")
        );
        let (stopper, stopping) = shutdown::channel();
        let (sender, latest) = watch::channel(None);
        // A part that fails stops the others, and what was pushed is still taken back.
        let stop_on_failure = |result: anyhow::Result<()>| {
            if result.is_err() {
                stopper.stop();
            }
            result
        };
        let scans = async {
            let result = scan_loop(self.rounds, interval, sender, stopping.clone()).await;
            stop_on_failure(result)
        };
        let serving = async {
            let Some(listener) = self.listener else { return Ok(()) };
            let served =
                output::scrape::serve(listener, latest.clone(), interval, stopping.clone()).await;
            stop_on_failure(served.context("the listener failed"))
        };
        let pushing = async {
            if let Some(pusher) = self.pusher {
                pusher.run(latest.clone(), stopping.clone()).await;
            }
        };
        let stopping_in_time = async {
            tokio::select! {
                () = shutdown => stopper.stop(),
                () = stopping.wait() => {}
            }
        };
        let (scanned, served, (), ()) = tokio::join!(scans, serving, pushing, stopping_in_time);
        scanned.and(served)
    }
}

async fn scan_loop(
    mut rounds: Rounds,
    interval: std::time::Duration,
    latest: watch::Sender<Option<Arc<Snapshot>>>,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = false;
    loop {
        tokio::select! {
            () = shutdown.wait() => return Ok(()),
            _ = ticks.tick() => {}
        }
        // Reading the kernel's files blocks; the listener answers meanwhile.
        let round = tokio::task::spawn_blocking(move || {
            let snapshot = rounds.scan();
            (rounds, snapshot)
        });
        // A read that hangs in the kernel is left behind: it must not keep the agent from ending.
        let done = tokio::select! {
            () = shutdown.wait() => return Ok(()),
            done = round => done,
        };
        let (back, snapshot) = done.context("a scan broke off")?;
        rounds = back;
        let unnamed = snapshot.nodes.is_empty();
        if unnamed && !told {
            tracing::warn!(
                "the cluster's name is not known, so nothing is exported: set 'cluster' or paths.slurm_conf"
            );
        }
        told = unnamed;
        latest.send_replace(Some(Arc::new(snapshot)));
    }
}

/// Scans one after the other, each turned into samples.
#[derive(Debug)]
pub struct Rounds {
    scanner: Scanner,
    own: Own,
    selection: sample::Selection,
    pushes: Option<Arc<Pushes>>,
    complaints: Vec<String>,
    state: Option<State>,
}

impl Rounds {
    /// No scan done yet.
    #[must_use]
    pub fn new(config: &Config, scanner: Scanner, pushes: Option<Arc<Pushes>>) -> Self {
        let own = Own::new(SystemTime::now());
        Self {
            scanner,
            own,
            selection: config.metrics.into(),
            pushes,
            complaints: Vec::new(),
            state: None,
        }
    }

    /// Does one scan.
    pub fn scan(&mut self) -> Snapshot {
        let (began, at) = (SystemTime::now(), Instant::now());
        let scan = self.scanner.scan();
        self.own.note(began, at.elapsed(), &scan.errors);
        let saved = self.state.as_ref().map(|state| self.scanner.save(state));
        self.log(&scan.errors, saved.and_then(Result::err));
        let nodes = scan
            .nodes
            .iter()
            .map(|node| {
                let mut jobs =
                    Samples::new(node.cluster.clone(), node.name.clone(), self.selection);
                let mut own = jobs.clone();
                collector::collect(node, &mut jobs);
                self.own.collect(node, jobs.series(), self.pushes.as_deref(), &mut own);
                NodeSamples { jobs: (!node.jobs.is_empty()).then_some(jobs), own }
            })
            .collect();
        Snapshot { at, nodes, whole: !scan.errors.unlisted() }
    }

    /// Each complaint once, for as long as it lasts; the counts are in the metrics.
    fn log(&mut self, errors: &Errors, unsaved: Option<String>) {
        let read = errors.worth_logging().iter().map(ToString::to_string);
        let unsaved = unsaved.map(|why| format!("{why}: after a restart counters start anew"));
        let now: Vec<String> = read.chain(unsaved).collect();
        for complaint in now.iter().filter(|complaint| !self.complaints.contains(complaint)) {
            tracing::warn!("{complaint}");
        }
        self.complaints = now;
    }
}
