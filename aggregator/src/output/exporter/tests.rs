use std::collections::HashMap;

use steward_common::cluster::{
    Asked, Question, Seen, licence, node, partition, queue, reservation, scheduler, share,
};
use steward_common::exposition::read_labels;
use steward_common::metric;
use steward_common::time::Timestamp;

use super::*;

/// Recorded from the testbed: see the README beside them.
macro_rules! recorded {
    ($name:literal) => {
        include_str!(concat!("../../../../tests/fixtures/snapshot-slurm-22.05/", $name))
    };
}

fn snapshot() -> Snapshot {
    let reservations = reservation::parse(recorded!("scontrol-show-reservations.txt")).unwrap();
    let now = reservations[0].start.unwrap();
    let mut all = Snapshot::unseen(ClusterName::new("steward").unwrap(), now);
    all.nodes = Some(Seen::new(now, node::parse(recorded!("scontrol-show-nodes.txt")).unwrap()));
    all.jobs = Some(Seen::new(now, queue::parse(recorded!("squeue.txt")).unwrap()));
    let partitions = partition::parse(recorded!("scontrol-show-partitions.txt")).unwrap();
    all.partitions = Some(Seen::new(now, partitions));
    all.reservations = Some(Seen::new(now, reservations));
    let licences = licence::parse(recorded!("scontrol-show-licenses.txt")).unwrap();
    all.licences = Some(Seen::new(now, licences));
    all.shares = Some(Seen::new(now, share::parse(recorded!("sshare.txt")).unwrap()));
    all.scheduler = Some(Seen::new(now, scheduler::parse(recorded!("sdiag.txt")).unwrap()));
    all
}

/// A page, to be asked.
struct Page(String);

impl Page {
    fn of(snapshot: &Snapshot, settings: &Exporter) -> Page {
        let exhibit = Exhibit::new(settings.clone());
        exhibit.show(snapshot).unwrap();
        Page(String::from_utf8(exhibit.text().to_vec()).unwrap())
    }

    /// The values of a metric whose labels hold these.
    fn all(&self, name: &str, labels: &[(&str, &str)]) -> Vec<f64> {
        let mut values = Vec::new();
        for line in self.0.lines().filter(|line| !line.starts_with('#')) {
            let Some(rest) = line.strip_prefix(name).and_then(|rest| rest.strip_prefix('{')) else {
                continue;
            };
            let (found, value) = read_labels(rest).unwrap();
            let found: HashMap<&str, &str> =
                found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(found.get("cluster"), Some(&"steward"), "{line}");
            if labels.iter().all(|(name, value)| found.get(name) == Some(value)) {
                values.push(value.trim().parse().unwrap());
            }
        }
        values
    }

    fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let all = self.all(name, labels);
        assert!(!all.is_empty(), "no {name} {labels:?}");
        all.iter().sum()
    }
}

#[test]
fn classes_match_what_sinfo_says() {
    let page = Page::of(&snapshot(), &Exporter::default());
    let (mut alloc, mut total) = (0.0, 0.0);
    for line in recorded!("sinfo-cpus.txt").lines() {
        let (partition, figures) = line.split_once('|').unwrap();
        let figures: Vec<f64> = figures.split('/').map(|text| text.parse().unwrap()).collect();
        let of = |class| {
            page.sum("steward_partition_cpus", &[("partition", partition), ("class", class)])
        };
        assert_eq!(of("allocated"), figures[0]);
        assert_eq!(of("allocated") + of("idle") + of("unusable"), figures[3]);
        let vpenso = ["cpus_allocated", "cpus_idle", "cpus_other", "cpus_total"];
        for (name, figure) in vpenso.iter().zip(&figures) {
            let name = format!("slurm_partition_{name}");
            assert_eq!(page.sum(&name, &[("partition", partition)]), *figure, "{name}");
        }
        alloc += figures[0];
        total += figures[3];
    }
    assert_eq!(page.sum("steward_cluster_cpus", &[("class", "allocated")]), alloc);
    assert_eq!(page.sum("steward_cluster_cpus", &[]), total);
    assert_eq!(page.sum("slurm_cpus_total", &[]), total);
    assert_eq!(page.sum("steward_cluster_gpus", &[("type", "fake")]), 4.0);
    let causes =
        |cause| page.sum("steward_cluster_cpus", &[("class", "unusable"), ("cause", cause)]);
    assert_eq!((causes("drain"), causes("maint"), causes("down")), (8.0, 8.0, 0.0));
    assert_eq!(page.all("steward_cluster_cpus", &[]).len(), 14, "zeros too");
}

