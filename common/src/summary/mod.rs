//! Who used what, and how well: sums over the runs of jobs in a window.
//!
//! - A run belongs to the window if it held resources in it. One that held none, because it never
//!   started or ended at once, belongs to it if its end (else its start, else its submission) lies
//!   in it.
//! - Hours are pro-rated: a run counts with the share of its time that lies in the window, and so
//!   on each day. What it used is taken to be spread evenly over its time.
//! - What nobody measured is neither 0 nor waste. It is counted as unmeasured.
//! - Efficiency is what was used of what was held, over the ended runs with a measurement; each
//!   run weighs as much as it held.
//! - Waiting time is that of the runs that started in the window.
//! - What waste is stands in [`cause`].

pub mod cause;
mod day;
pub mod hours;
mod part;
mod place;
pub mod quantile;
pub mod report;
pub mod row;
pub mod scope;
mod state;
#[cfg(test)]
mod tests;

use crate::efficiency::{gib_hours, hours};
use crate::intern::Names;
use crate::time::Timestamp;
use crate::window::Window;
use day::DaySum;
use hours::{Sums, Took};
use part::{Parts, Queues, Run};
use place::Places;
use quantile::Spread;
use row::Row;
use scope::{Choices, Detail, Groups, Scope};
use state::States;

/// Rows that are counted together.
const AT_ONCE: usize = 256;

/// A row and what it comes to.
struct Counted<'a> {
    row: &'a Row,
    /// What it took in the window.
    run: Run,
    /// What it took in all its time.
    whole: Took,
    /// When it held resources; the moment that it belongs to if it held none.
    held: Result<Window, Timestamp>,
    /// The small number of its user.
    user: usize,
}

/// The sums while rows come in.
#[derive(Debug)]
pub struct Summary {
    scope: Scope,
    choices: Choices,
    /// The number of names that `choices` was made with.
    names: Option<usize>,
    groups: Groups,
    users: Parts,
    accounts: Parts,
    queues: Queues,
    states: States,
    places: Places,
    days: Vec<DaySum>,
    cpu_spread: Spread,
    memory_spread: Spread,
    gpu_spread: Spread,
    limit_spread: Spread,
}

impl Summary {
    /// Nothing counted yet.
    #[must_use]
    pub fn new(scope: Scope) -> Summary {
        Summary {
            days: vec![DaySum::default(); scope.days.len()],
            scope,
            choices: Choices::default(),
            names: None,
            groups: Groups::default(),
            users: Parts::default(),
            accounts: Parts::default(),
            queues: Queues::default(),
            states: States::default(),
            places: Places::default(),
            cpu_spread: Spread::default(),
            memory_spread: Spread::default(),
            gpu_spread: Spread::default(),
            limit_spread: Spread::default(),
        }
    }

    /// Counts the runs of these that are in the scope. `names` is the table that their names are
    /// of, the same one for all calls; it may have grown.
    pub fn add(&mut self, rows: &[Row], names: &Names) {
        if self.names != Some(names.len()) {
            self.choices = Choices::new(&self.scope.filter, names);
            self.names = Some(names.len());
        }
        let mut runs = Vec::with_capacity(AT_ONCE);
        for rows in rows.chunks(AT_ONCE) {
            runs.clear();
            for row in rows {
                if self.choices.admit(row) && self.in_groups(row, names) {
                    runs.extend(self.run(row, names));
                }
            }
            self.count(&runs);
        }
    }

    fn in_groups(&mut self, row: &Row, names: &Names) -> bool {
        let wanted = &self.scope.filter.groups;
        wanted.is_empty() || {
            let groups = self.groups.of(&self.scope.grouping, row.user, row.account, names);
            groups.iter().any(|group| wanted.contains(group))
        }
    }

