//! What holds for all rules.

use std::collections::HashSet;
use std::time::Duration;

use proptest::prelude::*;

use crate::id::NodeName;
use crate::intern::Name;
use crate::limit::Limit;
use crate::slurm::duration::TimeLimit;
use crate::slurm::state::JobState;

use super::sample::{Draft, World, gib, job};
use super::specialized_nodes::{NodeSet, Special, SpecializedNodes};
use super::usage::Work;
use super::{Missing, Need, Portfolio, RULES, Rule, Scope, Setting, Share, Subject, Verdict};

/// These judge by what the accounting says.
const OF_ACCOUNTING: [&str; 4] =
    ["excessive-time-cpu", "excessive-time-gpu", "failure-loop", "short-job-flood"];

/// All rules, quick to find something.
fn eager() -> Vec<Box<dyn Rule>> {
    let quick = |(name, make): &(&str, super::Make)| {
        let mut rule = make();
        for option in rule.list() {
            let hours = option.name.contains("_hours");
            if hours || option.name == "proportion" || option.name == "gib_per_gpu" {
                let set = rule.set(option.name, Setting::Number(0.0));
                assert_eq!(set, Ok(()), "{name} {}", option.name);
            }
        }
        rule
    };
    let mut rules: Vec<Box<dyn Rule>> = RULES.iter().map(quick).collect();
    let nodes = ["n1", "n2"].map(|node| NodeName::new(node).unwrap()).to_vec();
    let set =
        NodeSet { name: "large".into(), nodes, special: Special::Memory { ordinary: gib(100.0) } };
    rules.push(Box::new(SpecializedNodes { sets: vec![set], ..SpecializedNodes::default() }));
    rules
}

fn of(subject: &Subject) -> Name {
    match subject {
        Subject::User { user, .. } | Subject::Job { user, .. } => *user,
    }
}

prop_compose! {
    fn any_work()(
        busy in proptest::option::of(0.0..4.0f64),
        bytes in proptest::option::of(0..(1u64 << 40)),
        files in proptest::option::of(0..5000u64),
        scratch in any::<Option<bool>>(),
        cores in proptest::option::of(proptest::collection::vec(0.0..100.0f64, 0..4)),
    ) -> Work {
        Work {
            busy_mean: busy,
            busy_most: busy.map(|mean| 2.0 * mean),
            core_seconds: cores.map(Vec::into_boxed_slice),
            requested_bytes: bytes,
            moved_bytes: None,
            open_files: files,
            scratch,
            threads: None,
            without_process_since: None,
        }
    }
}

prop_compose! {
    fn any_job()(
        user in prop::sample::select(vec!["a", "b", "c"]),
        nodes in prop::sample::select(vec!["n1", "n[1-2]", "n[2-5]", "x1"]),
        state in prop::sample::select(vec![
            JobState::Completed, JobState::Running, JobState::Failed, JobState::OutOfMemory,
            JobState::Timeout, JobState::Pending,
        ]),
        seconds in 0..500_000u32,
        limit in proptest::option::of(1..10_000u64),
        cpus in 1..64u32,
        gpus in prop::sample::select(vec![0, 0, 1, 4]),
        used in proptest::option::of(0.0..1.2f64),
        memory in proptest::option::of(0.0..1.2f64),
        gpu in proptest::option::of(0.0..100.0f64),
        by_node in any::<bool>(),
        work in proptest::option::of(any_work()),
        coverage in prop::sample::select(vec![1.0, 1.0, 0.9, 0.3]),
    ) -> Draft {
        let held = f64::from(cpus) * f64::from(seconds);
        job(user).held(nodes, cpus, gpus).state(state).with(|job| {
            job.seconds = seconds;
            job.gib = 64.0;
            job.limit = limit.map(|minutes| {
                TimeLimit::Own(Limit::At(Duration::from_secs(60 * minutes)))
            });
            job.cpu_seconds = used.map(|used| used * held);
            job.gib_used = memory.map(|share| share * 64.0);
            if by_node {
                let nodes = crate::slurm::hostlist::expand(nodes).unwrap().len();
                let each = 1.0 / nodes as f64;
                let node = (used.map(|used| used * held * each), memory.map(|m| m * 64.0 * each));
                job.by_node = Some(vec![node; nodes]);
            }
            job.work = work;
            job.coverage = coverage;
        }).with(|job| if let (Some(used), 1..) = (gpu, gpus) {
            let idle = if used < 30.0 { 0.0 } else { used };
            let used = vec![idle; usize::try_from(gpus).unwrap()];
            *job = job.clone().gpu_used(&used);
        })
    }
}

