//! steward-agent: reads Slurm job cgroups and /proc, exports Prometheus metrics.
//!
//! `kernel` turns the kernel's files into types, `scan` puts them together into nodes with jobs,
//! `collector` turns those into samples under catalogue names, `output` writes them.

pub mod catalogue;
pub mod check;
pub mod cli;
pub mod collector;
pub mod config;
mod counts;
mod ending;
pub mod file_class;
mod group;
mod host;
mod job;
pub mod kernel;
mod ledger;
mod names;
pub mod node;
pub mod once;
pub mod output;
pub mod publish;
pub mod quiet;
mod reader;
mod reading;
mod rhythm;
mod run;
pub mod sample;
pub mod scan;
pub mod scheduler;
pub mod shutdown;
mod sluid;
mod state;
mod table;
pub mod threads;
mod waker;
mod worker;

use std::collections::BTreeSet;
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::sleep_until;

use collector::own::Own;
use config::Config;
use ending::Ending;
use kernel::error::Errors;
use output::push::Pusher;
use publish::{NodeSamples, Pushes, Snapshot};
use rhythm::{Reason, Rhythm};
use sample::Samples;
use scan::{Focus, Scanner};
use shutdown::Shutdown;
use state::State;
use waker::Waker;

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
        let rounds = Rounds { state, tells_endings: true, ..Rounds::new(&config, scanner, pushes) };
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
            let quiet = &self.config.quiet;
            let rhythm = Rhythm::new(interval, quiet.aligned, quiet.share, Instant::now());
            let result = scan_loop(self.rounds, rhythm, sender, stopping.clone()).await;
            stop_on_failure(result)
        };
        let serving = async {
            let Some(listener) = self.listener else { return Ok(()) };
            let served = output::scrape::serve(listener, latest.clone(), stopping.clone()).await;
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
    mut rhythm: Rhythm,
    latest: watch::Sender<Option<Arc<Snapshot>>>,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let mut waker = Waker::new();
    let (mut told, mut changed) = (false, BTreeSet::new());
    let mut again = false;
    loop {
        let reason = waker::reason(&changed)
            .or_else(|| again.then_some(Reason::Changed))
            .or_else(|| rounds.scanner.has_new_jobs().then_some(Reason::New));
        let look_at = reason.map_or_else(|| rhythm.next_scan(), |reason| rhythm.next_look(reason));
        let full = tokio::select! {
            biased;
            () = shutdown.wait() => {
                rounds.save();
                return Ok(());
            }
            () = sleep_until(rhythm.next_scan().into()) => true,
            () = sleep_until(look_at.into()) => false,
            more = waker.changed() => {
                changed.extend(more);
                continue;
            }
        };
        // Reading the kernel's files blocks; the listener answers meanwhile.
        let last = !full && reason == Some(Reason::Last);
        let paths = waker::take(&mut changed, last);
        let round = tokio::task::spawn_blocking(move || {
            let focus = match reason {
                _ if full => Focus::All,
                Some(Reason::Last) => Focus::Only(&paths),
                _ => Focus::Changed(&paths),
            };
            let snapshot = rounds.scan(focus);
            (rounds, snapshot)
        });
        // A read that hangs in the kernel is left behind: it must not keep the agent from ending.
        tokio::pin!(round);
        let done = tokio::select! {
            () = shutdown.wait() => {
                if let Ok(Ok((mut rounds, _))) = tokio::time::timeout(ENDING, round).await {
                    rounds.save();
                }
                return Ok(());
            }
            done = &mut round => done,
        };
        let (back, snapshot) = done.context("a scan broke off")?;
        rounds = back;
        // One that has to wait for its turn on a full node disturbs nobody.
        let (now, took) = (Instant::now(), rounds.took);
        if full {
            rhythm.scanned(now, SystemTime::now(), took);
            rounds.own.set_period(rhythm.period());
        } else {
            rhythm.looked(now, took, reason.unwrap_or(Reason::New));
        }
        // What happened in a new directory before it was watched is seen by another look.
        again = waker.watch(&rounds.scanner.watched());
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

/// How long a scan that is under way may keep the agent from ending.
const ENDING: Duration = Duration::from_secs(1);

/// A look writes the state down no more often than this.
const SAVE_EVERY: Duration = Duration::from_secs(1);

/// Scans one after the other, each turned into samples.
#[derive(Debug)]
pub struct Rounds {
    scanner: Scanner,
    own: Own,
    selection: sample::Selection,
    budget: sample::Budget,
    pushes: Option<Arc<Pushes>>,
    complaints: Vec<String>,
    state: Option<State>,
    /// When the last full scan began.
    at: Instant,
    /// CPU time that the last scan took.
    took: Duration,
    /// When the state was last written down.
    saved: Instant,
    /// Whether the end of a job is logged.
    tells_endings: bool,
}

impl Rounds {
    /// No scan done yet.
    #[must_use]
    pub fn new(config: &Config, scanner: Scanner, pushes: Option<Arc<Pushes>>) -> Self {
        let own = Own::new(SystemTime::now(), config.interval.0);
        Self {
            scanner,
            own,
            selection: config.metrics.into(),
            budget: config.limits.into(),
            pushes,
            complaints: Vec::new(),
            state: None,
            at: Instant::now(),
            took: Duration::ZERO,
            saved: Instant::now(),
            tells_endings: false,
        }
    }

    /// Does one scan, or a look.
    pub fn scan(&mut self, focus: Focus) -> Snapshot {
        let (began, at, cpu) = (SystemTime::now(), Instant::now(), reader::cpu_time());
        let scan = self.scanner.scan(focus);
        let full = matches!(focus, Focus::All);
        if full {
            self.at = at;
            self.own.note(began, at.elapsed(), &scan);
            let saved = self.save();
            self.log(&scan.errors, saved);
        } else {
            self.own.note_look(&scan);
            // What was shown must not be lost with the agent.
            if self.saved.elapsed() >= SAVE_EVERY {
                self.save();
            }
        }
        // A command that looks once has nothing to say about those who left meanwhile.
        if self.tells_endings {
            scan.ended.iter().for_each(Ending::log);
        }
        let nodes = scan
            .nodes
            .iter()
            .map(|node| {
                let (cluster, name) = (node.cluster.clone(), node.name.clone());
                let mut jobs = Samples::new(cluster, name, self.selection, self.budget);
                let mut own = jobs.clone();
                collector::collect(node, &mut jobs);
                if full {
                    self.own.note_dropped(jobs.dropped());
                }
                self.own.collect(node, jobs.series(), self.pushes.as_deref(), &mut own);
                let jobs = (!node.jobs.is_empty()).then(|| Arc::new(jobs));
                NodeSamples { jobs, own: Arc::new(own) }
            })
            .collect();
        self.took = scan.cpu + reader::cpu_time().saturating_sub(cpu);
        Snapshot { at: self.at, period: self.own.period(), nodes, whole: !scan.errors.unlisted() }
    }

    /// Writes down what a later agent must know; the complaint if it cannot.
    fn save(&mut self) -> Option<String> {
        self.saved = Instant::now();
        self.state.as_ref().and_then(|state| self.scanner.save(state).err())
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
