//! `steward backtest`: who would have been told, when, and what could not be judged.

use jiff::tz::TimeZone;
use steward_common::rule::Audience;
use steward_common::time::Timestamp;

use super::number::counted;
use super::plain::{cut, padded, visible, width};
use super::screen::{Screen, Style};
use super::sheet::{Cell, Document, Field, Place, Sheet, always, drop, program};
use crate::backtest::{Backtest, Step, Told, Unknown};

/// The longest name before the marks.
const NAME: usize = 32;

/// A user with the texts that depend on the site.
struct Line {
    told: Told,
    first: String,
    last: String,
    marks: String,
}

const USERS: &[Field<Line>] = &[
    (always("user", "User"), |line| Cell::text(&line.told.user)),
    (drop(1, "rule", "Rule"), |line| Cell::text(&line.told.rule)),
    (drop(1, "cluster", "Cluster"), |line| Cell::text(&line.told.cluster)),
    (always("told", "Told"), |line| Cell::text(audience(line.told.audience))),
    (always("times", "Times"), |line| Cell::Count(line.told.steps.len() as u64)),
    (drop(4, "first", "First"), |line| Cell::text(&line.first)),
    (drop(4, "last", "Last"), |line| Cell::text(&line.last)),
    (drop(3, "jobs", "Jobs"), |line| Cell::Count(line.told.jobs)),
    (drop(2, "billing_hours_wasted", "Wasted billing h"), |line| {
        Cell::number(line.told.billing_hours)
    }),
    (program("marks"), |line| Cell::text(&line.marks)),
];

/// A step with its days.
struct Row {
    step: Step,
    from: String,
    to: String,
}

const STEPS: &[Field<Row>] = &[
    (always("to", "Until"), |row| Cell::text(&row.to)),
    (drop(3, "from", "From"), |row| Cell::text(&row.from)),
    (always("jobs", "Jobs"), |row| Cell::Count(row.step.jobs)),
    (always("users_told", "Users told"), |row| Cell::Count(row.step.users)),
    (drop(1, "admins_told", "Admins only"), |row| Cell::Count(row.step.admins)),
    (drop(2, "users_advised", "Advice only"), |row| Cell::Count(row.step.advice)),
    (always("not_judged", "Not judged"), |row| Cell::Count(row.step.unknown)),
    (drop(4, "archived", "Archived"), |row| {
        Cell::text(if row.step.covered { "all" } else { "not all" })
    }),
];

const UNKNOWN: &[Field<Unknown>] = &[
    (always("why", "Why"), |one| Cell::text(one.why)),
    (always("rule", "Rule"), |one| Cell::text(&one.rule)),
    (drop(1, "cluster", "Cluster"), |one| Cell::text(&one.cluster)),
    (always("times", "Times"), |one| Cell::Count(one.times)),
    (drop(2, "users_count", "Users"), |one| Cell::Count(one.users.len() as u64)),
    (drop(3, "users", "Who"), |one| Cell::text(some(&one.users))),
];

/// The first few names, and how many more there are.
fn some(names: &[String]) -> String {
    let few: Vec<&str> = names.iter().take(5).map(String::as_str).collect();
    let more = names.len() - few.len();
    let more = if more > 0 { format!(" +{more}") } else { String::new() };
    few.join(", ") + &more
}

/// Who hears of a finding.
fn audience(audience: Audience) -> &'static str {
    match audience {
        Audience::User => "user",
        Audience::Administrators => "admins",
        Audience::Advice => "advice",
    }
}

fn day(moment: Timestamp, zone: &TimeZone) -> String {
    let moment = jiff::Timestamp::from_second(moment.get()).unwrap_or_default();
    moment.to_zoned(zone.clone()).date().to_string()
}

/// A mark a step, the oldest first.
fn marks(told: &Told, steps: &[Step]) -> String {
    let mark = |(place, step): (usize, &Step)| {
        if told.steps.contains(&place) {
            'X'
        } else if told.unknown.contains(&place) {
            '?'
        } else if step.covered {
            '.'
        } else {
            ' '
        }
    };
    steps.iter().enumerate().map(mark).collect()
}

/// The marks in at most so many columns: several steps share one, and the strongest mark stays.
fn squeezed(marks: &str, columns: usize) -> String {
    let all: Vec<char> = marks.chars().collect();
    let together = all.len().div_ceil(columns.max(1)).max(1);
    let strength = |mark: &char| " .?X".find(*mark);
    let strongest = |part: &[char]| part.iter().copied().max_by_key(strength).unwrap_or(' ');
    all.chunks(together).map(strongest).collect()
}

