//! Notices for administrators: what a run would do or did, and who was told when.

use std::collections::BTreeMap;

use jiff::Timestamp as Moment;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use steward_common::time::Timestamp;

use super::sheet::{Cell, Document, Field, Sheet, always, drop, program};
use crate::notice::plan::{HeldBack, Planned};
use crate::store::notices::Notice;
use crate::store::post::Delivery;

/// A day in the site's zone.
#[must_use]
pub fn day(at: Timestamp, zone: &TimeZone) -> Option<Date> {
    Some(Moment::from_second(at.get()).ok()?.to_zoned(zone.clone()).date())
}

fn time(at: Timestamp, zone: &TimeZone) -> Cell {
    Moment::from_second(at.get()).map_or(Cell::Missing, |at| {
        Cell::text(at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string())
    })
}

/// One line for each user who is told; `title` says whether it is done.
#[must_use]
pub fn told(title: &'static str, planned: &[Planned]) -> Sheet {
    let fields: &[Field<Planned>] = &[
        (always("user", "User"), |one| Cell::text(&one.digest.user)),
        (always("rules", "Of what"), |one| {
            let names: Vec<&str> =
                one.digest.items.iter().map(|item| item.instance.as_str()).collect();
            Cell::text(names.join(", "))
        }),
        (drop(1, "jobs", "Jobs"), |one| Cell::Count(jobs(one).len() as u64)),
        (drop(2, "step", "Time"), |one| {
            one.steps.iter().max().map_or(Cell::Missing, |step| Cell::Count((*step).into()))
        }),
        (always("billing_hours_wasted", "Billing h wasted"), |one| {
            Cell::number(jobs(one).into_values().flatten().reduce(|sum, more| sum + more))
        }),
    ];
    let mut sheet = Sheet::new("told", title, fields, planned);
    sheet.top = 0;
    sheet
}

/// The jobs of a digest with what they wasted. Several rules may find the same job: the largest waste counts.
fn jobs(one: &Planned) -> BTreeMap<(&str, &str), Option<f64>> {
    let mut all = BTreeMap::new();
    for item in &one.digest.items {
        let at = |key: &str| item.jobs.columns.iter().position(|column| column.key == key);
        let (Some(job), Some(wasted)) = (at("job"), at("billing_hours_wasted")) else { continue };
        for row in &item.jobs.rows {
            let Some(Cell::Text(job)) = row.get(job) else { continue };
            let wasted = row.get(wasted).and_then(Cell::figure);
            let known: &mut Option<f64> =
                all.entry((item.cluster.as_str(), job.as_str())).or_insert(None);
            // None is less than any figure.
            if wasted > *known {
                *known = wasted;
            }
        }
    }
    all
}

/// One line for each finding that nobody is told of, and why.
#[must_use]
pub fn held(held: &[HeldBack]) -> Sheet {
    let fields: &[Field<HeldBack>] = &[
        (always("user", "User"), |one| Cell::text(&one.user)),
        (always("name", "Rule"), |one| Cell::text(&one.instance)),
        (drop(1, "cluster", "Cluster"), |one| Cell::text(&one.cluster)),
        (program("why"), |one| Cell::text(one.why.name())),
        (always("reason", "Why not"), |one| Cell::text(one.why.to_string())),
    ];
    Sheet::new("held", "Not told", fields, held)
}

/// Mails that are not with the server, or of which nobody knows.
#[must_use]
pub fn open(deliveries: &[Delivery], zone: &TimeZone) -> Sheet {
    let columns = vec![
        always("address", "To"),
        drop(2, "about", "About"),
        always("fate", "State"),
        drop(1, "since", "Since"),
        drop(1, "tries", "Tries"),
        always("said", "What the server said"),
        drop(4, "subject", "Subject"),
        program("message"),
    ];
    let row = |one: &Delivery| {
        vec![
            Cell::text(&one.address),
            Cell::text(&one.about),
            Cell::text(one.fate.name()),
            time(one.since, zone),
            Cell::Count(one.tries.into()),
            Cell::text(&one.said),
            Cell::text(&one.subject),
            Cell::text(&one.message),
        ]
    };
    let none: [&(); 0] = [];
    let mut sheet = Sheet::new("open", "Mails that did not arrive, or nobody knows", &[], none);
    (sheet.columns, sheet.rows) = (columns, deliveries.iter().map(row).collect());
    sheet.top = 0;
    sheet
}

/// Who was told when: a line for each user with a mark for each day, and a line for each notice for
/// programs. `works` says whether a day is a workday.
#[must_use]
pub fn calendar(
    notices: &[Notice],
    (first, last): (Date, Date),
    works: impl Fn(Date) -> bool,
    zone: &TimeZone,
) -> Document {
    let mut days = Vec::new();
    let mut at = Some(first);
    while let Some(date) = at.filter(|date| *date <= last) {
        days.push(date);
        at = date.tomorrow().ok();
    }
    let mut users: Vec<&str> = notices.iter().map(|one| one.user.as_str()).collect();
    users.sort_unstable();
    users.dedup();
    let row = |user: &&str| {
        let own: Vec<&Notice> = notices.iter().filter(|one| one.user == **user).collect();
        let told: Vec<Option<Date>> = own.iter().map(|one| day(one.at, zone)).collect();
        let marks: String = days
            .iter()
            .map(|date| match (told.contains(&Some(*date)), works(*date)) {
                (true, _) => 'X',
                (false, true) => '_',
                (false, false) => ' ',
            })
            .collect();
        let last = own.last().map_or(Cell::Missing, |one| time(one.at, zone));
        vec![Cell::text(*user), Cell::Count(own.len() as u64), last, Cell::text(marks)]
    };
    let none: [&(); 0] = [];
    let mut by_user = Sheet::new("users", "Notices by day", &[], none);
    by_user.columns = vec![
        always("user", "User"),
        always("notices", "Notices"),
        drop(1, "last", "Last"),
        always("days", format_days(first, last)),
    ];
    by_user.rows = users.iter().map(row).collect();
    by_user.top = 0;
    let mut each = Sheet::new("notices", "Notices", &[], none);
    each.columns = vec![
        always("user", "User"),
        always("told", "Told"),
        always("name", "Rule"),
        always("cluster", "Cluster"),
        always("step", "Time"),
        always("jobs", "Jobs"),
        always("billing_hours_wasted", "Billing h wasted"),
        program("rule"),
        program("message"),
    ];
    let line = |one: &Notice| {
        vec![
            Cell::text(&one.user),
            time(one.at, zone),
            Cell::text(&one.instance),
            Cell::text(&one.cluster),
            Cell::Count(one.step.into()),
            one.jobs.map_or(Cell::Missing, Cell::Count),
            Cell::number(one.wasted),
            Cell::text(&one.rule),
            Cell::text(&one.message),
        ]
    };
    each.rows = notices.iter().map(line).collect();
    each.people = false;
    Document {
        title: "Notices".to_owned(),
        headline: vec![format!(
            "{} to {} between {first} and {last}. X is a notice, _ a workday without.",
            counted(notices.len(), "notice", "notices"),
            counted(users.len(), "user", "users"),
        )],
        facts: vec![
            ("notices_count", Cell::Count(notices.len() as u64)),
            ("users_count", Cell::Count(users.len() as u64)),
        ],
        sheets: vec![by_user, each],
    }
}

fn format_days(first: Date, last: Date) -> &'static str {
    if first == last { "The day" } else { "Oldest to newest day" }
}

fn counted(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}
