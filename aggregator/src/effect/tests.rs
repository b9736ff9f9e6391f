use super::*;
use crate::backtest::tests::{DAY, HOUR, NOW, Run, Unwatched, job, rule, site};
use crate::shutdown;

fn notice(user: &str, days_ago: i64) -> Notice {
    Notice {
        instance: "low-cpu-efficiency".to_owned(),
        rule: "low-cpu-efficiency".to_owned(),
        user: user.to_owned(),
        cluster: "c1".to_owned(),
        at: Timestamp::new(NOW - days_ago * DAY - 3 * HOUR),
        step: 1,
        jobs: Some(1),
        wasted: None,
        message: String::new(),
    }
}

/// First notices of the last 90 days, judged from 50 CPU-hours on in windows of seven days.
fn effect(runs: &[Run], covered: i64, notices: &[Notice]) -> Effect {
    let site = site(runs, covered);
    let instances = [rule(&[("cpu_hours", 50.0), ("top_users", 100.0)])];
    let question = Question {
        notices,
        instances: &instances,
        since: Timestamp::new(NOW - 90 * DAY),
        now: Timestamp::new(NOW),
    };
    let (_stopper, shutdown) = shutdown::channel();
    run(&site.config, &site.archive, &question, &shutdown, &Unwatched).unwrap()
}

/// NOW is noon. Told 16 days ago at nine: the two windows after are of the days 15 to 9 and 8 to 2 before today,
/// those before of 23 to 17 and 30 to 24. In hours before now, the windows after end 60 and 228 hours ago.
const AGO: i64 = 16;

fn one(runs: &[Run]) -> Compared {
    let mut effect = effect(runs, 60, &[notice("al", AGO)]);
    assert_eq!(effect.troubles, [""; 0]);
    effect.compared.remove(0)
}

fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

#[test]
fn windows_are_whole_days_around_the_day_of_the_notice() {
    let first = notice("al", AGO).at;
    let (before, after) = windows(first, 7, Timestamp::new(NOW), &TimeZone::UTC).unwrap();
    let ago = |time: Timestamp| (NOW + DAY / 2 - time.get()) / DAY;
    let shown = |list: &[Window]| -> Vec<(i64, i64)> {
        list.iter().map(|one| (ago(one.from()), ago(one.to()))).collect()
    };
    // A day ago ends with the midnight that is no day ago.
    assert_eq!(shown(&after), [(16, 9), (9, 2)]);
    assert_eq!(shown(&before), [(24, 17), (31, 24)]);
    assert_eq!(windows(first, 30, Timestamp::new(NOW), &TimeZone::UTC).unwrap(), (vec![], vec![]));
}

#[test]
fn what_is_saved_is_computed_from_what_was_wasted_in_a_day() {
    let found = one(&[
        // Nine tenths of 20 h on ten CPUs that are billed as ten: 180, in each window before.
        job(1, "al", 20 * 24, 20, Some(0.1)),
        job(2, "al", 27 * 24, 20, Some(0.1)),
        // Afterwards half of 20 h and half of 10 h: 100 and 50.
        job(3, "al", 12 * 24, 20, Some(0.5)),
        job(4, "al", 5 * 24, 10, Some(0.5)),
        // The day of the notice, and yesterday, count nowhere.
        job(5, "al", 16 * 24, 5, Some(0.0)),
        job(6, "al", 24, 100, Some(0.0)),
    ]);
    assert_eq!(found.change, Change::Improved);
    assert_eq!((found.before.windows, found.after.windows), (2, 2));
    assert_eq!((found.before.with_jobs, found.after.with_jobs), (2, 2));
    let billing = |side: &Side| rounded(side.per_day().unwrap().billing.unwrap() * 14.0);
    assert_eq!((billing(&found.before), billing(&found.after)), (360.0, 150.0));
    let saved = found.saved().unwrap();
    assert_eq!(rounded(saved.billing.unwrap()), 210.0);
    assert_eq!((rounded(saved.cpu_hours), saved.gpu_hours), (210.0, 0.0));
}

/// The bound is 0.6: from 0.59 to 0.61 is next to nothing, and the rule does not say how little.
#[test]
fn a_user_of_whom_nothing_is_found_any_more_is_not_taken_for_one_who_wastes_nothing() {
    let within =
        one(&[job(1, "al", 20 * 24, 20, Some(0.59)), job(2, "al", 5 * 24, 20, Some(0.61))]);
    assert_eq!((within.change, within.saved()), (Change::Within, None));
    let most = within.saved_at_most().unwrap().billing.unwrap();
    assert_eq!(rounded(most), 82.0, "four tenths of 200, and a hundredth");
    let partly = one(&[
        job(1, "al", 20 * 24, 20, Some(0.1)),
        job(2, "al", 12 * 24, 20, Some(0.7)),
        job(3, "al", 5 * 24, 20, Some(0.1)),
    ]);
    assert!(matches!(partly.change, Change::Unknown(why) if why.contains("found nothing")));
    assert_eq!((partly.saved(), partly.saved_at_most()), (None, None));
    // Before, what was wasted is at least what was found: less than a tenth of it is less for sure.
    let since = |hours, efficiency| {
        let (old, fine) =
            (job(1, "al", 20 * 24, 20, Some(0.1)), job(2, "al", 27 * 24, 20, Some(0.7)));
        one(&[old, fine, job(3, "al", 5 * 24, hours, Some(efficiency))])
    };
    let less = since(10, 0.5);
    assert_eq!(less.change, Change::Improved);
    let more = since(30, 0.1);
    assert!(matches!(more.change, Change::Unknown(_)), "{:?}", more.change);
}

