//! Numbers computed by hand, and laws that hold for any rows.

use std::collections::HashMap;

use proptest::prelude::*;

use super::Summary;
use super::report::{Line, Report};
use super::row::Row;
use super::scope::{Day, Detail, Filter, Grouping, NodeSize, Scope, UNGROUPED};
use crate::intern::Names;
use crate::time::Timestamp;
use crate::window::Window;

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

fn window(from: i64, to: i64) -> Window {
    Window::new(Timestamp::new(from), Timestamp::new(to)).unwrap()
}

fn scope(from: i64, to: i64) -> Scope {
    let mut days = Vec::new();
    let mut start = from;
    while start < to {
        // Days of unequal length, as when clocks are changed.
        let next = to.min(start + if days.len() % 2 == 0 { 23 * HOUR } else { 25 * HOUR });
        days.push(Day { label: format!("day {}", days.len()), window: window(start, next) });
        start = next;
    }
    Scope {
        window: window(from, to),
        days,
        filter: Filter::default(),
        grouping: Grouping::Users(Box::new(|user| match user {
            "alice" => vec!["physics".to_owned()],
            "bob" => vec!["physics".to_owned(), "all".to_owned()],
            _ => Vec::new(),
        })),
        detail: Detail::All,
        nodes: HashMap::new(),
    }
}

/// One hour of 8 CPUs, 16 GiB and 2 GPUs, half of the CPUs used, completed (A20).
fn a20(names: &mut Names, user: &str) -> Row {
    Row {
        cluster: names.intern("c1"),
        user: names.intern(user),
        account: names.intern("acc"),
        partition: names.intern("cpu"),
        qos: names.intern("normal"),
        state: names.intern("COMPLETED"),
        nodes: names.intern("n[1-2]"),
        gpu_types: names.intern("a100=2"),
        submit: Timestamp::new(HOUR),
        start: Some(Timestamp::new(2 * HOUR)),
        end: Some(Timestamp::new(3 * HOUR)),
        collected: Timestamp::new(100 * DAY),
        elapsed: Some(3600),
        cpus: Some(8),
        gpus: Some(2),
        alloc_mem_mb: Some(16.0 * 1024.0),
        max_rss_mb: None,
        cpu_seconds: Some(4.0 * 3600.0),
        gpu_seconds: None,
        time_limit: Some(7200),
    }
}

fn report(scope: Scope, names: &Names, rows: &[Row]) -> Report {
    let mut summary = Summary::new(scope);
    // In batches of odd size, as a reader of files would.
    rows.chunks(3).for_each(|rows| summary.add(rows, names));
    summary.finish(names)
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()))
}

fn some_near(a: Option<f64>, b: f64) -> bool {
    a.is_some_and(|a| near(a, b))
}

#[test]
fn a20_memory_that_nobody_measured_is_no_waste() {
    let mut names = Names::default();
    let rows = [a20(&mut names, "alice")];
    let report = report(scope(0, DAY), &names, &rows);
    let Line { tally, waste, users, .. } = &report.total;
    assert_eq!((tally.jobs, *users), (1, 1));
    assert!(near(tally.cpu.reserved, 8.0) && near(tally.gpu.reserved, 2.0));
    assert!(near(tally.memory.reserved, 16.0));
    assert!(some_near(tally.cpu.efficiency(), 0.5) && some_near(waste.cpu.total(), 4.0));
    assert_eq!((tally.memory.efficiency(), waste.memory.total()), (None, None));
    assert!(near(waste.memory.unknown, 16.0) && near(waste.gpu.unknown, 2.0));
    assert_eq!(waste.gpu.total(), None);
    assert!(some_near(tally.wait.mean(), 3600.0) && some_near(tally.wait.median(), 3600.0));
    assert!(some_near(report.limit_spread.mean(), 0.5));
}

#[test]
fn a21_with_a_measured_peak() {
    let mut names = Names::default();
    let mut row = a20(&mut names, "alice");
    (row.cpu_seconds, row.max_rss_mb) = (Some(2.0 * 3600.0), Some(8.0 * 1024.0));
    let total = report(scope(0, DAY), &names, &[row]).total;
    assert!(some_near(total.tally.cpu.efficiency(), 0.25));
    assert!(some_near(total.tally.memory.efficiency(), 0.5));
    assert!(some_near(total.waste.cpu.total(), 6.0) && some_near(total.waste.memory.total(), 8.0));
}

