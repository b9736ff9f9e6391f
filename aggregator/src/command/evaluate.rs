//! `steward evaluate`.

use std::sync::Arc;
use std::time::Duration;

use steward_common::id::ClusterName;
use steward_common::rule::Instance;
use steward_common::time::Timestamp;

use super::email::Email;
use super::{BadInput, Interrupted, Outcome};
use crate::archive::{self, Archive};
use crate::collect::site;
use crate::config::Config;
use crate::evaluate::window::Period;
use crate::evaluate::{self, Judged, Order, Trouble, Troubles};
use crate::outlet::{self, Reading};
use crate::output::evaluation;
use crate::output::format::{self, Format};
use crate::output::progress::Progress;
use crate::output::screen::Screen;
use crate::shutdown::Shutdown;
use crate::store::Store;

/// How long to wait for another collection.
const PATIENCE: Duration = Duration::from_secs(600);

/// What is missing where nobody is asked.
const NO_PROMETHEUS: &str =
    "prometheus.url is not set: what agents and GPU exporters measured is not known.";

/// What a collection that failed means.
const STALE: &str = "jobs that ended since the last collection are not judged";

/// Look at the rules once: who wastes what, this morning.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Collects what is new, asks slurmctld what runs and Prometheus what was measured, and says what each rule finds.
The last tables say who would be told, and who would not and why; only --email and --publish send.
What could not be asked is listed first, and never guessed.
What was measured too little to be judged is counted with its reason; --json names it.
Exit codes: 0 done, 1 failed, 2 bad input, 3 something could not be asked or read.

Examples:
  steward evaluate                                        every rule, over the days of evaluate.days
  steward evaluate --rule excess-cpu-memory --days 30     one rule
  steward evaluate --rule low-cpu --json | jq             every figure of it
  steward evaluate --email                                write to users, with copies to mail.admins
  steward evaluate --email --no-emails-to-users           only the copies, to see what users would get
  steward evaluate --no-collect -S 2026-11-01 -E 2026-11-08T12:00:00
  steward evaluate --publish                              and tell Alertmanager and webhooks, from cron
'steward rules' lists the rules; 'steward report waste' ranks users over all of them.")]
pub struct Args {
    /// Only this rule, by the name of an instance or a rule's id; may be given several times.
    #[arg(long, value_name = "ID")]
    rule: Vec<String>,
    #[command(flatten)]
    period: Period,
    /// Only this cluster; may be given several times.
    #[arg(long, short = 'M', value_name = "NAME")]
    cluster: Vec<ClusterName>,
    /// Do not collect first: what the archive has is all there is.
    #[arg(long)]
    no_collect: bool,
    /// Tell the Alertmanager and the webhooks of [outlets] what holds now, as `steward serve` does.
    #[arg(long, conflicts_with_all = ["days", "starttime", "endtime"])]
    publish: bool,
    #[command(flatten)]
    email: Email,
    /// How to write it.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// The same as --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// How many lines of each table; 0 is all.
    #[arg(long, value_name = "N")]
    top: Option<usize>,
}

/// The instances that are meant: those of the name, or all of the rule.
///
/// # Errors
/// If there is none of a name.
pub fn chosen(config: &Config, wanted: &[String]) -> anyhow::Result<Vec<Instance>> {
    let all = config.rules.instances()?;
    let is = |instance: &Instance, name: &String| {
        instance.name == *name || instance.rule.id().as_str() == name
    };
    for name in wanted {
        if !all.iter().any(|instance| is(instance, name)) {
            let off = config.rules.disabled().any(|disabled| disabled == name);
            let why = if off {
                "is switched off in the configuration"
            } else {
                "is not the name of a rule"
            };
            return Err(BadInput(format!("--rule {name}: {why}; `steward rules` lists all")).into());
        }
    }
    let meant =
        |instance: &Instance| wanted.is_empty() || wanted.iter().any(|name| is(instance, name));
    Ok(all.into_iter().filter(meant).collect())
}

