//! `steward analyze`.

use std::collections::HashMap;

use jiff::tz::TimeZone;
use steward_common::intern::Names;

use super::Outcome;
use crate::analyze::groups::GroupSource;
use crate::analyze::options::Options;
use crate::analyze::{Analysis, Setting};
use crate::archive::{self, Archive};
use crate::config::{self, Config, Location};
use crate::output::screen::Screen;
use crate::shutdown::Shutdown;

/// Sum up who used what, and how well, over days of the archive.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steward analyze                                   the last seven days
  steward analyze --from 2026-01-01 --to 2026-03-31 a quarter
  steward analyze --user alice --table waste        what one user wasted, and why
  steward analyze --format html > usage.html        a page to send")]
pub struct Args {
    #[command(flatten)]
    options: Options,
    /// The archive: a directory or s3://bucket/prefix [default: archive.directory].
    #[arg(long, value_name = "PLACE")]
    data_dir: Option<Location>,
}

/// Reads the archive and shows the tables.
///
/// # Errors
/// If there is nothing to show.
pub async fn run(args: Args, config: Config, shutdown: Shutdown) -> anyhow::Result<Outcome> {
    let place = args.data_dir.unwrap_or_else(|| config.archive.directory.clone());
    let archive = archive::open(&place, &config)?;
    let zone = config.zone();
    let work = tokio::task::spawn_blocking(move || text(args.options, &archive, &config, zone));
    Ok(Outcome::done(shutdown.or(work).await???))
}

/// The tables.
///
/// # Errors
/// If there is nothing to show.
pub fn text(
    options: Options,
    archive: &Archive,
    config: &Config,
    zone: TimeZone,
) -> anyhow::Result<String> {
    let groups = match config.groups.source() {
        config::GroupSource::Account => GroupSource::Accounts,
        config::GroupSource::Config => GroupSource::Config(config.groups.members.clone()),
        config::GroupSource::Unix => GroupSource::Unix,
    };
    let setting = Setting {
        zone,
        now: jiff::Timestamp::now(),
        groups,
        nodes: HashMap::new(),
        screen: Screen::of_stdout(),
    };
    archive.consistently(|manifest| {
        let mut analysis = Analysis::new(options.clone(), setting.clone())?;
        let mut names = Names::default();
        let clusters = analysis.filter().clusters;
        let only = if let [one] = clusters.as_slice() { Some(one.as_str()) } else { None };
        let window = analysis.window();
        let detail = analysis.detail();
        let all =
            archive.rows(manifest, window, only, detail, &mut names, &mut |rows, names| {
                analysis.add(rows, names);
            })?;
        Ok(if all { Some(analysis.text(&names)?) } else { None })
    })
}