#[test]
fn a23_a_run_of_no_time_is_a_job_without_efficiency() {
    let mut names = Names::default();
    let mut row = a20(&mut names, "alice");
    (row.end, row.elapsed) = (row.start, Some(0));
    let report = report(scope(0, DAY), &names, &[row]);
    assert_eq!((report.total.tally.jobs, report.days[0].jobs, report.days[0].started), (1, 1, 1));
    assert_eq!(report.total.tally.cpu.efficiency(), None);
    assert_eq!((report.cpu_spread.count(), report.total.waste.cpu.total()), (0, Some(0.0)));
}

#[test]
fn a30_use_of_a_node_is_its_hours_of_those_in_the_window() {
    for (hours, share) in [(25u32, 0.002_325), (5376, 0.5), (15_000, 1.395_09)] {
        let mut names = Names::default();
        let mut row = a20(&mut names, "alice");
        row.nodes = names.intern("n1");
        (row.cpus, row.elapsed) = (Some(100), Some(hours * 36));
        let mut scope = scope(0, 7 * DAY);
        let size = NodeSize { cpus: Some(64), gpus: None };
        let sizes = HashMap::from([("n1".to_owned(), size), ("n9".to_owned(), size)]);
        scope.nodes.insert("c1".to_owned(), sizes);
        let nodes = report(scope, &names, &[row]).nodes;
        assert!(near(nodes[0].cpu_hours, f64::from(hours)));
        assert!((nodes[0].cpu_utilisation.unwrap() - share).abs() < 1e-5);
        assert_eq!(nodes[0].gpu_utilisation, None);
        // A node that nobody used is at 0 %, which is known.
        assert_eq!((nodes[1].node.as_str(), nodes[1].cpu_utilisation), ("n9", Some(0.0)));
    }
}

#[test]
fn hours_are_divided_over_nodes_and_types_and_same_names_of_two_clusters_are_two_nodes() {
    let mut names = Names::default();
    let mut rows = [a20(&mut names, "alice"), a20(&mut names, "alice"), a20(&mut names, "alice")];
    rows[1].cluster = names.intern("c2");
    rows[2].nodes = names.intern("n[1");
    rows[2].gpu_types = names.intern("a100=1,v100=1");
    let report = report(scope(0, DAY), &names, &rows);
    let nodes: Vec<(&str, &str, f64)> =
        report.nodes.iter().map(|n| (n.cluster.as_str(), n.node.as_str(), n.cpu_hours)).collect();
    assert_eq!(
        nodes,
        [
            ("c1", "n[1", 8.0),
            ("c1", "n1", 4.0),
            ("c2", "n1", 4.0),
            ("c1", "n2", 4.0),
            ("c2", "n2", 4.0)
        ]
    );
    let types: Vec<(&str, u64, f64)> =
        report.gpu_types.iter().map(|t| (t.model.as_str(), t.jobs, t.gpu.reserved)).collect();
    assert_eq!(types, [("a100", 3, 5.0), ("v100", 1, 1.0)]);
}

#[test]
fn each_end_wastes_in_its_own_way() {
    let mut names = Names::default();
    let states =
        ["COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED"];
    let mut rows = Vec::new();
    for state in states {
        let mut row = a20(&mut names, "alice");
        row.state = names.intern(state);
        rows.push(row);
    }
    let mut running = a20(&mut names, "bob");
    (running.end, running.state) = (None, names.intern("RUNNING"));
    running.collected = Timestamp::new(3 * HOUR);
    rows.push(running);
    let report = report(scope(0, DAY), &names, &rows);
    let waste = report.total.waste.cpu;
    assert!(near(waste.not_used, 4.0) && near(waste.failed, 8.0) && near(waste.timeout, 8.0));
    assert!(near(waste.cancelled, 8.0) && near(waste.out_of_memory, 8.0));
    assert!(near(waste.system, 16.0) && some_near(waste.total(), 52.0));
    // slurm-usage's figure: held and not used, whatever the end.
    assert!(some_near(report.total.tally.cpu.idle(), 28.0));
    assert!(near(report.total.tally.cpu.reserved, 64.0));
    let wasters: Vec<&str> = report.wasters().iter().map(|one| one.line.name.as_str()).collect();
    assert_eq!(wasters, ["alice"]);
    assert_eq!(report.states.len(), 8);
    assert!(near(report.states.iter().map(|line| line.share).sum(), 1.0));
}

