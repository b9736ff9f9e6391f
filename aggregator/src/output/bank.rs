//! Accounts of the bank as tables.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use steward_common::bank::hold::MECHANISMS;
use steward_common::bank::{Account, Day, Entry, Kind, Standing, Units};
use steward_common::limit::Limit;

use super::number::counted;
use super::sheet::{Cell, Document, Field, Sheet, always, drop, hide, program, sometimes};
use crate::bank::check::Now;
use crate::bank::view::View;
use crate::store::holds::{Action, Hold};

/// Service units; a limit that is none has no figure.
fn units(units: Option<Units>) -> Cell {
    Cell::number(units.map(Units::hours))
}

fn limit(limit: Limit<Units>) -> Cell {
    match limit {
        Limit::Unlimited => Cell::text("unlimited"),
        Limit::At(bound) => units(Some(bound)),
    }
}

fn flag(is: bool) -> Cell {
    Cell::text(if is { "yes" } else { "no" })
}

fn used(view: &View) -> Option<Units> {
    view.standing.as_ref().filter(|standing| standing.complete).map(|standing| standing.used)
}

const LIST: &[Field<View>] = &[
    (always("account", "Account"), |view| Cell::text(&view.account.name)),
    (always("su_limit_hrs", "Limit, SU"), |view| limit(view.account.limit())),
    (drop(2, "charged_sus", "Charged, SU"), |view| units(Some(view.account.totals().charged))),
    (drop(2, "balance_sus", "Balance, SU"), |view| {
        let limited = !view.account.unlimited;
        units(limited.then(|| view.account.totals().balance()))
    }),
    (always("start", "From"), |view| Cell::text(view.account.start.to_string())),
    (always("end", "To"), |view| Cell::text(view.account.end.to_string())),
    (hide(3, "lower_limit_informed", "Lower"), |view| flag(view.account.told.lower)),
    (hide(3, "upper_limit_informed", "Upper"), |view| flag(view.account.told.upper)),
    (hide(3, "max_limit_informed", "Over"), |view| flag(view.account.told.over)),
    (always("held_on", "Held on"), |view| Cell::text(view.held().collect::<Vec<_>>().join(","))),
];

/// All accounts.
#[must_use]
pub fn list(views: &[View]) -> Document {
    let sheet = Sheet::new("accounts", "Accounts of the bank", LIST, views);
    Document {
        title: "Accounts of the bank".to_owned(),
        headline: vec![format!("In the bank: {}.", counted(views.len() as u64, "account"))],
        facts: Vec::new(),
        sheets: vec![sheet],
    }
}

const INFO: &[Field<View>] = &[
    (always("account", "Account"), |view| Cell::text(&view.account.name)),
    (always("su_limit_hrs", "Limit, SU"), |view| limit(view.account.limit())),
    (always("used_sus", "Used by Slurm, SU"), |view| units(used(view))),
    (always("left_sus", "Left, SU"), |view| units(view.standing.as_ref().and_then(Standing::left))),
    (always("used_percent", "Used, %"), |view| {
        Cell::share(view.standing.as_ref().and_then(Standing::share))
    }),
    (always("level", "Level"), |view| {
        let level = view.standing.as_ref().and_then(|standing| standing.level);
        level.map_or(Cell::Missing, |level| Cell::text(level.word()))
    }),
    (always("held_on", "Held on"), |view| Cell::text(view.held().collect::<Vec<_>>().join(","))),
    (always("start", "From"), |view| Cell::text(view.account.start.to_string())),
    (always("end", "To"), |view| Cell::text(view.account.end.to_string())),
    (always("lower_limit_informed", "Lower level told"), |view| flag(view.account.told.lower)),
    (always("upper_limit_informed", "Upper level told"), |view| flag(view.account.told.upper)),
    (always("max_limit_informed", "Limit told"), |view| flag(view.account.told.over)),
    (always("end_informed", "End told"), |view| flag(view.account.told.end)),
    (always("charged_sus", "Charged by the ledger, SU"), |view| {
        units(Some(view.account.totals().charged))
    }),
    (always("drift_sus", "Slurm's figure less the ledger's, SU"), |view| units(view.drift())),
];

const FORECAST: &[Field<View>] = &[
    (always("account", "Account"), |view| Cell::text(&view.account.name)),
    (always("left_sus", "Left, SU"), |view| units(view.standing.as_ref().and_then(Standing::left))),
    (always("sus_per_day", "Used a day, SU"), |view| {
        Cell::number(view.forecast.map(|forecast| forecast.per_day))
    }),
    (always("exhausted", "Nothing left on"), |view| {
        let day = view.forecast.and_then(|forecast| forecast.exhausted);
        day.map_or(Cell::Missing, |day| Cell::text(day.to_string()))
    }),
    (always("end", "Proposal ends on"), |view| Cell::text(view.account.end.to_string())),
    (always("left_at_end_sus", "Left then, SU"), |view| {
        Cell::number(view.forecast.and_then(|forecast| forecast.left_at_end))
    }),
];