#[test]
fn nodes_have_their_state_flags_and_reason() {
    let page = Page::of(&snapshot(), &Exporter::default());
    assert_eq!(page.all("steward_node_state", &[("node", "n2"), ("state", "idle")]), [1.0]);
    assert_eq!(page.all("steward_node_flag", &[("node", "n2")]), [1.0]);
    assert_eq!(page.all("steward_node_flag", &[("node", "n4"), ("flag", "maintenance")]), [1.0]);
    let reason = [("reason", "bad DIMM, see ticket=12 State=IDLE"), ("author", "root")];
    assert_eq!(page.all("steward_node_reason_info", &reason), [1.0]);
    assert!(page.sum("steward_node_reason_since_timestamp_seconds", &[("node", "n2")]) > 1.7e9);
    assert_eq!(page.sum("steward_cluster_nodes", &[]), 4.0);
    assert_eq!(page.sum("steward_cluster_nodes_flagged", &[("flag", "drain")]), 1.0);
    // Each node counts once among vpenso's.
    let kinds = ["alloc", "comp", "down", "drain", "err", "fail", "idle", "maint", "mix", "resv"];
    let nodes: f64 = kinds.iter().map(|kind| page.sum(&format!("slurm_nodes_{kind}"), &[])).sum();
    assert_eq!(nodes, 4.0);
    assert_eq!(page.sum("slurm_nodes_drain", &[]), 1.0);
}

#[test]
fn e7_every_flag_of_a_compound_state_is_exported() {
    let mut all = snapshot();
    let text = "NodeName=a CPUAlloc=0 CPUTot=4 RealMemory=1 AllocMem=0 \
                State=IDLE+DYNAMIC_NORM+MAINTENANCE+RESERVED+PLANNED";
    all.nodes = Some(Seen::new(all.taken_at, node::parse(text).unwrap()));
    let page = Page::of(&all, &Exporter::default());
    for flag in ["maintenance", "reserved", "planned", "dynamic_norm"] {
        assert_eq!(page.all("steward_node_flag", &[("flag", flag)]), [1.0], "{flag}");
    }
    assert_eq!(page.sum("steward_cluster_cpus", &[("cause", "maint")]), 4.0);
}

#[test]
fn jobs_are_counted_as_squeue_counts_them() {
    let page = Page::of(&snapshot(), &Exporter::default());
    for line in recorded!("squeue-states.txt").lines() {
        let (count, state) = line.trim().split_once(' ').unwrap();
        let state = state.to_lowercase();
        let jobs = page.sum("steward_jobs", &[("state", &state)]);
        assert_eq!(jobs, count.parse::<f64>().unwrap(), "{state}");
    }
    let pending = page.sum("steward_jobs", &[("state", "pending")]);
    assert_eq!(page.sum("steward_jobs_pending", &[]), pending);
    assert_eq!(page.sum("steward_user_jobs", &[("state", "pending")]), pending);
    assert_eq!(page.sum("steward_account_jobs", &[("state", "pending")]), pending);
    assert_eq!(page.sum("steward_partition_jobs", &[("state", "pending")]), pending);
    assert_eq!(
        page.sum("steward_user_cpus", &[("state", "running")]),
        page.sum("steward_cluster_cpus", &[("class", "allocated")])
    );
    // vpenso counts those that wait for another job in both.
    assert_eq!(page.sum("slurm_queue_pending", &[]), pending);
    assert_eq!(page.sum("slurm_queue_pending_dependency", &[]), 1.0);
    assert_eq!(page.sum("slurm_user_jobs_pending", &[]), pending);
}

#[test]
fn n23_waiting_for_lists_of_nodes_is_one_series() {
    let page = Page::of(&snapshot(), &Exporter::default());
    let reason = [("reason", "ReqNodeNotAvail, UnavailableNodes")];
    assert_eq!(page.all("steward_jobs_pending", &reason), [1.0]);
    assert!(!page.0.contains("UnavailableNodes:"));
}

