//! `steward serve`: tasks on their schedules, pages for Prometheus, answers for users.

mod api;
pub mod banking;
pub mod board;
mod cancelling;
mod chunks;
pub mod client;
mod collecting;
mod connections;
mod evaluating;
mod gpu_years;
pub mod handler;
pub mod leader;
mod noticing;
pub mod page;
pub mod record;
mod remember;
mod socket;
pub mod task;
mod wire;

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use anyhow::Context;
use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::config::Config;
use crate::exporter::Exporter;
use crate::shutdown;
use crate::store::Store;
use board::Board;
use leader::Leadership;
use record::{Counts, Record, State};
use socket::Socket;
use task::{Setup, TASKS, Task};

/// Runs the service until `shutdown`.
///
/// # Errors
/// If it cannot start, or a part of it ends before its time.
pub async fn run(config: Config, shutdown: impl Future<Output = ()>) -> anyhow::Result<()> {
    Service::new(config).await?.run(shutdown).await
}

/// A service that listens and does nothing yet.
#[derive(Debug)]
pub struct Service {
    listener: TcpListener,
    socket: Socket,
    state: Arc<State>,
    tasks: Vec<Task>,
    setup: Setup,
}

impl Service {
    /// Makes its tasks and takes its addresses.
    ///
    /// # Errors
    /// If an address is taken, the state directory cannot be made or the store not be opened.
    pub async fn new(config: Config) -> anyhow::Result<Self> {
        let config = Arc::new(config);
        let counts = Arc::new(Counts::default());
        let board = Arc::new(Board::default());
        let directory = &config.serve.state;
        let leadership = Leadership::new(directory)
            .with_context(|| format!("{}: serve.state", directory.display()))?;
        let store = Store::at(config.store()).await?;
        let setup = Setup {
            config: Arc::clone(&config),
            counts: Arc::clone(&counts),
            board: Arc::clone(&board),
            store: store.clone(),
        };
        let mut tasks = Vec::new();
        for make in TASKS {
            tasks.extend(make(&setup)?);
        }
        let address = config.serve.listen;
        let listener =
            TcpListener::bind(address).await.with_context(|| format!("{address}: serve.listen"))?;
        let socket = Socket::bind(&config.serve.socket, config.serve.socket_mode)?;
        let exporter = Arc::new(Exporter::new(&config, Arc::clone(&board))?);
        let state = State {
            config,
            board,
            exporter,
            store,
            started: Timestamp::now(),
            leadership: Arc::new(leadership),
            tasks: tasks.iter().map(|task| Arc::new(Record::new(task.name))).collect(),
            counts,
            requests: Mutex::new(BTreeMap::new()),
        };
        Ok(Self { listener, socket, state: Arc::new(state), tasks, setup })
    }

    /// Where its pages are.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Runs until `shutdown`, and ends only when all of its parts have.
    ///
    /// # Errors
    /// If a part ends before its time.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> anyhow::Result<()> {
        let Self { listener, socket, state, tasks, setup } = self;
        let (stopper, stop) = shutdown::channel();
        let leadership = Arc::clone(&state.leadership);
        tracing::info!(
            address = %state.config.serve.listen,
            socket = %state.config.serve.socket.display(),
            tasks = ?tasks,
            "started"
        );
        let mut parts = JoinSet::new();
        parts.spawn(Arc::clone(&leadership).run(stop.clone()));
        for (task, record) in tasks.into_iter().zip(&state.tasks) {
            let (zone, record) = (state.config.zone(), Arc::clone(record));
            parts.spawn(task.run(zone, record, Arc::clone(&leadership), stop.clone()));
        }
        if state.config.collect.enabled {
            parts.spawn(collecting::watch(setup, Arc::clone(&leadership), stop.clone()));
        }
        if state.config.exporter.enabled {
            // One service is enough to ask slurmctld.
            let (exporter, leads) = (Arc::clone(&state.exporter), Arc::clone(&leadership));
            let config = Arc::clone(&state.config);
            parts.spawn(exporter.watch(config, move || leads.leads(), stop.clone()));
        }
        parts.spawn(page::serve(listener, Arc::clone(&state), stop.clone()));
        parts.spawn(remember::run(Arc::clone(&state), stop.clone()));
        parts.spawn(socket.serve(Arc::clone(&state), stop));
        let early = tokio::select! {
            () = shutdown => None,
            ended = parts.join_next() => ended,
        };
        stopper.stop();
        let mut result = match early {
            None => Ok(()),
            Some(Ok(())) => Err(anyhow::anyhow!("a part of the service ended by itself")),
            Some(Err(error)) => Err(error.into()),
        };
        while let Some(ended) = parts.join_next().await {
            if let Err(error) = ended {
                result = Err(error.into());
            }
        }
        state.store.close().await;
        // After the last task: until then nobody else may act.
        leadership.release();
        tracing::info!("ended");
        result
    }
}

#[cfg(test)]
mod tests;