/// Four GPUs for ten hours, busy for 30 % of them. SARC weighs an hour of each with 4.8 units; here
/// hours are hours.
#[test]
fn n1_and_n4_hours_of_gpus_are_wasted_as_far_as_somebody_measured() {
    let units = |hours: f64| 4.8 * hours;
    let mut names = Names::default();
    let mut row = a20(&mut names, "alice");
    (row.gpus, row.elapsed) = (Some(4), Some(36_000));
    row.end = Some(Timestamp::new(12 * HOUR));
    let unknown = report(scope(0, DAY), &names, &[row]).total;
    assert!(near(units(unknown.tally.gpu.reserved), 192.0));
    assert_eq!((unknown.tally.gpu.known_use(), unknown.waste.gpu.total()), (None, None));
    row.gpu_seconds = Some(0.3 * 4.0 * 36_000.0);
    let measured = report(scope(0, DAY), &names, &[row]).total;
    assert!(near(units(measured.tally.gpu.reserved), 192.0));
    assert!(some_near(measured.tally.gpu.known_use().map(units), 57.6));
    assert!(some_near(measured.waste.gpu.total().map(units), 134.4));
}

#[test]
fn wasters_are_ranked_by_their_largest_share_of_a_resource() {
    let mut names = Names::default();
    let mut rows = Vec::new();
    // CPU-hours, GPU-hours and GiB-hours of memory that each lost.
    for (user, cpus, gpus, gib) in [
        ("carol", 20, 0, 100.0),
        ("greta", 8, 8, 16.0),
        ("alice", 60, 0, 60.0),
        ("mallory", 4, 0, 1000.0),
        ("gus", 16, 2, 16.0),
    ] {
        let mut row = a20(&mut names, user);
        row.state = names.intern("FAILED");
        (row.cpus, row.gpus, row.alloc_mem_mb) = (Some(cpus), Some(gpus), Some(gib * 1024.0));
        rows.push(row);
    }
    let mut thrifty = a20(&mut names, "thea");
    (thrifty.cpus, thrifty.cpu_seconds, thrifty.gpus) = (Some(4), Some(4.0 * 3600.0), None);
    rows.push(thrifty);
    let report = report(scope(0, DAY), &names, &rows);
    let wasters: Vec<&str> = report.wasters().iter().map(|one| one.line.name.as_str()).collect();
    // 83 % of the memory, 80 % of the GPUs, 54 % of the CPUs, 20 % of the GPUs, 18 % of the CPUs.
    assert_eq!(wasters, ["mallory", "greta", "alice", "gus", "carol"]);
}

#[test]
fn a_run_over_the_border_counts_with_its_share() {
    let mut names = Names::default();
    let mut row = a20(&mut names, "alice");
    // Half an hour of the hour lies in the window; it started before.
    let total = report(scope(2 * HOUR + HOUR / 2, DAY), &names, &[row]).total;
    assert!(near(total.tally.cpu.reserved, 4.0) && some_near(total.tally.cpu.efficiency(), 0.5));
    assert_eq!((total.tally.jobs, total.tally.wait.count()), (1, 0));
    // It touches the window and is not in it.
    assert!(report(scope(3 * HOUR, DAY), &names, &[row]).is_empty());
    // Suspended for half of its time: it held for half an hour.
    row.elapsed = Some(1800);
    assert!(near(report(scope(0, DAY), &names, &[row]).total.tally.cpu.reserved, 4.0));
}

#[test]
fn a_run_that_never_started_is_a_job_of_its_end_or_submission() {
    let mut names = Names::default();
    let mut row = a20(&mut names, "alice");
    (row.start, row.elapsed) = (None, None);
    assert_eq!(report(scope(0, DAY), &names, &[row]).total.tally.jobs, 1);
    assert_eq!(report(scope(0, 2 * HOUR), &names, &[row]).total.tally.jobs, 0);
    row.end = None;
    assert_eq!(report(scope(0, 2 * HOUR), &names, &[row]).total.tally.jobs, 1);
}

