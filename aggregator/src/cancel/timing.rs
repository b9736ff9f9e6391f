//! When the next step is due: by the rule's options, and by when the last one was really taken.

use std::time::Duration;

use steward_common::rule::Instance;
use steward_common::span::Span;
use steward_common::time::Timestamp;

use super::note::Kind;
use crate::store::cancels::Kept;

/// Why a job counts as idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// It has not used its GPUs since it began.
    Fixed,
    /// It has not used them for some hours.
    Sliding,
}

/// The times among the rule's options.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Timing {
    /// The first warning, after the start.
    pub first: Option<Duration>,
    /// The second.
    pub second: Option<Duration>,
    /// The end.
    pub cancel: Option<Duration>,
    /// The warning about the last hours.
    pub sliding_warning: Option<Duration>,
    /// The end after that.
    pub sliding_cancel: Option<Duration>,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing before this moment, as far as one can tell; nothing ever if `None`.
    Wait(Option<Timestamp>),
    /// A warning, and when the end follows if nothing changes.
    Warn(Kind, Option<Timestamp>),
    /// The end.
    Cancel,
}

impl Timing {
    /// Those of an instance of the rule.
    #[must_use]
    pub fn of(instance: &Instance) -> Timing {
        let options = instance.rule.list();
        let time = |name: &str| {
            let option = options.iter().find(|option| option.name == name)?;
            option.value.as_ref()?.parse::<Span>().ok().map(|span| span.0)
        };
        Timing {
            first: time("first_warning"),
            second: time("second_warning"),
            cancel: time("cancel"),
            sliding_warning: time("sliding_warning"),
            sliding_cancel: time("sliding_cancel"),
        }
    }

    /// The warnings of a course with the idle time of each and when it was given, and the idle time of the end.
    fn course(&self, course: Course, kept: &Kept) -> (Vec<Warning>, Option<Duration>) {
        let warning = |kind, from: Option<Duration>, given| from.map(|from| (kind, from, given));
        let list = match course {
            Course::Fixed => [
                warning(Kind::Warning1, self.first, kept.first),
                warning(Kind::Warning2, self.second, kept.second),
            ],
            Course::Sliding => {
                [warning(Kind::SlidingWarning, self.sliding_warning, kept.sliding), None]
            }
        };
        let end = match course {
            Course::Fixed => self.cancel,
            Course::Sliding => self.sliding_cancel,
        };
        (list.into_iter().flatten().collect(), end)
    }

    /// What is due for a job that has been idle for so long, of which so much was done.
    #[must_use]
    pub fn step(&self, course: Course, kept: &Kept, idle: Duration, now: Timestamp) -> Step {
        let (warnings, end) = self.course(course, kept);
        // From one step to the next there is the time that the options leave, from when it was really taken.
        let mut last: Option<(Duration, Timestamp)> = None;
        let due = |from: Duration, last: Option<(Duration, Timestamp)>| {
            let by_idle = now.after(from.saturating_sub(idle));
            let by_last = last.map(|(before, at)| at.after(from.saturating_sub(before)));
            by_last.map_or(by_idle, |by_last| by_idle.max(by_last))
        };
        let mut left = warnings.as_slice();
        while let Some(((kind, from, given), rest)) = left.split_first() {
            left = rest;
            if let Some(at) = given {
                last = Some((*from, *at));
                continue;
            }
            let at = due(*from, last);
            if at > now {
                return Step::Wait(Some(at));
            }
            let end = end.filter(|end| warnings.iter().all(|(_, from, _)| from < end));
            return Step::Warn(*kind, end.map(|end| now.after(end.saturating_sub(*from))));
        }
        match (last, end) {
            // Nobody is cancelled who was not warned some time before.
            (Some((before, at)), Some(end)) if before < end => {
                let at = due(end, Some((before, at)));
                if at > now { Step::Wait(Some(at)) } else { Step::Cancel }
            }
            _ => Step::Wait(None),
        }
    }
}

