//! `steward config check`.

use clap::Subcommand;

use super::Outcome;
use crate::config::{Config, ConfigError, GroupSource, JobOf, Workdays};
use crate::manual::{self, or_none};
use crate::notice::workday::Calendar;
use crate::output::plain::visible;
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
    ///
    /// What can be used but is most likely wrong, such as a warning after what it warns of, is a line that begins
    /// with 'warning:'.
    Check,
}

/// Prints what holds; that the settings can be used was found out when they were read.
///
/// # Errors
/// If a rule cannot be used after all.
#[allow(clippy::unused_async, reason = "as every command")]
pub async fn run(args: Args, config: Config, _: Shutdown) -> anyhow::Result<Outcome> {
    let What::Check = args.what;
    Ok(Outcome::done(told(&config)?))
}

/// What holds, and what is likely wrong with it.
fn told(config: &Config) -> Result<String, ConfigError> {
    let mut text = summary(config)?;
    for warning in config.warnings() {
        text += &format!("warning: {}\n", visible(&warning));
    }
    Ok(text)
}

fn summary(config: &Config) -> Result<String, ConfigError> {
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
    let mut rows = vec![
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
        ("gpus", gpus(config)?),
        ("groups", groups),
        ("evaluate", evaluate(config)),
        ("cost", cost(config)),
        ("mail", crate::mail::check(config)?),
        ("workdays", workdays(config)?),
        ("outlets", outlets(config)),
        ("metrics", format!("http://{}/metrics", config.serve.listen)),
        ("socket", format!("{} ({})", config.serve.socket.display(), config.serve.socket_mode)),
        ("state", config.serve.state.display().to_string()),
        ("store", config.store().to_string()),
    ];
    rows.extend(rules(config)?.into_iter().map(|line| ("", line)));
    if let Some((name, _)) = rows.iter_mut().find(|(name, _)| name.is_empty()) {
        *name = "rules";
    }
    let line = |(name, value): (&str, String)| format!("{name:<12} {}\n", visible(&value));
    Ok(rows.into_iter().map(line).collect())
}

/// How many rules hold, then a line for each that the site speaks of.
fn rules(config: &Config) -> Result<Vec<String>, ConfigError> {
    let listed = config.rules.listed()?;
    let off: Vec<&str> =
        listed.iter().filter(|one| !one.enabled).map(|one| one.instance.name.as_str()).collect();
    let mut lines = vec![format!("{} on, {} off", listed.len() - off.len(), off.len())];
    if !off.is_empty() {
        lines.push(format!("off: {}", off.join(", ")));
    }
    for one in listed.iter().filter(|one| one.configured && one.enabled) {
        let (name, id) = (&one.instance.name, one.instance.rule.id().as_str());
        let of = if name == id { String::new() } else { format!(" ({id})") };
        let mut words = vec![manual::in_short(&one.instance.scope)];
        for setting in manual::settings(&one.instance).iter().filter(|one| one.is_changed()) {
            let (value, was) = (setting.shown.value.as_deref(), setting.default.as_deref());
            let (value, was) = (or_none(value), or_none(was));
            words.push(format!("{} = {value}, not {was}", setting.shown.name));
        }
        if !one.sets.is_empty() {
            words.push(format!("sets {}", one.sets.join(", ")));
        }
        lines.push(format!("{name}{of}: {}", words.join("; ")));
    }
    Ok(lines)
}

fn gpus(config: &Config) -> Result<String, ConfigError> {
    let Some(mapping) = config.gpus.mapping()? else {
        return Ok("not measured, but for summaries of Jobstats".to_owned());
    };
    let job = match &mapping.job {
        JobOf::Label(label) => format!("its job in label {label}"),
        JobOf::Join(metric) => format!("its job by way of {metric}"),
    };
    let preset = format!("{:?}", config.gpus.preset).to_lowercase();
    let (busy, gpu, node) = (&mapping.utilisation, &mapping.gpu, &mapping.node);
    Ok(format!("{preset}: {busy} by {node} and {gpu}, {job}"))
}

fn evaluate(config: &Config) -> String {
    let evaluate = &config.evaluate;
    let over = format!("over today and {} days before", evaluate.days);
    match evaluate.enabled {
        true => format!("at \"{}\", {over}", evaluate.schedule),
        false => format!("not by the service; {over}"),
    }
}

fn cost(config: &Config) -> String {
    let cost = &config.cost;
    let watts =
        |what: &str, watts: Option<f64>| watts.map(|watts| format!("{watts} W an idle {what}"));
    let money = cost.billing_hour.zip(cost.currency.as_ref());
    let words: Vec<String> = [
        money.map(|(price, currency)| format!("{price} {currency} a billing hour")),
        watts("CPU", cost.cpu_watts),
        watts("GPU", cost.gpu_watts),
    ]
    .into_iter()
    .flatten()
    .collect();
    if words.is_empty() { "not stated".to_owned() } else { words.join(", ") }
}

