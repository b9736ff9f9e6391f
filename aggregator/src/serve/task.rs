//! What the service does by itself, and when.
//!
//! To add a task: a function that makes it (or none, if it is switched off), and its line in
//! [`TASKS`].

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use steward_common::time;
use tokio::task::JoinHandle;

use super::banking;
use super::board::Board;
use super::cancelling;
use super::collecting;
use super::evaluating;
use super::gpu_years;
use super::leader::Leadership;
use super::noticing;
use super::record::{Counts, Record};
use crate::command::{Interrupted, message};
use crate::config::Config;
use crate::outlet;
use crate::schedule::{Plan, Schedule};
use crate::shutdown::Shutdown;
use crate::source::slurm::command::CommandError;
use crate::store::Store;
use crate::sweep::Sweeper;

/// A loop is awake at least this often: clocks may be set while it sleeps.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How long a running task may take to clean up at the end of the service.
const GRACE: Duration = Duration::from_secs(10);

/// What tasks are made from.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The settings.
    pub config: Arc<Config>,
    /// What tasks count.
    pub counts: Arc<Counts>,
    /// The newest snapshot of each cluster.
    pub board: Arc<Board>,
    /// The service's memory.
    pub store: Store,
}

/// Makes a task; `None` if it is switched off.
type Make = fn(&Setup) -> anyhow::Result<Option<Task>>;

/// Every task of the service, in alphabetical order.
pub const TASKS: &[Make] =
    &[bank, cancel, collect, evaluate, gpu_years, notices, post, pushgateway, webhooks];

/// Looks after idle jobs.
fn cancel(setup: &Setup) -> anyhow::Result<Option<Task>> {
    let config = &setup.config.cancel;
    if !config.enabled {
        return Ok(None);
    }
    let setup = setup.clone();
    Ok(Some(Task::new("cancel", config.schedule.clone(), move |shutdown| {
        cancelling::run(setup.clone(), shutdown)
    })))
}

/// Checks all accounts of the bank.
fn bank(setup: &Setup) -> anyhow::Result<Option<Task>> {
    let config = &setup.config.bank;
    if !config.enabled {
        return Ok(None);
    }
    if config.mail {
        setup.config.mail.ready()?;
    }
    let setup = setup.clone();
    Ok(Some(Task::new("bank", config.schedule.clone(), move |shutdown| {
        banking::run(setup.clone(), shutdown)
    })))
}

/// Brings what Slurm's database knows into the archive.
fn collect(setup: &Setup) -> anyhow::Result<Option<Task>> {
    let config = &setup.config.collect;
    if !config.enabled {
        return Ok(None);
    }
    let setup = setup.clone();
    Ok(Some(Task::new("collect", config.schedule.clone(), move |shutdown| {
        collecting::run(setup.clone(), shutdown)
    })))
}

/// Looks at the rules.
fn evaluate(setup: &Setup) -> anyhow::Result<Option<Task>> {
    let config = &setup.config.evaluate;
    if !config.enabled {
        return Ok(None);
    }
    let setup = setup.clone();
    Ok(Some(Task::new("evaluate", config.schedule.clone(), move |shutdown| {
        evaluating::run(setup.clone(), shutdown)
    })))
}

/// Counts the GPU-years that were used this year.
fn gpu_years(setup: &Setup) -> anyhow::Result<Option<Task>> {
    let config = &setup.config.exporter;
    if !config.enabled {
        return Ok(None);
    }
    let setup = setup.clone();
    Ok(Some(Task::new("gpu-years", config.gpu_years.clone(), move |_| {
        gpu_years::run(setup.clone())
    })))
}

/// Tells users what was found.
fn notices(setup: &Setup) -> anyhow::Result<Option<Task>> {
    let config = &setup.config.notices;
    if !config.enabled {
        return Ok(None);
    }
    setup.config.mail.ready()?;
    let setup = setup.clone();
    Ok(Some(Task::new("notices", config.schedule.clone(), move |shutdown| {
        noticing::run(setup.clone(), shutdown)
    })))
}

