//! Collecting for a site: every cluster of the configuration, one after the other.

use std::sync::Arc;
use std::time::Duration;

use jiff::Zoned;
use jiff::tz::TimeZone;
use steward_common::id::ClusterName;
use steward_common::time::Timestamp;

use super::measure::Agents;
use super::plan::Terms;
use super::{CollectError, Collected, Request, Watch};
use crate::archive::Archive;
use crate::archive::lock::Lock;
use crate::config::Config;
use crate::keep::retention::Retention;
use crate::source::slurm::command::{CommandError, Running, TEXT};
use crate::source::slurm::sacct::{Sacct, Stop};
use crate::source::slurm::settings;

/// How long scontrol may take.
const LIMIT: Duration = Duration::from_secs(30);

/// How long to wait for whoever took the lock between two clusters.
const PATIENCE: Duration = Duration::from_secs(60);

/// The beginning of 2002, the year in which Slurm was first given to others: no job is older, and
/// sacct takes 1970 for no time at all.
const FIRST: Timestamp = Timestamp::new(1_009_843_200);

/// What is collected.
#[derive(Clone)]
pub struct Order {
    /// Days before today.
    pub days: u32,
    /// Calls at a time.
    pub parallel: usize,
    /// Only this cluster.
    pub cluster: Option<ClusterName>,
    /// Now.
    pub now: Timestamp,
    /// The site's time zone.
    pub zone: TimeZone,
    /// Says whether to stop.
    pub stop: Stop,
}

/// A cluster that is asked: its name, and whether it must be named to sacct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its name.
    pub name: ClusterName,
    /// Whether it is another than the one we are on.
    pub by_name: bool,
}

/// The clusters to ask: those of the configuration, else the one we are on.
///
/// # Errors
/// If that one cannot be found out.
pub fn clusters(config: &Config, order: &Order) -> Result<Vec<Asked>, CommandError> {
    let named = |name: &ClusterName| Asked { name: name.clone(), by_name: true };
    if let Some(name) = &order.cluster {
        return Ok(vec![named(name)]);
    }
    if !config.slurm.clusters.is_empty() {
        return Ok(config.slurm.clusters.iter().map(named).collect());
    }
    Ok(vec![Asked { name: local(&config.slurm.scontrol, &order.stop)?, by_name: false }])
}

/// The name of the cluster that we are on.
///
/// # Errors
/// If scontrol does not say it.
pub fn local(scontrol: &[String], stop: &Stop) -> Result<ClusterName, CommandError> {
    local_within(scontrol, LIMIT, stop)
}

/// The same, if scontrol takes no longer than `limit`.
///
/// # Errors
/// If scontrol does not say it.
pub fn local_within(
    scontrol: &[String],
    limit: Duration,
    stop: &Stop,
) -> Result<ClusterName, CommandError> {
    let mut argv = scontrol.to_vec();
    argv.extend(["show".to_owned(), "config".to_owned()]);
    let stop = stop.clone();
    let text = Running::start(&argv, &[], limit, move || stop())?.text(TEXT)?;
    let text = String::from_utf8_lossy(&text);
    let name = text.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "ClusterName").then(|| value.trim().parse().ok()).flatten()
    });
    let why = "it does not say which cluster this is; set slurm.clusters";
    let source = std::io::Error::new(std::io::ErrorKind::InvalidData, why);
    name.ok_or_else(|| CommandError::Unreadable { command: argv.join(" "), source })
}

/// Midnight, on the site's clocks, of the day that is so many days before today, or the time before
/// which there were no jobs.
#[must_use]
pub fn midnight(now: Timestamp, zone: &TimeZone, days: u32) -> Timestamp {
    let begin = || -> Result<Zoned, jiff::Error> {
        let today = jiff::Timestamp::from_second(now.get())?.to_zoned(zone.clone());
        today.date().checked_sub(jiff::Span::new().try_days(days)?)?.to_zoned(zone.clone())
    };
    // Only a date before the beginning of the calendar has no midnight.
    begin().map_or(FIRST, |begin| Timestamp::new(begin.timestamp().as_second()).max(FIRST))
}