    /// What a row comes to; `None` if it is not of the window.
    fn run<'a>(&mut self, row: &'a Row, names: &Names) -> Option<Counted<'a>> {
        let window = self.scope.window;
        let held = row.held();
        let moment = row.end.or(row.start).unwrap_or(row.submit);
        let share = held.map_or(0.0, |held| window.share_of(held));
        if share <= 0.0 && (held.is_some() || !window.holds(moment)) {
            return None;
        }
        let whole = held.map(|held| took(row, held)).unwrap_or_default();
        let cause = self.states.cause(row.state, names);
        let run = Run {
            cause: row.end.map(|_| cause),
            took: whole.share(share),
            wait: wait(row, |start| window.holds(start)),
        };
        Some(Counted { row, run, whole, held: held.ok_or(moment), user: self.users.user(row.user) })
    }

    /// Counts runs, table by table: one table stays in the cache for all of them.
    fn count(&mut self, runs: &[Counted<'_>]) {
        for Counted { run, user, .. } in runs {
            self.users.add_user(*user, run);
        }
        if self.scope.detail == Detail::Users {
            return;
        }
        for Counted { row, run, user, .. } in runs {
            self.accounts.add(row.account, run, *user);
        }
        for Counted { row, run, user, .. } in runs {
            self.queues.add([row.cluster, row.partition, row.qos], run, *user);
        }
        let days = &self.scope.days;
        for Counted { row, whole, held, user, .. } in runs {
            match held {
                Ok(held) => day::add(days, &mut self.days, row, *user, (*held, whole)),
                Err(moment) => day::add_moment(days, &mut self.days, row, *user, *moment),
            }
        }
        for Counted { row, run, whole, held, .. } in runs {
            self.states.add(row.state, run);
            if held.is_ok() {
                self.places.add(row, run);
                if row.end.is_some() {
                    self.spread(row, whole);
                }
            }
        }
    }

    fn spread(&mut self, row: &Row, whole: &Took) {
        if let Some(ratio) = whole.cpu.ratio() {
            self.cpu_spread.add(ratio);
        }
        if let Some(ratio) = whole.memory.ratio() {
            self.memory_spread.add(ratio);
        }
        if let Some(ratio) = whole.gpu.as_ref().and_then(Sums::ratio) {
            self.gpu_spread.add(ratio);
        }
        if let (Some(limit), Some(elapsed)) = (row.time_limit, row.elapsed)
            && limit > 0
        {
            self.limit_spread.add(f64::from(elapsed) / f64::from(limit));
        }
    }
}

/// A figure that makes no sense is one that nobody measured: one such would spoil every sum.
fn sane(figure: Option<f64>) -> Option<f64> {
    figure.filter(|figure| (0.0..1e15).contains(figure))
}

/// All that a run held and used. It may have held its CPUs for less time than from start to end:
/// it may have been suspended.
fn took(row: &Row, held: Window) -> Took {
    let seconds = row.elapsed.map_or(held.seconds() as f64, f64::from);
    let used = |seconds: Option<f64>| sane(seconds).map(|seconds| hours(1.0, seconds));
    Took {
        cpu: row.cpus.map_or(Sums::default(), |cpus| {
            Sums::of(hours(f64::from(cpus), seconds), used(row.cpu_seconds))
        }),
        memory: sane(row.alloc_mem_mb).map_or(Sums::default(), |held| {
            let used = sane(row.max_rss_mb).map(|peak| gib_hours(peak, seconds));
            Sums::of(gib_hours(held, seconds), used)
        }),
        // A run without GPUs is no run that used none of its GPUs.
        gpu: row
            .gpus
            .filter(|gpus| *gpus > 0)
            .map(|gpus| Sums::of(hours(f64::from(gpus), seconds), used(row.gpu_seconds))),
    }
}

/// Seconds from submission to start, if it started at a moment that counts. A clock that was set
/// back makes no negative wait.
fn wait(row: &Row, counts: impl Fn(Timestamp) -> bool) -> Option<u32> {
    let start = row.start.filter(|start| counts(*start))?;
    let wait = start.get().saturating_sub(row.submit.get()).max(0);
    Some(u32::try_from(wait).unwrap_or(u32::MAX))
}