/// Who else is told, by name: the address of a webhook may be a secret.
fn outlets(config: &Config) -> String {
    let alertmanager = config.outlets.alertmanager.as_ref();
    let mut all: Vec<String> =
        alertmanager.map(|one| format!("Alertmanager at {}", one.url)).into_iter().collect();
    all.extend(config.outlets.webhook.keys().map(|name| format!("webhook {name}")));
    if all.is_empty() { "none configured".to_owned() } else { all.join(", ") }
}

/// On which days people are written to, once the file of holidays was read.
fn workdays(config: &Config) -> Result<String, ConfigError> {
    let calendar = Calendar::open(&config.notices)?;
    let days = match config.notices.days {
        Workdays::Always => return Ok("every day".to_owned()),
        Workdays::Weekdays => "Monday to Friday",
        Workdays::Usa => "Monday to Friday without federal holidays of the United States",
    };
    Ok(match (&config.notices.holidays, calendar.listed()) {
        (None, _) => days.to_owned(),
        (Some(path), 1) => format!("{days}, but for a day in {}", path.display()),
        (Some(path), listed) => format!("{days}, but for {listed} days in {}", path.display()),
    })
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
        let text = summary(&config).unwrap();
        for line in [
            "archive      /var/lib/steward/archive\n",
            "  jobs       for ever\n",
            "collect      at \"17 * * * *\"\n",
            "exporter     a snapshot every 30s, vpenso's names too\n",
            "prometheus   none configured\n",
            "pushgateway  http://gw:9091\n",
            "socket       /run/steward/steward.sock (0666)\n",
            "evaluate     at \"41 * * * *\", over today and 7 days before\n",
            "cost         not stated\n",
            "workdays     Monday to Friday\n",
            "outlets      none configured\n",
            "rules        26 on, 0 off\n",
        ] {
            assert!(text.contains(line), "{line:?} is not in\n{text}");
        }
    }

    #[test]
    fn what_is_likely_wrong_is_a_line_of_its_own() {
        let warnings = |config: &Config| {
            let text = told(config).unwrap();
            text.lines().filter(|line| line.starts_with("warning: ")).count()
        };
        let mut config = Config::default();
        assert_eq!(warnings(&config), 1, "prometheus.url is not set");
        config.prometheus.url = Some("http://mon:9090".to_owned());
        assert_eq!(warnings(&config), 0);
    }

    #[test]
    fn a_file_of_holidays_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("days");
        let mut config = Config::default();
        config.notices.holidays = Some(path.clone());
        assert!(matches!(summary(&config), Err(ConfigError::Unreadable { .. })));
        std::fs::write(&path, "2026-12-24\n2026-12-31\n").unwrap();
        let text = summary(&config).unwrap();
        let line = format!("workdays     Monday to Friday, but for 2 days in {}\n", path.display());
        assert!(text.contains(&line), "{text}");
        std::fs::write(&path, "2026-12-24\nMonday\n").unwrap();
        let error = summary(&config).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}:2:1: ", path.display())), "{error}");
    }

    #[test]
    fn rules_that_the_site_speaks_of_are_told_with_what_it_changes() {
        let text = "[gpus]\npreset = \"dcgm\"\n[evaluate]\nenabled = false\ndays = 14\n\
                    [cost]\nbilling_hour = 0.02\ncurrency = \"EUR\"\n\
                    [rules.low-cpu]\nenabled = false\n\
                    [rules.low-cpu-efficiency]\nefficiency = 0.4\n\
                    [rules.night]\nrule = \"zero-cpu-utilization\"\npartitions = [\"night\", \"x\"]\n\
                    min_run_time = \"0s\"\ncpu_hours = 10\n";
        let config = Config::parse(std::path::Path::new("a.toml"), text).unwrap();
        config.check().unwrap();
        let text = summary(&config).unwrap();
        for line in [
            "gpus         dcgm: DCGM_FI_DEV_GPU_UTIL by Hostname and gpu, its job in label hpc_job\n",
            "evaluate     not by the service; over today and 14 days before\n",
            "cost         0.02 EUR a billing hour\n",
            "rules        26 on, 1 off\n",
            "             off: low-cpu\n",
            "             low-cpu-efficiency: all that ended; efficiency = 0.4, not 0.6\n",
            "             night (zero-cpu-utilization): partitions night, x; cpu_hours = 10, not none\n",
        ] {
            assert!(text.contains(line), "{line:?} is not in\n{text}");
        }
    }
}
