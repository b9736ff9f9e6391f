//! Every rule through the whole pipeline, over thousands of jobs with Jobstats' summaries; and what
//! some of them say, computed again by another program from the same files.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use steward_tests::centre::{Centre, Text};
use steward_tests::sacct_text::Recipe;
use steward_tests::{python, shared};

/// Bounds that the jobs of the recipe pass, for rules whose bounds are for a large site.
const RULES: &str = r#"
[rules.excess-cpu-memory]
gib_hours = 100
ratio = 0.9
mean_ratio = 0.9
median_ratio = 0.9
top_users = 1000
[rules.excessive-time-cpu]
cpu_hours = 100
overall_ratio = 0.9
[rules.excessive-time-gpu]
gpu_hours = 10
overall_ratio = 0.9
[rules.failure-loop]
jobs = 3
failed = 0.3
time = "10d"
[rules.gpu-model-too-powerful]
utilisation = 0.5
gpu_gib = 80
cpu_gib_per_gpu = 4000
gpu_hours = 1
[rules.low-cpu-efficiency]
efficiency = 0.95
cpu_hours = 1
proportion = 0
top_users = 1000
[rules.low-gpu-efficiency]
efficiency = 0.9
gpu_hours = 1
proportion = 0
top_users = 1000
[rules.low-xpu-efficiency]
cpu_efficiency = 0.95
[rules.multinode-cpu-fragmentation]
cores_per_node = 128
gib_per_node = 500
cores_fraction = 1
[rules.multinode-gpu-fragmentation]
gpus_per_node = 8
[rules.serial-allocating-multiple]
cpu_hours = 0
lower_ratio = 0.5
top_users = 1000
[rules.short-job-flood]
jobs = 5
run_time = "10m"
time = "10d"
[rules.specialized-nodes.sets.special]
nodes = "c[0001-0900]"
gpus = true
[rules.too-many-cores-per-gpu]
cores_per_gpu = 1
[rules.too-much-cpu-mem-per-gpu]
gib_per_gpu = 1
[rules.zero-cpu-utilization]
seconds_per_hour = 1200
[rules.zero-util-gpu-hours]
gpu_hours_user = 0.001
gpu_hours_admin = 0.001
"#;

/// What only agents see, or only running jobs do: shown on real jobs in `rules.rs`.
const OF_AGENTS: [&str; 7] = [
    "cancel-zero-gpu-jobs",
    "gpu-without-process",
    "irregular-cpu",
    "many-files-little-io",
    "scratch-unused",
    "too-many-threads",
    "unbalanced-cores",
];

/// The same sums by other means: rows by polars, comments by gzip and json of Python.
const AGAIN: &str = r#"
import base64, gzip, json, sys
from collections import defaultdict
import polars as pl
rows = pl.read_parquet(sys.argv[1] + "/processed/*/20*.parquet", hive_partitioning=False)
rows = rows.filter(pl.col("start_time").is_not_null())
idle, memory = defaultdict(float), defaultdict(float)
used, held = defaultdict(float), defaultdict(float)
for row in rows.iter_rows(named=True):
    user, hours = row["user"], (row["elapsed_seconds"] or 0) / 3600
    gpus, comment = row["alloc_gpus"] or 0, row["admin_comment"] or ""
    if gpus and hours >= 0.5 and comment.startswith("JS1:H4s"):
        nodes = json.loads(gzip.decompress(base64.b64decode(comment[4:])))["nodes"].values()
        utils = [util for node in nodes for util in node.get("gpu_utilization", {}).values()]
        if len(utils) >= gpus:
            idle[user] += hours * sum(util == 0 for util in utils)
    if not gpus and row["state"] != "OUT_OF_MEMORY" and row["max_rss_mb"] is not None and row["req_mem_mb"] and hours:
        if row["max_rss_mb"] <= row["req_mem_mb"]:
            memory[user + "/" + row["partition"]] += (row["req_mem_mb"] - row["max_rss_mb"]) / 1024 * hours
    if not gpus and row["total_cpu_seconds"] is not None and row["alloc_cpus"] and hours:
        most = row["alloc_cpus"] * (row["elapsed_seconds"] + 1)
        if row["total_cpu_seconds"] <= most:
            held[user] += row["alloc_cpus"] * hours
            used[user] += min(row["total_cpu_seconds"] / 3600, row["alloc_cpus"] * hours)
