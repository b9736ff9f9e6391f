//! What agents measured of real jobs, in the archive.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use steward_common::slurm::duration;
use steward_tests::agent::{RunningAgent, config};
use steward_tests::endpoint::Endpoint;
use steward_tests::prometheus::Prometheus;
use steward_tests::service::program;
use steward_tests::slurm::{Job, submit};
use steward_tests::testbed::Testbed;
use steward_tests::{python, shared, wait};

const PATIENCE: Duration = Duration::from_secs(120);

/// 200 MiB of its own, 150 MiB of page cache, 20 s of CPU, and time to be seen.
const PROGRAM: &str = r#"#!/usr/bin/python3
import os, tempfile, time
block = bytearray(200 << 20)
block[::4096] = b'x' * len(block[::4096])
with tempfile.NamedTemporaryFile(dir='/var/tmp') as file:
    for _ in range(150): file.write(b'y' * (1 << 20))
    file.flush(); os.fsync(file.fileno())
    while time.process_time() < 20: pass
    time.sleep(6)
time.sleep(6)
"#;

/// Prints the rows of a job.
const ROWS: &str = r#"
import json, sys
import polars as pl
rows = pl.read_parquet(sys.argv[1] + "/processed/*/20*.parquet", hive_partitioning=False)
rows = rows.filter(pl.col("job_id_raw") == int(sys.argv[2])).drop("collected_at")
print(json.dumps(rows.to_dicts(), default=str))
"#;

struct Site {
    dir: tempfile::TempDir,
}

impl Site {
    fn new(prometheus: &str) -> Site {
        let site = Site { dir: shared::directory() };
        site.configure(prometheus);
        site
    }

    fn configure(&self, prometheus: &str) {
        let text = format!(
            "[archive]\ndirectory = {:?}\n[prometheus]\nurl = {prometheus:?}\ntimeout = \"5s\"\n",
            self.archive()
        );
        std::fs::write(self.dir.path().join("steward.toml"), text).unwrap();
    }

    fn archive(&self) -> String {
        self.dir.path().join("archive").display().to_string()
    }

    fn steward(&self, args: &[&str]) -> String {
        let config = self.dir.path().join("steward.toml");
        let mut command = Command::new(program());
        command.arg("--config").arg(config).args(args);
        let done = command.env("SLURM_CONF", Testbed::get().slurm_conf()).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "steward {args:?}: {said}");
        String::from_utf8(done.stdout).unwrap() + &said
    }

    /// The rows of a job in the archive.
    fn rows(&self, job: &Job) -> Vec<Value> {
        let text = python::script(ROWS, &[&self.archive(), &job.id], Path::new("/"), &[]);
        serde_json::from_str(&text).unwrap()
    }

    /// The one row of a job that ran once.
    fn row(&self, job: &Job) -> Value {
        let [row] = <[Value; 1]>::try_from(self.rows(job)).unwrap();
        row
    }
}

fn number(row: &Value, path: &str) -> f64 {
    row.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} of {row}"))
}

#[test]
fn a_job_is_archived_with_what_the_agent_measured() {
    let node = format!("{}4", Testbed::get().value("STEWARD_TESTBED_NODES"));
    let mut settings = config();
    settings.node = Some(node.parse().unwrap());
    settings.linger = 5;
    let agent = RunningAgent::start(settings);
    let exporter = Endpoint::start();
    let prometheus = Prometheus::scraping(&[agent.url(), exporter.url()]);
    let options = ["-p", "gpu", "-w", &node, "--gres=gpu:1", "--mem=600M"];
    let job = submit("stw-alice", &options, PROGRAM);
    // Its GPU is a pretended one; an exporter says that it is busy for two fifths of the time.
    exporter.show(format!(
        "nvidia_gpu_duty_cycle{{cluster=\"{}\",instance=\"{node}:9445\",minor_number=\"0\",\
         jobid=\"{}\"}} 40\n",
        Testbed::get().value("STEWARD_CLUSTER"),
        job.id
    ));
    job.wait_ended(Duration::from_secs(300));
    exporter.show(String::new());
    let accounted = wait::until("sacct's TotalCPU of the job", PATIENCE, || {
        let total = job.sacct("TotalCPU").first().and_then(|text| duration::elapsed(text).ok()?);
        total.map(|total| total.as_secs_f64()).filter(|total| *total > 19.0)
    });
    // A Prometheus that does not answer harms nothing, and is named.
    let site = Site::new("http://127.0.0.1:9");
    let said = site.steward(&["collect", "--no-summary"]);
    assert!(said.contains("http://127.0.0.1:9") && said.contains("did not answer"), "{said}");
    let bare = site.row(&job);
    assert_eq!((&bare["node_usage"], &bare["agent_coverage"]), (&Value::Null, &Value::Null));
    assert_ne!(bare["memory_source"], "agent");
    // When it does, what it knows is added to what has not changed otherwise.
    site.configure(prometheus.url());
    let said = site.steward(&["collect", "--no-summary"]);
    assert!(said.contains(" with what agents measured"), "{said}");
    let row = site.row(&job);
    println!("sacct {accounted} s; {row}");
    for column in ["row_digest", "submit_time", "total_cpu_seconds", "restart", "state"] {
        assert_eq!(row[column], bare[column], "{column}");
    }
    assert_eq!(row["node_usage"].as_array().unwrap().len(), 1, "{row}");
    assert_eq!(row["node_usage"][0]["node"], node.as_str());
    assert_eq!(row["node_usage"][0]["gpus"], 1);
    let cpu = number(&row, "/node_usage/0/cpu_seconds");
    assert!((cpu / accounted - 1.0).abs() < 0.02, "agent {cpu}, sacct {accounted}");
    assert!(number(&row, "/agent_coverage") >= 0.9, "{row}");
    // Its own memory, with the little that Python and slurmstepd need; no page cache.
    let peak = number(&row, "/node_usage/0/peak_memory_bytes") / f64::from(1 << 20);
    assert!((200.0..240.0).contains(&peak), "{peak} MiB");
    assert!((number(&row, "/max_rss_mb") - peak).abs() < 0.01, "{row}");
    assert_eq!(row["memory_source"], "agent");
    assert!(number(&row, "/io_written_bytes") >= f64::from(150 << 20), "{row}");
    assert_eq!(bare["gpu_used_seconds"], Value::Null, "unmeasured is not 0");
    let elapsed = number(&row, "/elapsed_seconds");
    assert!((number(&row, "/gpu_used_seconds") - 0.4 * elapsed).abs() < 1e-6, "{row}");
    let report = site.steward(&["analyze", "--days", "1", "--json", "--user", "stw-alice"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    let used = number(&report, "/totals/gpu_hours_used");
    assert!((used - 0.4 * elapsed / 3600.0).abs() < 1e-5, "{}", report["totals"]);
    // It is not measured again, and comes back from what is kept of it.
    let again = site.steward(&["collect", "--no-summary"]);
    assert!(!again.contains("what agents measured"), "{again}");
    site.steward(&["archive", "rebuild"]);
    assert_eq!(site.row(&job), row);
}
