//! What slurmdbd forgets, and whether it is collected before that.

use std::time::Duration;

use steward_common::id::ClusterName;
use steward_common::span::Span;
use steward_common::time::Timestamp;

use crate::source::slurm::settings::Settings;

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

/// A warning comes this long before jobs are lost, or at half the time where that is less.
const MARGIN: Duration = Duration::from_secs(7 * 86_400);

/// After how long slurmdbd deletes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purge {
    /// Never.
    Never,
    /// After this long. A month counts 28 days: none is shorter.
    After(Duration),
}

impl Purge {
    /// Of `NONE`, `12 months`, `30 days*` or `720 hours`, as sacctmgr writes it, or of `12mo` or
    /// `30d`, as slurmdbd.conf may have it. The star says that slurmdbd archives what it deletes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Purge> {
        let text = text.trim().trim_end_matches('*').trim();
        if text.eq_ignore_ascii_case("none") {
            return Some(Purge::Never);
        }
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (count, unit) = text.split_at(digits);
        let count: u32 = count.parse().ok()?;
        let unit = unit.trim().to_ascii_lowercase();
        // As slurmdbd reads it: any beginning of the word, and months if there is none.
        let each = if "months".starts_with(&unit) {
            DAY * 28
        } else if "days".starts_with(&unit) {
            DAY
        } else if "hours".starts_with(&unit) {
            HOUR
        } else {
            return None;
        };
        Some(Purge::After(each.checked_mul(count)?))
    }
}

/// What slurmdbd deletes first of jobs and steps: the setting, and after how long.
#[must_use]
pub fn first(settings: &Settings) -> Option<(&'static str, Duration)> {
    let after = |name: &'static str| match Purge::parse(settings.get(name)?)? {
        Purge::Never => None,
        Purge::After(time) => Some((name, time)),
    };
    // Steps go with their job, and what a job used stands in its steps.
    let found = ["PurgeJobAfter", "PurgeStepAfter"].into_iter().filter_map(after);
    found.min_by_key(|(_, time)| *time)
}

/// Says so if jobs that are not in the archive yet may soon be deleted, or are already.
#[must_use]
pub fn warning(
    cluster: &str,
    covered_until: Option<Timestamp>,
    now: Timestamp,
    (setting, after): (&str, Duration),
) -> Option<String> {
    let Some(until) = covered_until else {
        return Some(format!(
            "{cluster}: nothing was collected yet, and slurmdbd deletes what is older than {} \
             ({setting}): run `steward collect --days {}` now",
            Span(after),
            after.as_secs() / DAY.as_secs()
        ));
    };
    let age = now.since(until).unwrap_or_default();
    if age + MARGIN.min(after / 2) < after {
        return None;
    }
    let what = if age < after { "may soon be deleted" } else { "may be lost already" };
    Some(format!(
        "{cluster}: the last collection reached up to {} ago, and slurmdbd deletes after {} \
         ({setting}): jobs that are not in the archive {what}. Run `steward collect` \
         now, and see that it runs regularly (`steward serve`, or a timer)",
        Span(Duration::from_secs(age.as_secs() / 3600 * 3600)),
        Span(after)
    ))
}

/// Those of all clusters: of each in the archive up to when it is covered, and those of the
/// configuration of which there is nothing at all.
#[must_use]
pub fn warnings(
    covered: &[(&str, Option<Timestamp>)],
    configured: &[ClusterName],
    now: Timestamp,
    after: (&str, Duration),
) -> Vec<String> {
    let is_new = |name: &&str| covered.iter().all(|(known, _)| known != name);
    let never = configured.iter().map(ClusterName::as_str).filter(is_new).map(|name| (name, None));
    let all = covered.iter().copied().chain(never);
    all.filter_map(|(cluster, until)| warning(cluster, until, now, after)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_that_was_never_collected_is_warned_about() {
        let now = Timestamp::new(100 * 86_400);
        let configured = ["c1".parse().unwrap(), "c2".parse().unwrap()];
        let covered = [("c1", Some(now)), ("old", Some(now))];
        let warnings = warnings(&covered, &configured, now, ("PurgeJobAfter", DAY * 30));
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].starts_with("c2: nothing was collected yet"), "{warnings:?}");
    }

    #[test]
    fn every_way_to_write_it_is_read() {
        for (text, days) in
            [("12 months", 336), ("30 days*", 30), ("720 hours", 30), ("12mo", 336), ("12", 336)]
        {
            assert_eq!(Purge::parse(text), Some(Purge::After(DAY * days)), "{text}");
        }
        assert_eq!(Purge::parse("30d"), Some(Purge::After(DAY * 30)));
        assert_eq!(Purge::parse("NONE"), Some(Purge::Never));
        for text in ["", "12 years", "soon", "-1 days"] {
            assert_eq!(Purge::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn steps_may_go_before_their_jobs() {
        let of = |text: &str| first(&Settings::parse(text));
        assert_eq!(
            of("PurgeJobAfter = 12 months\nPurgeStepAfter = 30 days\n"),
            Some(("PurgeStepAfter", DAY * 30))
        );
        assert_eq!(of("PurgeJobAfter = NONE\nPurgeStepAfter = NONE\n"), None);
    }

    #[test]
    fn the_warning_comes_in_time() {
        let now = Timestamp::new(100 * 86_400);
        let after = |days: u32| ("PurgeJobAfter", DAY * days);
        let ago = |time: Duration| Some(now.before(time));
        assert_eq!(warning("c", ago(DAY), now, after(30)), None);
        assert_eq!(warning("c", ago(DAY * 22), now, after(30)), None);
        let soon = warning("c", ago(DAY * 24), now, after(30)).unwrap();
        assert!(soon.contains("24d ago") && soon.contains("may soon be deleted"), "{soon}");
        let late = warning("c", ago(DAY * 31), now, after(30)).unwrap();
        assert!(late.contains("lost already"), "{late}");
        // Kept for a day only: an hour is fine, twelve are not.
        assert_eq!(warning("c", ago(HOUR), now, after(1)), None);
        assert!(warning("c", ago(HOUR * 12), now, after(1)).is_some());
        assert!(warning("c", None, now, after(30)).unwrap().contains("--days 30"));
    }
}
