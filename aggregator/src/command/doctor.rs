//! `steward doctor`.

use std::sync::Arc;

use super::Outcome;
use crate::config::{Config, Location};
use crate::doctor::{self, Patient};
use crate::output::doctor::text;
use crate::output::json;
use crate::output::screen::Screen;
use crate::shutdown::Shutdown;

/// Check everything that Steward needs, and say what to do about what it lacks.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Looks at steward.toml, sacct and its rights, Slurm's accounting settings, what slurmdbd deletes,
the clocks, the archive, the service, Prometheus, the agents and the Pushgateway. It changes
nothing, and ends within a minute also when everything hangs. Run it as the user that collects.
Exit codes: 0 nothing is broken, 1 something is.

Examples:
  steward doctor                                everything, for people
  steward doctor --json                         for a program
  steward --config new.toml doctor              with other settings")]
pub struct Args {
    /// The archive: a directory or s3://bucket/prefix [default: archive.directory].
    #[arg(long, value_name = "PLACE")]
    data_dir: Option<Location>,
    /// As JSON: a list of findings, each with subject, mark (good, note, trouble), text and advice.
    #[arg(long)]
    json: bool,
    /// Why the settings of the file do not hold.
    #[arg(skip)]
    pub settings: Option<String>,
}

/// Makes all checks.
///
/// # Errors
/// If JSON cannot be written.
pub async fn run(args: Args, config: Config, shutdown: Shutdown) -> anyhow::Result<Outcome> {
    let place = args.data_dir.unwrap_or_else(|| config.archive.directory.clone());
    let stop = shutdown.clone();
    let patient = Patient::new(config, args.settings, place, Arc::new(move || stop.is_due()));
    let findings = shutdown.or(doctor::examine(patient)).await?;
    let text = if args.json {
        json::text(&serde_json::to_value(&findings)?)
    } else {
        text(&findings, Screen::of_stdout(), speaks_utf8())
    };
    Ok(if doctor::has_trouble(&findings) { Outcome::failed(text) } else { Outcome::done(text) })
}

/// Whether the locale can show more than ASCII; the first of these that is set decides.
fn speaks_utf8() -> bool {
    let set = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}
