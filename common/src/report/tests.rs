use std::sync::Arc;
use std::time::Duration;

use super::table::Value;
use super::usage::{Level, rows as usage};
use super::waste::By;
use super::*;
use crate::cluster::{ArrayPart, ArrayTask, Gpus};
use crate::id::JobId;
use crate::intern::Names;
use crate::rule::sample::{Draft, NOW, World, job};
use crate::rule::{Audience, Figures, Finding, Hardware, Hit, Job};
use crate::slurm::state::JobState;
use crate::summary::Summary;
use crate::summary::row::Row as SummaryRow;
use crate::summary::scope::{Day, Detail, Filter, Grouping, Scope};
use crate::time::Timestamp;

fn view(world: &World) -> View<'_> {
    View { facts: &world.facts, waiting: Vec::new(), found: Vec::new() }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1.0)
}

fn empty(world: &World, name: &str) -> Vec<Table> {
    let tables = (find(name).unwrap().make)(&[view(world)], &Ask::default());
    assert!(tables.iter().all(|table| table.rows.is_empty() && !table.columns.is_empty()));
    tables
}

#[test]
fn every_report_has_a_name_of_its_own_and_its_rows_fit_their_columns() {
    let world = World::new([job("a").held("n1", 2, 1), job("b")]);
    let mut names: Vec<&str> = REPORTS.iter().map(|(name, _)| *name).collect();
    for (name, report) in REPORTS {
        assert!(crate::rule::find(name).is_none(), "{name} is a rule, too");
        for table in (report.make)(&[view(&world)], &Ask::default()) {
            assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{name}");
            let mut keys: Vec<&str> = table.columns.iter().map(|column| column.key).collect();
            assert!(table.bars.iter().all(|bars| keys.contains(&bars.key)), "{name}");
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), table.columns.len(), "{name}");
        }
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), REPORTS.len());
}

/// The job of no time is ignored there and here.
#[test]
fn v31_jobs_of_two_users() {
    let ten = |user| job(user).hours(10.0).held("n1", 16, 0);
    let at = |user, partition| ten(user).with(|draft| draft.partition = partition);
    let world = World::new([
        at("user1", "cpu"),
        at("user1", "cpu").hours(0.0),
        at("user1", "cpu"),
        at("user1", "gpu").held("n1", 16, 4).state(JobState::Cancelled { by: None }),
        at("user2", "cpu"),
        at("user2", "serial"),
    ]);
    let rows = jobs_overview::rows(&[view(&world)], &Ask::default());
    let one = &rows[0];
    assert_eq!((one.user.as_str(), one.jobs, one.gpu_jobs), ("user1", 3, 1));
    assert_eq!((one.completed, one.cancelled, one.other), (2, 1, 0));
    assert!(close(one.cpu_hours, 480.0) && close(one.gpu_hours, 40.0));
    assert_eq!(one.partitions.iter().collect::<Vec<_>>(), ["cpu", "gpu"]);
    let two = &rows[1];
    assert_eq!((two.user.as_str(), two.jobs, two.gpu_jobs, two.completed), ("user2", 2, 0, 2));
    assert!(close(two.cpu_hours, 320.0) && two.gpu_hours == 0.0);
    assert_eq!(two.partitions.iter().collect::<Vec<_>>(), ["cpu", "serial"]);
    let all = rows.iter().map(|row| row.jobs).sum::<u64>();
    assert_eq!(all, 5);
}

#[test]
fn every_job_is_in_one_state() {
    let world = World::new(JobState::all().into_iter().map(|state| job("a").state(state)));
    let rows = jobs_overview::rows(&[view(&world)], &Ask::default());
    let row = &rows[0];
    let ended = row.completed + row.cancelled + row.failed + row.out_of_memory + row.timeout;
    assert_eq!(ended + row.running + row.other, row.jobs);
    assert_eq!((row.completed, row.running), (1, 3), "resizing and signaling run, too");
}

