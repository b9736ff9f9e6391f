//! Which command answers which question, and how its answer is read.

use std::sync::Arc;
use std::time::Duration;

use steward_common::cluster::{
    AccountLimits, CurrentJob, Licence, Node, Partition, Question, Reservation, Scheduler, Share,
    licence, limits, node, partition, queue, reservation, scheduler, share,
};
use steward_common::id::ClusterName;
use steward_common::slurm::ParseError;

use crate::config::Config;
use crate::source::slurm::command::{Answer, CommandError, Running, TEXT};
use crate::source::slurm::json::{self, JsonError};
use crate::source::slurm::sacct::Stop;

/// Times as seconds, everything in English, lists uncut.
const ENVIRONMENT: [(&str, &str); 4] =
    [("TZ", "UTC"), ("LC_ALL", "C.UTF-8"), ("SLURM_TIME_FORMAT", "%s"), ("SLURM_BITSTR_LEN", "0")];

/// A question without an answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The command took too long.
    #[error("{command}: no end after {} s; raise exporter.timeout if it needs longer", limit.as_secs())]
    TooSlow {
        /// The command.
        command: String,
        /// The time it had.
        limit: Duration,
    },
    /// The command failed.
    #[error("{0}")]
    Command(CommandError),
    /// Its JSON cannot be read.
    #[error("{command}: {source}")]
    Json {
        /// The command.
        command: String,
        /// Why.
        source: JsonError,
    },
    /// Its text cannot be read.
    #[error("{command}: {source}")]
    Text {
        /// The command.
        command: String,
        /// Why.
        source: ParseError,
    },
    /// It was not asked, because another question failed after a long time.
    #[error("not asked, because {} had no answer for long", .0.name())]
    NotAsked(Question),
}

impl From<CommandError> for AskError {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::TooSlow { command, limit } => Self::TooSlow { command, limit },
            other => Self::Command(other),
        }
    }
}

impl AskError {
    /// Whether this Slurm cannot be asked so, whoever runs: it does not know the option, has no
    /// JSON, or answers another question.
    fn is_other_dialect(&self) -> bool {
        match self {
            Self::Command(CommandError::Failed { complaint, .. }) => {
                let complaint = complaint.to_lowercase();
                ["unrecognized option", "invalid option", "serializer", "data_parser", "json"]
                    .iter()
                    .any(|word| complaint.contains(word))
            }
            Self::Json { source, .. } => matches!(source, JsonError::Other(_)),
            _ => false,
        }
    }
}

/// Asks one cluster.
#[derive(Clone)]
pub struct Asker {
    config: Arc<Config>,
    cluster: Option<ClusterName>,
    stop: Stop,
}

/// A way to ask for something.
type Way<'a, T> = &'a dyn Fn(&Asker) -> Result<T, AskError>;

impl Asker {
    /// One that names the cluster if it is given, and stops when told.
    pub fn new(config: Arc<Config>, cluster: Option<ClusterName>, stop: Stop) -> Self {
        Self { config, cluster, stop }
    }

    /// How long one command may take.
    pub fn limit(&self) -> Duration {
        self.config.exporter.timeout.0
    }

    /// The nodes. Since 23.02 scontrol has JSON; before that sinfo's lists nodes.
    pub fn nodes(&self) -> Result<Vec<Node>, AskError> {
        let slurm = &self.config.slurm;
        self.first_of(&[
            &|ask| ask.json(&slurm.scontrol, &["-a", "show", "nodes", "--json"], json::nodes::read),
            &|ask| ask.json(&slurm.sinfo, &["-a", "--json"], json::nodes::read),
            &|ask| ask.text(&slurm.scontrol, &["-a", "-o", "-d", "show", "nodes"], node::parse),
        ])
    }

    /// The queue.
    pub fn jobs(&self) -> Result<Vec<CurrentJob>, AskError> {
        let squeue = &self.config.slurm.squeue;
        let all = ["-a", "-t", "all"];
        let as_json =
            |ask: &Asker| ask.json(squeue, &[&all[..], &["--json"]].concat(), json::jobs::read);
        let as_text = |ask: &Asker| {
            let format = queue::format();
            ask.text(squeue, &[&all[..], &["-h", "-O", &format]].concat(), queue::parse)
        };
        // Only newer versions tell in JSON where jobs were submitted, which Mila's names need.
        if self.config.exporter.mila {
            return self.first_of(&[&as_text, &as_json]);
        }
        self.first_of(&[&as_json, &as_text])
    }

    /// The partitions.
    pub fn partitions(&self) -> Result<Vec<Partition>, AskError> {
        let scontrol = &self.config.slurm.scontrol;
        self.text(scontrol, &["-a", "-o", "show", "partitions"], partition::parse)
    }