/// The tables. `rules` names what was judged.
#[must_use]
pub fn document(backtest: &Backtest, rules: &[String], zone: &TimeZone) -> Document {
    let steps = &backtest.steps;
    let date = |place: Option<&usize>| {
        place.and_then(|place| steps.get(*place)).map(|step| day(step.window.to(), zone))
    };
    let lines: Vec<Line> = backtest
        .told()
        .into_iter()
        .map(|told| Line {
            first: date(told.steps.first()).unwrap_or_default(),
            last: date(told.steps.last()).unwrap_or_default(),
            marks: marks(&told, steps),
            told,
        })
        .collect();
    let rows: Vec<Row> = steps
        .iter()
        .map(|step| Row {
            step: step.clone(),
            from: day(step.window.from(), zone),
            to: day(step.window.to(), zone),
        })
        .collect();
    let unknown = backtest.unknown();
    let mut users = Sheet::new("users", "Who would have been told", USERS, &lines);
    let same = |text: fn(&Line) -> &str| {
        lines.windows(2).all(|pair| matches!(pair, [a, b] if text(a) == text(b)))
    };
    // What is the same in every row is told above.
    for (key, one) in [("rule", rules.len() == 1), ("cluster", same(|line| &line.told.cluster))] {
        for column in users.columns.iter_mut().filter(|column| one && column.key == key) {
            column.place = Place::Program;
        }
    }
    users.notes.extend(lines.iter().any(|line| line.told.billing_hours.is_none()).then(|| {
        "No hours where Slurm bills nothing, or the rule names a burden and no waste.".to_owned()
    }));
    let mut table = Sheet::new("steps", "Step by step", STEPS, &rows);
    table.top = 0;
    table.notes.push(
        "What still ran at a step is not judged there. \"Not judged\" are users or jobs of which too \
         little is known."
            .to_owned(),
    );
    let mut missing = Sheet::new("not_judged", "What could not be judged", UNKNOWN, &unknown);
    missing.top = 0;
    let people: std::collections::BTreeSet<_> = lines
        .iter()
        .filter(|line| line.told.audience == Audience::User)
        .map(|line| (&line.told.cluster, &line.told.user))
        .collect();
    let mut headline = vec![format!(
        "{} would have been told by {}, at {} from {} to {}.",
        counted(people.len() as u64, "user"),
        rules.join(", "),
        counted(steps.len() as u64, "step"),
        rows.first().map_or("-", |row| &row.to),
        rows.last().map_or("-", |row| &row.to),
    )];
    if steps.iter().any(|step| !step.covered) {
        headline.push("The archive does not hold all of that time: see Archived.".to_owned());
    }
    if backtest.uncounted > 0 {
        let more = counted(backtest.uncounted, "finding");
        headline.push(format!("{more} of advice are left out: those with the least waste."));
    }
    let facts = vec![
        ("rules", Cell::text(rules.join(", "))),
        ("steps_count", Cell::Count(steps.len() as u64)),
        ("users_told", Cell::Count(people.len() as u64)),
    ];
    let sheets = vec![users, table, missing];
    Document { title: "Backtest".to_owned(), headline, facts, sheets }
}

/// The calendar for people: a line a user, a mark a step, as wide as the screen. `top` 0 is all.
#[must_use]
pub fn calendar(backtest: &Backtest, several: bool, screen: Screen, top: usize) -> String {
    let all = backtest.told();
    if all.is_empty() {
        return String::new();
    }
    let name = |told: &Told| {
        let rule = if several { format!(" {}", told.rule) } else { String::new() };
        cut(&visible(&format!("{}{rule} ({})", told.user, audience(told.audience))), NAME)
    };
    let shown = if top == 0 { all.len() } else { top.min(all.len()) };
    let widest = all.iter().take(shown).map(|told| width(&name(told))).max().unwrap_or(0);
    let room = screen.width.saturating_sub(widest + 4).max(10);
    let together = backtest.steps.len().div_ceil(room).max(1);
    let mut out = screen.paint(Style::Bold, "When") + "\n";
    for told in all.iter().take(shown) {
        let marks = squeezed(&marks(told, &backtest.steps), room);
        out += &format!("{}  |{marks}|\n", padded(&name(told), widest, false));
    }
    let each = if together == 1 { "a step".to_owned() } else { format!("{together} steps") };
    let legend = format!(
        "A mark is {each}, the oldest at the left. X told, ? too little known, . nothing, blank not \
         archived."
    );
    for line in super::terminal::wrapped(&legend, screen.width).lines() {
        out += &(screen.paint(Style::Dim, line) + "\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_share_a_mark_where_there_is_no_room_and_the_strongest_stays() {
        assert_eq!(squeezed(".X.?..", 6), ".X.?..");
        assert_eq!(squeezed(".X.?..", 3), "X?.");
        assert_eq!(squeezed(".X.?..", 4), "X?.");
        assert_eq!(squeezed("  .?X", 1), "X");
        assert_eq!(squeezed(" . ", 2), ". ");
        assert_eq!(squeezed("", 5), "");
    }
}