const BALANCE: &[Field<View>] = &[
    (always("su_limit_hrs", "Limit, SU"), |view| limit(view.account.limit())),
    (always("used_sus", "Used, SU"), |view| units(used(view))),
    (always("left_sus", "Left, SU"), |view| units(view.standing.as_ref().and_then(Standing::left))),
    (always("sus_per_day", "Daily, SU"), |view| {
        Cell::number(view.forecast.map(|forecast| forecast.per_day))
    }),
    (always("start", "From"), |view| Cell::text(view.account.start.to_string())),
    (always("end", "To"), |view| Cell::text(view.account.end.to_string())),
];

/// What is left of what, for a mail.
#[must_use]
pub fn balance(view: &View) -> Sheet {
    Sheet::new("balance", "", BALANCE, [view])
}

fn upright(view: &View, name: &'static str, title: String, fields: &[Field<View>]) -> Document {
    let mut sheet = Sheet::new(name, title.clone(), fields, [view]);
    sheet.upright = true;
    Document { title, headline: Vec::new(), facts: Vec::new(), sheets: vec![sheet] }
}

/// One account.
#[must_use]
pub fn info(view: &View) -> Document {
    let mut document = upright(view, "account", format!("Account {}", view.account.name), INFO);
    if let Some(drift) = view.drift().filter(|drift| *drift != Units::ZERO)
        && let Some(sheet) = document.sheets.first_mut()
    {
        sheet.notes.push(format!(
            "Slurm's figure decides. The ledger's is {} SUs {}: it has whole days of the archive \
             (UTC) up to yesterday, since the proposal began, and no jobs of accounts below this one{}.",
            Units::new(drift.seconds().saturating_abs()),
            if drift > Units::ZERO { "less" } else { "more" },
            below(view)
        ));
    }
    document
}

/// What accounts below used, for a sentence.
fn below(view: &View) -> String {
    let each: Vec<String> =
        view.below.iter().map(|(name, used)| format!("{name} {used} SUs")).collect();
    match each.as_slice() {
        [] => String::new(),
        each => format!(", of which Slurm's figure has: {}", each.join(", ")),
    }
}

/// When nothing will be left.
#[must_use]
pub fn forecast(view: &View) -> Document {
    let title = format!("Forecast of account {}", view.account.name);
    let mut document = upright(view, "forecast", title, FORECAST);
    let why = match (view.forecast, &view.standing) {
        (Some(forecast), _) if forecast.exhausted.is_some() => None,
        (Some(_), _) => Some("Nothing was used lately, so nothing runs out."),
        (None, _) if view.account.unlimited => Some("The account has no limit."),
        (None, Some(standing)) if standing.complete => {
            Some("The proposal began today: tomorrow there is a day to go by.")
        }
        (None, _) => Some("Not every cluster says what was used, so nothing can be foreseen."),
    };
    if let (Some(why), Some(sheet)) = (why, document.sheets.first_mut()) {
        sheet.notes.push(why.to_owned());
    }
    document
}

/// What a user used on a cluster; without a name it is the account's sum.
#[derive(Clone, Debug)]
pub struct User {
    /// The cluster.
    pub cluster: String,
    /// The account, or one below it.
    pub account: String,
    /// The user.
    pub user: Option<String>,
    /// What he used.
    pub used: Option<Units>,
}

const USAGE: &[Field<(User, Option<Units>)>] = &[
    (always("cluster", "Cluster"), |(user, _)| Cell::text(&user.cluster)),
    (always("account", "Account"), |(user, _)| Cell::text(&user.account)),
    (always("user", "User"), |(user, _)| Cell::text(user.user.as_deref().unwrap_or("all"))),
    (always("used_sus", "Used, SU"), |(user, _)| units(user.used)),
    (always("of_limit_percent", "Of the limit, %"), |(user, limit)| {
        let share = user.used.zip(*limit).filter(|(_, limit)| *limit > Units::ZERO);
        Cell::share(share.map(|(used, limit)| used.hours() / limit.hours()))
    }),
];

/// Who used what.
#[must_use]
pub fn usage(account: &Account, users: &[User]) -> Document {
    let limit = account.limit().at();
    let rows: Vec<(User, Option<Units>)> = users.iter().map(|user| (user.clone(), limit)).collect();
    let title = format!("Usage of account {}", account.name);
    let mut sheet = Sheet::new("usage", title.clone(), USAGE, &rows);
    if users.iter().any(|user| user.account != account.name) {
        let note = format!("What accounts below {} used is part of what it used.", account.name);
        sheet.notes.push(note);
    }
    Document { title, headline: Vec::new(), facts: Vec::new(), sheets: vec![sheet] }
}

