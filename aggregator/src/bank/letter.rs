//! What mails about an account say: figures for their sentences, and a table.

use std::collections::BTreeMap;

use steward_common::bank::{Day, Mechanism, Standing, Units};

use super::view::View;
use crate::mail::{Account, Content};
use crate::output::bank::{self as sheets, Month};
use crate::output::sheet::Cell;

/// What becomes of jobs of an account that is held, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// Whether running jobs go on; `None` if a cluster does not say how it enforces limits.
    pub running_go_on: Option<bool>,
    /// Whether new jobs are refused; they wait if not.
    pub new_are_refused: bool,
}

impl Fate {
    /// Under this way to hold, with `safe` in AccountingStorageEnforce or without.
    #[must_use]
    pub fn new(mechanism: Mechanism, safe: Option<bool>) -> Fate {
        Fate {
            running_go_on: if mechanism.may_end_jobs() { safe } else { Some(true) },
            new_are_refused: mechanism == Mechanism::Submission,
        }
    }
}

fn units(units: Option<Units>) -> Cell {
    Cell::number(units.map(Units::hours))
}

fn day(day: Option<Day>) -> Cell {
    day.map_or(Cell::Missing, |day| Cell::text(day.to_string()))
}

/// Something that is so, or is not.
fn flag(is: bool) -> Cell {
    if is { Cell::text("yes") } else { Cell::Missing }
}

type Figures = BTreeMap<&'static str, Cell>;

fn figures(view: &View) -> Figures {
    let (account, standing) = (&view.account, view.standing.as_ref());
    let forecast = view.forecast;
    let exhausted = forecast.and_then(|forecast| forecast.exhausted);
    let used = standing.filter(|standing| standing.complete).map(|standing| standing.used);
    let per_day = forecast.map(|forecast| forecast.per_day).filter(|units| *units > 0.0);
    let over = account.limit().at().zip(used).and_then(|(limit, used)| used.minus(limit));
    let over = over.filter(|over| *over > Units::ZERO);
    BTreeMap::from([
        ("limit", units(account.limit().at())),
        ("is_unlimited", flag(account.unlimited)),
        ("over", units(over)),
        ("used", units(used)),
        // Who used more than it may has nothing left, not less.
        ("left", units(standing.and_then(Standing::left).map(Units::or_nothing))),
        ("percent", Cell::share(standing.and_then(Standing::share))),
        ("start", day(Some(account.start))),
        ("end", day(Some(account.end))),
        ("per_day", Cell::number(per_day)),
        // Of what is used up already there is nothing to foresee.
        ("exhausted", day(exhausted.filter(|_| per_day.is_some() && over.is_none()))),
        ("before_end", flag(forecast.and_then(|forecast| forecast.before_end) == Some(true))),
    ])
}

fn content(view: &View, more: impl IntoIterator<Item = (&'static str, Cell)>) -> Content {
    let mut figures = figures(view);
    figures.extend(more);
    Content::Account(Account { figures, sheet: sheets::balance(view) })
}

/// That it has used much.
#[must_use]
pub fn level(view: &View) -> Content {
    content(view, [])
}

/// Where it is held.
fn held_on(view: &View) -> Cell {
    let held: Vec<&str> = view.held().collect();
    if held.is_empty() { Cell::Missing } else { Cell::text(held.join(", ")) }
}

/// That it has used more than it may, and what that means for its jobs.
#[must_use]
pub fn held(view: &View, fate: Fate) -> Content {
    content(
        view,
        [
            ("held_on", held_on(view)),
            ("running_go_on", flag(fate.running_go_on == Some(true))),
            ("running_end", flag(fate.running_go_on == Some(false))),
            ("new_are_refused", flag(fate.new_are_refused)),
        ],
    )
}

/// That its proposal ends soon, and whether something happens then.
#[must_use]
pub fn ending(view: &View, is_enforced: bool) -> Content {
    content(view, [("end_is_enforced", flag(is_enforced))])
}

/// What it got and used in a month.
#[must_use]
pub fn statement(view: &View, month: Month, from: Day) -> Content {
    let mut figures = figures(view);
    figures.insert("month", Cell::text(sheets::month_of(from)));
    figures.insert("held_on", held_on(view));
    Content::Account(Account { figures, sheet: sheets::months(&[month], "") })
}
