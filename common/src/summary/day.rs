//! Sums by day. A run over midnight is divided by the time that it held on either side.

use super::hours::{Alike, Took};
use super::part::Bits;
use super::report::DayLine;
use super::row::Row;
use super::scope::Day;
use crate::time::Timestamp;
use crate::window::Window;

/// The sums of one day.
#[derive(Debug, Clone, Default)]
pub(super) struct DaySum {
    started: u64,
    users: Bits,
    ended: Alike,
    open: Alike,
}

impl DaySum {
    fn add(&mut self, row: &Row, user: usize, took: &Took, day: Window) {
        let alike = if row.end.is_some() { &mut self.ended } else { &mut self.open };
        alike.add(took);
        self.started += u64::from(row.start.is_some_and(|start| day.holds(start)));
        self.users.insert(user);
    }

    pub(super) fn finish(self, day: Day) -> DayLine {
        let [mut cpu, mut memory, mut gpu] = self.ended.hours(true);
        let [open_cpu, open_memory, open_gpu] = self.open.hours(false);
        cpu.merge(&open_cpu);
        memory.merge(&open_memory);
        gpu.merge(&open_gpu);
        DayLine {
            label: day.label,
            window: day.window,
            jobs: self.ended.jobs + self.open.jobs,
            started: self.started,
            users: self.users.count(),
            cpu,
            memory,
            gpu,
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

/// Divides what a run took in all its time over the days on which it held something.
pub(super) fn add(
    days: &[Day],
    sums: &mut [DaySum],
    row: &Row,
    user: usize,
    (held, took): (Window, &Took),
) {
    for (day, sum) in from(days, sums, held.from()) {
        if day.window.from() >= held.to() {
            break;
        }
        // Most runs begin and end on one day.
        if day.window.from() <= held.from() && held.to() <= day.window.to() {
            sum.add(row, user, took, day.window);
            break;
        }
        sum.add(row, user, &took.share(day.window.share_of(held)), day.window);
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
        sum.add(row, user, &Took::default(), day.window);
    }
}
