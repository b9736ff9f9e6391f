use std::path::Path;
use std::time::Duration;

use steward_common::rule::RULES;

use super::*;
use crate::config::{Config, Listed};
use crate::source::yaml;

const EXAMPLE: &str = include_str!("example.yaml");

fn converted(text: &str) -> (Vec<Listed>, Converted) {
    let done = convert("a.yaml", &yaml::parse(text).unwrap()).unwrap();
    let config = Config::parse(Path::new("a.toml"), &done.toml)
        .unwrap_or_else(|error| panic!("{error}\n{}", done.toml));
    config.check().unwrap_or_else(|error| panic!("{error}\n{}", done.toml));
    (config.rules.listed().unwrap(), done)
}

fn named<'a>(listed: &'a [Listed], name: &str) -> &'a Listed {
    listed.iter().find(|one| one.instance.name == name).unwrap()
}

fn value(one: &Listed, option: &str) -> String {
    let shown = one.instance.rule.list().into_iter().find(|shown| shown.name == option).unwrap();
    shown.value.unwrap_or_else(|| "none".to_owned())
}

fn values<const N: usize>(one: &Listed, options: [&str; N]) -> [String; N] {
    options.map(|option| value(one, option))
}

#[test]
fn thresholds_come_over_in_our_units() {
    let (listed, done) = converted(EXAMPLE);
    assert_eq!(done.instances, 7);
    let gpu = named(&listed, "low-gpu-efficiency");
    assert_eq!(
        values(gpu, ["efficiency", "target", "gpu_hours", "proportion", "top_users"]),
        ["0.25", "0.5", "50", "0.02", "10"]
    );
    assert_eq!(gpu.instance.scope.partitions, ["gpu", "large gpu"]);
    assert_eq!(gpu.instance.scope.excluded_qos, ["debug"]);
    assert_eq!(gpu.instance.scope.min_run_time, Duration::from_secs(1800));
    let memory = named(&listed, "excess-cpu-memory");
    assert_eq!(
        values(memory, ["gib_hours", "ratio", "cores_fraction", "above_fair_share"]),
        ["65500", "0.35", "0.8", "true"]
    );
    let cancel = named(&listed, "cancel-zero-gpu-jobs-a");
    assert_eq!(
        values(cancel, ["first_warning", "second_warning", "cancel", "interactive_time"]),
        ["1h", "105m", "2h", "8h"]
    );
    let nodes = named(&listed, "multinode-cpu-fragmentation");
    assert_eq!(nodes.instance.scope.min_run_time, Duration::from_secs(3690), "61.5 minutes");
    assert!(nodes.instance.scope.partitions.is_empty(), "* is all");
    assert_eq!(nodes.instance.scope.clusters, ["tuxedo"]);
}

#[test]
fn what_is_left_out_means_what_it_meant_there() {
    let (listed, _) = converted(EXAMPLE);
    let memory = named(&listed, "excess-cpu-memory");
    assert_eq!(values(memory, ["top_users", "gpu_jobs"]), ["15", "true"], "not our 10 and false");
    let sliding = named(&listed, "cancel-zero-gpu-jobs-b");
    assert_eq!(
        values(sliding, ["first_warning", "cancel", "sliding_warning", "sliding_cancel"]),
        ["none", "none", "4h", "5h"],
        "no fixed window without cancel_minutes"
    );
    assert_eq!(value(named(&listed, "cancel-zero-gpu-jobs-a"), "sliding_cancel"), "none");
    let model = named(&listed, "gpu-model-too-powerful-h100");
    assert_eq!(
        values(model, ["utilisation", "gpu_gib", "cpu_gib_per_gpu", "gpus", "gpu_hours"]),
        ["0.15", "none", "none", "1", "24"]
    );
    assert!(model.instance.scope.running && !model.enabled);
    assert_eq!(model.instance.scope.min_run_time, Duration::ZERO, "ours is 61m");
    assert_eq!(model.instance.scope.nodes.len(), 5);
    assert_eq!(value(named(&listed, "low-cpu-efficiency"), "proportion"), "0", "ours is 0.02");
}

#[test]
fn alerts_that_are_not_there_are_off_and_none_is_there_twice() {
    let (listed, _) = converted(EXAMPLE);
    let on: Vec<&str> =
        listed.iter().filter(|one| one.enabled).map(|one| one.instance.name.as_str()).collect();
    for name in ["cancel-zero-gpu-jobs", "zero-util-gpu-hours", "gpu-model-too-powerful"] {
        assert!(!on.contains(&name), "{name}");
    }
    for name in ["cancel-zero-gpu-jobs-a", "cancel-zero-gpu-jobs-b", "failure-loop", "low-cpu"] {
        assert!(on.contains(&name), "{name}");
    }
    let (listed, done) = converted("verbose: False\n");
    assert_eq!(done.instances, 0);
    assert_eq!(listed.iter().filter(|one| one.enabled).count(), RULES.len() - ALERTS.len());
}

