//! `steward config check`.

use clap::Subcommand;

use super::Outcome;
use crate::config::{Config, GroupSource};
use crate::shutdown::Shutdown;

/// Look at the settings.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steward config check                            /etc/steward/steward.toml, or the defaults
  steward --config new.toml config check          a file before it is put in place")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Read the configuration and print what holds; exits with 2 and the place if it cannot be used.
    Check,
}

/// Prints what holds; that the settings can be used was found out when they were read.
///
/// # Errors
/// None.
#[allow(clippy::unused_async, reason = "as every command")]
pub async fn run(args: Args, config: Config, _: Shutdown) -> anyhow::Result<Outcome> {
    let What::Check = args.what;
    Ok(Outcome::done(summary(&config)))
}

fn summary(config: &Config) -> String {
    let zone = config.zone();
    let zone = zone.iana_name().unwrap_or("the system's, which has no name");
    let kept = |span: Option<crate::config::Span>| {
        span.map_or_else(|| "for ever".to_owned(), |span| format!("for {span}"))
    };
    let clusters = match config.slurm.clusters.as_slice() {
        [] => "the local one".to_owned(),
        names => names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    let or_none =
        |text: &Option<String>| text.clone().unwrap_or_else(|| "none configured".to_owned());
    let groups = match config.groups.source() {
        GroupSource::Account => "Slurm accounts".to_owned(),
        GroupSource::Unix => "Unix groups".to_owned(),
        GroupSource::Config => format!("{} in the configuration", config.groups.members.len()),
    };
    let collect = if config.collect.enabled {
        format!("at \"{}\"", config.collect.schedule)
    } else {
        "not by the service".to_owned()
    };
    let rows = [
        ("time zone", zone.to_owned()),
        ("log", config.log.clone()),
        ("archive", config.archive.directory.to_string()),
        ("  raw rows", kept(config.archive.retention_raw)),
        ("  jobs", kept(config.archive.retention_processed)),
        ("clusters", clusters),
        ("sacct", config.slurm.sacct.join(" ")),
        ("collect", collect),
        ("exporter", exporter(config)),
        ("prometheus", or_none(&config.prometheus.url)),
        ("pushgateway", or_none(&config.pushgateway.url)),
        ("groups", groups),
        ("metrics", format!("http://{}/metrics", config.serve.listen)),
        ("socket", format!("{} ({})", config.serve.socket.display(), config.serve.socket_mode)),
        ("state", config.serve.state.display().to_string()),
        ("store", config.store().display().to_string()),
    ];
    rows.into_iter().map(|(name, value)| format!("{name:<12} {value}\n")).collect()
}

fn exporter(config: &Config) -> String {
    let exporter = &config.exporter;
    let names = match (exporter.vpenso, exporter.mila) {
        (true, _) => ", vpenso's names too",
        (false, true) => ", Mila's names too",
        (false, false) => "",
    };
    match exporter.enabled {
        true => format!("a snapshot every {}{names}", exporter.interval),
        false => "not by the service".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_is_a_line_each() {
        let mut config = Config::default();
        config.pushgateway.url = Some("http://gw:9091".to_owned());
        let text = summary(&config);
        for line in [
            "archive      /var/lib/steward/archive\n",
            "  jobs       for ever\n",
            "collect      at \"17 * * * *\"\n",
            "exporter     a snapshot every 30s, vpenso's names too\n",
            "prometheus   none configured\n",
            "pushgateway  http://gw:9091\n",
            "socket       /run/steward/steward.sock (0666)\n",
        ] {
            assert!(text.contains(line), "{line:?} is not in\n{text}");
        }
    }
}