print(json.dumps({
    "idle": idle, "memory": memory,
    "efficiency": {user: used[user] / held[user] for user in held},
}))
"#;

type Sums = BTreeMap<String, f64>;

/// A figure of each finding of a rule, by user, or by user and partition.
fn figures(answer: &Value, rule: &str, figure: &str) -> Sums {
    let rules = answer["clusters"][0]["rules"].as_array().unwrap();
    let rule = rules.iter().find(|known| known["name"] == rule).unwrap();
    let of = |finding: &Value| {
        let user = finding["user"].as_str().unwrap();
        let part = finding["partition"].as_str();
        let key = part.map_or_else(|| user.to_owned(), |part| format!("{user}/{part}"));
        (key, finding["figures"][figure].as_f64().unwrap_or_else(|| panic!("{finding}")))
    };
    rule["findings"].as_array().unwrap().iter().map(of).collect()
}

fn agree(ours: &Sums, others: &Value, what: &str) {
    assert!(ours.len() > 10, "{what}: {} findings", ours.len());
    for (key, ours) in ours {
        let other = others[key].as_f64().unwrap_or_else(|| panic!("{what}: {key} is not there"));
        let near = (ours - other).abs() <= 1e-9 * other.abs().max(1.0);
        assert!(near, "{what} of {key}: {ours} here, {other} there");
    }
}

#[test]
fn every_rule_speaks_and_another_program_comes_to_the_same_sums() {
    let dir = shared::directory();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let recipe = Recipe { jobs: 12_000, days: 6, seed: 4, now, comments: true };
    let text = Text::write(&dir.path().join("text"), recipe);
    let place = dir.path().join("archive").display().to_string();
    // Nobody answers for slurmctld.
    let more = format!("{RULES}\n[prometheus]\nurl = \"http://127.0.0.1:9\"\n");
    let centre = Centre::new(dir.path(), "rules", &place, &text, &more);
    centre.done(&["collect", "--days", "8", "--no-summary"]);
    let done = centre.run(&["evaluate", "--no-collect", "--days", "10", "--json"]);
    assert_eq!(done.status.code(), Some(3), "{}", String::from_utf8_lossy(&done.stderr));
    let answer: Value = serde_json::from_slice(&done.stdout).unwrap();
    let other = centre.run(&["evaluate", "--no-collect", "--json", "-M", "nowhere"]);
    let said = String::from_utf8_lossy(&other.stdout).into_owned();
    assert_eq!(
        (other.status.code(), said.contains("nothing is known of it; the archive has: c1")),
        (Some(3), true),
        "{said}"
    );
    for rule in answer["clusters"][0]["rules"].as_array().unwrap() {
        let name = rule["name"].as_str().unwrap();
        let found = rule["found"].as_u64().unwrap();
        println!("{name}: {found} found, {} fine, {} unknown", rule["fine"], rule["no_data"]);
        assert_eq!(found > 0, !OF_AGENTS.contains(&name), "{name}");
    }
    let again = python::script(AGAIN, &[&place], Path::new("/"), &[]);
    let again: Value = serde_json::from_str(&again).unwrap();
    let idle = figures(&answer, "zero-util-gpu-hours", "gpu_hours_idle");
    agree(&idle, &again["idle"], "idle GPU-hours");
    let memory = figures(&answer, "excess-cpu-memory", "gib_hours_unused");
    agree(&memory, &again["memory"], "unused GiB-hours");
    let efficiency = figures(&answer, "low-cpu-efficiency", "cpu_efficiency");
    agree(&efficiency, &again["efficiency"], "CPU efficiency");
}