#[test]
fn more_waste_is_worse_and_saves_less_than_nothing() {
    let found = one(&[job(1, "al", 20 * 24, 20, Some(0.1)), job(2, "al", 5 * 24, 30, Some(0.1))]);
    assert_eq!(found.change, Change::Worse);
    assert_eq!(rounded(found.saved().unwrap().billing.unwrap()), 180.0 - 270.0);
}

#[test]
fn a_change_of_less_than_a_tenth_is_none() {
    for (hours, change) in [
        (91, Change::Unchanged),
        (89, Change::Improved),
        (109, Change::Unchanged),
        (111, Change::Worse),
    ] {
        let found =
            one(&[job(1, "al", 20 * 24, 100, Some(0.1)), job(2, "al", 3 * 24, hours, Some(0.1))]);
        assert_eq!(found.change, change, "{hours} instead of 100");
    }
}

#[test]
fn to_have_no_jobs_is_no_improvement() {
    let found = one(&[job(1, "al", 20 * 24, 20, Some(0.1)), job(2, "bo", 5 * 24, 20, Some(0.1))]);
    assert_eq!((found.change, found.saved()), (Change::NoJobs, None));
    assert_eq!((found.after.known, found.after.with_jobs), (2, 0));
}

#[test]
fn what_nobody_measured_is_not_taken_for_saved() {
    // Of one window after nothing is known: the other one counts for its seven days.
    let found = one(&[
        job(1, "al", 20 * 24, 20, Some(0.1)),
        job(2, "al", 12 * 24, 20, None),
        job(3, "al", 5 * 24, 10, Some(0.1)),
    ]);
    assert_eq!((found.after.archived, found.after.known), (2, 1));
    let per_day = |side: &Side| rounded(side.per_day().unwrap().billing.unwrap() * 14.0);
    assert_eq!((per_day(&found.before), per_day(&found.after)), (180.0, 180.0));
    assert_eq!(found.change, Change::Unchanged);
    let found = one(&[job(1, "al", 20 * 24, 20, Some(0.1)), job(2, "al", 12 * 24, 20, None)]);
    // A window without jobs and one without figures.
    assert_eq!(found.change, Change::Unknown("too little was measured after"));
    let found = one(&[
        job(1, "al", 20 * 24, 20, Some(0.1)),
        job(2, "al", 12 * 24, 20, None),
        job(3, "al", 5 * 24, 20, None),
    ]);
    assert_eq!(found.change, Change::Unknown("too little was measured after"));
}

#[test]
fn what_the_archive_does_not_have_and_what_is_too_early_is_said() {
    let runs = [job(1, "al", 5 * 24, 20, Some(0.1))];
    let change =
        |covered: i64, notices: &[Notice]| effect(&runs, covered, notices).compared[0].change;
    assert_eq!(
        change(17, &[notice("al", AGO)]),
        Change::Unknown("the archive does not have the days before")
    );
    assert_eq!(change(60, &[notice("al", 7)]), Change::Unknown("it is too early"));
    let mut gone = notice("al", AGO);
    gone.instance = "gone".to_owned();
    assert_eq!(
        change(60, &[gone]),
        Change::Unknown("there is no such rule in the configuration any more")
    );
}

#[test]
fn only_the_first_notice_counts_and_who_was_told_long_ago_is_counted_apart() {
    let runs = [job(1, "al", 20 * 24, 20, Some(0.1))];
    let notices = [notice("bo", 100), notice("bo", 30), notice("al", AGO), notice("al", 9)];
    let effect = effect(&runs, 60, &notices);
    assert_eq!((effect.compared.len(), effect.earlier), (1, 1));
    let told = &effect.compared[0].told;
    assert_eq!((told.user.as_str(), told.times, told.first), ("al", 2, notice("al", AGO).at));
}

#[test]
fn sums_of_a_rule_count_who_wastes_more_and_not_who_has_no_jobs() {
    let runs = [
        job(1, "al", 20 * 24, 20, Some(0.1)),
        job(2, "al", 5 * 24, 10, Some(0.5)),
        job(3, "bo", 20 * 24, 20, Some(0.1)),
        job(4, "bo", 5 * 24, 30, Some(0.1)),
        job(5, "eve", 20 * 24, 50, Some(0.1)),
    ];
    let effect = effect(
        &runs,
        60,
        &[notice("al", AGO), notice("bo", AGO), notice("eve", AGO), notice("joe", 3)],
    );
    let cost = crate::config::Cost {
        billing_hour: Some(0.5),
        currency: Some("EUR".to_owned()),
        ..Default::default()
    };
    let document = crate::output::effect::document(&effect, &cost, 90, &TimeZone::UTC);
    let text = crate::output::json::document(&document, None);
    let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
    let rule = &answer["rules"][0];
    let counts: Vec<_> = ["told", "improved", "unchanged", "worse", "no_jobs", "unknown"]
        .iter()
        .map(|key| rule[key].as_u64().unwrap())
        .collect();
    assert_eq!(counts, [4, 1, 0, 1, 1, 1]);
    // 180 less 50 of al, and 90 less than nothing of bo.
    assert_eq!((&rule["billing_hours_saved"], &rule["money_saved"]), (&40.0.into(), &20.0.into()));
    assert_eq!(rule["cpu_hours_saved"], 40.0);
    let users = answer["users"].as_array().unwrap();
    assert_eq!(
        (&users[2]["user"], &users[2]["billing_hours_saved"]),
        (&"eve".into(), &serde_json::Value::Null)
    );
    assert_eq!(
        (&users[3]["why"], &users[3]["change"]),
        (&"it is too early".into(), &"unknown".into())
    );
    assert_eq!((&users[0]["days_before"], &users[0]["days_after"]), (&14.0.into(), &14.0.into()));
    assert!(text.contains("40.0 billing hours were saved, worth 20.0 EUR."), "{text}");
}
