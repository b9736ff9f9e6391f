//! The vectors of the survey of other archives, from sacct's rows to Parquet and `steward analyze`, with
//! our values where those programs are wrong. The cases are named as they are there.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Map, Value, json};
use steward_tests::archive::{records, rows};
use steward_tests::scripted::{Scripted, now};

const HOUR: i64 = 3600;
const COLLECT: [&str; 4] = ["collect", "--days", "1", "--no-summary"];

/// When jobs ended unless it is said otherwise: half an hour ago, which every collection asks for
/// again, and the same each time.
fn ended() -> i64 {
    static ENDED: OnceLock<i64> = OnceLock::new();
    *ENDED.get_or_init(|| now() - HOUR / 2)
}

/// A row, as sacct would give it of a job; `fields` are more or others.
fn row(id: &str, fields: &Value) -> Value {
    let end = ended();
    let mut row = json!({
        "JobIDRaw": id, "JobID": id, "Cluster": "c1", "User": "ann", "Account": "acc",
        "Partition": "cpu", "State": "COMPLETED", "Submit": end - 2 * HOUR, "Start": end - HOUR,
        "End": end, "ElapsedRaw": 3600, "AllocCPUS": 1, "AllocNodes": 1, "NodeList": "n1",
    });
    let more: Map<String, Value> = fields.as_object().unwrap().clone();
    row.as_object_mut().unwrap().extend(more);
    row
}

/// What is asked of a case: a field of sacct with a text, a column and what it must hold.
type Case<'a> = (&'a str, &'a str, &'a str, &'a str);

