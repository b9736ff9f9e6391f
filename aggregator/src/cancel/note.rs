//! What a job's owner is told, and by whom.

use std::future::Future;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use steward_common::time::Timestamp;

/// What a note is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The first warning: the job has not used its GPUs since it began.
    Warning1,
    /// The second.
    Warning2,
    /// The job has not used its GPUs for some hours.
    SlidingWarning,
    /// The job has ended: Slurm says so.
    Cancelled,
}

impl Kind {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Warning1 => "first-warning",
            Kind::Warning2 => "second-warning",
            Kind::SlidingWarning => "sliding-warning",
            Kind::Cancelled => "cancelled",
        }
    }
}

/// What a job's owner is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// The same whenever it is told again: what was told under it need not be told twice.
    pub id: String,
    /// Whom.
    pub user: String,
    /// The cluster.
    pub cluster: String,
    /// The job as people know it: `739`, or `741_0` for a task of an array.
    pub job: String,
    /// Its partition; `None` if it is over and nobody knows any more.
    pub partition: Option<String>,
    /// What it is about.
    pub kind: Kind,
    /// The instance of the rule.
    pub instance: String,
    /// GPUs that it holds,
    pub gpus: Option<u32>,
    /// and those of them that are idle.
    pub gpus_idle: Option<u32>,
    /// How long it has run, in hours.
    pub hours: Option<f64>,
    /// When it will be cancelled if nothing changes; `None` if it was, or never will be.
    pub cancel_at: Option<Timestamp>,
}

impl Note {
    /// As a value for programs.
    #[must_use]
    pub fn value(&self) -> Value {
        json!({
            "id": self.id,
            "user": self.user,
            "cluster": self.cluster,
            "job": self.job,
            "partition": self.partition,
            "kind": self.kind.name(),
            "instance": self.instance,
            "gpus": self.gpus,
            "gpus_idle": self.gpus_idle,
            "hours": self.hours,
            "cancel_at": self.cancel_at.map(Timestamp::get),
        })
    }
}

/// What became of a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// It is on its way: it counts.
    HandedOver,
    /// It was not sent, for a reason; it is tried again with the next run.
    NotNow(String),
}

/// Who hands notes to users.
pub trait Messenger: Send + Sync {
    /// Hands a note over. One of an id that was handed over before is not sent again.
    fn tell(&self, note: &Note) -> impl Future<Output = Result<Told, String>> + Send;
}

/// How long a program may take.
const LIMIT: Duration = Duration::from_secs(60);

/// A program of the site that gets notes as JSON on its standard input.
#[derive(Clone, Debug)]
pub struct Program {
    /// With its arguments.
    pub argv: Vec<String>,
}

impl Messenger for Program {
    async fn tell(&self, note: &Note) -> Result<Told, String> {
        let (argv, text) = (self.argv.clone(), note.value().to_string());
        let work = tokio::task::spawn_blocking(move || hand(&argv, &text));
        work.await.map_err(|error| error.to_string())?.map(|()| Told::HandedOver)
    }
}

fn hand(argv: &[String], text: &str) -> Result<(), String> {
    let name = argv.first().map(String::as_str).unwrap_or_default();
    let fault = |error: std::io::Error| format!("{name}: {error} (cancel.tell)");
    let mut child = Command::new(name)
        .args(argv.get(1..).unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(fault)?;
    // A note is far less than a pipe holds; who does not read it may have ended well all the same.
    let written = child.stdin.take().map_or(Ok(()), |mut input| input.write_all(text.as_bytes()));
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(fault)? {
            break status;
        }
        if began.elapsed() > LIMIT {
            drop(child.kill());
            drop(child.wait());
            return Err(format!("{name}: no end after {} s (cancel.tell)", LIMIT.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    written.map_err(fault)?;
    if status.success() { Ok(()) } else { Err(format!("{name}: {status} (cancel.tell)")) }
}