#[test]
fn filters_admit_and_groups_gather() {
    let mut names = Names::default();
    let rows = [a20(&mut names, "alice"), a20(&mut names, "bob"), a20(&mut names, "carol")];
    let all = report(scope(0, DAY), &names, &rows);
    let groups: Vec<(&str, u64, u64)> =
        all.groups.iter().map(|g| (g.name.as_str(), g.users, g.tally.jobs)).collect();
    assert_eq!(groups, [("physics", 2, 2), ("all", 1, 1), (UNGROUPED, 1, 1)]);
    assert!(all.groups_overlap);
    let jobs = |change: fn(&mut Filter)| {
        let mut scope = scope(0, DAY);
        change(&mut scope.filter);
        report(scope, &names, &rows).total.tally.jobs
    };
    assert_eq!(jobs(|filter| filter.users = vec!["bob".to_owned(), "nobody".to_owned()]), 1);
    assert_eq!(jobs(|filter| filter.users = vec!["nobody".to_owned()]), 0);
    assert_eq!(jobs(|filter| filter.groups = vec!["physics".to_owned()]), 2);
    assert_eq!(jobs(|filter| filter.groups = vec![UNGROUPED.to_owned()]), 1);
    assert_eq!(jobs(|filter| filter.accounts = vec!["acc".to_owned()]), 3);
    assert_eq!(jobs(|filter| filter.clusters = vec!["c2".to_owned()]), 0);
    assert_eq!(jobs(|filter| filter.partitions = vec!["cpu".to_owned()]), 3);
    let mut by_account = scope(0, DAY);
    by_account.grouping = Grouping::Accounts;
    let groups = report(by_account, &names, &rows).groups;
    assert_eq!((groups.len(), groups[0].name.as_str(), groups[0].users), (1, "acc", 3));
}

#[test]
fn nonsense_spoils_no_sum() {
    let mut names = Names::default();
    let mut rows = [a20(&mut names, "alice"), a20(&mut names, "alice")];
    (rows[1].cpu_seconds, rows[1].alloc_mem_mb) = (Some(f64::NAN), Some(f64::INFINITY));
    let total = report(scope(0, DAY), &names, &rows).total;
    assert!(some_near(total.tally.cpu.efficiency(), 0.5));
    assert!(some_near(total.tally.cpu.coverage(), 0.5) && near(total.tally.memory.reserved, 16.0));
}

prop_compose! {
    fn any_row()(
        who in 0..5usize, account in 0..3usize, partition in 0..3usize, state in 0..6usize,
        nodes in 0..4usize, submit in 0..6 * DAY, wait in 0..DAY, runs in 0..3 * DAY,
        started in any::<bool>(), ended in any::<bool>(), paused in 0..2u32,
        cpus in proptest::option::of(0..64u32), gpus in proptest::option::of(0..4u32),
        asked in proptest::option::of(1.0..1e5f64), peak in proptest::option::of(0.0..2e5f64),
        used in proptest::option::of(0.0..2.0f64),
    ) -> (usize, usize, usize, usize, usize, Row) {
        let mut names = Names::default();
        let mut row = a20(&mut names, "x");
        let start = submit + wait;
        row.submit = Timestamp::new(submit);
        row.start = started.then(|| Timestamp::new(start));
        row.end = ended.then(|| Timestamp::new(start + runs));
        row.collected = Timestamp::new(start + runs);
        row.elapsed = Some(u32::try_from(runs).unwrap() / (paused + 1));
        (row.cpus, row.gpus, row.alloc_mem_mb, row.max_rss_mb) = (cpus, gpus, asked, peak);
        row.cpu_seconds = used.map(|used| used * runs as f64 * f64::from(cpus.unwrap_or(1)));
        (who, account, partition, state, nodes, row)
    }
}

fn sums(lines: &[Line]) -> [f64; 8] {
    let mut sums = [0.0; 8];
    for line in lines {
        let (tally, waste) = (&line.tally, &line.waste);
        let figures = [
            tally.jobs as f64,
            tally.cpu.reserved,
            tally.cpu.used,
            tally.memory.reserved,
            tally.memory.measured,
            tally.gpu.reserved,
            waste.cpu.total().unwrap_or(0.0),
            tally.wait.count() as f64,
        ];
        sums.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure);
    }
    sums
}