#[test]
fn everything_else_is_named_with_its_line_and_why() {
    let (_, done) = converted(EXAMPLE);
    assert!(done.is_in_part());
    let line =
        |key: &str| 1 + EXAMPLE.lines().position(|line| line.trim().starts_with(key)).unwrap();
    for (key, reason, said) in [
        ("sender", Reason::Mail, "belongs to notices"),
        ("partition-renamings", Reason::Elsewhere, "evaluate.renamed_partitions"),
        ("verbos", Reason::Unknown, "was verbose meant?"),
        ("sampling_period_minutes", Reason::Elsewhere, "evaluate.schedule"),
        ("email_file_cancel", Reason::Mail, "notices"),
        ("do_not_cancel", Reason::Elsewhere, "cancels no job"),
        ("email_subject", Reason::Mail, "notices"),
        ("show_all_users", Reason::Report, "reports"),
        ("cores_per_node", Reason::Hardware, "from Slurm"),
        ("num_jobs_display", Reason::Report, "reports"),
        ("safety_frac", Reason::Dead, "safety_fraction"),
        ("min_nodes_thres", Reason::Dead, "min_nodes"),
        ("eff_thres_pct: 160", Reason::Unfit, "efficiency = 1.6; expected a share from 0 to 1"),
        ("eff_tresh_pct", Reason::Unknown, "was eff_thres_pct"),
        ("multinode-cpu-fragmentation", Reason::Missing, "safety_fraction = 0.2 holds"),
        ("first_warning_minutes: 30", Reason::Dead, "without cancel_minutes"),
    ] {
        let line = line(key);
        let found = done.left.iter().find(|one| one.line == line && one.reason == reason);
        let found = found.unwrap_or_else(|| panic!("{key} in line {line}: {:#?}", done.left));
        if reason != Reason::Missing {
            assert_eq!(found.key, key.split(':').next().unwrap());
        }
        assert!(found.why.contains(said), "{found:?}");
    }
    let taken = ["partitions", "cluster", "tb_hours_threshold", "cores_fraction", "enabled"];
    assert!(done.left.iter().all(|one| !taken.contains(&one.key.as_str())), "{:#?}", done.left);
    assert!(done.left.is_sorted_by_key(|one| one.line));
    let differs: Vec<&str> = done
        .left
        .iter()
        .filter(|one| one.reason == Reason::Differs)
        .map(|one| one.instance.as_str())
        .collect();
    assert!(differs.contains(&"low-gpu-efficiency"), "it rounds before it compares");
}

#[test]
fn what_is_missing_or_no_value_is_told_and_the_rest_is_taken() {
    let text = "zero-util-gpu-hours-1:\n  cluster: [a, b]\n  gpu_hours_threshold_user: many\n\
                zero-util-gpu-hours 1:\n  partitions: [2]\n\
                low-cpu-efficiency: 3\n\
                excessive-time-cpu:\n  partitions: [all]\n";
    let (listed, done) = converted(text);
    assert_eq!(done.instances, 3);
    let one = named(&listed, "zero-util-gpu-hours-1");
    assert_eq!(one.instance.scope.clusters, ["a", "b"]);
    assert_eq!(
        named(&listed, "zero-util-gpu-hours-1-2").instance.rule.id(),
        one.instance.rule.id()
    );
    let told = |line: usize, key: &str| {
        let found = done.left.iter().find(|one| one.line == line && one.key == key);
        found.map(|one| one.reason)
    };
    assert_eq!(told(3, "gpu_hours_threshold_user"), Some(Reason::Unfit));
    assert_eq!(told(1, "gpu_hours_threshold_admin"), Some(Reason::Missing));
    assert_eq!(told(1, "partitions"), Some(Reason::Missing));
    assert_eq!(told(2, "cluster"), Some(Reason::Differs), "it takes one only");
    assert_eq!(told(5, "partitions"), Some(Reason::Unfit));
    assert_eq!(told(6, ""), Some(Reason::Unfit));
    assert_eq!(told(8, "partitions"), Some(Reason::Unfit), "a partition of that name");
    assert!(convert("a", &yaml::parse("[1]").unwrap()).is_none());
    // A rule whose limits cannot be read would reach more people than it did.
    let wider =
        "low-cpu-efficiency:\n  nodelist: [\"n[1-\"]\n  enabled: True\n  eff_thres_pct: 60\n";
    let done = convert("a", &yaml::parse(wider).unwrap()).unwrap();
    assert_eq!(done.toml.matches("enabled = false  # until").count(), 1, "{}", done.toml);
}

#[test]
fn every_key_of_the_table_is_an_option_that_takes_its_default() {
    for alert in ALERTS {
        let mut text = format!("{}:\n  cluster: c\n  partitions: p\n", alert.rule);
        for mapped in alert.mapped {
            let value = if mapped.kind == keys::Kind::Flag { "True" } else { "1" };
            text += &format!("  {}: {value}\n", mapped.key);
        }
        let (_, done) = converted(&text);
        let wrong: Vec<_> = done.left.iter().filter(|one| one.reason == Reason::Unfit).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
        let bare = format!("{}:\n  cluster: c\n  partitions: p\n", alert.rule);
        let (listed, _) = converted(&bare);
        let one = named(&listed, alert.rule);
        for mapped in alert.mapped {
            if let keys::Absent::Is(default) = mapped.absent {
                assert_eq!(value(one, mapped.option), default, "{} {}", alert.rule, mapped.key);
            }
        }
    }
}
