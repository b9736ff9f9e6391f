//! What is to be done about a job now. Nothing is done here.

use steward_common::time::Timestamp;

use super::note::Kind;
use super::rails::{self, AFTER_SIGNAL, Question, RAILS, is_of_before};
use super::timing::Step;
use crate::config::CancelMode as Mode;
use crate::store::cancels::Decision;

/// What is to be done about a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing yet, and why.
    Wait(String),
    /// It is left, and why.
    Leave(Vec<String>),
    /// It worked since it was warned: it begins anew.
    Spare,
    /// Its owner is warned, and told when it ends if nothing changes.
    Warn(Kind, Option<Timestamp>),
    /// The administrators are asked.
    Propose,
    /// It gets the signal.
    Signal,
    /// It ends.
    Kill,
}

impl Plan {
    /// What is to be done.
    #[must_use]
    pub fn of(question: &Question<'_>, mode: Mode) -> Plan {
        let Question { case, kept, config, now, .. } = *question;
        if kept.cancelled.is_some() {
            return Plan::Wait("it was cancelled and has not gone yet".to_owned());
        }
        if kept.is_acted_on() {
            return Plan::after_signal(question);
        }
        if is_of_before(case, kept, now) {
            return Plan::Spare;
        }
        match case.timing.step(case.course, kept, case.idle, now) {
            Step::Wait(None) => {
                Plan::Wait("the rule's options have no step after this one".to_owned())
            }
            Step::Wait(Some(at)) => {
                let seconds = at.since(now).map_or(0, |time| time.as_secs());
                Plan::Wait(format!("the next step is due in {} min", seconds.div_ceil(60)))
            }
            Step::Warn(kind, end) => {
                // A warning harms nobody: only those who are to be left alone get none.
                match rails::reasons(RAILS.get(..1).unwrap_or_default(), question) {
                    reasons if reasons.is_empty() => Plan::Warn(kind, end),
                    reasons => Plan::Leave(reasons),
                }
            }
            Step::Cancel => {
                let reasons = rails::reasons(RAILS, question);
                if !reasons.is_empty() {
                    return Plan::Leave(reasons);
                }
                match (mode, &kept.decision) {
                    (_, Some((Decision::Rejected(why), by))) => {
                        Plan::Leave(vec![format!("{by} rejected it: {why}")])
                    }
                    (Mode::Approval, None) if kept.proposed.is_some() => {
                        Plan::Wait(format!("it waits for approval ({})", kept.id))
                    }
                    (Mode::Approval, None) => Plan::Propose,
                    _ if config.signal.is_empty() || config.grace.0.is_zero() => Plan::Kill,
                    _ => Plan::Signal,
                }
            }
        }
    }

    fn after_signal(question: &Question<'_>) -> Plan {
        let Question { kept, config, now, .. } = *question;
        let reasons = rails::reasons(AFTER_SIGNAL, question);
        if !reasons.is_empty() {
            return Plan::Leave(reasons);
        }
        let end = kept.sent.map(|at| at.after(config.grace.0));
        match end {
            // It was to be sent, and nobody knows whether it was.
            None if kept.killed.is_none() => Plan::Signal,
            Some(end) if kept.killed.is_none() && end > now => {
                let left = end.since(now).map_or(0, |time| time.as_secs());
                Plan::Wait(format!("it has the signal, and {left} s to save its work"))
            }
            _ => Plan::Kill,
        }
    }
}