/// Hands over mails that could not be sent at once.
fn post(setup: &Setup) -> anyhow::Result<Option<Task>> {
    let config = &setup.config.notices;
    if !config.enabled {
        return Ok(None);
    }
    let setup = setup.clone();
    Ok(Some(Task::new("post", config.post.clone(), move |shutdown| {
        noticing::post(setup.clone(), shutdown)
    })))
}

/// Deletes the groups of silent agents from the Pushgateway.
fn pushgateway(setup: &Setup) -> anyhow::Result<Option<Task>> {
    let config = &setup.config.pushgateway;
    let Some(sweeper) = Sweeper::new(config)? else { return Ok(None) };
    let counts = Arc::clone(&setup.counts);
    Ok(Some(Task::new("pushgateway", config.schedule.clone(), move |shutdown| {
        let (sweeper, counts) = (sweeper.clone(), Arc::clone(&counts));
        async move { sweeper.run(&counts.groups_deleted, &shutdown).await }
    })))
}

/// Sends webhooks what they have not got yet.
fn webhooks(setup: &Setup) -> anyhow::Result<Option<Task>> {
    if setup.config.outlets.webhook.is_empty() {
        return Ok(None);
    }
    let setup = setup.clone();
    Ok(Some(Task::new("webhooks", Schedule::constant("* * * * *"), move |_| {
        let setup = setup.clone();
        async move {
            let now = time::Timestamp::new(Timestamp::now().as_second());
            outlet::deliver(&setup.config.outlets, &setup.store, now).await?.into_result()
        }
    })))
}

/// One run of a task.
type Run = Pin<Box<dyn Future<Output = anyhow::Result<()>> + Send>>;

/// Something to do again and again.
pub struct Task {
    /// The label of its metrics.
    pub name: &'static str,
    schedule: Schedule,
    work: Box<dyn Fn(Shutdown) -> Run + Send + Sync>,
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.name, self.schedule)
    }
}

impl Task {
    /// `work` is called when `schedule` says so, on the leader only, and never twice at a time. It
    /// must end soon after its `Shutdown` comes, and keep the thread to itself only on
    /// `spawn_blocking`.
    pub fn new<W, F>(name: &'static str, schedule: Schedule, work: W) -> Self
    where
        W: Fn(Shutdown) -> F + Send + Sync + 'static,
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        Self { name, schedule, work: Box::new(move |shutdown| Box::pin(work(shutdown))) }
    }

    /// Runs the task whenever it is due, until `shutdown`.
    pub async fn run(
        self,
        zone: TimeZone,
        record: Arc<Record>,
        leadership: Arc<Leadership>,
        shutdown: Shutdown,
    ) {
        let mut plan = Plan::new(self.schedule.clone(), zone, Timestamp::now());
        let mut running: Option<Running> = None;
        loop {
            record.awake(plan.next());
            let pause = plan.pause(Timestamp::now(), LONGEST_PAUSE);
            tokio::select! {
                () = shutdown.wait() => break,
                result = ended(&mut running) => {
                    note(&record, running.take(), result);
                    continue;
                }
                () = tokio::time::sleep(pause) => {}
            }
            let now = Timestamp::now();
            if !plan.is_due(now) || !leadership.leads() {
                continue;
            }
            if running.is_some() {
                record.skip();
                tracing::warn!(task = self.name, "is due and still running; skipped");
                continue;
            }
            record.begin(now);
            let handle = tokio::spawn((self.work)(shutdown.clone()));
            running = Some(Running { handle, since: Instant::now() });
        }
        if running.is_some() {
            let result = match tokio::time::timeout(GRACE, ended(&mut running)).await {
                Ok(result) => result,
                Err(_) => {
                    if let Some(running) = &running {
                        running.handle.abort();
                    }
                    ended(&mut running).await
                }
            };
            note(&record, running.take(), result);
        }
    }
}

struct Running {
    handle: JoinHandle<anyhow::Result<()>>,
    since: Instant,
}