fn any_jobs() -> impl Strategy<Value = Vec<Draft>> {
    proptest::collection::vec(any_job(), 0..40)
}

proptest! {
    #[test]
    fn no_rule_fires_on_jobs_of_which_nothing_was_measured(drafts in any_jobs()) {
        let dark = drafts.into_iter().map(|draft| draft.with(|job| {
            (job.cpu_seconds, job.gib_used, job.by_node) = (None, None, None);
            (job.gpu, job.work) = (None, None);
        }));
        let world = World::new(dark);
        for rule in eager() {
            if !OF_ACCOUNTING.contains(&rule.id().as_str()) {
                prop_assert_eq!(world.found(&*rule), [""; 0], "{}", rule.id());
            }
        }
    }

    #[test]
    fn no_hit_stands_on_a_figure_that_covers_too_little(drafts in any_jobs()) {
        let world = World::new(drafts);
        for rule in eager().iter().filter(|r| !OF_ACCOUNTING.contains(&r.id().as_str())) {
            let thin = |hit: &super::Hit| {
                let jobs = world.facts.jobs().iter();
                let job = jobs.clone().find(|job| job.key == hit.job).unwrap();
                let usage = &job.usage;
                let seen = [
                    usage.cpu_seconds.as_ref().map(|figure| figure.coverage),
                    usage.peak_memory.as_ref().map(|figure| figure.coverage),
                    usage.nodes.as_ref().map(|figure| figure.coverage),
                    usage.gpus.as_ref().map(|figure| figure.coverage),
                    usage.work.as_ref().map(|figure| figure.coverage),
                ];
                seen.into_iter().flatten().all(|seen| seen < Share::new(0.5).unwrap())
            };
            for (_, verdict) in world.check(&**rule) {
                let hits = verdict.finding().map_or(&[][..], |finding| &finding.hits);
                prop_assert!(!hits.iter().any(thin), "{}", rule.id());
            }
        }
    }

    #[test]
    fn a_job_is_a_hit_once_of_its_owner_and_sums_stay_below_totals(drafts in any_jobs()) {
        let world = World::new(drafts);
        for rule in eager() {
            let portfolio = Portfolio::new(&world.facts, &rule.scope());
            let held: f64 = portfolio.jobs().iter().map(|job| job.cpu_hours()).sum();
            let (mut seen, mut wasted) = (HashSet::new(), 0.0);
            for (subject, verdict) in rule.check(&portfolio) {
                let Some(finding) = verdict.finding() else { continue };
                prop_assert!(!finding.hits.is_empty(), "{}", rule.id());
                for hit in &finding.hits {
                    prop_assert!(portfolio.job(of(&subject), hit.job).is_some(), "{}", rule.id());
                    prop_assert!(seen.insert(hit.job), "{}: twice", rule.id());
                    wasted += hit.billing_hours.unwrap_or(0.0);
                }
                for (key, value) in finding.figures.iter() {
                    let fine = value.number().is_none_or(|n| n.is_finite() && n >= 0.0);
                    prop_assert!(fine, "{}: {key} {value:?}", rule.id());
                }
            }
            // Samples are billed by their cores.
            prop_assert!(wasted <= held * (1.0 + 1e-9), "{}: {wasted} of {held}", rule.id());
        }
    }

    #[test]
    fn judging_a_user_at_a_time_is_the_same(drafts in any_jobs()) {
        let world = World::new(drafts);
        for rule in eager() {
            let portfolio = Portfolio::new(&world.facts, &rule.scope());
            let mut told = Vec::new();
            super::judge(&*rule, &portfolio, |subject, verdict| told.push((subject, verdict)));
            prop_assert_eq!(told, rule.check(&portfolio), "{}", rule.id());
        }
    }

    #[test]
    fn jobs_of_others_change_no_verdict_that_is_not_about_ranks(
        own in any_jobs(),
        others in any_jobs(),
    ) {
        let alone = World::new(own.clone());
        let others = others.into_iter().map(|draft| draft.with(|job| job.user = "z"));
        let together = World::new(own.into_iter().chain(others));
        for rule in eager().iter().filter(|rule| !rule.compares_users()) {
            let mut verdicts = together.check(&**rule);
            let z = together.facts.names.find("z");
            verdicts.retain(|(subject, _)| Some(of(subject)) != z);
            let verdicts: Vec<Verdict> = verdicts.into_iter().map(|(_, v)| v).collect();
            let expected: Vec<Verdict> =
                alone.check(&**rule).into_iter().map(|(_, v)| v).collect();
            prop_assert_eq!(verdicts, expected, "{}", rule.id());
        }
    }
}