type Warning = (Kind, Duration, Option<Timestamp>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::cancels::Key;
    use steward_common::rule::cancel_zero_gpu_jobs::CancelZeroGpuJobs;

    const START: i64 = 1_000_000;

    fn minutes(minutes: u64) -> Duration {
        Duration::from_secs(60 * minutes)
    }

    fn timing() -> Timing {
        Timing::of(&Instance::of(Box::new(CancelZeroGpuJobs::default())))
    }

    fn kept() -> Kept {
        let (instance, cluster) = ("i".to_owned(), "c".to_owned());
        let submitted = Timestamp::new(START);
        Kept::new(Key { instance, cluster, job: 7, submitted }, "alice".to_owned())
    }

    fn at(minute: u64) -> Timestamp {
        Timestamp::new(START).after(minutes(minute))
    }

    /// What happens to a job that is idle all the time, if one looks at these minutes.
    fn story(timing: Timing, course: Course, looks: &[u64]) -> Vec<(u64, &'static str)> {
        let (mut kept, mut told) = (kept(), Vec::new());
        for &minute in looks {
            let now = at(minute);
            match timing.step(course, &kept, minutes(minute), now) {
                Step::Wait(_) => continue,
                Step::Warn(kind, _) => {
                    told.push((minute, kind.name()));
                    match kind {
                        Kind::Warning1 => kept.first = Some(now),
                        Kind::Warning2 => kept.second = Some(now),
                        _ => kept.sliding = Some(now),
                    }
                }
                Step::Cancel => {
                    told.push((minute, "cancel"));
                    break;
                }
            }
        }
        told
    }

    #[test]
    fn the_options_of_the_rule_are_read() {
        let expected = Timing {
            first: Some(minutes(60)),
            second: Some(minutes(105)),
            cancel: Some(minutes(120)),
            sliding_warning: Some(minutes(240)),
            sliding_cancel: Some(minutes(300)),
        };
        assert_eq!(timing(), expected);
    }

    #[test]
    fn x1_every_stage_comes_in_its_time_and_none_is_lost_by_a_late_run() {
        let on_time = [(60, "first-warning"), (105, "second-warning"), (120, "cancel")];
        let every_minute: Vec<u64> = (0..200).collect();
        assert_eq!(story(timing(), Course::Fixed, &every_minute), on_time);
        // After 134 minutes Job Defense Shield never cancels.
        let late = [(60, "first-warning"), (105, "second-warning"), (134, "cancel")];
        assert_eq!(story(timing(), Course::Fixed, &[59, 60, 74, 75, 90, 104, 105, 134]), late);
        assert_eq!(story(timing(), Course::Fixed, &[60, 105, 135]).last(), Some(&(135, "cancel")));
        // Nobody looked for hours: the warnings are given all the same, with the same time between them.
        let looks: Vec<u64> = (300..500).collect();
        let expected = [(300, "first-warning"), (345, "second-warning"), (360, "cancel")];
        assert_eq!(story(timing(), Course::Fixed, &looks), expected);
        // The second was missed.
        let looks: Vec<u64> = [60].into_iter().chain(119..300).collect();
        let expected = [(60, "first-warning"), (119, "second-warning"), (134, "cancel")];
        assert_eq!(story(timing(), Course::Fixed, &looks), expected);
    }

    #[test]
    fn x5_the_last_hours_are_warned_of_and_then_counted_from_the_warning() {
        let looks: Vec<u64> = (0..400).collect();
        let expected = [(240, "sliding-warning"), (300, "cancel")];
        assert_eq!(story(timing(), Course::Sliding, &looks), expected);
        let expected = [(254, "sliding-warning"), (314, "cancel")];
        let looks: Vec<u64> = (254..400).collect();
        assert_eq!(story(timing(), Course::Sliding, &looks), expected);
    }

    #[test]
    fn without_a_warning_or_time_after_it_nobody_is_cancelled() {
        let all: Vec<u64> = (0..2000).collect();
        let none = Timing { first: None, second: None, ..timing() };
        assert_eq!(story(none, Course::Fixed, &all), []);
        let only_second = Timing { first: None, ..timing() };
        let expected = [(105, "second-warning"), (120, "cancel")];
        assert_eq!(story(only_second, Course::Fixed, &all), expected);
        let at_once = Timing { second: None, cancel: Some(minutes(60)), ..timing() };
        assert_eq!(story(at_once, Course::Fixed, &all), [(60, "first-warning")]);
        let no_end = Timing { cancel: None, ..timing() };
        let warned = [(60, "first-warning"), (105, "second-warning")];
        assert_eq!(story(no_end, Course::Fixed, &all), warned);
    }

    #[test]
    fn a_warning_says_when_the_end_follows() {
        let step =
            |idle: u64, kept: &Kept| timing().step(Course::Fixed, kept, minutes(idle), at(idle));
        assert_eq!(step(70, &kept()), Step::Warn(Kind::Warning1, Some(at(130))));
        let warned = Kept { first: Some(at(70)), ..kept() };
        assert_eq!(step(80, &warned), Step::Wait(Some(at(115))));
        assert_eq!(step(116, &warned), Step::Warn(Kind::Warning2, Some(at(131))));
    }
}
