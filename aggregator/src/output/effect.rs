//! What came of notices, as tables: by rule, and by user.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use steward_common::time::Timestamp;

use super::number::{counted, hours};
use super::sheet::{Cell, Document, Field, Sheet, always, drop, hide, program};
use crate::config::Cost;
use crate::effect::{Change, Compared, Effect, Side, Waste};

/// A rule with what came of all its notices.
#[derive(Clone, Debug, Default)]
struct OfRule {
    instance: String,
    told: u64,
    improved: u64,
    unchanged: u64,
    worse: u64,
    no_jobs: u64,
    within: u64,
    unknown: u64,
    saved: Option<f64>,
    at_most: Option<f64>,
    cpu_hours: Option<f64>,
    gpu_hours: Option<f64>,
    price: Option<f64>,
}

impl OfRule {
    fn add(&mut self, one: &Compared) {
        self.told += 1;
        *match one.change {
            Change::Improved => &mut self.improved,
            Change::Unchanged => &mut self.unchanged,
            Change::Worse => &mut self.worse,
            Change::Within => &mut self.within,
            Change::NoJobs => &mut self.no_jobs,
            Change::Unknown(_) => &mut self.unknown,
        } += 1;
        let add = |sum: &mut Option<f64>, more: f64| *sum = Some(sum.unwrap_or(0.0) + more);
        let most = one.saved_at_most().and_then(|most| most.billing);
        most.into_iter().for_each(|more| add(&mut self.at_most, more));
        if let Some(saved) = one.saved() {
            saved.billing.into_iter().for_each(|more| add(&mut self.saved, more));
            add(&mut self.cpu_hours, saved.cpu_hours);
            add(&mut self.gpu_hours, saved.gpu_hours);
        }
    }
}

const RULES: &[Field<OfRule>] = &[
    (always("rule", "Rule"), |one| Cell::text(&one.instance)),
    (always("told", "Told"), |one| Cell::Count(one.told)),
    (always("improved", "Improved"), |one| Cell::Count(one.improved)),
    (always("nothing_found", "Nothing found"), |one| Cell::Count(one.within)),
    (drop(2, "unchanged", "Unchanged"), |one| Cell::Count(one.unchanged)),
    (drop(2, "worse", "Worse"), |one| Cell::Count(one.worse)),
    (drop(2, "no_jobs", "No jobs since"), |one| Cell::Count(one.no_jobs)),
    (drop(2, "unknown", "Unknown"), |one| Cell::Count(one.unknown)),
    (always("billing_hours_saved", "Billing h saved"), |one| Cell::number(one.saved)),
    (drop(1, "billing_hours_saved_at_most_more", "Up to more"), |one| Cell::number(one.at_most)),
    (drop(3, "cpu_hours_saved", "CPU-h saved"), |one| Cell::number(one.cpu_hours)),
    (hide(3, "gpu_hours_saved", "GPU-h saved"), |one| Cell::number(one.gpu_hours)),
    (hide(4, "money_saved", "Worth"), |one| {
        Cell::number(one.saved.zip(one.price).map(|(hours, price)| hours * price))
    }),
];

/// A user with the day on the site's clocks.
struct Line {
    one: Compared,
    first: String,
}

impl Line {
    fn saved(&self, of: fn(Waste) -> Option<f64>) -> Cell {
        Cell::number(self.one.saved().and_then(of))
    }
}

/// Where a rule found nothing in a part of the time, what it found is not all that was wasted.
fn rate(side: &Side) -> Cell {
    let known = side.per_day().filter(|_| side.within == 0);
    Cell::number(known.and_then(|waste| waste.billing))
}

fn days(side: &Side) -> Cell {
    if side.windows == 0 { Cell::Missing } else { Cell::Number(side.days()) }
}

const USERS: &[Field<Line>] = &[
    (always("user", "User"), |line| Cell::text(&line.one.told.user)),
    (always("rule", "Rule"), |line| Cell::text(&line.one.told.instance)),
    (drop(4, "cluster", "Cluster"), |line| Cell::text(&line.one.told.cluster)),
    (always("first", "First told"), |line| Cell::text(&line.first)),
    (drop(3, "times", "Times"), |line| Cell::Count(line.one.told.times)),
    (always("change", "Since then"), |line| Cell::text(line.one.change.word())),
    (always("billing_hours_wasted_per_day_before", "Wasted a day before"), |line| {
        rate(&line.one.before)
    }),
    (always("billing_hours_wasted_per_day_after", "After"), |line| rate(&line.one.after)),
    (always("billing_hours_saved", "Billing h saved"), |line| line.saved(|saved| saved.billing)),
    (hide(2, "billing_hours_saved_at_most", "At most"), |line| {
        Cell::number(line.one.saved_at_most().and_then(|most| most.billing))
    }),
    (drop(5, "cpu_hours_saved", "CPU-h saved"), |line| line.saved(|saved| Some(saved.cpu_hours))),
    (hide(5, "gpu_hours_saved", "GPU-h saved"), |line| line.saved(|saved| Some(saved.gpu_hours))),
    (program("days_before"), |line| days(&line.one.before)),
    (program("days_after"), |line| days(&line.one.after)),
    (hide(6, "why", "Why unknown"), |line| match line.one.change {
        Change::Unknown(why) => Cell::text(why),
        _ => Cell::Missing,
    }),
];