    /// The reservations.
    pub fn reservations(&self) -> Result<Vec<Reservation>, AskError> {
        let scontrol = &self.config.slurm.scontrol;
        self.text(scontrol, &["-o", "show", "reservations"], reservation::parse)
    }

    /// The licences.
    pub fn licences(&self) -> Result<Vec<Licence>, AskError> {
        let scontrol = &self.config.slurm.scontrol;
        self.text(scontrol, &["-o", "show", "licenses"], licence::parse)
    }

    /// Shares.
    pub fn shares(&self) -> Result<Vec<Share>, AskError> {
        self.text(&self.config.slurm.sshare, &["-a", "-P", "-o", share::COLUMNS], share::parse)
    }

    /// Limits of accounts. The database is asked, which is told the cluster in other words.
    pub fn limits(&self, cluster: &ClusterName) -> Result<Vec<AccountLimits>, AskError> {
        let arguments = [
            "-n",
            "-P",
            "show",
            "associations",
            &format!("cluster={cluster}"),
            "format=User,Account,GrpCPUs,GrpMem,GrpJobs,GrpSubmit",
        ];
        let here = Asker { cluster: None, ..self.clone() };
        here.text(&self.config.slurm.sacctmgr, &arguments, limits::parse)
    }

    /// What the scheduler does.
    pub fn scheduler(&self) -> Result<Scheduler, AskError> {
        self.text(&self.config.slurm.sdiag, &[], |text| {
            scheduler::parse(text).ok_or_else(|| {
                let begin: String = text.chars().take(200).collect();
                ParseError::new("scheduler", &begin, "what sdiag prints")
            })
        })
    }

    /// The first way that this Slurm understands.
    fn first_of<T>(&self, ways: &[Way<'_, T>]) -> Result<T, AskError> {
        let mut last = None;
        for way in ways {
            match way(self) {
                Err(error) if error.is_other_dialect() => last = Some(error),
                result => return result,
            }
        }
        Err(last.unwrap_or(AskError::Command(CommandError::Stopped)))
    }

    fn text<T>(
        &self,
        program: &[String],
        arguments: &[&str],
        parse: impl FnOnce(&str) -> Result<T, ParseError>,
    ) -> Result<T, AskError> {
        let command = self.command(program, arguments);
        let bytes = self.start(&command)?.text(TEXT)?;
        // Names may hold bytes that are no text; the rest of the line is still good.
        parse(&String::from_utf8_lossy(&bytes))
            .map_err(|source| AskError::Text { command: shown(&command), source })
    }

    fn json<T>(
        &self,
        program: &[String],
        arguments: &[&str],
        read: impl FnOnce(Answer) -> Result<T, JsonError>,
    ) -> Result<T, AskError> {
        let command = self.command(program, arguments);
        self.run(&command, |answer| {
            read(answer).map_err(|source| AskError::Json { command: shown(&command), source })
        })
    }

    fn command(&self, program: &[String], arguments: &[&str]) -> Vec<String> {
        let cluster = self.cluster.iter().flat_map(|name| ["-M".to_owned(), name.to_string()]);
        let arguments = arguments.iter().map(ToString::to_string);
        program.iter().cloned().chain(cluster).chain(arguments).collect()
    }

    fn start(&self, command: &[String]) -> Result<Running, CommandError> {
        let stop = Arc::clone(&self.stop);
        Running::start(command, &ENVIRONMENT, self.limit(), move || stop())
    }

    /// Runs a command while `read` reads from its pipe. If both fail, the command knows why; how it
    /// ended is told in any case.
    fn run<T>(
        &self,
        command: &[String],
        read: impl FnOnce(Answer) -> Result<T, AskError>,
    ) -> Result<T, AskError> {
        let mut running = self.start(command)?;
        let Some(answer) = running.answer() else {
            return Err(AskError::Command(CommandError::Stopped));
        };
        let read = read(answer);
        match (read, running.finish()) {
            (Ok(answer), Ok(_)) => Ok(answer),
            (Err(error), Ok(_)) => Err(error),
            (Err(error), Err(CommandError::Failed { command, status, complaint }))
                if complaint.is_empty() =>
            {
                Err(CommandError::Failed { command, status, complaint: error.to_string() }.into())
            }
            (_, Err(error)) => Err(error.into()),
        }
    }
}

/// A command for messages, without the long list of columns.
fn shown(command: &[String]) -> String {
    let short = |word: &String| word.len() < 60;
    command.iter().take_while(|word| short(word)).cloned().collect::<Vec<_>>().join(" ")
}