/// Evaluates, and says what came of it.
///
/// # Errors
/// If the archive cannot be read or the time makes no sense.
pub async fn run(args: Args, config: Config, shutdown: Shutdown) -> anyhow::Result<Outcome> {
    let instances = chosen(&config, &args.rule)?;
    let explicit = args.period.starttime.is_some() || args.period.endtime.is_some();
    args.email.check(&config, explicit)?;
    let zone = config.zone();
    let now = Timestamp::new(jiff::Timestamp::now().as_second());
    let window = args.period.window(config.evaluate.days, now, &zone)?;
    let archive = archive::open(&config.archive.directory, &config)?;
    if args.publish && !config.outlets.is_any() {
        let why =
            "--publish: nobody is configured; set [outlets.alertmanager] or [outlets.webhook.NAME]";
        return Err(BadInput(why.to_owned()).into());
    }
    let config = Arc::new(config);
    let order = Order { window, now, clusters: args.cluster.clone(), live: true };
    let work = {
        let (config, shutdown, collect) = (Arc::clone(&config), shutdown.clone(), !args.no_collect);
        tokio::task::spawn_blocking(move || -> anyhow::Result<_> {
            let mut troubles = Vec::new();
            if collect {
                self::collect(&config, &archive, &order, &shutdown, &mut troubles);
            }
            let gathered = evaluate::look(&config, &archive, &order, &shutdown, &mut troubles)?;
            let judged: Vec<Judged> =
                gathered.into_iter().map(|one| evaluate::judge(one, &instances)).collect();
            Ok((judged, instances, troubles))
        })
    };
    let (judged, instances, mut troubles) = shutdown.or(work).await???;
    if shutdown.is_due() {
        return Err(Interrupted.into());
    }
    if args.publish {
        let reading = Reading::of(&judged, &instances, &troubles);
        let store = Store::at(config.store()).await?;
        let published = outlet::publish(&config, &store, &reading, now).await;
        store.close().await;
        for why in published?.troubles {
            Troubles::of(None, &mut troubles).add("publishing", why);
        }
    }
    let told = args.email.act(&config, (&judged, &instances), window, now, &shutdown).await?;
    for warning in &told.warnings {
        tracing::warn!("{warning}");
    }
    let notes: &[&str] = if config.prometheus.url.is_some() { &[] } else { &[NO_PROMETHEUS] };
    let mut document = evaluation::document(&judged, &instances, &troubles, notes, window, &zone);
    document.sheets.extend(told.sheets);
    args.email.report(&config, &document).await?;
    let format = if args.json { Format::Json } else { args.format };
    let text = if format == Format::Json {
        evaluation::json(&judged, &instances, &troubles, notes, &told.json, window, &zone)
    } else {
        format::write(&document, format, Screen::of_stdout(), args.top)
    };
    // Where people read the text, it says so itself.
    if matches!(format, Format::Json | Format::Csv) {
        for trouble in &troubles {
            tracing::warn!("{trouble}");
        }
    }
    // The program ends: to take a million jobs apart would be in vain.
    std::mem::forget(judged);
    Ok(if troubles.is_empty() && told.warnings.is_empty() {
        Outcome::done(text)
    } else {
        Outcome::in_part(text)
    })
}

/// Brings what is new into the archive. That it could not be done is a trouble: what the archive has
/// is judged all the same.
fn collect(
    config: &Config,
    archive: &Archive,
    order: &Order,
    shutdown: &Shutdown,
    troubles: &mut Vec<Trouble>,
) {
    let stop = shutdown.clone();
    let order = site::Order {
        days: config.collect.days,
        parallel: config.slurm.parallel,
        cluster: None,
        now: order.now,
        zone: config.zone(),
        stop: Arc::new(move || stop.is_due()),
    };
    let ends = archive
        .lock_unless(PATIENCE, &*order.stop, || {
            tracing::info!("another steward is changing the archive; waiting for it");
        })
        .map_err(anyhow::Error::from)
        .and_then(|lock| match lock {
            Some(lock) => {
                Ok(site::collect(config, archive, &order, lock, &Progress::new("collecting"))?)
            }
            None => Ok(Vec::new()),
        });
    match ends {
        Ok(ends) => {
            for (cluster, end) in ends {
                if let Err(error) = end {
                    Troubles::of(Some(&cluster), troubles)
                        .add("collection", format!("{error}; {STALE}"));
                }
            }
        }
        Err(error) => Troubles::of(None, troubles).add("collection", format!("{error:#}; {STALE}")),
    }
}
