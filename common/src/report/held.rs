//! What a job held within a window.

use crate::efficiency::hours;
use crate::rule::{Facts, Job};
use crate::window::Window;

use super::Ask;

/// What a job held within a window: the share of its time that lies in it, of all that it held.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Held {
    /// CPU-hours.
    pub cpu_hours: f64,
    /// GPU-hours.
    pub gpu_hours: f64,
}

impl Held {
    /// `None` if it held nothing in the window. A job may have held its CPUs for less time than from
    /// start to end, because it was suspended; of one that has not ended, the time until it was last
    /// seen counts.
    #[must_use]
    pub fn new(job: &Job, window: Window) -> Option<Held> {
        let start = job.start?;
        let seen = || Some(start.after(std::time::Duration::from_secs(job.elapsed?.into())));
        let whole = Window::new(start, job.end.or_else(seen)?)?;
        let share = window.share_of(whole);
        let seconds = job.elapsed.map_or(whole.seconds() as f64, f64::from);
        let of = |count: Option<u32>| hours(f64::from(count.unwrap_or(0)), seconds) * share;
        let held = Held { cpu_hours: of(job.cpus), gpu_hours: of(job.gpus) };
        (share > 0.0 && seconds > 0.0).then_some(held)
    }
}

/// The jobs that were asked for and held something in the window, by user and id.
pub fn jobs<'a>(facts: &'a Facts, ask: &'a Ask) -> impl Iterator<Item = (&'a Job, Held)> {
    facts
        .jobs()
        .iter()
        .filter(|job| ask.admits(facts.names.text(job.partition)))
        .filter_map(|job| Some((job, Held::new(job, facts.window)?)))
}