#[test]
fn e4_a_cluster_without_gpus_has_no_series_of_them() {
    let mut all = snapshot();
    let text = "NodeName=a CPUAlloc=0 CPUTot=4 RealMemory=1 AllocMem=0 State=IDLE Gres=(null) GresUsed=gpu:0";
    all.nodes = Some(Seen::new(all.taken_at, node::parse(text).unwrap()));
    let page = Page::of(&all, &Exporter::default());
    assert!(page.all("steward_cluster_gpus", &[]).is_empty());
    assert!(page.all("steward_cluster_gres", &[]).is_empty());
}

#[test]
fn e11_an_empty_queue_is_zeros_and_an_unknown_one_is_nothing() {
    let mut all = snapshot();
    all.jobs = Some(Seen::new(all.taken_at, Vec::new()));
    let page = Page::of(&all, &Exporter::default());
    assert_eq!(page.sum("steward_jobs", &[]), 0.0);
    assert_eq!(page.all("steward_partition_jobs", &[("partition", "gpu")]), [0.0, 0.0, 0.0]);
    assert_eq!(page.sum("steward_account_jobs", &[("account", "physics")]), 0.0);
    assert_eq!(page.sum("slurm_queue_running", &[]), 0.0);
    all.jobs = None;
    let page = Page::of(&all, &Exporter::default());
    for name in ["steward_jobs", "steward_partition_jobs", "slurm_queue_running"] {
        assert!(page.all(name, &[]).is_empty(), "{name}");
    }
    assert!(!page.all("steward_cluster_cpus", &[]).is_empty());
}

#[test]
fn e11_success_and_age_tell_of_a_question_that_fails() {
    let mut all = snapshot();
    let took = std::time::Duration::from_millis(250);
    let asked = |error: Option<&str>, answered| Asked {
        at: all.taken_at,
        took,
        error: error.map(str::to_owned),
        answered,
    };
    let before = Timestamp::new(all.taken_at.get() - 60);
    let fine = asked(None, Some(all.taken_at));
    let failed = asked(Some("down"), Some(before));
    let never = asked(Some("down"), None);
    all.asked.insert(Question::Nodes, fine);
    all.asked.insert(Question::Jobs, failed);
    all.asked.insert(Question::Shares, never);
    let later = Timestamp::new(all.taken_at.get() + 5);
    let board = [(all.cluster.clone(), Arc::new(all))].into();
    let page = Page(snapshots(&board, later).unwrap());
    let of = |name: &str, question| page.all(name, &[("question", question)]);
    assert_eq!(of("steward_snapshot_success", "nodes"), [1.0]);
    assert_eq!(of("steward_snapshot_success", "jobs"), [0.0]);
    assert_eq!(of("steward_snapshot_age_seconds", "nodes"), [5.0]);
    assert_eq!(of("steward_snapshot_age_seconds", "jobs"), [65.0]);
    assert!(of("steward_snapshot_age_seconds", "shares").is_empty(), "never is no age");
    assert_eq!(of("steward_snapshot_duration_seconds", "jobs"), [0.25]);
}

#[test]
fn milas_classes_sum_to_the_total_and_drain_is_all_that_is_unusable() {
    let settings = Exporter { vpenso: false, mila: true, ..Exporter::default() };
    let page = Page::of(&snapshot(), &settings);
    for what in ["cpus", "gpus"] {
        let of =
            |class: &str, more: &[(&str, &str)]| page.sum(&format!("slurm_{what}_{class}"), more);
        assert_eq!(of("alloc", &[]) + of("idle", &[]) + of("drain", &[]), of("total", &[]));
    }
    assert_eq!(page.sum("slurm_cpus_drain", &[("reservation", "maint")]), 8.0);
    assert_eq!(page.sum("slurm_cpus_drain", &[("reservation", "None")]), 8.0, "n2 drains");
    assert_eq!(
        page.sum("slurm_cpus_drain", &[]),
        page.sum("steward_cluster_cpus", &[("class", "unusable")])
    );
    assert_eq!(page.sum("slurm_gpus_total", &[("type", "fake"), ("reservation", "maint")]), 2.0);
    assert_eq!(page.sum("slurm_node_states", &[("name", "n2")]), 1.0);
    assert_eq!(page.all("slurm_node_states", &[("name", "n2")]).len(), 18);
    let is = |state| page.sum("slurm_node_states", &[("name", "n2"), ("slurm_node_states", state)]);
    assert_eq!((is("drained"), is("idle")), (1.0, 0.0));
    assert!(page.sum("slurm_login_nodes", &[("name", "localhost")]) > 0.0);
    assert!(page.sum("slurm_job_states", &[("name", "pending")]) > 1000.0);
}

