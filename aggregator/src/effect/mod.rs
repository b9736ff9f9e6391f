//! What came of notices: what users wasted before their first one and after it, by rule.
//!
//! The days before and after are judged in windows of `evaluate.days`, as they are when notices are given, from the
//! archive alone. There are as many windows before as after, and those after end by now; the day of the notice is in none
//! of them. A job counts where it ended. Each window is judged once for all users.

mod seen;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use steward_common::rule::{Instance, Need};
use steward_common::time::Timestamp;
use steward_common::window::Window;

pub use seen::{Side, Waste};

use crate::archive::Archive;
use crate::backtest::is_held;
use crate::collect::Watch;
use crate::command::Interrupted;
use crate::config::Config;
use crate::evaluate;
use crate::shutdown::Shutdown;
use crate::store::notices::Notice;
use seen::look;

/// From what change on it is one: a tenth.
const CHANGE: f64 = 0.1;

/// A user who was told of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Told {
    /// The instance.
    pub instance: String,
    /// The cluster.
    pub cluster: String,
    /// Who.
    pub user: String,
    /// The rule.
    pub rule: String,
    /// When for the first time.
    pub first: Timestamp,
    /// How often.
    pub times: u64,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// At least a tenth less is wasted in a day.
    Improved,
    /// Neither.
    Unchanged,
    /// At least a tenth more.
    Worse,
    /// The rule finds nothing any more; by how much less is wasted it does not say.
    Within,
    /// There are no such jobs any more, which is no improvement.
    NoJobs,
    /// It cannot be said, and why.
    Unknown(&'static str),
}

impl Change {
    /// In a word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Change::Improved => "improved",
            Change::Unchanged => "unchanged",
            Change::Worse => "worse",
            Change::Within => "nothing found",
            Change::NoJobs => "no jobs",
            Change::Unknown(_) => "unknown",
        }
    }
}

/// A user with what was wasted before and after.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Who was told of what.
    pub told: Told,
    /// What became of it.
    pub change: Change,
    /// What was wasted before,
    pub before: Side,
    /// and after.
    pub after: Side,
}

impl Compared {
    /// What is saved since: what would have been wasted by now as before, less what was. `None` where that is not
    /// known, or the user had no jobs. Where in a part of the time before nothing was found, it is at least that.
    #[must_use]
    pub fn saved(&self) -> Option<Waste> {
        matches!(self.change, Change::Improved | Change::Unchanged | Change::Worse)
            .then(|| self.difference())?
    }

    /// What is saved at most by a user of whom the rule finds nothing any more: all that would have been wasted.
    #[must_use]
    pub fn saved_at_most(&self) -> Option<Waste> {
        (self.change == Change::Within && self.before.within == 0).then(|| self.difference())?
    }

    fn difference(&self) -> Option<Waste> {
        let (before, after) = (self.before.per_day()?, self.after.per_day()?);
        let days = self.after.days();
        let saved = |before: f64, after: f64| (before - after) * days;
        Some(Waste {
            billing: before.billing.zip(after.billing).map(|(b, a)| saved(b, a)),
            cpu_hours: saved(before.cpu_hours, after.cpu_hours),
            gpu_hours: saved(before.gpu_hours, after.gpu_hours),
        })
    }
}

/// What came of all notices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effect {
    /// Who was told in this time for the first time, by rule, cluster and user.
    pub compared: Vec<Compared>,
    /// How many were told before already, and are not compared.
    pub earlier: usize,
    /// What could not be read.
    pub troubles: Vec<String>,
}

/// What is to be found out.
#[derive(Debug)]
pub struct Question<'a> {
    /// All notices there ever were, the oldest first.
    pub notices: &'a [Notice],
    /// The rules, on or off.
    pub instances: &'a [Instance],
    /// First notices since then.
    pub since: Timestamp,
    /// The present.
    pub now: Timestamp,
}

/// Where a window belongs: to whom, and whether it is after.
type Uses = BTreeMap<(Timestamp, Timestamp), Vec<(usize, bool)>>;