#[test]
fn the_list_is_by_name_and_names_agree() {
    let names: Vec<&str> = RULES.iter().map(|(name, _)| *name).collect();
    assert!(names.is_sorted());
    assert_eq!(names.len(), 26, "14 of Job Defense Shield, 5 more, 7 of petricore");
    for (name, make) in RULES {
        let rule = make();
        assert_eq!(rule.id().as_str(), *name);
        assert_eq!(rule.doc().lines().count(), 3, "{name}: what, why, what to do");
        assert!(rule.list().iter().all(|option| option.doc.ends_with('.')), "{name}");
    }
    assert!(super::find("low-cpu").is_some() && super::find("low").is_none());
}

#[test]
fn every_rule_states_the_coverage_that_it_needs_or_needs_no_measurement() {
    for (name, make) in RULES {
        let rule = make();
        let states = rule.list().iter().any(|option| option.name == "coverage");
        assert_eq!(states, !OF_ACCOUNTING.contains(name), "{name}");
        assert_eq!(rule.needs().iter().any(|need| need.is_measured()), states, "{name}");
        assert!(rule.needs().is_sorted_by(|a, b| a < b), "{name}: each once, in their order");
        // Who looks at running jobs alone cannot have a scope without them.
        assert!(!rule.needs().contains(&Need::Queue) || rule.scope().running, "{name}");
    }
}

#[test]
fn an_option_that_is_not_there_is_refused_by_every_rule() {
    for (name, make) in RULES {
        assert!(make().set("min_nodes_thres", Setting::Number(1.0)).is_err(), "{name}");
    }
}

/// A job that waits in several partitions is no job that used something, and is not lost.
#[test]
fn v5_jobs_that_wait_are_facts_and_no_subjects() {
    let waits = job("a").state(JobState::Pending).with(|job| job.partition = "cpu,all");
    let world = World::new([waits, job("b")]);
    assert_eq!(world.facts.jobs().len(), 2);
    let portfolio = Portfolio::new(&world.facts, &Scope::default());
    assert_eq!((portfolio.jobs().len(), portfolio.total().jobs), (1, 1));
}

#[test]
fn a_scope_admits_by_cluster_partition_qos_nodes_user_time_and_state() {
    let world = World::new([
        job("a"),
        job("b").with(|job| job.partition = "other"),
        job("c").with(|job| job.qos = "high"),
        job("d").held("n[2-3]", 2, 0),
        job("e").hours(0.5),
        job("f").running(),
    ]);
    let users = |scope: Scope| -> String {
        let portfolio = Portfolio::new(&world.facts, &scope);
        portfolio.users().map(|(user, _)| world.facts.names.text(user)).collect()
    };
    let list = |text: &str| vec![text.to_owned()];
    let node = |text| NodeName::new(text).unwrap();
    let all = Scope { running: true, ..Scope::default() };
    assert_eq!(users(all.clone()), "abcdef");
    assert_eq!(users(Scope::default()), "abcde");
    assert_eq!(users(Scope { clusters: list("c"), ..all.clone() }), "abcdef");
    assert_eq!(users(Scope { clusters: list("d"), ..all.clone() }), "");
    assert_eq!(users(Scope { partitions: list("other"), ..all.clone() }), "b");
    assert_eq!(users(Scope { partitions: list("nowhere"), ..all.clone() }), "");
    assert_eq!(users(Scope { excluded_partitions: list("main"), ..all.clone() }), "b");
    assert_eq!(users(Scope { qos: list("high"), ..all.clone() }), "c");
    assert_eq!(users(Scope { excluded_qos: list("normal"), ..all.clone() }), "c");
    assert_eq!(users(Scope { nodes: vec![node("n1"), node("n2")], ..all.clone() }), "abcef");
    assert_eq!(users(Scope { excluded_users: list("a"), ..all.clone() }), "bcdef");
    let hour = Duration::from_secs(3600);
    assert_eq!(users(Scope { min_run_time: hour, ..all }), "abcdf");
}

