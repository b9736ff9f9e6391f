//! The clocks of this machine and of slurmctld's.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{Finding, Patient, Told, good, note, trouble};

/// Compares them by what slurmctld calls now.
pub async fn check(patient: Arc<Patient>) -> Vec<Finding> {
    match patient.controller().await {
        Ok(told) => vec![judge(told)],
        // That it does not answer was said before.
        Err(_) => vec![note(
            "slurmctld did not say what time it is",
            "put right what is said above, and look again",
        )],
    }
}

fn judge(told: &Told) -> Finding {
    let told_at = told.settings.as_of.and_then(|time| time.to_zoned(TimeZone::UTC).ok());
    let Some(there) = told_at else {
        return note("slurmctld did not say what time it is", "compare the clocks by hand");
    };
    let seconds = |moment: Timestamp| moment.as_second();
    // It told its time at some moment in between, in whole seconds.
    let there = seconds(there.timestamp());
    let skew = if there < seconds(told.asked) {
        there - seconds(told.asked)
    } else {
        (there - seconds(told.answered)).max(0)
    };
    let text = format!(
        "slurmctld's clock is {} s {} of this one",
        skew.abs(),
        if skew < 0 { "behind" } else { "ahead" }
    );
    match skew.abs() {
        0..=5 => good("slurmctld's clock agrees with this one"),
        6..=240 => note(
            text,
            "see that both machines take their time from the same servers (chronyc tracking)",
        ),
        _ => trouble(
            text,
            "see that both machines take their time from the same servers; munge refuses messages \
             that are more than five minutes off, and jobs seem to end in the future",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Mark;
    use crate::source::slurm::settings::Settings;

    fn at(told: &str) -> Finding {
        let settings = Settings::parse(&format!("Configuration data as of {told}\nA = b\n"));
        let asked = "2026-11-16T09:11:10Z".parse().unwrap();
        let answered = "2026-11-16T09:11:17Z".parse().unwrap();
        judge(&Told { settings, asked, answered })
    }

    #[test]
    fn an_answer_from_between_is_no_skew() {
        for (told, mark) in [
            ("2026-11-16T09:11:10", Mark::Good),
            ("2026-11-16T09:11:17", Mark::Good),
            ("2026-11-16T09:11:47", Mark::Note),
            ("2026-11-16T09:10:40", Mark::Note),
            ("2026-11-16T08:11:10", Mark::Trouble),
            ("soon", Mark::Note),
        ] {
            assert_eq!(at(told).mark, mark, "{told}: {:?}", at(told));
        }
        assert!(at("2026-11-16T09:10:40").text.contains("30 s behind"));
    }
}