/// Compares.
///
/// # Errors
/// If the archive cannot be read, or a signal came.
pub fn run(
    config: &Arc<Config>,
    archive: &Archive,
    question: &Question<'_>,
    shutdown: &Shutdown,
    watch: &dyn Watch,
) -> anyhow::Result<Effect> {
    let zone = config.zone();
    let days = config.evaluate.days.max(1);
    let (told, earlier) = firsts(question);
    let mut effect = Effect { earlier, ..Effect::default() };
    let mut uses = Uses::new();
    for (at, one) in told.into_iter().enumerate() {
        let instance = question.instances.iter().find(|known| known.name == one.instance);
        let why = match instance {
            None => Some("there is no such rule in the configuration any more"),
            Some(known) if known.rule.needs().contains(&Need::Queue) => {
                Some("the rule is about jobs that run, which the archive does not have")
            }
            Some(_) => None,
        };
        let (before, after) = windows(one.first, days, question.now, &zone)?;
        let why = why.or(after.is_empty().then_some("it is too early"));
        if why.is_none() {
            for (list, is_after) in [(&before, false), (&after, true)] {
                for window in list {
                    uses.entry((window.from(), window.to())).or_default().push((at, is_after));
                }
            }
        }
        let side = Side::new(days);
        let change = Change::Unknown(why.unwrap_or(""));
        effect.compared.push(Compared { told: one, change, before: side, after: side });
    }
    watch.begin(uses.len());
    let manifest = archive.manifest()?;
    for ((from, to), users) in uses {
        if shutdown.is_due() {
            return Err(Interrupted.into());
        }
        let Some(window) = Window::new(from, to) else { continue };
        let order = evaluate::Order { window, now: to, clusters: Vec::new(), live: false };
        let mut troubles = Vec::new();
        let gathered = evaluate::look(config, archive, &order, shutdown, &mut troubles)?;
        effect.troubles.extend(troubles.iter().map(ToString::to_string));
        let wanted: BTreeSet<&str> = users
            .iter()
            .filter_map(|(at, _)| effect.compared.get(*at))
            .map(|one| one.told.instance.as_str())
            .collect();
        let seen = look(&gathered, question.instances, &wanted);
        for (at, is_after) in users {
            let Some(one) = effect.compared.get_mut(at) else { continue };
            let told = &one.told;
            let cluster = manifest.clusters.get(&told.cluster);
            let held = cluster.is_some_and(|cluster| is_held(&cluster.covered, window));
            let key = (told.instance.clone(), told.cluster.clone(), told.user.clone());
            let seen = held.then(|| seen.get(&key).copied().unwrap_or_default());
            let side = if is_after { &mut one.after } else { &mut one.before };
            side.add(seen);
        }
        watch.part_done(gathered.iter().map(|one| one.facts.jobs().len() as u64).sum());
    }
    for one in &mut effect.compared {
        if one.change == Change::Unknown("") {
            one.change = decide(&one.before, &one.after);
        }
    }
    effect.troubles.sort();
    effect.troubles.dedup();
    effect.compared.sort_by(|a, b| a.told.cmp(&b.told));
    Ok(effect)
}

fn decide(before: &Side, after: &Side) -> Change {
    if before.archived == 0 {
        return Change::Unknown("the archive does not have the days before");
    }
    if after.archived == 0 {
        return Change::Unknown("the archive does not have the days after");
    }
    if after.known == 0 {
        return Change::Unknown("too little was measured after");
    }
    if before.known == 0 {
        return Change::Unknown("too little was measured before");
    }
    if after.with_jobs == 0 {
        // Days of which too little is known had jobs.
        let all = after.known == after.archived;
        return if all { Change::NoJobs } else { Change::Unknown("too little was measured after") };
    }
    if after.within > 0 {
        let all = after.within == after.with_jobs;
        let why =
            "the rule found nothing for a part of the time after, and does not say how little";
        return if all { Change::Within } else { Change::Unknown(why) };
    }
    let (Some(old), Some(new)) = (before.per_day(), after.per_day()) else {
        return Change::Unknown("too little was measured");
    };
    let (Some(old), Some(new)) = (old.billing, new.billing) else {
        return Change::Unknown("what was wasted has no billing hours");
    };
    if new <= old * (1.0 - CHANGE) && new < old {
        Change::Improved
    } else if before.within > 0 {
        // What was wasted before is at least what was found.
        Change::Unknown(
            "the rule found nothing for a part of the time before, and does not say how little",
        )
    } else if new >= old * (1.0 + CHANGE) && new > old {
        Change::Worse
    } else {
        Change::Unchanged
    }
}

/// Who was told since then for the first time, and how many others before.
fn firsts(question: &Question<'_>) -> (Vec<Told>, usize) {
    let mut all: BTreeMap<(&str, &str, &str), Told> = BTreeMap::new();
    for notice in question.notices {
        let key = (notice.instance.as_str(), notice.cluster.as_str(), notice.user.as_str());
        let one = all.entry(key).or_insert_with(|| Told {
            instance: notice.instance.clone(),
            cluster: notice.cluster.clone(),
            user: notice.user.clone(),
            rule: notice.rule.clone(),
            first: notice.at,
            times: 0,
        });
        one.first = one.first.min(notice.at);
        one.times += 1;
    }
    let (now, earlier): (Vec<Told>, Vec<Told>) =
        all.into_values().partition(|one| one.first >= question.since);
    (now, earlier.len())
}

/// The windows before and after the day of a moment, as many after as have ended by now.
fn windows(
    first: Timestamp,
    days: u16,
    now: Timestamp,
    zone: &TimeZone,
) -> Result<(Vec<Window>, Vec<Window>), jiff::Error> {
    let day = jiff::Timestamp::from_second(first.get())?.to_zoned(zone.clone()).date();
    let shifted = |days: i64| -> Result<Date, jiff::Error> {
        day.checked_add(jiff::Span::new().try_days(days)?)
    };
    let window = |from: i64, to: i64| -> Result<Option<Window>, jiff::Error> {
        let midnight = |date: Date| -> Result<Timestamp, jiff::Error> {
            Ok(Timestamp::new(date.to_zoned(zone.clone())?.timestamp().as_second()))
        };
        Ok(Window::new(midnight(shifted(from)?)?, midnight(shifted(to)?)?))
    };
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let step = i64::from(days.max(1));
    for at in 0.. {
        let Some(next) = window(1 + step * at, 1 + step * (at + 1))? else { break };
        if next.to() > now {
            break;
        }
        after.push(next);
        before.extend(window(-step * (at + 1), -step * at)?);
    }
    Ok((before, after))
}

#[cfg(test)]
mod tests;