/// Collects a job for each case, numbered from 1, and looks at its column.
fn check(cases: &[Case<'_>], more: &Value) {
    let site = Scripted::new("");
    let jobs = (1..).zip(cases).map(|(id, (field, text, ..))| {
        let mut fields = more.clone();
        fields[*field] = json!(text);
        row(&i32::to_string(&id), &fields)
    });
    site.answer(&jobs.collect());
    site.steward(&COLLECT);
    let runs = site.runs();
    for (id, (field, text, column, expected)) in (1..).zip(cases) {
        let found = &runs[&i32::to_string(&id)][*column];
        let same = match (found.parse::<f64>(), expected.parse::<f64>()) {
            (Ok(found), Ok(expected)) => (found - expected).abs() < 1e-6 * expected.abs().max(1.0),
            _ => found == expected,
        };
        assert!(same, "{field} {text:?}: {column} is {found}, not {expected}");
    }
}

#[test]
fn a1_to_a5_memory() {
    let column = "req_mem_mb";
    let cases = [
        ("4G", "4096"),
        ("4000M", "4000"),
        ("512K", "0.5"),
        ("1.5T", "1572864"),
        ("1048576K", "1024"),
        // A2: of each node, A3: of each CPU.
        ("4Gn", "8192"),
        ("500Mn", "1000"),
        ("2Gc", "16384"),
        ("1024", "1"),
        ("123456", "120.5625"),
        ("", "null"),
        ("0", "null"),
        ("0n", "null"),
        ("16?", "null"),
        ("N/A", "null"),
    ];
    let cases = cases.map(|(text, mib)| ("ReqMem", text, column, mib));
    check(&cases, &json!({ "AllocNodes": 2, "AllocCPUS": 8, "NodeList": "n[1-2]" }));
}

#[test]
fn a6_to_a11_cpu_time_and_gpus() {
    let cpu = [
        ("1-02:03:04", "93784"),
        ("02:03.456", "123.456"),
        ("12:34:56.789", "45296.789"),
        ("00:00.010", "0.010"),
        ("5", "null"),
        ("UNLIMITED", "null"),
    ];
    let cpu = cpu.map(|(text, seconds)| ("TotalCPU", text, "total_cpu_seconds", seconds));
    let gpus = [
        ("AllocTRES", "cpu=4,mem=8G,gres/gpu=2", "alloc_gpus", "2"),
        ("AllocTRES", "gres/gpu:a100=2", "alloc_gpus", "2"),
        ("AllocTRES", "gres/gpu:a100=2", "gpu_types", "a100=2"),
        ("AllocTRES", "cpu=4,mem=8G", "alloc_gpus", "0"),
    ];
    check(&[&cpu[..], &gpus].concat(), &json!({}));
}

#[test]
fn a14_to_a19_hours_are_those_of_the_nodes_that_were_held() {
    let padded = ["001", "002", "003", "005", "007", "008", "009"].map(|n| format!("node{n}"));
    let padded: Vec<&str> = padded.iter().map(String::as_str).collect();
    let cases: [(&str, &[&str]); 7] = [
        ("node[001-003,005,007-009]", &padded),
        ("node[9-11]", &["node10", "node11", "node9"]),
        ("node[009-011]", &["node009", "node010", "node011"]),
        ("n1,n2", &["n1", "n2"]),
        ("node[1-2],gpu[3-4]", &["gpu3", "gpu4", "node1", "node2"]),
        ("r[1-2]n[01-02]-ib", &["r1n01-ib", "r1n02-ib", "r2n01-ib", "r2n02-ib"]),
        ("None assigned", &[]),
    ];
    let site = Scripted::new("");
    let jobs = (1..).zip(&cases).map(|(id, (list, nodes))| {
        let held = json!({ "User": format!("u{id}"), "NodeList": list, "AllocNodes": nodes.len() });
        row(&i32::to_string(&id), &held)
    });
    site.answer(&jobs.collect());
    site.steward(&COLLECT);
    for (id, (list, nodes)) in (1..).zip(cases) {
        let user = format!("u{id}");
        let args = ["analyze", "--days", "1", "--json", "--user", &user, "--table", "nodes"];
        let found = site.json(&args);
        let mut names: Vec<&str> =
            found.as_array().unwrap().iter().map(|line| line["node"].as_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, nodes, "{list}");
        for line in found.as_array().unwrap() {
            let (hours, share) = (line["cpu_hours"].as_f64().unwrap(), 1.0 / nodes.len() as f64);
            assert!((hours - share).abs() < 1e-5, "{list}: {line}");
        }
    }
}

/// 8 CPUs for an hour, 16 GiB, 4 hours of CPU time, 2 GPUs.
fn a20() -> Value {
    json!({ "AllocCPUS": 8, "ReqMem": "16G", "TotalCPU": "04:00:00",
            "AllocTRES": "billing=8,cpu=8,gres/gpu=2,mem=16G,node=1" })
}

/// The figures of a run: efficiencies, waste and what was reserved.
fn figures(run: &BTreeMap<String, String>) -> [Option<f64>; 7] {
    [
        "cpu_efficiency",
        "memory_efficiency",
        "cpu_hours_wasted",
        "memory_gb_hours_wasted",
        "cpu_hours_reserved",
        "memory_gb_hours_reserved",
        "gpu_hours_reserved",
    ]
    .map(|column| run[column].parse().ok().map(|value: f64| (value * 1e4).round() / 1e4))
}

#[test]
fn a20_to_a24_what_was_used_of_what_was_held() {
    let site = Scripted::new("");
    let none = json!({ "ElapsedRaw": 0, "Start": ended(), "MaxRSS": "1G" });
    let mut a23 = a20();
    a23.as_object_mut().unwrap().extend(none.as_object().unwrap().clone());
    let batch = json!({ "TotalCPU": "02:00:00", "MaxRSS": "8388608K", "NTasks": 1 });
    let waiting = json!({ "TotalCPU": "00:05.200", "MaxRSS": "4M", "NTasks": 1 });
    let srun = json!({ "TotalCPU": "03:58:31.000", "MaxRSS": "1G", "NTasks": 4,
                       "TRESUsageInTot": "cpu=03:58:31,mem=4294967296" });
    let two = |first: &str, second: &str| {
        [json!({ "TotalCPU": first, "NTasks": 1 }), json!({ "TotalCPU": second, "NTasks": 1 })]
    };
    let (one, other) = (two("00:30:00", "01:00:00"), two("01:00:00", "00:30:00"));
    let n26 = json!({ "AllocCPUS": 3, "ElapsedRaw": 3600 });
    site.answer(&json!([
        row("20", &a20()),
        row("21", &a20()),
        row("21.batch", &batch),
        row("23", &a23),
        row("24", &json!({ "AllocCPUS": 4, "ReqMem": "4G", "TotalCPU": "03:58:36" })),
        row("24.batch", &waiting),
        row("24.0", &srun),
        row("26", &n26),
        row("26.0", &one[0]),
        row("26.1", &one[1]),
        row("27", &n26),
        row("27.0", &other[0]),
        row("27.1", &other[1]),
    ]));
    site.steward(&COLLECT);
    let runs = site.runs();
    let (half, some) = (Some(50.0), Some);
    let a20 = [half, None, some(4.0), None, some(8.0), some(16.0), some(2.0)];
    assert_eq!(figures(&runs["20"]), a20);
    let a21 = [some(25.0), half, some(6.0), some(8.0), some(8.0), some(16.0), some(2.0)];
    assert_eq!(figures(&runs["21"]), a21);
    let a23 = figures(&runs["23"]);
    assert_eq!((a23[0], a23[1], a23[4], a23[6]), (None, None, some(0.0), some(0.0)));
    // A24: the batch step that waits does not hide the work of the other, nor its four tasks' memory.
    let a24 = figures(&runs["24"]);
    assert_eq!((a24[0].map(|cpu| (cpu * 10.0).round() / 10.0), a24[1]), (some(99.4), some(100.0)));
    assert_eq!(runs["24"]["max_rss_mb"], "4096.0");
    // N26: both steps count, in whatever order they come.
    for id in ["26", "27"] {
        assert_eq!((figures(&runs[id])[0], &*runs[id]["steps"]), (half, "2"), "{id}");
    }
    // The same figures over all of it, as far as anybody measured (N4): GPUs nobody did.
    let totals = site.json(&["analyze", "--days", "1", "--json"])["totals"].clone();
    assert_eq!((&totals["jobs"], &totals["gpu_hours_wasted"]), (&json!(6), &Value::Null));
    let near = |key: &str, expected: f64| {
        let found = totals[key].as_f64().unwrap();
        assert!((found - expected).abs() < 1e-3, "{key}: {found}, not {expected}");
    };
    near("gpu_hours_waste_unknown", 4.0);
    near("cpu_hours", 8.0 + 8.0 + 4.0 + 3.0 + 3.0);
    near("cpu_hours_used", 4.0 + 2.0 + 3.9767 + 1.5 + 1.5);
    near("memory_gib_hours_unmeasured", 16.0);
}

#[test]
fn a25_to_a28_states_names_and_owners() {
    let cases = [
        ("State", "CANCELLED by 1000", "state", "CANCELLED"),
        ("State", "CANCELLED by 1000", "is_complete", "true"),
        ("State", "CANCELLED by 1000", "cancelled_by_uid", "1000"),
        ("State", "PREEMPTED", "is_complete", "true"),
        ("State", "COMPLETING", "is_complete", "false"),
        ("State", "NODE_FAIL", "is_complete", "true"),
        ("JobName", &"x".repeat(80), "job_name", &"x".repeat(80)),
        (
            "JobName",
            "Grüße, 世界 🚀 \"quoted\" 'too' \\ 100%",
            "job_name",
            "Grüße, 世界 🚀 \"quoted\" 'too' \\ 100%",
        ),
        ("UID", "1001", "user", "ann"),
    ];
    check(&cases, &json!({}));
    let nobody = [("UID", "1001", "user", "uid_1001"), ("UID", "", "user", "MISSING_USER")];
    check(&nobody, &json!({ "User": "" }));
}

#[test]
fn a26_a_row_of_another_length_is_asked_for_again_or_kept_and_counted() {
    let site = Scripted::new("");
    let long = row("7", &json!({ "JobName": "with\u{1f}delimiter and\nline" }));
    // Asked for by its number, sacct does not know this one.
    let short = row("8", &json!({ "short": true }));
    let nine = row("9", &json!({}));
    site.answer(&json!(["what is this?", long, short, nine, "and what is that?"]));
    let said = site.steward(&COLLECT);
    assert!(said.contains("2 runs new") && said.contains("3 texts could not be read"), "{said}");
    let runs = site.runs();
    assert_eq!(runs["7"]["job_name"], "with\u{1f}delimiter and\nline");
    assert_eq!(runs.keys().collect::<Vec<_>>(), ["7", "9"]);
    let raw = rows(&site.data(), "raw", &[]);
    // Each day is asked for by itself; they are kept once.
    let texts = raw.iter().filter(|row| row.contains(" form=malformed "));
    assert_eq!(texts.count(), 3, "{raw:#?}");
    // They are not counted again; status tells of them.
    let said = site.steward(&COLLECT);
    assert!(said.contains(" 0 runs new") && !said.contains("could not be read"), "{said}");
    let status = site.json(&["status", "--json"]);
    assert_eq!(status["clusters"][0]["malformed"], 3, "{status}");
}

#[test]
fn a31_today_is_not_closed_by_a_run_in_the_night() {
    let site = Scripted::new("");
    site.answer(&json!([row("1", &json!({}))]));
    site.steward(&COLLECT);
    site.answer(&json!([row("1", &json!({})), row("2", &json!({ "End": now() - 60 }))]));
    site.steward(&COLLECT);
    assert_eq!(site.runs().len(), 2);
    let open = site.json(&["status", "--json"])["not_final"].clone();
    assert!(open.as_array().unwrap().iter().any(|day| day["why"] == "today"), "{open}");
}

#[test]
fn a32_raw_keeps_every_version_of_every_row() {
    let site = Scripted::new("");
    let finished = [row("1", &json!({})), row("1.batch", &json!({ "TotalCPU": "00:01:00" }))];
    let at = |state: &str, end: Value| {
        let fields = json!({ "State": state, "End": end });
        [row("2", &fields), row("2.batch", &fields)]
    };
    let before = at("RUNNING", json!("Unknown"));
    let after = at("COMPLETED", json!(now() - 60));
    site.answer(&json!([finished[0], finished[1], before[0], before[1]]));
    site.steward(&COLLECT);
    // Rows of sacct, in all versions that raw has of a job.
    let of = |job: &str| -> usize {
        let versions = site.json(&["archive", "rows", job, "--json"]);
        let rows = |version: &Value| version["rows"].as_array().unwrap().len();
        versions.as_array().unwrap().iter().map(rows).sum()
    };
    assert_eq!((of("1"), of("2")), (2, 2));
    site.answer(&json!([finished[0], finished[1], after[0], after[1]]));
    site.steward(&COLLECT);
    let raw = rows(&site.data(), "raw", &[]);
    assert_eq!((of("1"), of("2")), (2, 4), "{raw:#?}");
    let versions = site.json(&["archive", "rows", "2", "--json"]);
    let states: Vec<&Value> =
        versions.as_array().unwrap().iter().map(|version| &version["rows"][0]["State"]).collect();
    assert_eq!(states, ["RUNNING", "COMPLETED"]);
    assert_eq!(site.runs()["2"]["state"], "COMPLETED");
}

#[test]
fn a33_a_job_that_waited_over_midnight_is_one_row_that_moves() {
    let site = Scripted::new("");
    let submit = now() - 30 * HOUR;
    let at = |state: &str, start: Value, end: Value| {
        let fields = json!({ "Submit": submit, "State": state, "Start": start, "End": end,
                             "AllocNodes": i32::from(start.is_number()) });
        site.answer(&json!([row("1", &fields)]));
        site.steward(&COLLECT);
        let found = records(&site.data());
        assert_eq!(found.len(), 1, "{found:#?}");
        (found[0]["state"].clone(), found[0]["is_complete"].clone())
    };
    let (state, over) = at("PENDING", json!("Unknown"), json!("Unknown"));
    assert_eq!((&*state, &*over), ("PENDING", "false"));
    let (state, over) = at("RUNNING", json!(now() - HOUR), json!("Unknown"));
    assert_eq!((&*state, &*over), ("RUNNING", "false"));
    let (state, over) = at("COMPLETED", json!(now() - HOUR), json!(now() - 60));
    assert_eq!((&*state, &*over), ("COMPLETED", "true"));
    assert!(
        !site.data().join("processed/cluster=c1/open.parquet").exists() || {
            rows(&site.data(), "processed", &[]).iter().all(|row| !row.contains("open.parquet"))
        }
    );
}

#[test]
fn rows_are_asked_for_by_the_ids_that_tables_show() {
    let site = Scripted::new("");
    let jobs = [("17", "17_5"), ("18", "17_3"), ("23", "22+1")];
    site.answer(&jobs.map(|(raw, shown)| row(raw, &json!({ "JobID": shown }))).into());
    site.steward(&COLLECT);
    for (raw, shown) in jobs {
        let versions = site.json(&["archive", "rows", shown, "--json"]);
        assert_eq!(versions[0]["rows"][0]["JobIDRaw"], raw, "{shown}");
    }
    // One of the tasks has the array's own number.
    let output = site.run(&["archive", "rows", "17"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && told.contains("`steward archive rows 17_3`"), "{told}");
    assert_eq!(site.run(&["archive", "rows", "17_4"]).status.code(), Some(1));
    assert_eq!(site.run(&["archive", "rows", "17.batch"]).status.code(), Some(2));
}

#[test]
fn a34_a_cancelled_job_keeps_its_use_however_often_it_is_collected() {
    let site = Scripted::new("");
    let answer = |comment: &str| {
        let fields = json!({ "State": "CANCELLED by 1000", "ReqMem": "4G", "Comment": comment });
        let batch = json!({ "State": "CANCELLED", "MaxRSS": "2G", "NTasks": 1 });
        site.answer(&json!([row("1", &fields), row("1.batch", &batch)]));
        site.steward(&COLLECT)
    };
    for (comment, new) in
        [("", "1 run"), ("", "0 runs"), ("changed", "1 run"), ("changed", "0 runs")]
    {
        let said = answer(comment);
        assert!(said.contains(&format!(" {new} new")), "{said}");
        assert_eq!(site.runs()["1"]["max_rss_mb"], "2048.0");
    }
    site.steward(&["archive", "rebuild"]);
    assert_eq!(site.runs()["1"]["max_rss_mb"], "2048.0");
}

#[test]
fn a30_nodes_are_compared_with_what_sinfo_says_they_have() {
    let site = Scripted::new(
        "sinfo = [\"sh\", \"-c\", \"echo 'n1|64|gpu:a100:4'; echo 'idle|64|(null)'\"]\n",
    );
    let midnight = now() - now() % (24 * HOUR);
    let day = |days: i64| midnight - days * 24 * HOUR;
    let text = |at: i64| {
        let date = Command::new("date").args(["-u", "+%F", "-d", &format!("@{at}")]).output();
        String::from_utf8(date.unwrap().stdout).unwrap().trim().to_owned()
    };
    for (cpus, hours, share) in [(25, 1, 0.232_515), (64, 84, 50.0), (150, 100, 139.508_93)] {
        let fields = json!({ "Submit": day(8), "Start": day(8), "End": day(8) + hours * HOUR,
                             "ElapsedRaw": hours * HOUR, "AllocCPUS": cpus,
                             "AllocTRES": "gres/gpu=2" });
        site.answer(&json!([row("1", &fields)]));
        site.steward(&["collect", "--days", "9", "--no-summary"]);
        let (from, to) = (text(day(8)), text(day(2)));
        let nodes = ["analyze", "--from", &from, "--to", &to, "--json", "--table", "nodes"];
        let nodes = site.json(&nodes);
        let found = nodes[0]["cpu_utilisation_percent"].as_f64().unwrap();
        assert!((found - share).abs() < 1e-4, "{found}, not {share}: {nodes}");
        let gpus = nodes[0]["gpu_utilisation_percent"].as_f64().unwrap();
        let expected = 100.0 * 2.0 * hours as f64 / (4.0 * 168.0);
        assert!((gpus - expected).abs() < 1e-4, "{gpus}, not {expected}");
        assert_eq!(
            (&nodes[1]["node"], &nodes[1]["cpu_utilisation_percent"]),
            (&json!("idle"), &json!(0.0))
        );
        std::fs::remove_dir_all(site.data()).unwrap();
    }
}

#[test]
fn a_cluster_that_fails_is_told_on_standard_error_too() {
    let site = Scripted::new("");
    site.configure("clusters = [\"away\", \"c1\"]\n", "");
    site.answer(&json!(["what is this?", row("1", &json!({}))]));
    let output = site.run(&COLLECT);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    for part in ["away", "Connection refused", "could not be read"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(site.runs().len(), 1);
}

#[test]
fn options_of_slurm_usage_keep_their_names() {
    let site = Scripted::new("");
    let midnight = now() - now() % (24 * HOUR);
    // One that ended two days before today is beyond `-d 1`, and within `-d 2`.
    let old = midnight - 24 * HOUR - 60;
    let before = json!({ "Submit": old - 20, "Start": old - 10, "End": old, "ElapsedRaw": 10 });
    site.answer(&json!([row("1", &json!({})), row("2", &before)]));
    let data = site.data().display().to_string();
    let here = ["--data-dir", data.as_str()];
    let said = site.steward(&[&["collect", "-d", "1", "-n", "4"], &here[..]].concat());
    assert!(said.contains("1 run new") && said.contains("Users by CPU-hours"), "{said}");
    let said =
        site.steward(&[&["collect", "--n-parallel", "2", "--no-summary"], &here[..]].concat());
    assert!(said.contains(" 0 runs new") && !said.contains("Users by CPU-hours"), "{said}");
    let said = site.steward(&[&["collect", "--days", "2", "--summary"], &here[..]].concat());
    assert!(said.contains(" 1 run new"), "{said}");
    let days = |args: &[&str]| {
        let found = site.json(&[&["analyze", "--json"], args, &here[..]].concat());
        (found["days"].as_array().unwrap().len(), found["totals"]["jobs"].as_u64().unwrap())
    };
    // Today and seven before.
    assert_eq!(days(&[]), (8, 2));
    assert_eq!((days(&["-d", "1"]), days(&["--days", "2"])), ((2, 1), (3, 2)));
    assert!(site.steward(&[&["status"], &here[..]].concat()).contains("c1"));
    let test = site.run(&["test", "--json"]);
    let findings: Value = serde_json::from_slice(&test.stdout).unwrap();
    assert!(findings.as_array().unwrap().iter().any(|finding| finding["subject"] == "sacct"));
}

#[test]
fn what_slurm_usage_leaves_out_is_there() {
    let cases = [
        ("Cluster", "c1", "cluster", "c1"),
        ("Account", "physics", "account", "physics"),
        ("QOS", "high", "qos", "high"),
        ("ConsumedEnergyRaw", "123456", "energy_joules", "123456"),
        ("AdminComment", "JS1:H4sI|x", "admin_comment", "JS1:H4sI|x"),
        ("ExitCode", "1:9", "exit_code", "1"),
        ("ExitCode", "1:9", "exit_signal", "9"),
        ("TimelimitRaw", "120", "time_limit_seconds", "7200"),
        ("TimelimitRaw", "120", "time_limit_use", "50"),
        ("TimelimitRaw", "UNLIMITED", "time_limit_use", "null"),
        ("Comment", "", "wait_seconds", "3600"),
        ("Comment", "", "restart", "0"),
        ("AllocTRES", "gres/gpu:v100=1,gres/gpu:a100=2", "gpu_types", "a100=2,v100=1"),
        ("Comment", "", "gpu_used_seconds", "null"),
        ("Comment", "", "node_usage", "null"),
        ("Comment", "", "agent_coverage", "null"),
        ("TotalCPU", "02:00:00", "cpu_efficiency", "100"),
        ("TotalCPU", "02:00:00", "cpu_efficiency_raw", "200"),
        ("TotalCPU", "02:00:00", "cpu_source", "job"),
    ];
    check(&cases, &json!({}));
}
