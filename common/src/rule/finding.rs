//! What a rule found: figures and jobs, no sentences.

use std::time::Duration;

use crate::intern::Name;
use crate::unit::Bytes;

use super::facts::{Job, JobKey};
use super::option::Share;

/// A figure of a finding. Its unit is in its key, its rounding is for those who show it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// So many.
    Count(u64),
    /// A number with a fraction: hours, cores per GPU.
    Number(f64),
    /// A part of a whole; 0.5 is half. May exceed 1 where use may exceed what was held.
    Share(f64),
    /// An amount of memory or data.
    Bytes(Bytes),
    /// A length of time.
    Time(Duration),
    /// A word of the rule's own.
    Word(&'static str),
    /// A name of the [`Facts`](super::facts::Facts).
    Name(Name),
}

impl Value {
    /// As a number, in the base unit; `None` for words.
    #[must_use]
    pub fn number(self) -> Option<f64> {
        match self {
            Value::Count(count) => Some(count as f64),
            Value::Number(number) | Value::Share(number) => Some(number),
            Value::Bytes(bytes) => Some(bytes.get() as f64),
            Value::Time(time) => Some(time.as_secs_f64()),
            Value::Word(_) | Value::Name(_) => None,
        }
    }
}

impl From<u32> for Value {
    fn from(count: u32) -> Value {
        Value::Count(u64::from(count))
    }
}

impl From<usize> for Value {
    fn from(count: usize) -> Value {
        Value::Count(count as u64)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Value {
        Value::Number(number)
    }
}

/// Figures by key, in the order in which they are shown. A key names its unit: `gpu_hours`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figures(Vec<(&'static str, Value)>);

impl Figures {
    /// With one more.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl Into<Value>) -> Figures {
        self.0.push((key, value.into()));
        self
    }

    /// With one more, if it is known.
    #[must_use]
    pub fn with_known(self, key: &'static str, value: Option<impl Into<Value>>) -> Figures {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// The figure of that key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Value> {
        self.0.iter().find(|(known, _)| *known == key).map(|(_, value)| *value)
    }

    /// The figure of that key as a number.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<f64> {
        self.get(key)?.number()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Value)> {
        self.0.iter().copied()
    }
}

/// A job that a finding is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The job.
    pub job: JobKey,
    /// The share of what it held that was of no use.
    pub wasted: Option<Share>,
    /// The same in billing hours; `None` where Slurm bills nothing for it, or does not say.
    pub billing_hours: Option<f64>,
    /// What was found of it.
    pub figures: Figures,
}

impl Hit {
    /// About a job; `wasted` is `None` where it is a burden, but no waste that can be counted.
    #[must_use]
    pub fn new(job: &Job, wasted: Option<f64>, figures: Figures) -> Hit {
        // There are as many hits as jobs, and a list that grew has room to spare.
        let mut figures = figures;
        figures.0.shrink_to_fit();
        let wasted = wasted.and_then(|wasted| Share::new(wasted.clamp(0.0, 1.0)));
        let billed = job.billing.map(|weight| weight as f64 * job.hours());
        let billing_hours = billed.zip(wasted).map(|(billed, wasted)| billed * wasted.get());
        Hit { job: job.key, wasted, billing_hours, figures }
    }
}

/// Who should hear of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Audience {
    /// It is advice, shown with the job; nobody is written to.
    Advice,
    /// It is too little to bother the user.
    Administrators,
    /// The user, and the administrators.
    User,
}

/// What a rule found.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Who should hear of it.
    pub audience: Audience,
    /// What was found, over all jobs.
    pub figures: Figures,
    /// The jobs that it is about, the worst first where the rule says so, else by id.
    pub hits: Vec<Hit>,
}

impl Finding {
    /// About these jobs. Of the two hundred that waste the most the figures are kept, of the others that
    /// they are hit and what they wasted: there may be as many as there are jobs.
    #[must_use]
    pub fn new(audience: Audience, figures: Figures, hits: Vec<Hit>) -> Finding {
        let mut finding = Finding { audience, figures, hits };
        finding.keep_figures(200);
        finding.hits.shrink_to_fit();
        finding
    }

    fn keep_figures(&mut self, most: usize) {
        if self.hits.len() <= most {
            return;
        }
        let waste = |hit: &Hit| hit.billing_hours.unwrap_or(0.0);
        let mut order: Vec<f64> = self.hits.iter().map(waste).collect();
        order.sort_unstable_by(|a, b| b.total_cmp(a));
        let bound = order.get(most).copied().unwrap_or(0.0);
        let mut left = most;
        // Those above the bound first: there may be more on it than there is room for.
        for above in [true, false] {
            for hit in &mut self.hits {
                let waste = hit.billing_hours.unwrap_or(0.0);
                if (above && waste > bound) || (!above && waste == bound && left > 0) {
                    left = left.saturating_sub(1);
                } else if !above && waste <= bound {
                    hit.figures = Figures::default();
                }
            }
        }
    }

    /// Billing hours that were of no use; `None` unless they are known of every job.
    #[must_use]
    pub fn billing_hours(&self) -> Option<f64> {
        self.hits.iter().map(|hit| hit.billing_hours).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::sample::{World, job};

    #[test]
    fn the_figures_of_those_that_waste_the_most_are_kept() {
        let world = World::new((1..=6).map(|hours| job("a").hours(f64::from(hours.min(4)))));
        let hit = |job| {
            let mut hit = Hit::new(job, Some(1.0), Figures::default().with("n", 1_u32));
            hit.billing_hours = Some(job.hours());
            hit
        };
        let hits: Vec<Hit> = world.facts.jobs().iter().map(hit).collect();
        let mut finding = Finding { audience: Audience::User, figures: Figures::default(), hits };
        finding.keep_figures(2);
        let kept: Vec<bool> =
            finding.hits.iter().map(|hit| hit.figures.iter().next().is_some()).collect();
        assert_eq!(kept, [false, false, false, true, true, false], "1, 2, 3, 4, 4 and 4 hours");
        assert_eq!(finding.billing_hours(), Some(18.0), "what they wasted stays");
    }
}
