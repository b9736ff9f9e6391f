//! `steward current`.

use std::path::PathBuf;
use std::sync::Arc;

use steward_common::cluster::{Question, Snapshot};
use steward_common::id::ClusterName;

use super::{End, Outcome};
use crate::config::Config;
use crate::current::{JobRow, Rows, Which};
use crate::output::current::{Shown, document};
use crate::output::format::{self, Format};
use crate::output::screen::Screen;
use crate::output::sheet::Document;
use crate::serve::client::ask;
use crate::shutdown::Shutdown;
use crate::snapshot;
use crate::source::people::People;

/// Show who has what in the queue now: jobs, CPUs, GPUs and nodes, by user and partition.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Slurm is asked, which shows everybody what it shows to him in squeue. The service has the same
without asking again, and tells everyone but the administrator about his own jobs only. Nodes are
summed over jobs: one that two jobs share counts twice.

Examples:
  steward current                            the queue of this cluster
  steward current --jobs --user alice        job by job
  steward current --cluster c1 --cluster c2  of two clusters that share a database
  steward current --service --json           from the service's last snapshot, for a program")]
pub struct Args {
    #[command(flatten)]
    from: From,
    /// Only jobs of this user; may be given several times, as those below.
    #[arg(long, short, value_name = "NAME")]
    user: Vec<String>,
    /// Only jobs charged to this account.
    #[arg(long, value_name = "NAME")]
    account: Vec<String>,
    /// Only jobs in this partition.
    #[arg(long, value_name = "NAME")]
    partition: Vec<String>,
    /// Show the jobs one by one too.
    #[arg(long)]
    jobs: bool,
    #[command(flatten)]
    how: How,
}

/// Who is asked, and about which clusters.
#[derive(Debug, clap::Args)]
pub struct From {
    /// Of this cluster [default: slurm.clusters, else the local one].
    #[arg(long, short = 'M', value_name = "NAME")]
    cluster: Vec<ClusterName>,
    /// Ask the service in place of Slurm.
    #[arg(long)]
    pub(super) service: bool,
    /// Unix socket of the service [default: serve.socket].
    #[arg(long, value_name = "PATH", env = "STEWARD_SOCKET", requires = "service")]
    socket: Option<PathBuf>,
}

/// How it is shown.
#[derive(Debug, clap::Args)]
pub struct How {
    /// At most so many rows of each table; 0 is all.
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// How to write it.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// The same as --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// Asks and shows.
///
/// # Errors
/// If nobody answers.
pub async fn run(args: Args, config: Config, shutdown: Shutdown) -> anyhow::Result<Outcome> {
    let rows: Vec<Rows<JobRow>> = if args.from.service {
        shutdown.or(args.from.of_service("current", &config)).await??
    } else {
        let rows = |one: &Snapshot| Rows::of_jobs(one, |_| true);
        args.from.of_slurm(config, &[Question::Jobs], shutdown, rows).await?
    };
    let uid = nix::unistd::geteuid().as_raw();
    let own = People::default().name(uid).await;
    let one_of =
        |names: &[String], own: &str| names.is_empty() || names.iter().any(|name| name == own);
    let (jobs, failed) = split(rows);
    let jobs: Vec<JobRow> = jobs
        .into_iter()
        .filter(|job| {
            one_of(&args.user, &job.user)
                && one_of(&args.account, &job.account)
                && (args.partition.is_empty()
                    || job.partition.split(',').any(|own| one_of(&args.partition, own)))
        })
        .collect();
    let document = document(&jobs, &Shown { jobs: args.jobs, own: own.as_deref() });
    args.how.outcome(&document, &failed)
}

impl From {
    /// Asks Slurm about each cluster.
    pub(super) async fn of_slurm<T: Send + 'static>(
        &self,
        config: Config,
        wanted: &'static [Question],
        shutdown: Shutdown,
        rows: fn(&Snapshot) -> Rows<T>,
    ) -> anyhow::Result<Vec<Rows<T>>> {
        let named = if self.cluster.is_empty() { &config.slurm.clusters } else { &self.cluster };
        let mut clusters: Vec<Option<ClusterName>> = named.iter().cloned().map(Some).collect();
        if clusters.is_empty() {
            clusters.push(None);
        }
        let config = Arc::new(config);
        let work = tokio::task::spawn_blocking(move || {
            let ask =
                |cluster| snapshot::part(&config, cluster, wanted, &shutdown).map(|one| rows(&one));
            clusters.into_iter().map(ask).collect()
        });
        work.await?
    }

    /// Asks the service.
    pub(super) async fn of_service<T: serde::de::DeserializeOwned>(
        &self,
        command: &str,
        config: &Config,
    ) -> anyhow::Result<Vec<Rows<T>>> {
        let socket = self.socket.as_ref().unwrap_or(&config.serve.socket);
        let clusters = self.cluster.iter().map(ToString::to_string).collect();
        Ok(ask(socket, command, Which { clusters }).await?)
    }
}

/// The rows of all clusters, and what was said by those that gave none, or old ones.
pub(super) fn split<T>(all: Vec<Rows<T>>) -> (Vec<T>, Vec<String>) {
    let mut failed = Vec::new();
    let mut rows = Vec::new();
    for one in all {
        if let Some(error) = one.error {
            let kept = if one.seen_at.is_some() { " (what is shown is older)" } else { "" };
            failed.push(format!("{}: {error}{kept}", one.cluster));
        }
        rows.extend(one.rows);
    }
    (rows, failed)
}

impl How {
    /// The document as it is wanted. Where a cluster gave nothing it is done in part, and where
    /// none gave anything it failed.
    pub(super) fn outcome(
        &self,
        document: &Document,
        failed: &[String],
    ) -> anyhow::Result<Outcome> {
        let nothing = document.sheets.iter().all(|sheet| sheet.rows.is_empty());
        if nothing && !failed.is_empty() {
            anyhow::bail!("{}", failed.join("; "));
        }
        for failure in failed {
            tracing::error!("{failure}");
        }
        let format = if self.json { Format::Json } else { self.format };
        let text = format::write(document, format, Screen::of_stdout(), self.top);
        let end = if failed.is_empty() { End::Done } else { End::InPart };
        Ok(Outcome { text, end })
    }
}
