//! Sums by day. A run over midnight is divided by the time that it held on either side.

use super::hours::{Amount, Hours};
use super::part::Bits;
use super::report::DayLine;
use super::row::Row;
use super::scope::Day;
use crate::time::Timestamp;
use crate::window::Window;

/// What a run held and used in all its time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whole {
    pub(super) held: Window,
    pub(super) cpu: Option<Amount>,
    pub(super) memory: Option<Amount>,
    pub(super) gpu: Option<Amount>,
}

impl Whole {
    /// Counts a share of the run.
    pub(super) fn add_to(&self, [cpu, memory, gpu]: [&mut Hours; 3], share: f64, ended: bool) {
        for (hours, amount) in [(cpu, self.cpu), (memory, self.memory), (gpu, self.gpu)] {
            if let Some(amount) = amount {
                hours.add(amount.share(share), ended);
            }
        }
    }
}

/// The sums of one day.
#[derive(Debug, Clone, Default)]
pub(super) struct DaySum {
    jobs: u64,
    started: u64,
    users: Bits,
    cpu: Hours,
    memory: Hours,
    gpu: Hours,
}

impl DaySum {
    fn count(&mut self, row: &Row, user: usize, day: Window) {
        self.jobs += 1;
        self.started += u64::from(row.start.is_some_and(|start| day.holds(start)));
        self.users.insert(user);
    }

    pub(super) fn finish(self, day: Day) -> DayLine {
        DayLine {
            label: day.label,
            window: day.window,
            jobs: self.jobs,
            started: self.started,
            users: self.users.count(),
            cpu: self.cpu,
            memory: self.memory,
            gpu: self.gpu,
        }
    }
}

/// The days from the one that holds `moment` on, or that follow it.
fn from<'a>(
    days: &'a [Day],
    sums: &'a mut [DaySum],
    moment: Timestamp,
) -> impl Iterator<Item = (&'a Day, &'a mut DaySum)> {
    let first = days.partition_point(|day| day.window.to() <= moment);
    days.iter().zip(sums).skip(first)
}

/// Divides a run over the days on which it held something.
pub(super) fn add(days: &[Day], sums: &mut [DaySum], row: &Row, user: usize, whole: &Whole) {
    let ended = row.end.is_some();
    for (day, sum) in from(days, sums, whole.held.from()) {
        if day.window.from() >= whole.held.to() {
            break;
        }
        sum.count(row, user, day.window);
        let share = day.window.share_of(whole.held);
        whole.add_to([&mut sum.cpu, &mut sum.memory, &mut sum.gpu], share, ended);
    }
}

/// Counts a run that held nothing on the day of this moment.
pub(super) fn add_moment(
    days: &[Day],
    sums: &mut [DaySum],
    row: &Row,
    user: usize,
    moment: Timestamp,
) {
    if let Some((day, sum)) = from(days, sums, moment).next()
        && day.window.holds(moment)
    {
        sum.count(row, user, day.window);
    }
}