/// Hours are unrounded here; there, 0.7 is 40 minutes, and an efficiency is a whole per cent.
#[test]
fn v35_the_most_gpus_of_each_user() {
    let gpus = |user, hours: f64, gpus| job(user).hours(hours).held("n1", 1, gpus);
    let world = World::new([
        gpus("user1", 1.0, 1),
        gpus("user1", 0.0, 32),
        gpus("user1", 24.0, 8).gpu_used(&[95.0; 8]),
        gpus("user2", 2.0 / 3.0, 16),
        gpus("user2", 5.0, 0),
        gpus("user3", 8.0, 64).gpu_used(&[95.0; 64]),
        gpus("user4", 8.0, 0),
    ]);
    let rows = most_gpus::rows(&[view(&world)], &Ask::default());
    let found: Vec<_> = rows.iter().map(|row| (row.user.as_str(), row.gpus)).collect();
    assert_eq!(found, [("user3", Some(64)), ("user2", Some(16)), ("user1", Some(8))]);
    assert!(close(rows[0].hours, 8.0) && close(rows[0].efficiency.unwrap(), 0.95));
    assert!(close(rows[1].hours, 2.0 / 3.0) && rows[1].efficiency.is_none());
    assert!(close(rows[2].hours, 24.0) && close(rows[2].efficiency.unwrap(), 0.95));
}

#[test]
fn the_most_cores_of_each_user_with_what_was_measured() {
    let world = World::new([
        job("a").held("n1", 4, 0).cpu_used(0.5),
        job("a").held("n1", 16, 0).hours(2.0).cpu_used(0.25),
        job("a").held("n1", 16, 0),
        job("b").held("n1", 32, 0).cpu_used(0.9).with(|draft| draft.coverage = 0.1),
    ]);
    let rows = most_cores::rows(&[view(&world)], &Ask::default());
    assert_eq!((rows[0].user.as_str(), rows[0].cpus, rows[0].efficiency), ("b", Some(32), None));
    assert_eq!((rows[1].job.as_str(), rows[1].cpus), ("2", Some(16)), "the longer of two");
    assert!(close(rows[1].efficiency.unwrap(), 0.25));
}

/// "0 (--)" there is a share of nothing: missing here. Hours that round to 0 are "0 (--)" there,
/// too, because shares are made of rounded hours; here little is little, and all of it is 100 %.
/// Without jobs both have tables without rows.
#[test]
fn v41_shares_of_nothing_are_missing() {
    let world = World::new([job("a").hours(0.1), job("b").hours(0.3)]);
    let row = &usage(&[view(&world)], &Ask::default(), Level::Cluster)[0];
    assert_eq!((row.gpu_hours, row.gpu_share), (0.0, None));
    assert!(close(row.cpu_hours, 0.4) && row.cpu_share == Some(1.0));
    let tables = (usage_overview::REPORT.make)(&[view(&world)], &Ask::default());
    assert_eq!(tables[0].rows[0].last(), Some(&Value::Missing));
    let nothing = World::new([job("a").hours(0.0)]);
    let heads: Vec<String> =
        empty(&nothing, "usage-overview")[1].columns.iter().map(|c| c.head.to_string()).collect();
    assert_eq!(heads[..4], ["Partition", "Cluster", "Users", "Jobs"]);
    empty(&nothing, "usage-by-account");
}