/// Everything.
#[must_use]
pub fn document(effect: &Effect, cost: &Cost, period: u16, zone: &TimeZone) -> Document {
    let mut rules: BTreeMap<&str, OfRule> = BTreeMap::new();
    for one in &effect.compared {
        let instance = one.told.instance.as_str();
        let of = rules.entry(instance).or_insert_with(|| OfRule {
            instance: instance.to_owned(),
            price: cost.billing_hour,
            ..OfRule::default()
        });
        of.add(one);
    }
    let rules: Vec<OfRule> = rules.into_values().collect();
    let lines: Vec<Line> = effect
        .compared
        .iter()
        .map(|one| Line { first: day(one.told.first, zone), one: one.clone() })
        .collect();
    let mut by_rule = Sheet::new("rules", "By rule", RULES, &rules);
    by_rule.notes.push(
        "Saved is what would have been wasted since as before, less what was; users who waste more count against it, \
         users without jobs do not count. Of users of whom a rule finds nothing any more it does not say what they \
         still waste: they saved something, at most all of it. Rules may speak of the same hours."
            .to_owned(),
    );
    let by_user = Sheet::new("users", "By user", USERS, &lines);
    let facts = vec![
        ("days", Cell::Count(u64::from(period))),
        ("told_earlier", Cell::Count(effect.earlier as u64)),
        ("troubles", Cell::Count(effect.troubles.len() as u64)),
    ];
    let headline = headline(&rules, effect, cost, period);
    Document {
        title: "What came of notices".to_owned(),
        headline,
        facts,
        sheets: vec![by_rule, by_user],
    }
}

fn headline(rules: &[OfRule], effect: &Effect, cost: &Cost, period: u16) -> Vec<String> {
    let sum = |of: fn(&OfRule) -> u64| -> u64 { rules.iter().map(of).sum() };
    let told = sum(|one| one.told);
    let mut said = Vec::new();
    if told == 0 {
        said.push(format!("Nobody was told for the first time in the last {period} days."));
    } else {
        let (improved, worse) = (sum(|one| one.improved), sum(|one| one.worse));
        said.push(format!(
            "{} for the first time in the last {period} days: {improved} improved, {} with nothing found since, \
             {worse} worse, {} unchanged, {} without jobs since, {} not known.",
            counted(told, "notice"),
            sum(|one| one.within),
            sum(|one| one.unchanged),
            sum(|one| one.no_jobs),
            sum(|one| one.unknown),
        ));
        let saved = total(effect, Compared::saved);
        said.extend(saved.map(|saved| {
            let worth = cost.billing_hour.zip(cost.currency.as_ref());
            let worth = worth.map(|(price, of)| format!(", worth {} {of}", hours(saved * price)));
            format!("{} billing hours were saved{}.", hours(saved), worth.unwrap_or_default())
        }));
        let most = total(effect, Compared::saved_at_most);
        said.extend(most.map(|most| {
            let who = "by users of whom rules find nothing any more";
            format!("Up to {} billing hours more were saved {who}.", hours(most))
        }));
    }
    if effect.earlier > 0 {
        let earlier = counted(effect.earlier as u64, "first notice");
        said.push(format!("{earlier} from before that time are not compared."));
    }
    said.extend(effect.troubles.iter().cloned());
    said
}

/// Billing hours over all users. Several rules may speak of the same hours of a user: the one with the most
/// counts.
fn total(effect: &Effect, of: fn(&Compared) -> Option<Waste>) -> Option<f64> {
    let mut users: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    for one in &effect.compared {
        if let Some(hours) = of(one).and_then(|waste| waste.billing) {
            let key = (one.told.cluster.as_str(), one.told.user.as_str());
            let most = users.entry(key).or_insert(hours);
            *most = most.max(hours);
        }
    }
    users.into_values().reduce(|sum, more| sum + more)
}

fn day(at: Timestamp, zone: &TimeZone) -> String {
    jiff::Timestamp::from_second(at.get())
        .map_or_else(|_| String::new(), |at| at.to_zoned(zone.clone()).date().to_string())
}