proptest! {
    #[test]
    fn parts_add_up_to_the_whole(
        rows in proptest::collection::vec(any_row(), 0..60), from in 0..3 * DAY, long in HOUR..5 * DAY,
    ) {
        let mut names = Names::default();
        let states = ["COMPLETED", "FAILED", "RUNNING", "TIMEOUT", "CANCELLED", "NODE_FAIL"];
        let rows: Vec<Row> = rows.into_iter().map(|(who, account, partition, state, nodes, row)| Row {
            cluster: names.intern("c1"),
            user: names.intern(["alice", "carol", "dan", "eve", "frank"][who]),
            account: names.intern(["a", "b", "alice"][account]),
            partition: names.intern(["p", "q", ""][partition]),
            qos: names.intern("normal"),
            state: names.intern(states[state]),
            nodes: names.intern(["n1", "n[1-3]", "r[1-2]n[01-02]", "n[1-"][nodes]),
            gpu_types: names.intern(["", "a100=1", "a100=1,h100=3", "h100=2"][nodes]),
            ..row
        }).collect();
        let report = report(scope(from, from + long), &names, &rows);
        let total = sums(std::slice::from_ref(&report.total));
        let parts = [&report.users, &report.accounts, &report.partitions, &report.qos, &report.clusters];
        for lines in parts.into_iter().chain([&report.groups]) {
            for (part, whole) in sums(lines).iter().zip(total) {
                prop_assert!(near(*part, whole), "{part} {whole}");
            }
        }
        let tally = &report.total.tally;
        let mut days = [0.0; 5];
        for day in &report.days {
            let hours = [day.cpu.reserved, day.cpu.used, day.memory.reserved, day.gpu.reserved, day.started as f64];
            days.iter_mut().zip(hours).for_each(|(sum, hours)| *sum += hours);
            prop_assert!(day.jobs <= tally.jobs && day.users <= report.total.users);
        }
        let whole = [tally.cpu.reserved, tally.cpu.used, tally.memory.reserved, tally.gpu.reserved, tally.wait.count() as f64];
        for (part, whole) in days.iter().zip(whole) {
            prop_assert!(near(*part, whole), "{part} {whole}");
        }
        let on_nodes: f64 = report.nodes.iter().map(|node| node.cpu_hours).sum();
        let on_gpus: f64 = report.gpu_types.iter().map(|line| line.gpu.reserved).sum();
        prop_assert!(near(on_nodes, tally.cpu.reserved) && near(on_gpus, tally.gpu.reserved));
        let states: u64 = report.states.iter().map(|line| line.jobs).sum();
        prop_assert_eq!(states, tally.jobs);
        for hours in [tally.cpu, tally.memory, tally.gpu] {
            prop_assert!(hours.efficiency_capped().is_none_or(|e| (0.0..=1.0).contains(&e)));
            prop_assert!(hours.coverage().is_none_or(|c| (0.0..=1.0).contains(&c)));
            prop_assert!(near(hours.open + hours.measured + hours.unmeasured(), hours.reserved));
        }
        let waste = report.total.waste.cpu;
        prop_assert!(waste.total().unwrap_or(0.0) + waste.unknown <= tally.cpu.ended() + 1e-6);
    }

    #[test]
    fn a_day_of_a_week_is_the_summary_of_that_day(
        rows in proptest::collection::vec(any_row(), 0..40), at in 0..4usize,
    ) {
        let mut names = Names::default();
        let _ = a20(&mut names, "x");
        let rows: Vec<Row> = rows.into_iter().map(|parts| parts.5).collect();
        let week = report(scope(0, 8 * DAY), &names, &rows);
        let day = &week.days[at];
        let alone = report(scope(day.window.from().get(), day.window.to().get()), &names, &rows).total;
        prop_assert_eq!((alone.tally.jobs, alone.users), (day.jobs, day.users));
        prop_assert!(near(alone.tally.cpu.reserved, day.cpu.reserved));
        prop_assert!(near(alone.tally.gpu.reserved, day.gpu.reserved));
    }
}