fn moment(at: i64, zone: &TimeZone) -> Cell {
    let at = jiff::Timestamp::from_second(at).map(|at| at.to_zoned(zone.clone()));
    at.map_or(Cell::Missing, |at| Cell::text(at.strftime("%Y-%m-%d %H:%M:%S").to_string()))
}

/// All entries of an account, and what Slurm was told.
#[must_use]
pub fn history(
    account: &Account,
    entries: &[Entry],
    actions: &[Action],
    zone: &TimeZone,
) -> Document {
    type Line = (Entry, Units, Cell);
    let fields: &[Field<Line>] = &[
        (always("number", "No"), |(one, ..)| Cell::Count(u64::try_from(one.number).unwrap_or(0))),
        (always("at", "When"), |(_, _, at)| at.clone()),
        (always("kind", "Kind"), |(one, ..)| Cell::text(one.kind.word())),
        (always("amount_sus", "SU"), |(one, ..)| units(Some(one.amount))),
        (always("balance_sus", "Balance, SU"), |(_, balance, _)| units(Some(*balance))),
        (hide(2, "cluster", "Cluster"), |(one, ..)| {
            Cell::text(one.cluster.as_deref().unwrap_or_default())
        }),
        (hide(3, "about", "About"), |(one, ..)| {
            Cell::text(one.about.as_deref().unwrap_or_default())
        }),
        (drop(1, "actor", "Who"), |(one, ..)| Cell::text(&one.actor)),
        (drop(1, "reason", "Why"), |(one, ..)| Cell::text(&one.reason)),
    ];
    let mut balance = Units::ZERO;
    let mut lines: Vec<Line> = Vec::new();
    for entry in entries {
        balance = [balance, entry.amount].into_iter().sum();
        lines.push((entry.clone(), balance, moment(entry.at.get(), zone)));
    }
    let told: &[Field<(Action, Cell)>] = &[
        (always("at", "When"), |(_, at)| at.clone()),
        (always("cluster", "Cluster"), |(one, _)| Cell::text(&one.cluster)),
        (always("actor", "Who"), |(one, _)| Cell::text(&one.actor)),
        (always("setting", "Set"), |(one, _)| Cell::text(one.setting())),
        (program("command"), |(one, _)| Cell::text(&one.command)),
        (always("outcome", "Outcome"), |(one, _)| Cell::text(&one.outcome)),
    ];
    let actions: Vec<(Action, Cell)> =
        actions.iter().map(|one| (one.clone(), moment(one.at.get(), zone))).collect();
    let title = format!("History of account {}", account.name);
    let sheets = vec![
        Sheet::new("entries", "Entries", fields, &lines),
        Sheet::new("actions", "What Slurm was told", told, &actions),
    ];
    Document { title, headline: Vec::new(), facts: Vec::new(), sheets }
}

/// A row of the tree.
struct Branch<'a> {
    /// How far it is set in.
    indent: usize,
    cluster: &'a str,
    account: &'a str,
    parent: &'a str,
    used: Option<Units>,
    limits: String,
    limit: Option<Limit<Units>>,
    held: Option<&'a Hold>,
}

/// Slurm's tree of accounts, in which those below another are set in if `is_indented`.
#[must_use]
pub fn tree(
    now: &Now,
    accounts: &BTreeMap<String, Account>,
    holds: &BTreeMap<(String, String), Hold>,
    is_indented: bool,
) -> Document {
    let fields: &[Field<Branch<'_>>] = &[
        (always("account", "Account"), |one| {
            Cell::text(format!("{}{}", "  ".repeat(one.indent), one.account))
        }),
        (program("parent"), |one| Cell::text(one.parent)),
        (always("cluster", "Cluster"), |one| Cell::text(one.cluster)),
        (always("used_sus", "Used, SU"), |one| units(one.used)),
        (always("su_limit_hrs", "In the bank, SU"), |one| one.limit.map_or(Cell::Missing, limit)),
        (always("limits", "Limits in Slurm"), |one| Cell::text(&one.limits)),
        (always("held", "Held by"), |one| {
            let word = |hold: &Hold| format!("bank ({})", hold.stage.word());
            one.held.map_or(Cell::Missing, |hold| Cell::text(word(hold)))
        }),
    ];
    let mut branches = Vec::new();
    for cluster in now.used.keys() {
        grow(now, cluster, "", 0, &mut |depth, account| {
            let key = (cluster.clone(), account.to_owned());
            let own = now.associations.get(&key);
            let set = |mechanism: &steward_common::bank::Mechanism| {
                let value = own.and_then(|own| own.limit(*mechanism));
                value.map(|value| mechanism.setting(Some(value)))
            };
            let limits: Vec<String> = MECHANISMS.iter().filter_map(set).collect();
            branches.push(Branch {
                indent: if is_indented { depth } else { 0 },
                cluster,
                account,
                parent: own.map_or("", |own| own.parent.as_str()),
                used: now.usage(account).get(cluster).copied().flatten(),
                limits: limits.join(" "),
                limit: accounts.get(account).map(Account::limit),
                held: holds.get(&(account.to_owned(), cluster.clone())),
            });
        });
    }
    let title = "Accounts of Slurm".to_owned();
    let sheet = Sheet::new("tree", title.clone(), fields, &branches);
    Document { title, headline: Vec::new(), facts: Vec::new(), sheets: vec![sheet] }
}