#[test]
fn shares_are_of_the_whole_that_a_row_is_in() {
    let at = |user, partition, account, cpus| {
        job(user).held("n1", cpus, cpus / 4).with(|draft| {
            (draft.partition, draft.account) = (partition, account);
        })
    };
    let one = World::of(
        "one",
        Hardware::default(),
        [
            at("a", "cpu", "x", 6),
            at("a", "cpu", "y", 2),
            at("b", "cpu", "x", 2),
            at("b", "gpu", "x", 10),
        ],
    );
    let two = World::of("two", Hardware::default(), [at("a", "cpu", "x", 20)]);
    let views = [view(&two), view(&one)];
    let shares = |ask: &Ask, level| -> Vec<(String, u64, f64)> {
        let name = |row: &usage::Row| {
            std::iter::once(&row.cluster).chain(&row.within).cloned().collect::<Vec<_>>().join("/")
        };
        let rows = usage(&views, ask, level);
        rows.iter().map(|row| (name(row), row.users, row.cpu_share.unwrap())).collect()
    };
    let line = |name: &str, users, share| (name.to_owned(), users, share);
    let all = Ask::default();
    assert_eq!(shares(&all, Level::Cluster), [line("one", 2, 0.5), line("two", 1, 0.5)]);
    assert_eq!(
        shares(&all, Level::Partition),
        [line("one/cpu", 2, 0.5), line("one/gpu", 1, 0.5), line("two/cpu", 1, 1.0)]
    );
    assert_eq!(
        shares(&all, Level::Account)[..2],
        [line("one/cpu/x", 2, 0.8), line("one/cpu/y", 1, 0.2)]
    );
    assert_eq!(
        shares(&all, Level::User)[..3],
        [line("one/cpu/x/a", 1, 0.6), line("one/cpu/x/b", 1, 0.2), line("one/cpu/y/a", 1, 0.2)]
    );
    let gpu = Ask { partitions: vec!["gpu".to_owned()], ..Ask::default() };
    assert_eq!(shares(&gpu, Level::Cluster), [line("one", 1, 1.0)]);
}

/// A row of the archive that says the same as a job.
fn row(job: &Job, facts: &Facts, names: &mut Names) -> SummaryRow {
    let mut text = |name| names.intern(facts.names.text(name));
    let (user, account, partition) = (text(job.user), text(job.account), text(job.partition));
    let (qos, nodes) = (text(job.qos), text(job.nodes));
    SummaryRow {
        cluster: names.intern(facts.cluster.as_str()),
        user,
        account,
        partition,
        qos,
        state: names.intern(job.state.name()),
        nodes,
        gpu_types: names.intern(""),
        submit: job.key.submit,
        start: job.start,
        end: job.end,
        collected: facts.now,
        elapsed: job.elapsed,
        cpus: job.cpus,
        gpus: job.gpus,
        alloc_mem_mb: None,
        max_rss_mb: None,
        cpu_seconds: None,
        gpu_seconds: None,
        time_limit: None,
    }
}

/// Jobs over both borders of the window, running, suspended and short ones: the sums are those of
/// `steward analyze`, for each cluster, partition, account and user.
#[test]
fn the_sums_are_those_of_summaries() {
    let hour = 3600;
    let mut drafts = Vec::new();
    let places = [("main", "x"), ("gpu", "y"), ("gpu", "x")];
    for (n, user) in ["a", "b", "c", "a", "c"].into_iter().cycle().take(60).enumerate() {
        let n = u32::try_from(n).unwrap();
        let (partition, account) = places[n as usize % 3];
        // From before the window to its end.
        let end = NOW.get() - 7 * 86_400 + i64::from(n) * 3 * hour - 20 * hour;
        drafts.push(job(user).held("n1", 1 + n % 7, n % 3).with(|draft| {
            draft.seconds = 3600 + n * 1777;
            draft.end = Timestamp::new(end);
            (draft.partition, draft.account) = (partition, account);
        }));
    }
    drafts.push(job("d").hours(30.0 * 24.0).with(|draft| draft.end = NOW));
    drafts.push(job("d").running().hours(5.0).with(|draft| draft.end = NOW));
    let world = World::new(drafts);
    let facts = &world.facts;
    let mut names = Names::default();
    let rows: Vec<SummaryRow> = facts.jobs().iter().map(|j| row(j, facts, &mut names)).collect();
    let mut summary = Summary::new(Scope {
        window: facts.window,
        days: vec![Day { label: "all".to_owned(), window: facts.window }],
        filter: Filter::default(),
        grouping: Grouping::Accounts,
        nodes: std::collections::HashMap::new(),
        detail: Detail::All,
    });
    summary.add(&rows, &names);
    let report = summary.finish(&names);
    let (views, ask) = ([view(&world)], Ask::default());
    let total = &usage(&views, &ask, Level::Cluster)[0];
    assert!(total.cpu_hours > 1000.0, "{total:?}");
    assert!(close(total.cpu_hours, report.total.tally.cpu.reserved));
    assert!(close(total.gpu_hours, report.total.tally.gpu.reserved));
    assert_eq!((total.jobs, total.users), (report.total.tally.jobs, report.total.users));
    for row in usage(&views, &ask, Level::Partition) {
        let line = report.partitions.iter().find(|line| line.name == row.within[0]).unwrap();
        assert!(close(row.cpu_hours, line.tally.cpu.reserved), "{row:?}");
        assert!(close(row.gpu_hours, line.tally.gpu.reserved), "{row:?}");
        assert_eq!((row.jobs, row.users), (line.tally.jobs, line.users), "{row:?}");
    }
    for line in &report.accounts {
        let rows = usage(&views, &ask, Level::Account);
        let own = rows.iter().filter(|row| row.within[1] == line.name);
        assert!(close(own.map(|row| row.cpu_hours).sum(), line.tally.cpu.reserved), "{line:?}");
    }
    for line in &report.users {
        let rows = jobs_overview::rows(&views, &ask);
        let row = rows.iter().find(|row| row.user == line.name).unwrap();
        assert!(close(row.cpu_hours, line.tally.cpu.reserved), "{row:?}");
        assert_eq!(row.jobs, line.tally.jobs, "{row:?}");
    }
    // A month-long job counts with the week that is in the window.
    let month = jobs_overview::rows(&views, &ask);
    let month = month.iter().find(|row| row.user == "d").unwrap();
    assert!(close(month.cpu_hours, 7.0 * 24.0 + 5.0), "{month:?}");
}

