//! `steward jobs`.

use std::path::PathBuf;

use jiff::civil::Date;
use steward_common::slurm::state::JobState;

use super::{BadInput, Outcome, reader};
use crate::analyze::days;
use crate::config::{Config, Location};
use crate::jobs::{Answer, Question, Whose};
use crate::output::format::{self, Format};
use crate::output::jobs::{JobLine, document};
use crate::output::screen::Screen;
use crate::output::sheet::Cell;
use crate::serve::client::ask;
use crate::shutdown::Shutdown;
use crate::source::people::People;

/// List the runs of jobs, newest first, with what each used of what it held.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Your own jobs, unless told otherwise. Whoever may read the archive gets anybody's; others are
answered by the service over its socket, about themselves only. No right in Slurm's database
is needed.

Examples:
  steward jobs                              mine of the last seven days
  steward jobs -d 30 --state F --state OOM  those that failed or ran out of memory
  steward jobs --name 'train*' --json       for a program
  steward jobs --user alice --from 2026-01-01 --to 2026-03-31
  steward jobs --all-users -d 0             everybody's of today, for administrators")]
pub struct Args {
    /// Jobs of this user; may be given several times, as those below.
    #[arg(long, short, value_name = "NAME", conflicts_with = "all_users")]
    user: Vec<String>,
    /// Jobs of everybody.
    #[arg(long)]
    all_users: bool,
    /// Today and this many days before.
    #[arg(long, short, value_name = "N", default_value_t = 7, conflicts_with = "from")]
    days: u16,
    /// The first day, YYYY-MM-DD in the site's time zone.
    #[arg(long, value_name = "DAY")]
    from: Option<Date>,
    /// The last day, which is in it; today if not given.
    #[arg(long, value_name = "DAY")]
    to: Option<Date>,
    /// Only runs in this state: FAILED or F, TIMEOUT or TO, ….
    #[arg(long, short, value_name = "STATE")]
    state: Vec<String>,
    /// Only jobs charged to this account.
    #[arg(long, value_name = "NAME")]
    account: Vec<String>,
    /// Only jobs in this partition.
    #[arg(long, value_name = "NAME")]
    partition: Vec<String>,
    /// Only jobs with such a name; * is any text, ? any character.
    #[arg(long, value_name = "PATTERN")]
    name: Option<String>,
    /// Only jobs of this cluster.
    #[arg(long, value_name = "NAME")]
    cluster: Vec<String>,
    /// At most so many, the newest; 0 is all. The service gives at most 10,000.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100)]
    limit: usize,
    /// How to write it.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// The same as --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// The archive: a directory or s3://bucket/prefix [default: archive.directory, else the service].
    #[arg(long, value_name = "PLACE")]
    data_dir: Option<Location>,
    /// Unix socket of the service [default: serve.socket].
    #[arg(long, value_name = "PATH", env = "STEWARD_SOCKET", conflicts_with = "data_dir")]
    socket: Option<PathBuf>,
}

/// Finds the runs and shows them.
///
/// # Errors
/// If neither the archive can be read nor the service answers.
pub async fn run(args: Args, config: Config, shutdown: Shutdown) -> anyhow::Result<Outcome> {
    let zone = config.zone();
    let format = if args.json { Format::Json } else { args.format };
    let question = question(&args, &config)?;
    let whose = title(&question);
    let answer = shutdown.or(find(&args, config, question)).await??;
    let lines: Vec<JobLine> = answer.runs.into_iter().map(|run| run.line(&zone, format)).collect();
    let mut document = document(&lines, &whose);
    document.facts.push(("cut", Cell::Count(answer.cut.into())));
    if answer.cut {
        let note = format!(
            "Only the newest {} are shown; --limit (0 is all) or fewer days show others.",
            lines.len()
        );
        if format == Format::Csv {
            tracing::warn!("{note}");
        }
        for sheet in &mut document.sheets {
            sheet.notes.push(note.clone());
        }
    }
    let screen = Screen::of_stdout();
    // One table alone needs no line with its name before it.
    let text = match (format, document.sheets.first()) {
        (Format::Csv, Some(sheet)) => format::write_sheet(&document, sheet, format, screen, None),
        _ => format::write(&document, format, screen, None),
    };
    Ok(Outcome::done(text))
}

fn question(args: &Args, config: &Config) -> anyhow::Result<Question> {
    let now = jiff::Timestamp::now();
    let days = days::days(args.from, args.to, args.days, now, &config.zone())
        .map_err(|error| BadInput(error.to_string()))?;
    Ok(Question {
        whose: match args.user.as_slice() {
            _ if args.all_users => Whose::All,
            [] => Whose::Own,
            users => Whose::Of(users.to_vec()),
        },
        from: days.window.from().get(),
        // What was submitted this very second is wanted too.
        to: days.window.to().get().saturating_add(1),
        states: args.state.iter().map(|text| state(text)).collect::<Result<_, _>>()?,
        accounts: args.account.clone(),
        partitions: args.partition.clone(),
        clusters: args.cluster.clone(),
        name: args.name.clone(),
        job_id: None,
        limit: args.limit,
    })
}

fn state(text: &str) -> Result<String, BadInput> {
    let state = JobState::named(text).ok_or_else(|| {
        let known = JobState::names();
        BadInput(format!("--state: {text:?} is no state of Slurm; there are {known}"))
    })?;
    Ok(state.name().to_owned())
}

fn title(question: &Question) -> String {
    match &question.whose {
        Whose::Own => "Your jobs".to_owned(),
        Whose::Of(users) => format!("Jobs of {}", users.join(" and ")),
        Whose::All => "Jobs of everybody".to_owned(),
    }
}

/// From the archive if we may read it, else from the service.
async fn find(args: &Args, config: Config, question: Question) -> anyhow::Result<Answer> {
    if let Some(socket) = &args.socket {
        return Ok(ask(socket, "jobs", &question).await?);
    }
    let place = args.data_dir.clone().unwrap_or_else(|| config.archive.directory.clone());
    let socket = config.serve.socket.clone();
    match from_archive(place, config, question.clone()).await {
        Err(why) if args.data_dir.is_none() && reader::is_closed(&why) => {
            reader::instead(&socket, "jobs", &question, &why).await
        }
        answer => answer,
    }
}

async fn from_archive(
    place: Location,
    config: Config,
    mut question: Question,
) -> anyhow::Result<Answer> {
    let uid = nix::unistd::geteuid().as_raw();
    let own = if question.whose == Whose::Own { People::default().name(uid).await } else { None };
    let work = tokio::task::spawn_blocking(move || {
        let archive = reader::open(&place, &config)?;
        if question.whose == Whose::Own {
            let Some(own) = own else {
                anyhow::bail!("the system knows no name for user id {uid}; give --user NAME");
            };
            question.whose = Whose::Of(vec![own]);
        }
        Ok(archive.jobs(&question)?)
    });
    work.await?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_known_by_both_names_in_any_case() {
        assert_eq!(state("oom").unwrap(), "OUT_OF_MEMORY");
        assert_eq!(state("Failed").unwrap(), "FAILED");
        assert_eq!(state("CA").unwrap(), "CANCELLED");
        assert!(state("SLEEPY").unwrap_err().to_string().contains("COMPLETED"));
    }
}
