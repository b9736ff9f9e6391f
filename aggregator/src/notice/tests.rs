//! Who is told, and who is not: decided from candidates alone.

use std::collections::BTreeSet;
use std::time::Duration;

use steward_common::rule::find;
use steward_common::span::Span;
use steward_common::time::Timestamp;

use super::digest::{Candidate, Item};
use super::plan::{Plan, plan};
use super::restraint::{Held, History, Restraint};
use crate::config::Notices;
use crate::output::sheet::Sheet;
use crate::store::exemptions::Exemption;
use crate::store::notices::Notice;

const DAY: i64 = 86_400;
const NOW: Timestamp = Timestamp::new(1_800_000_000);

fn ago(days: i64) -> Timestamp {
    Timestamp::new(NOW.get() - days * DAY)
}

fn sheet() -> Sheet {
    let none: [&(); 0] = [];
    Sheet::new("jobs", "Jobs", &[], none)
}

fn candidate(user: &str, instance: &str, wasted: f64) -> Candidate {
    let item = Item {
        instance: instance.to_owned(),
        rule: find("low-cpu").unwrap().id(),
        cluster: "c1".to_owned(),
        part: None,
        totals: sheet(),
        jobs: sheet(),
        billing_hours: Some(wasted),
        before: 0,
    };
    let accounts = BTreeSet::from(["physics".to_owned()]);
    Candidate { user: user.to_owned(), item, accounts, coverage: Some(0.9) }
}

fn notice(user: &str, instance: &str, at: Timestamp) -> Notice {
    Notice {
        instance: instance.to_owned(),
        rule: "low-cpu".to_owned(),
        user: user.to_owned(),
        cluster: "c1".to_owned(),
        at,
        step: 1,
        jobs: Some(1),
        wasted: None,
        message: String::new(),
    }
}

fn decide(
    candidates: Vec<Candidate>,
    told: &[Notice],
    change: impl FnOnce(&mut Restraint<'_>, &mut Notices),
) -> Plan {
    let mut config = Notices::default();
    let history = History::of(told);
    let plain = Notices::default();
    let mut restraint = Restraint {
        config: &plain,
        quiet: None,
        day: None,
        history: &history,
        exemptions: &[],
        now: NOW,
    };
    change(&mut restraint, &mut config);
    let restraint = Restraint { config: &config, ..restraint };
    plan(candidates, &restraint, "2027-01-01", "2027-01-08")
}

fn nothing(_: &mut Restraint<'_>, _: &mut Notices) {}

fn why(plan: &Plan) -> Vec<&'static str> {
    plan.held.iter().map(|one| one.why.name()).collect()
}

#[test]
fn all_findings_of_a_user_are_one_digest_the_most_waste_first() {
    let found = [("bob", "b", 5.0), ("alice", "a", 1.0), ("alice", "b", 3.0)];
    let found = found.map(|(user, rule, wasted)| candidate(user, rule, wasted));
    let plan = decide(found.to_vec(), &[], nothing);
    let told: Vec<_> = plan.planned.iter().map(|one| one.digest.user.as_str()).collect();
    assert_eq!(told, ["bob", "alice"]);
    let items = &plan.planned[1].digest.items;
    assert_eq!(items.iter().map(|item| item.instance.as_str()).collect::<Vec<_>>(), ["b", "a"]);
    assert!(plan.held.is_empty());
}

/// Just within the quiet time, at its end and after; of another rule, user or cluster never. X6: the
/// scope of an instance is no part of the key, so "all partitions" is quiet too.
#[test]
fn x6_a_user_is_not_told_again_within_the_quiet_time() {
    // A run may be up to an hour early.
    let end = 7 * DAY - 3600;
    for (seconds, told) in [(end - 1, false), (end, true), (7 * DAY, true)] {
        let before = notice("alice", "a", Timestamp::new(NOW.get() - seconds));
        let plan = decide(vec![candidate("alice", "a", 1.0)], &[before], nothing);
        assert_eq!(!plan.planned.is_empty(), told, "{seconds}");
        assert_eq!(why(&plan), if told { vec![] } else { vec!["quiet"] });
    }
    for other in [notice("alice", "b", ago(1)), notice("bob", "a", ago(1))] {
        let plan = decide(vec![candidate("alice", "a", 1.0)], &[other], nothing);
        assert_eq!(plan.planned.len(), 1);
    }
    let elsewhere = Notice { cluster: "c2".to_owned(), ..notice("alice", "a", ago(1)) };
    assert_eq!(decide(vec![candidate("alice", "a", 1.0)], &[elsewhere], nothing).planned.len(), 1);
}

#[test]
fn the_quiet_time_is_that_of_the_instance_or_of_the_command_line() {
    let told = [notice("alice", "a", ago(10))];
    let found = || vec![candidate("alice", "a", 1.0)];
    let longer = |_: &mut Restraint<'_>, config: &mut Notices| {
        config.quiet_of.insert("a".to_owned(), Span(Duration::from_secs(14 * 86_400)));
    };
    assert_eq!(why(&decide(found(), &told, longer)), ["quiet"]);
    let shorter = |restraint: &mut Restraint<'_>, config: &mut Notices| {
        longer(restraint, config);
        restraint.quiet = Some(Duration::from_secs(9 * 86_400));
    };
    assert!(decide(found(), &told, shorter).held.is_empty());
}