#[test]
fn v25_the_nodes_of_a_job() {
    let world = World::new([job("a"), job("b").held("n[1-2]", 2, 0), job("c").held("", 2, 0)]);
    let nodes = |at: usize| world.facts.nodes_of(&world.facts.jobs()[at]).len();
    assert_eq!([nodes(0), nodes(1), nodes(2)], [1, 2, 0]);
}

#[test]
fn v22_the_most_memory_of_a_node() {
    let all = Share::ALL;
    let world = World::new([
        job("a").held("n[1-2]", 2, 0).by_node(&[(1.0, 42.0), (1.0, 43.0)]),
        job("b").held("n[1-2]", 2, 0).with(|job| {
            job.by_node = Some(vec![(Some(1.0), Some(42.0)), (Some(1.0), None)]);
        }),
        job("c").memory(100.0, 42.0),
    ]);
    let most = |at: usize| super::measure::memory_per_node(&world.facts.jobs()[at], all);
    assert_eq!(most(0), Ok(gib(43.0)));
    assert_eq!(most(1), Err(Missing::Unmeasured));
    assert_eq!(most(2), Err(Missing::MoreThanHeld));
}

/// As the examples that Job Defense Shield ships have it.
#[test]
fn the_least_run_times_and_whether_running_jobs_count() {
    for (name, minutes, running) in [
        ("cancel-zero-gpu-jobs", 0, true),
        ("zero-util-gpu-hours", 30, false),
        ("low-gpu-efficiency", 30, false),
        ("too-much-cpu-mem-per-gpu", 61, false),
        ("gpu-model-too-powerful", 61, false),
        ("zero-cpu-utilization", 61, false),
        ("serial-allocating-multiple", 61, false),
        ("multinode-cpu-fragmentation", 120, false),
        ("excess-cpu-memory", 0, false),
        ("low-cpu", 5, true),
    ] {
        let scope = super::find(name).unwrap().scope();
        assert_eq!(
            (scope.min_run_time.as_secs(), scope.running),
            (60 * minutes, running),
            "{name}"
        );
    }
}

#[test]
fn coverage_just_below_equal_and_just_above() {
    let verdict = |coverage: f64| {
        let draft = job("a").cpu_used(0.1).with(|job| job.coverage = coverage);
        World::new([draft]).on(&*super::find("low-cpu").unwrap(), "a")
    };
    let missing =
        Missing::Coverage { found: Share::new(0.79).unwrap(), needed: Share::per_cent(80) };
    assert_eq!(verdict(0.79), Verdict::NoData(missing));
    assert!(verdict(0.8).finding().is_some() && verdict(0.81).finding().is_some());
}

/// A job that is malformed or was not seen takes nothing from what is known of others.
#[test]
fn x20_one_job_without_figures_stops_no_verdict_on_others() {
    for rule in eager() {
        let seen = || {
            let used = job("b").hours(200.0).held("n1", 8, 2).cpu_used(0.2).memory(1.0, 100.0);
            used.gpu_used(&[0.0, 10.0])
        };
        let dark = job("a").hours(200.0).held("x9", 8, 2);
        let (alone, both) = (World::new([seen()]), World::new([dark, seen()]));
        let of_b = |world: &World| -> Vec<bool> {
            let b = world.name("b");
            let verdicts = world.check(&*rule).into_iter().filter(|(subject, _)| of(subject) == b);
            verdicts.map(|(_, verdict)| verdict.finding().is_some()).collect()
        };
        assert_eq!(of_b(&alone), of_b(&both), "{}", rule.id());
    }
}