fn waiting(id: u32, user: &str, days: f64) -> CurrentJob {
    #[allow(clippy::cast_possible_truncation)]
    let submitted = Timestamp::new(NOW.get() - (days * 86_400.0).round() as i64);
    CurrentJob {
        id: JobId::new(id).unwrap(),
        array: None,
        het: None,
        user: user.into(),
        uid: None,
        account: "x".into(),
        partition: "main".into(),
        qos: "normal".into(),
        name: "n".into(),
        state: JobState::Pending,
        reason: Some("Resources".into()),
        nodes: "".into(),
        node_count: Some(2),
        cpus: Some(8),
        memory: None,
        gpus: Gpus::default(),
        tres: "".into(),
        submitted: Some(submitted),
        eligible: Some(submitted.after(Duration::from_secs(86_400))),
        start: None,
        end: None,
        time_limit: None,
        priority: Some(100),
        reservation: None,
        licences: None,
        dependency: None,
        features: None,
        submit_host: None,
        restarts: None,
    }
}

/// There, 2.5 days round to 2 and 2.6 to 3; here three days are three days. There, a job that
/// waits in several partitions is lost.
#[test]
fn the_longest_in_the_queue_one_of_each_user_and_why() {
    let world = World::new([]);
    let because = |job: CurrentJob, reason: &str| CurrentJob { reason: Some(reason.into()), ..job };
    let task = ArrayTask::Waiting { list: Arc::from("1-9"), count: 9 };
    let array = Some(ArrayPart { job: JobId::new(9).unwrap(), task });
    let jobs = [
        waiting(1, "a", 4.0),
        because(waiting(2, "a", 5.5), "JobHeldUser"),
        waiting(3, "b", 2.99),
        CurrentJob { partition: "cpu,gpu".into(), ..waiting(4, "c", 3.0) },
        CurrentJob { array, ..waiting(9, "e", 20.0) },
        because(waiting(5, "d", 9.0), "Dependency"),
        CurrentJob { eligible: Some(NOW.after(Duration::from_secs(60))), ..waiting(6, "f", 7.0) },
        CurrentJob { submitted: None, ..waiting(7, "g", 9.0) },
        CurrentJob { priority: Some(0), ..waiting(8, "h", 3.5) },
    ];
    let view = View { facts: &world.facts, waiting: jobs.iter().collect(), found: Vec::new() };
    let found = |ask: &Ask| -> Vec<(String, String, Option<longest_queued::Obstacle>)> {
        let rows = longest_queued::rows(std::slice::from_ref(&view), ask);
        rows.into_iter().map(|row| (row.user, row.job, row.obstacle)).collect()
    };
    use longest_queued::Obstacle::{Dependent, Held, Later};
    let row = |user: &str, job: &str, obstacle| (user.to_owned(), job.to_owned(), obstacle);
    assert_eq!(
        found(&Ask::default()),
        [
            row("d", "5", Some(Dependent)),
            row("f", "6", Some(Later)),
            row("a", "2", Some(Held)),
            row("h", "8", Some(Held)),
            row("c", "4", None),
        ]
    );
    let gpu = Ask { partitions: vec!["gpu".to_owned()], ..Ask::default() };
    assert_eq!(found(&gpu), [row("c", "4", None)]);
    let any = Ask { waited: Duration::ZERO, ..Ask::default() };
    assert!(found(&any).contains(&row("b", "3", None)));
    let rows = longest_queued::rows(std::slice::from_ref(&view), &Ask::default());
    let last = rows.last().unwrap();
    assert_eq!(last.waited, Duration::from_secs(3 * 86_400));
    assert_eq!(last.eligible, Some(Duration::from_secs(2 * 86_400)));
    assert_eq!(rows[1].eligible, None, "not yet");
}

