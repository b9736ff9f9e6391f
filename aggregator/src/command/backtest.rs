//! `steward backtest`.

use std::sync::Arc;
use std::time::Duration;

use steward_common::id::ClusterName;
use steward_common::rule::{Instance, Need, Setting};
use steward_common::time::Timestamp;

use super::rules::find;
use super::{BadInput, Outcome};
use crate::archive;
use crate::backtest::{self, Backtest, Question};
use crate::config::{Config, Listed, Location, Span};
use crate::output::backtest as shown;
use crate::output::format::{self, Format};
use crate::output::progress::Progress;
use crate::output::screen::Screen;
use crate::shutdown::Shutdown;

/// Say who would have been told by a rule over the last months, before anybody is.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The archive alone is asked: what only Prometheus or slurmctld know (GPUs without summaries of
Jobstats, the size of nodes) is not judged, and said so. At each step only what had ended by then
counts. A rule that is off can be tried too.

Examples:
  steward backtest --rule low-cpu-efficiency
  steward backtest --rule low-cpu-efficiency --set efficiency=0.4 --set cpu_hours=500
  steward backtest --rule excess-cpu-memory --days 365 --every 30d --format html > year.html
  steward backtest --rule zero-cpu-utilization --rule failure-loop --user alice --json")]
pub struct Args {
    /// A rule, or an instance of one; may be given several times.
    #[arg(long, short, value_name = "NAME", required = true)]
    rule: Vec<String>,
    /// Another value for an option of these rules, as OPTION=VALUE; may be given several times.
    #[arg(long, value_name = "OPTION=VALUE")]
    set: Vec<String>,
    /// How far back.
    #[arg(long, short, value_name = "N", default_value_t = 90, value_parser = clap::value_parser!(u16).range(1..=3660))]
    days: u16,
    /// How often it would have been looked at, such as 1d or 7d.
    #[arg(long, value_name = "TIME", default_value = "7d")]
    every: Span,
    /// How many days are looked at each time, today and so many before [default: evaluate.days].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=366))]
    window: Option<u16>,
    /// Only this cluster; may be given several times.
    #[arg(long, value_name = "NAME", env = "STEWARD_CLUSTER")]
    cluster: Vec<ClusterName>,
    /// Show this user only. Others still count where users are compared.
    #[arg(long, short, value_name = "NAME")]
    user: Option<String>,
    /// How many rows of each table; 0 is all.
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// How to write it.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// The same as --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// The archive: a directory or s3://bucket/prefix [default: archive.directory].
    #[arg(long, value_name = "PLACE")]
    data_dir: Option<Location>,
}

/// Judges the past and shows what came of it.
///
/// # Errors
/// If a rule or an option is not there, or the archive cannot be read.
pub async fn run(args: Args, config: Config, shutdown: Shutdown) -> anyhow::Result<Outcome> {
    let now = Timestamp::new(jiff::Timestamp::now().as_second());
    let question = question(&args, &config, now)?;
    let place = args.data_dir.clone().unwrap_or_else(|| config.archive.directory.clone());
    let archive = archive::open(&place, &config)?;
    let work = tokio::task::spawn_blocking(move || {
        let manifest = archive.manifest()?;
        if manifest.generation == 0 {
            archive.must_match(&manifest)?;
            anyhow::bail!("{place}: is not there, or nothing was collected yet: steward collect");
        }
        let known: Vec<&str> = manifest.clusters.keys().map(String::as_str).collect();
        if let Some(none) = args.cluster.iter().find(|name| !known.contains(&name.as_str())) {
            let known = known.join(", ");
            let why = format!("the archive has nothing of {none}; it has: {known}");
            return Err(BadInput(why).into());
        }
        let (config, progress) = (Arc::new(config), Progress::counting("judging", "steps"));
        let done = backtest::run(&config, &archive, &question, &shutdown, &progress);
        progress.end();
        Ok(outcome(&done?, &question, &args, &config, Screen::of_stdout()))
    });
    work.await?
}

fn outcome(
    done: &Backtest,
    question: &Question,
    args: &Args,
    config: &Config,
    screen: Screen,
) -> Outcome {
    let rules: Vec<String> =
        question.instances.iter().map(|instance| instance.name.clone()).collect();
    let document = shown::document(done, &rules, &config.zone());
    let format = if args.json { Format::Json } else { args.format };
    let mut text = format::write(&document, format, screen, args.top);
    if format == Format::Table {
        let calendar = shown::calendar(done, rules.len() > 1, screen, args.top.unwrap_or(15));
        text += &if calendar.is_empty() { calendar } else { format!("\n{calendar}") };
    }
    for trouble in &done.troubles {
        tracing::warn!("{trouble}");
    }
    if done.troubles.is_empty() { Outcome::done(text) } else { Outcome::in_part(text) }
}