/// Visits the accounts below one, in the order of their names.
fn grow<'a>(
    now: &'a Now,
    cluster: &str,
    parent: &str,
    depth: usize,
    visit: &mut dyn FnMut(usize, &'a str),
) {
    // A tree of Slurm is never so deep; a damaged one may be without end.
    if depth > 64 {
        return;
    }
    let below = now
        .associations
        .values()
        .filter(|one| one.cluster == cluster && one.parent == parent && one.account != one.parent);
    for one in below {
        visit(depth, &one.account);
        grow(now, cluster, &one.account, depth + 1, visit);
    }
}

/// A month of an account.
#[derive(Clone, Debug)]
pub struct Month {
    account: String,
    before: Units,
    /// What it has at the end; none without a limit.
    after: Option<Units>,
    by_kind: BTreeMap<Kind, Units>,
}

impl Month {
    /// The entries from one day up to another; a charge counts on the day that it is about.
    #[must_use]
    pub fn new(
        account: &str,
        entries: &[Entry],
        from: Day,
        to: Day,
        day: impl Fn(i64) -> Day,
    ) -> Month {
        let zero = Units::ZERO;
        let mut after = zero;
        let mut month = Month {
            account: account.to_owned(),
            before: zero,
            after: None,
            by_kind: BTreeMap::new(),
        };
        for entry in entries {
            let about = || entry.about.as_deref().and_then(|text| text.parse::<Day>().ok());
            let charged = if entry.kind == Kind::Charge { about() } else { None };
            let on = charged.unwrap_or_else(|| day(entry.at.get()));
            let add = |sum: &mut Units| *sum = [*sum, entry.amount].into_iter().sum();
            if on < from {
                add(&mut month.before);
            }
            if on < to {
                add(&mut after);
            }
            if on >= from && on < to {
                add(month.by_kind.entry(entry.kind).or_default());
            }
        }
        Month { after: Some(after), ..month }
    }

    /// The same of an account that has no limit: what it has then says nothing.
    #[must_use]
    pub fn unlimited(self, is_so: bool) -> Month {
        Month { after: self.after.filter(|_| !is_so), ..self }
    }

    fn of(&self, kinds: &[Kind]) -> Cell {
        units(Some(kinds.iter().filter_map(|kind| self.by_kind.get(kind)).copied().sum()))
    }
}

const STATEMENT: &[Field<Month>] = &[
    (always("account", "Account"), |one| Cell::text(&one.account)),
    (always("before_sus", "Before, SU"), |one| units(Some(one.before))),
    (always("granted_sus", "Granted"), |one| one.of(&[Kind::Grant])),
    (always("charged_sus", "Charged"), |one| one.of(&[Kind::Charge])),
    (sometimes("refunded_sus", "Refunded"), |one| one.of(&[Kind::Refund])),
    (sometimes("transferred_sus", "Transferred"), |one| one.of(&[Kind::Transfer])),
    (sometimes("expired_sus", "Expired"), |one| one.of(&[Kind::Expiry])),
    (sometimes("adjusted_sus", "Adjusted"), |one| one.of(&[Kind::Adjustment])),
    (sometimes("reset_sus", "Begun anew"), |one| one.of(&[Kind::Reset])),
    (always("after_sus", "After, SU"), |one| units(one.after)),
];

/// The month of a day, `YYYY-MM`.
#[must_use]
pub fn month_of(day: Day) -> String {
    day.to_string().chars().take(7).collect()
}

/// Months of accounts.
#[must_use]
pub fn months(months: &[Month], title: &str) -> Sheet {
    Sheet::new("statement", title.to_owned(), STATEMENT, months)
}

/// A statement of a month.
#[must_use]
pub fn statement(all: &[Month], from: Day) -> Document {
    let title = format!("Statement of {}", month_of(from));
    let sheets = vec![months(all, &title)];
    Document { title, headline: Vec::new(), facts: Vec::new(), sheets }
}
