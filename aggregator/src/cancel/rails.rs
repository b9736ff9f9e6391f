//! What prevents a cancellation, each by itself. A rail gives the reason why a job is left.

use steward_common::time::Timestamp;

use super::case::{Case, rule_id};
use super::timing::{Course, Step};
use crate::config::Cancel;
use crate::store::cancels::Kept;
use crate::store::exemptions::Exemption;

/// What rails look at.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The job.
    pub case: &'a Case,
    /// What was done about it.
    pub kept: &'a Kept,
    /// Who is left alone.
    pub exemptions: &'a [Exemption],
    /// The settings.
    pub config: &'a Cancel,
    /// The present.
    pub now: Timestamp,
}

/// A rail: the reason why the job is left, if there is one.
pub type Rail = fn(&Question<'_>) -> Option<String>;

/// All rails that decide about a job by itself. Interactive jobs are spared by the rule, the limits are held by the
/// store.
pub const RAILS: &[(&str, Rail)] = &[
    ("exemption", exemption),
    ("coverage", coverage),
    ("exactly idle", exactly_idle),
    ("warned first", warned_first),
    ("CPU", cpu),
    ("I/O", io),
    ("time left", time_left),
];

/// Those that hold after the signal too: what a job does to save its work is no reason to leave it.
pub const AFTER_SIGNAL: &[(&str, Rail)] =
    &[("exemption", exemption), ("coverage", coverage), ("exactly idle", exactly_idle)];

/// Why a job is left, by these rails.
#[must_use]
pub fn reasons(rails: &[(&str, Rail)], question: &Question<'_>) -> Vec<String> {
    rails.iter().filter_map(|(_, rail)| rail(question)).collect()
}

/// Its owner is left alone.
fn exemption(question: &Question<'_>) -> Option<String> {
    let case = question.case;
    let covers = |one: &&Exemption| {
        one.holds(question.now)
            && one.covers(&case.user, &case.key.instance, rule_id(), &case.key.cluster)
    };
    let one = question.exemptions.iter().find(covers)?;
    Some(format!("its owner is exempt ({})", one.id))
}

/// A part of the time nobody looked at the GPUs.
fn coverage(question: &Question<'_>) -> Option<String> {
    let (seen, needed) = (question.case.coverage, question.config.coverage);
    (seen < needed).then(|| {
        format!(
            "its GPUs were seen {:.1} % of the time, not {:.1} % (cancel.coverage)",
            seen * 100.0,
            needed * 100.0
        )
    })
}

/// Its use was rounded to 0 before it came here.
fn exactly_idle(question: &Question<'_>) -> Option<String> {
    let Case { gpus_exact, gpus_idle, .. } = question.case;
    (gpus_exact < gpus_idle)
        .then(|| format!("only {gpus_exact} of {gpus_idle} idle GPUs were exactly at 0"))
}

/// Its owner has not been warned for as long as the rule's options say, in this time of idleness.
fn warned_first(question: &Question<'_>) -> Option<String> {
    let Question { case, kept, now, .. } = question;
    match case.timing.step(case.course, kept, case.idle, *now) {
        Step::Cancel if !is_of_before(case, kept, *now) => None,
        _ => Some("its owner has not been warned in time".to_owned()),
    }
}

/// Whether the warning is about a time of idleness that ended since: the job worked after it.
#[must_use]
pub fn is_of_before(case: &Case, kept: &Kept, now: Timestamp) -> bool {
    let began = now.before(case.idle);
    case.course == Course::Sliding && kept.sliding.is_some_and(|warned| began > warned)
}

/// It computes, or nobody knows.
fn cpu(question: &Question<'_>) -> Option<String> {
    let most = question.config.busy_cpus;
    if most < 0.0 {
        return None;
    }
    match rate(question, |base| base.cpu) {
        None => Some("what its CPUs did since the warning is not known".to_owned()),
        Some(busy) if busy > most => {
            Some(format!("{busy:.2} of its CPUs were busy since the warning (cancel.busy_cpus)"))
        }
        Some(_) => None,
    }
}

/// It reads or writes, or nobody knows.
fn io(question: &Question<'_>) -> Option<String> {
    let most = question.config.io_mib;
    if most < 0.0 {
        return None;
    }
    match rate(question, |base| base.io) {
        None => Some("what it read and wrote since the warning is not known".to_owned()),
        Some(bytes) if bytes > most * 1_048_576.0 => Some(format!(
            "it moved {:.2} MiB a second since the warning (cancel.io_mib)",
            bytes / 1_048_576.0
        )),
        Some(_) => None,
    }
}

/// What a counter grew by in a second since the first warning; `None` unless it was watched all that time.
fn rate(
    question: &Question<'_>,
    of: impl Fn(&crate::store::cancels::Base) -> Option<(f64, f64)>,
) -> Option<f64> {
    let (then, now) = (&question.kept.base, &question.case.used);
    let seconds = now.at?.since(then.at?)?.as_secs_f64();
    let ((before, seen_before), (after, seen_after)) = (of(then)?, of(now)?);
    // An agent speaks every half-minute or so.
    let unseen = seconds - (seen_after - seen_before);
    if seconds <= 0.0 || after < before || unseen > (seconds * 0.1).max(60.0) {
        return None;
    }
    Some((after - before) / seconds)
}

/// It ends soon anyway.
fn time_left(question: &Question<'_>) -> Option<String> {
    let left = question.case.time_left?;
    (left < question.config.min_time_left.0).then(|| {
        format!("it ends by itself within {} min (cancel.min_time_left)", left.as_secs() / 60 + 1)
    })
}