#[test]
fn a_day_off_an_exemption_and_too_little_coverage_each_hold_back() {
    let found = || vec![candidate("alice", "a", 1.0)];
    let day = decide(found(), &[], |restraint, _| restraint.day = Some("Saturday".to_owned()));
    assert_eq!(why(&day), ["day"]);
    let covered = |needed: f64| decide(found(), &[], move |_, config| config.coverage = needed);
    assert_eq!(why(&covered(0.91)), ["coverage"]);
    assert!(covered(0.9).held.is_empty(), "as much as is needed");
    let exempt = [Exemption {
        id: "1".to_owned(),
        user: "alice".to_owned(),
        rule: Some("a".to_owned()),
        cluster: None,
        reason: "a course".to_owned(),
        added: ago(1),
        by: "root".to_owned(),
        ends: Timestamp::new(NOW.get() + DAY),
        removed: None,
    }];
    let config = Notices::default();
    let history = History::default();
    let restraint = Restraint {
        config: &config,
        quiet: None,
        day: None,
        history: &history,
        exemptions: &exempt,
        now: NOW,
    };
    let both = vec![candidate("alice", "a", 1.0), candidate("alice", "b", 1.0)];
    let plan = plan(both, &restraint, "", "");
    assert!(matches!(plan.held.first().map(|one| &one.why), Some(Held::Exempt { .. })));
    assert_eq!(plan.planned.first().map(|one| one.digest.items.len()), Some(1), "of b she is told");
}

#[test]
fn so_many_are_told_in_a_run_and_the_others_wait() {
    let users = ["a", "b", "c", "d"];
    let found = users.iter().zip(1..).map(|(user, wasted)| candidate(user, "r", f64::from(wasted)));
    let plan = decide(found.collect(), &[], |_, config| config.most = 2);
    let told: Vec<_> = plan.planned.iter().map(|one| one.digest.user.as_str()).collect();
    assert_eq!(told, ["d", "c"]);
    assert_eq!(why(&plan), ["most", "most"]);
}

/// Notices count as in a row while no pause between two of them, or since the last, is too long.
#[test]
fn the_ladder_counts_notices_in_a_row() {
    for (told, step) in [
        (vec![], 1),
        (vec![10], 2),
        (vec![30, 10], 3),
        (vec![150, 30, 10], 3),
        (vec![110, 30, 10], 4),
        (vec![91], 1),
        (vec![90], 2),
    ] {
        let told: Vec<_> = told.iter().map(|days| notice("alice", "a", ago(*days))).collect();
        let plan = decide(vec![candidate("alice", "a", 1.0)], &told, nothing);
        assert_eq!(plan.planned[0].steps, [step], "{told:?}");
        assert_eq!(plan.planned[0].digest.items[0].before, step - 1);
    }
}

/// SARC restricts whoever was told in four cycles of two weeks in a row. Here the step says how many it
/// were: coordinators get a copy from the second on, administrators a proposal from the third on.
#[test]
fn n6_four_cycles_in_a_row_are_the_fourth_step_and_a_cycle_without_begins_anew() {
    // A pause of one cycle is 28 days between two notices.
    let memory = Span(Duration::from_secs(21 * 86_400));
    // The steps of each cycle, the newest first as the flags are; `None` where there was no finding.
    let steps = |flags: [bool; 6]| -> Vec<Option<u32>> {
        let (mut told, mut steps) = (Vec::new(), Vec::new());
        for (cycle, found) in (0_i64..).zip(flags).collect::<Vec<_>>().into_iter().rev() {
            let now = ago(14 * cycle);
            let candidates = if found { vec![candidate("alice", "a", 1.0)] } else { Vec::new() };
            let plan = decide(candidates, &told, |restraint, config| {
                restraint.now = now;
                config.ladder.memory = memory;
            });
            steps.insert(0, plan.planned.first().map(|one| one.steps[0]));
            told.extend(found.then(|| notice("alice", "a", now)));
        }
        steps
    };
    let found = steps([true, true, true, true, false, false]);
    assert_eq!(found, [Some(4), Some(3), Some(2), Some(1), None, None]);
    let restricted: Vec<bool> = found.iter().map(|step| *step >= Some(4)).collect();
    assert_eq!(restricted, [true, false, false, false, false, false]);
    let found = steps([true, true, false, true, true, true]);
    assert_eq!(found, [Some(2), Some(1), None, Some(3), Some(2), Some(1)]);
}