/// Makes sure that slurmdbd knows a cluster: asked for one that it does not know, sacct says that
/// there were no jobs. If sacctmgr does not answer, nobody is sure, and that is no error.
///
/// # Errors
/// If it knows others only.
pub fn is_known(sacctmgr: &[String], cluster: &str, stop: &Stop) -> Result<(), CollectError> {
    let arguments = ["--noheader", "--parsable2", "show", "cluster", "format=cluster"];
    let Ok(text) = settings::text(sacctmgr, &arguments, LIMIT, stop) else { return Ok(()) };
    let known: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if known.is_empty() || known.contains(&cluster) {
        return Ok(());
    }
    Err(CollectError::NoCluster { cluster: cluster.to_owned(), known: known.join(", ") })
}

/// Who knows what agents measured, if anybody does.
fn agents(config: &Config) -> Option<Arc<Agents>> {
    let url = config.prometheus.url.as_deref()?;
    // That it makes sense was seen when it was read.
    let gpus = config.gpus.mapping().ok().flatten();
    match Agents::new(url, config.prometheus.timeout.0, gpus) {
        Ok(agents) => Some(Arc::new(agents)),
        Err(error) => {
            tracing::warn!(%error, "jobs are archived without what agents measured");
            None
        }
    }
}

/// What became of a cluster.
pub type End = (ClusterName, Result<Collected, CollectError>);

/// Collects all clusters; each has its own end, and one that fails does not stop the others.
///
/// # Errors
/// If the clusters cannot be found out or the archive is locked.
pub fn collect(
    config: &Config,
    archive: &Archive,
    order: &Order,
    mut lock: Lock,
    watch: &dyn Watch,
) -> Result<Vec<End>, CollectError> {
    let mut done = Vec::new();
    let clusters = clusters(config, order)?;
    for (place, asked) in clusters.iter().enumerate() {
        let request = Request {
            cluster: asked.name.to_string(),
            sacct: Sacct::new(
                &config.slurm.sacct,
                asked.by_name.then(|| asked.name.clone()),
                config.slurm.timeout.0,
                order.stop.clone(),
            ),
            terms: Terms {
                now: order.now,
                since: midnight(order.now, &order.zone, order.days),
                overlap: config.collect.overlap.0,
                grace: config.collect.grace.0,
            },
            parallel: order.parallel,
            retries: config.slurm.retries,
            raw: config.archive.raw,
            agents: agents(config),
            retention: Retention::of(&config.archive),
            sacctmgr: asked.by_name.then(|| config.slurm.sacctmgr.clone()),
            stop: Arc::clone(&order.stop),
        };
        match super::run(archive, lock, &request, watch) {
            Ok((collected, free)) => {
                lock = free;
                done.push((asked.name.clone(), Ok(collected)));
            }
            Err(error) => {
                let stop = error.is_stop();
                done.push((asked.name.clone(), Err(error)));
                if stop || place + 1 == clusters.len() {
                    break;
                }
                match archive.lock_unless(PATIENCE, &*order.stop, || {})? {
                    Some(free) => lock = free,
                    None => {
                        let next = clusters.get(place + 1).unwrap_or(asked);
                        done.push((next.name.clone(), Err(CommandError::Stopped.into())));
                        break;
                    }
                }
            }
        }
        if place + 1 == clusters.len() {
            break;
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_day_is_before_the_first_job() {
        let now = Timestamp::new(1_794_880_000);
        let days = |days| midnight(now, &TimeZone::UTC, days);
        assert_eq!(days(0), Timestamp::new(1_794_873_600));
        assert_eq!(days(1), Timestamp::new(1_794_873_600 - 86_400));
        for many in [10_000, 20_773, 20_774, 1_000_000, u32::MAX] {
            assert_eq!(days(many), FIRST, "{many}");
        }
    }

    #[test]
    fn a_cluster_that_slurmdbd_does_not_know_is_told_with_those_that_it_knows() {
        let stop: Stop = Arc::new(|| false);
        let ask = |script: &str| {
            let argv = ["sh", "-c", script].map(str::to_owned);
            is_known(&argv, "tuxedo", &stop).map_err(|error| error.to_string())
        };
        let error = ask("echo steward; echo tux").unwrap_err();
        assert!(error.contains("tuxedo") && error.contains("steward, tux"), "{error}");
        for fine in ["echo steward; echo tuxedo", "exit 1", "echo"] {
            assert_eq!(ask(fine), Ok(()), "{fine}");
        }
    }
}