fn finding(world: &World, audience: Audience, hits: &[(u32, Option<f64>)]) -> (Subject, Finding) {
    let job = |id: u32| world.facts.jobs().iter().find(|job| job.key.id.get() == id).unwrap();
    let first = job(hits[0].0);
    let hits = hits.iter().map(|(id, wasted)| Hit::new(job(*id), *wasted, Figures::default()));
    let finding = Finding { audience, figures: Figures::default(), hits: hits.collect() };
    (Subject::job(first), finding)
}

#[test]
fn waste_counts_once_by_the_rule_that_calls_the_most_of_it_wasted() {
    let draft = |user, cpus| job(user).hours(10.0).held("n1", cpus, 0);
    let charged = |draft: Draft, account| draft.with(|draft| draft.account = account);
    let world = World::new([
        charged(draft("a", 10).cpu_used(0.1), "x"), // 1: 100 billing hours
        charged(draft("a", 4).cpu_used(0.5), "y"),  // 2: 40
        charged(draft("a", 6), "y"),                // 3: 60, no finding
        charged(draft("b", 8), "x"),                // 4: 80
        charged(draft("b", 2).with(|draft| draft.billed = false), "x"), // 5
        charged(draft("c", 50), "x"),               // 6: advice alone
    ]);
    let first = [
        finding(&world, Audience::User, &[(1, Some(0.5)), (2, Some(0.25)), (4, None)]),
        finding(&world, Audience::Advice, &[(6, Some(1.0))]),
    ];
    let second = [finding(&world, Audience::Administrators, &[(1, Some(0.9)), (5, Some(0.5))])];
    let third = [finding(&world, Audience::User, &[(2, Some(0.75)), (4, Some(0.1))])];
    let view = View {
        found: vec![("first", &first[..]), ("second", &second[..]), ("third", &third[..])],
        ..view(&world)
    };
    let views = [view];
    let ask = Ask {
        prices: Prices {
            billing_hour: Some((0.5, "EUR".to_owned())),
            cpu_watts: Some(10.0),
            gpu_watts: None,
        },
        ..Ask::default()
    };
    let rows = waste::rows(&views, &ask, By::User);
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    // 0.9 of 100 and 0.75 of 40; not 1.4 of 100 and 1.0 of 40.
    assert!(close(rows[0].wasted.unwrap(), 120.0) && close(rows[0].held, 200.0));
    assert!(close(rows[0].share().unwrap(), 0.6));
    assert_eq!((rows[0].jobs, rows[0].rule.as_deref()), (2, Some("second")));
    assert!(close(rows[0].cost(&ask.prices).unwrap(), 60.0));
    // Idle: 90 of 100 and 20 of 40 CPU-hours.
    assert!(close(rows[0].energy(&ask.prices).unwrap(), 1.1));
    assert!(close(rows[1].wasted.unwrap(), 8.0) && close(rows[1].held, 80.0));
    assert_eq!((rows[1].jobs, rows[1].unbilled_jobs), (2, 1));
    assert!(close(rows[1].unbilled_cpu_hours, 10.0));
    assert_eq!(rows[1].energy(&ask.prices), None, "nobody measured");
    assert_eq!(rows[0].cost(&Prices::default()).or(rows[0].energy(&Prices::default())), None);
    let accounts = waste::rows(&views, &ask, By::Account);
    let wasted: Vec<_> = accounts.iter().map(|row| (row.name.as_str(), row.wasted)).collect();
    assert_eq!(wasted, [("x", Some(98.0)), ("y", Some(30.0))]);
    let tables = (waste::REPORT.make)(&views, &ask);
    let keys: Vec<&str> = tables[0].columns.iter().map(|column| column.key).collect();
    assert_eq!(keys[keys.len() - 2..], ["cost", "energy_kwh"]);
    assert!(tables[0].notes[1].starts_with("Jobs without a billing weight: 1. The 10.0 CPU-hours"));
    let plain = (waste::REPORT.make)(&views, &Ask::default());
    assert!(!plain[0].columns.iter().any(|column| ["cost", "energy_kwh"].contains(&column.key)));
}