fn question(args: &Args, config: &Config, now: Timestamp) -> anyhow::Result<Question> {
    if args.every.0 < Duration::from_secs(3600) {
        return Err(BadInput("--every: must be at least 1h".to_owned()).into());
    }
    let mut instances = chosen(&args.rule, config.rules.listed()?)?;
    for text in &args.set {
        let (option, value) = assignment(text)?;
        for instance in &mut instances {
            instance
                .rule
                .set(option, value.clone())
                .map_err(|error| BadInput(format!("--set {text}: {}: {error}", instance.name)))?;
        }
    }
    let back = Duration::from_secs(u64::from(args.days) * 86_400);
    let days = args.window.unwrap_or(config.evaluate.days);
    let steps = backtest::steps(now, back, args.every.0, days, &config.zone())?;
    Ok(Question { instances, steps, clusters: args.cluster.clone(), user: args.user.clone() })
}

/// The instances of these names. The name of a rule whose own instance is off stands for those that
/// the site has made of it, if there are any.
fn chosen(names: &[String], mut listed: Vec<Listed>) -> Result<Vec<Instance>, BadInput> {
    let mut wanted: Vec<String> = Vec::new();
    for name in names {
        let one = find(name, &listed)?;
        let of_rule = |other: &&Listed| other.enabled && other.instance.rule.id().as_str() == name;
        let others: Vec<&Listed> = listed.iter().filter(of_rule).collect();
        let some = if one.enabled || others.is_empty() { vec![one] } else { others };
        wanted.extend(some.iter().map(|one| one.instance.name.clone()));
    }
    listed.retain(|one| wanted.contains(&one.instance.name));
    for one in &listed {
        if one.instance.rule.needs().contains(&Need::Queue) {
            return Err(BadInput(format!(
                "{} is about jobs that run at this moment; the archive has none of them",
                one.instance.name
            )));
        }
    }
    Ok(listed.into_iter().map(|one| one.instance).collect())
}

/// `efficiency=0.4`.
fn assignment(text: &str) -> Result<(&str, Setting), BadInput> {
    let bad = || {
        BadInput(format!("--set {text}: expected an option and its value, such as efficiency=0.4"))
    };
    let (option, value) = text.split_once('=').ok_or_else(bad)?;
    let (option, value) = (option.trim(), value.trim());
    let setting = match (value.parse::<bool>(), value.parse::<f64>()) {
        (Ok(flag), _) => Setting::Flag(flag),
        (_, Ok(number)) => Setting::Number(number),
        _ => Setting::Text(value.to_owned()),
    };
    if option.is_empty() || value.is_empty() { Err(bad()) } else { Ok((option, setting)) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn listed(text: &str) -> Vec<Listed> {
        Config::parse(Path::new("a.toml"), text).unwrap().rules.listed().unwrap()
    }

    fn names(rules: &[&str], text: &str) -> Result<Vec<String>, String> {
        let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
        let chosen = chosen(&rules, listed(text)).map_err(|error| error.0)?;
        Ok(chosen.into_iter().map(|instance| instance.name).collect())
    }

    #[test]
    fn a_rule_stands_for_its_instances_where_its_own_is_off() {
        let two = "[rules.low-cpu]\nenabled = false\n[rules.a]\nrule = \"low-cpu\"\n\
                   [rules.b]\nrule = \"low-cpu\"\n";
        assert_eq!(names(&["low-cpu"], two).unwrap(), ["a", "b"]);
        assert_eq!(names(&["b"], two).unwrap(), ["b"]);
        let off = "[rules.low-cpu]\nenabled = false\n";
        assert_eq!(names(&["low-cpu"], off).unwrap(), ["low-cpu"], "to try it out");
        assert_eq!(names(&["low-cpu", "low-cpu"], "").unwrap(), ["low-cpu"]);
        assert!(names(&["low-cpuu"], "").unwrap_err().contains("did you mean low-cpu"));
        assert!(names(&["cancel-zero-gpu-jobs"], "").unwrap_err().contains("run at this moment"));
    }

    #[test]
    fn a_value_is_set_as_in_the_configuration() {
        assert_eq!(assignment("a=0.4").unwrap(), ("a", Setting::Number(0.4)));
        assert_eq!(assignment("a = 30m").unwrap(), ("a", Setting::Text("30m".into())));
        assert_eq!(assignment("a=true").unwrap(), ("a", Setting::Flag(true)));
        for bad in ["a", "=1", "a="] {
            assert!(assignment(bad).is_err(), "{bad}");
        }
    }
}
