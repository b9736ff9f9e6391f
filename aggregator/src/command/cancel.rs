//! `steward cancel`.

use std::sync::Arc;

use clap::Subcommand;
use steward_common::time::Timestamp;

use super::{BadInput, Outcome};
use crate::actor::actor;
use crate::cancel::engine::Came;
use crate::cancel::run;
use crate::config::{CancelMode as Mode, Config};
use crate::output::cancel;
use crate::output::format::{self, Format};
use crate::output::plain::visible;
use crate::output::screen::Screen;
use crate::shutdown::Shutdown;
use crate::store::Store;
use crate::store::cancels::{Decision, Kept};

/// Warn about running jobs whose GPUs do nothing, and end those that stay idle.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The rule cancel-zero-gpu-jobs finds such jobs ('steward rules cancel-zero-gpu-jobs'); [cancel] says what is done about
them. Nothing is unless cancel.mode says so: at first every run is a dry run. No job ends whose owner was not warned.
Exit codes: 0 done, 1 failed or no such job, 2 bad input, 3 done in part.

Examples:
  steward cancel run --dry-run          what would be done now
  steward cancel run                    look and act once, as cancel.mode says
  steward cancel list                   who was warned, what waits for approval
  steward cancel approve 4f1c0a9be2d35786
  steward cancel reject 4f1c0a9be2d35786 --reason 'asked for by the user'
  steward audit                         what was done, and by whom")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Look at all running jobs and act, once.
    Run {
        /// Do nothing, whatever cancel.mode says.
        #[arg(long)]
        dry_run: bool,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// List jobs that were warned about, wait for approval, or were cancelled.
    List {
        /// Also those that are over.
        #[arg(long)]
        all: bool,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Let a job end that waits for approval; all rails are looked at once more.
    Approve {
        /// Its ID, as the list has it.
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Do not let a job end; it is left until it has worked again.
    Reject {
        /// Its ID, as the list has it.
        #[arg(value_name = "ID")]
        id: String,
        /// Why; the log keeps it.
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
}

/// Does it.
///
/// # Errors
/// If what was given makes no sense, or nothing can be done at all.
pub async fn run(args: Args, config: Config, shutdown: Shutdown) -> anyhow::Result<Outcome> {
    let config = Arc::new(config);
    match args.what {
        What::Run { dry_run, json } => {
            let mode = if dry_run { Mode::DryRun } else { config.cancel.mode };
            let report = run::once(&config, mode, actor(), &shutdown).await?;
            let failed = report.lines.iter().any(|line| matches!(line.came, Came::Failed(_)));
            let text = write(&cancel::run(&report), json);
            let whole = !failed && report.troubles.is_empty();
            Ok(if whole { Outcome::done(text) } else { Outcome::in_part(text) })
        }
        What::List { all, json } => {
            let store = shutdown.or(Store::at(config.store())).await??;
            let list = store.cancels().await;
            store.close().await;
            let mut list: Vec<Kept> = list?;
            let says =
                |kept: &Kept| kept.is_warned() || kept.is_acted_on() || kept.proposed.is_some();
            list.retain(|kept| says(kept) && (all || kept.cancelled.is_none()));
            Ok(Outcome::done(write(&cancel::list(list, &config.zone()), json)))
        }
        What::Approve { id } => decide(&config, &id, Decision::Approved).await,
        What::Reject { reason, .. } if reason.trim().is_empty() => {
            Err(BadInput("--reason: say why".to_owned()).into())
        }
        What::Reject { id, reason } => decide(&config, &id, Decision::Rejected(reason)).await,
    }
}

fn write(document: &crate::output::sheet::Document, json: bool) -> String {
    let format = if json { Format::Json } else { Format::Table };
    format::write(document, format, Screen::of_stdout(), Some(0))
}

async fn decide(config: &Config, id: &str, decision: Decision) -> anyhow::Result<Outcome> {
    let now = Timestamp::new(jiff::Timestamp::now().as_second());
    let store = Store::at(config.store()).await?;
    let done = store.decide_cancel(id, &decision, &actor(), now).await;
    store.close().await;
    let id = visible(id);
    if !done? {
        let why = "nothing of that ID waits for approval; 'steward cancel list' has them";
        return Ok(Outcome::failed(format!("{id}: {why}.\n")));
    }
    Ok(Outcome::done(match decision {
        Decision::Approved => {
            format!("{id}: ends with the next run, if it is still idle then.\n")
        }
        Decision::Rejected(_) => format!("{id}: is left.\n"),
    }))
}