/// The row of a user all of whose jobs were idle.
fn idle(drafts: Vec<Draft>, prices: Prices) -> (waste::Row, Prices) {
    let world = World::new(drafts.into_iter().map(|draft| draft.cpu_used(0.0)));
    let jobs: Vec<(u32, Option<f64>)> =
        world.facts.jobs().iter().map(|job| (job.key.id.get(), Some(1.0))).collect();
    let found = [finding(&world, Audience::User, &jobs)];
    let view = View { found: vec![("idle", &found[..])], ..view(&world) };
    let ask = Ask { prices, ..Ask::default() };
    (waste::rows(&[view], &ask, By::User).remove(0), ask.prices)
}

/// TrailblazingTurtle makes prices of what nodes cost: 7500 $ for 64 cores, 50,000 $ for 4 GPUs, a
/// tenth more, over five years. Here the site says what a billing hour costs.
#[test]
fn n19_a_node_that_idles_all_its_life_costs_what_it_cost() {
    let life = 5.0 * 365.0 * 24.0;
    for (cost, things, price) in [(7500.0, 64, 0.002_943), (50_000.0, 4, 0.313_93)] {
        let per_hour = 1.1 * cost / (f64::from(things) * life);
        assert!((per_hour / price - 1.0).abs() < 1e-4, "{per_hour}");
        let dollars =
            || Prices { billing_hour: Some((per_hour, "$".to_owned())), ..Prices::default() };
        // Slurm bills one unit for each of the things.
        let (row, prices) = idle(vec![job("a").held("n1", things, 0)], dollars());
        assert!(close(row.cost(&prices).unwrap(), f64::from(things) * per_hour));
        let (row, prices) = idle(vec![job("a").held("n1", things, 0).hours(life)], dollars());
        assert!(close(row.cost(&prices).unwrap(), 1.1 * cost));
    }
}

/// Two nodes of 32 cores that take 400 W each, for five hours: 2 · 400 · 5 / 1000 kWh.
#[test]
fn n20_two_idle_nodes_take_four_kilowatt_hours_in_five_hours() {
    let prices = Prices { cpu_watts: Some(400.0 / 32.0), ..Prices::default() };
    let (row, prices) = idle(vec![job("a").held("n[1-2]", 64, 0).hours(5.0)], prices);
    assert!(close(row.idle_cpu_hours.unwrap(), 2.0 * 32.0 * 5.0));
    assert!(close(row.energy(&prices).unwrap(), 4.0));
}