#[test]
fn only_what_is_switched_on_is_exported() {
    let mut settings = Exporter { vpenso: false, ..Exporter::default() };
    let page = Page::of(&snapshot(), &settings);
    assert!(!page.0.contains("slurm_cpus"));
    settings.families.users = false;
    settings.families.nodes = false;
    let page = Page::of(&snapshot(), &settings);
    assert!(!page.0.contains("steward_user_") && !page.0.contains("steward_node_"));
    assert!(page.0.contains("steward_account_jobs"));
}

#[test]
fn beyond_the_limits_names_are_other_and_counted() {
    let mut settings = Exporter::default();
    settings.limits.users = 1;
    settings.limits.nodes = 2;
    let page = Page::of(&snapshot(), &settings);
    let before = Page::of(&snapshot(), &Exporter::default());
    let pending = [("state", "pending")];
    assert_eq!(page.sum("steward_user_jobs", &pending), before.sum("steward_user_jobs", &pending));
    assert_eq!(page.all("steward_user_jobs", &pending).len(), 2);
    assert_eq!(page.all("steward_user_jobs", &[("user", "other")]).len(), 3);
    assert_eq!(page.sum("steward_series_cut", &[("label", "user")]), 2.0);
    assert_eq!(page.sum("steward_series_cut", &[("label", "node")]), 2.0);
    assert_eq!(page.all("steward_node_state", &[]).len(), 2);
    assert_eq!(page.sum("steward_cluster_nodes", &[]), 4.0, "sums are over all");
}

#[test]
fn two_clusters_stand_under_one_heading() {
    let exhibit = Exhibit::new(Exporter::default());
    exhibit.show(&snapshot()).unwrap();
    let mut other = snapshot();
    other.cluster = ClusterName::new("other").unwrap();
    exhibit.show(&other).unwrap();
    exhibit.show(&snapshot()).unwrap();
    let text = String::from_utf8(exhibit.text().to_vec()).unwrap();
    let mut headings: Vec<_> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
    let all = headings.len();
    headings.sort_unstable();
    headings.dedup();
    assert_eq!(headings.len(), all);
    for cluster in ["steward", "other"] {
        let line = format!("slurm_cpus_total{{cluster=\"{cluster}\"}} 32");
        assert_eq!(text.lines().filter(|found| **found == line).count(), 1);
    }
}

#[test]
fn every_name_is_of_the_catalogue_and_no_series_comes_twice() {
    for (vpenso, mila) in [(true, false), (false, true)] {
        let settings = Exporter { vpenso, mila, ..Exporter::default() };
        let page = Page::of(&snapshot(), &settings);
        let mut series = Vec::new();
        for line in page.0.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split('{').next().unwrap();
            let compatible =
                if vpenso { metric::compatible::VPENSO } else { metric::compatible::MILA };
            let known =
                metric::find(name).is_some() || compatible.iter().any(|def| def.name == name);
            assert!(known, "{name}");
            series.push(line.rsplit_once(' ').unwrap().0);
        }
        let all = series.len();
        series.sort_unstable();
        series.dedup();
        assert_eq!(series.len(), all);
    }
}

#[test]
fn constants_stand_as_configured_and_years_beside_them() {
    let labels = [("year".to_owned(), "2026".to_owned())].into();
    let all = [crate::config::Constant { name: "gpu \"years\"".into(), value: 120.5, labels }];
    let text = constants(&all).unwrap();
    assert!(text.ends_with("steward_constant{name=\"gpu \\\"years\\\"\",year=\"2026\"} 120.5\n"));
    assert_eq!(constants(&[]).unwrap(), "");
    let used = [(("steward".to_owned(), 2026), 1.5)].into();
    let text = years(&used).unwrap();
    assert!(text.ends_with("steward_gpu_years_used{cluster=\"steward\",year=\"2026\"} 1.5\n"));
}