/// Waits for the end of what runs; for ever if nothing does.
async fn ended(running: &mut Option<Running>) -> Result<(), String> {
    match running {
        None => std::future::pending().await,
        Some(running) => match (&mut running.handle).await {
            Ok(Err(error)) if is_stop(&error) => Ok(()),
            Ok(result) => result.map_err(|error| message(&error)),
            Err(error) => Err(error.to_string()),
        },
    }
}

/// Whether a run was only broken off because the service ends.
fn is_stop(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.is::<Interrupted>() || matches!(cause.downcast_ref(), Some(CommandError::Stopped))
    })
}

fn note(record: &Record, running: Option<Running>, result: Result<(), String>) {
    let took = running.map_or(Duration::ZERO, |running| running.since.elapsed());
    if let Err(why) = &result {
        tracing::error!(task = record.name, why, "failed; it runs again at its next time");
    }
    record.end(Timestamp::now(), took, result);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::shutdown::{self, Stopper};

    struct Started {
        record: Arc<Record>,
        stopper: Stopper,
        ended: JoinHandle<()>,
        dir: tempfile::TempDir,
    }

    /// Runs a task every second, on a leader.
    fn start<F>(work: impl Fn(Shutdown) -> F + Send + Sync + 'static) -> Started
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let dir = tempfile::tempdir().unwrap();
        let leadership = Arc::new(Leadership::new(dir.path()).unwrap());
        let record = Arc::new(Record::new("test"));
        let (stopper, shutdown) = shutdown::channel();
        tokio::spawn(Arc::clone(&leadership).run(shutdown.clone()));
        let task = Task::new("test", "* * * * * *".parse().unwrap(), work);
        let run = task.run(TimeZone::UTC, Arc::clone(&record), leadership, shutdown);
        Started { record, stopper, ended: tokio::spawn(run), dir }
    }

    async fn until(record: &Record, condition: impl Fn(&Now) -> bool) -> Now {
        for _ in 0..300 {
            let now = record.now();
            if condition(&now) {
                return now;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("waited in vain: {:?}", record.now());
    }

    use crate::serve::record::Now;

    #[tokio::test]
    async fn a_task_that_still_runs_is_not_started_again_and_the_skip_is_counted() {
        let runs = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&runs);
        let started = start(move |shutdown| {
            counted.fetch_add(1, Ordering::Relaxed);
            async move {
                shutdown.wait().await;
                Ok(())
            }
        });
        let now = until(&started.record, |now| now.skipped >= 2).await;
        assert!(now.running_since.is_some());
        assert_eq!(runs.load(Ordering::Relaxed), 1);
        started.stopper.stop();
        started.ended.await.unwrap();
        let now = started.record.now();
        assert_eq!((now.ok, now.failed, now.running_since), (1, 0, None));
        drop(started.dir);
    }

    #[tokio::test]
    async fn a_task_that_fails_or_panics_is_counted_and_runs_again() {
        let runs = AtomicU32::new(0);
        let started = start(move |_| {
            let run = runs.fetch_add(1, Ordering::Relaxed);
            async move {
                match run {
                    0 => anyhow::bail!("no"),
                    1 => panic!("on purpose"),
                    _ => Ok(()),
                }
            }
        });
        let failed = until(&started.record, |now| now.failed >= 1).await;
        assert_eq!(failed.error.as_deref(), Some("no"));
        let now = until(&started.record, |now| now.ok >= 1).await;
        assert_eq!((now.failed, now.error), (2, None));
        assert!(now.last_success > now.last_failure);
        started.stopper.stop();
        started.ended.await.unwrap();
        drop(started.dir);
    }

    #[tokio::test]
    async fn a_run_that_was_broken_off_at_the_end_has_not_failed() {
        for stopped in [true, false] {
            let started = start(move |shutdown| async move {
                shutdown.wait().await;
                match stopped {
                    true => Err(anyhow::Error::from(CommandError::Stopped).context("accounts")),
                    false => Err(Interrupted.into()),
                }
            });
            until(&started.record, |now| now.running_since.is_some()).await;
            started.stopper.stop();
            started.ended.await.unwrap();
            let now = started.record.now();
            assert_eq!((now.failed, now.error), (0, None));
            drop(started.dir);
        }
    }
}
