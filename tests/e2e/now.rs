//! `steward now` against the testbed's Prometheus.

use std::process::{Command, Output};
use std::time::Duration;

use steward_tests::agent::{RunningAgent, config, program};
use steward_tests::slurm::submit;
use steward_tests::testbed::Testbed;
use steward_tests::wait;

fn steward(args: &[&str]) -> Output {
    // It is built beside the agent.
    Command::new(program().with_file_name("steward")).args(args).output().unwrap()
}

#[test]
fn a_busy_job_is_shown_with_what_it_uses_of_what_it_holds() {
    let testbed = Testbed::get();
    let mut settings = config();
    settings.node = Some("n2".parse().unwrap());
    settings.push.gateway = Some(testbed.pushgateway().to_owned());
    let _agent = RunningAgent::start(settings);
    let job = submit(
        "stw-bob",
        &["-w", "n2", "-c2", "--mem=200M", "-A", "biology"],
        "#!/usr/bin/python3\nwhile True: pass\n",
    );
    let url = testbed.prometheus();
    let row = wait::until("the job in 'steward now'", Duration::from_secs(120), || {
        let output = steward(&["now", "--json", "--prometheus", url]);
        assert!(output.status.success(), "{output:?}");
        let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
        let row = rows.into_iter().find(|row| row["job"].as_u64() == job.id.parse().ok())?;
        (row["cores_busy"].as_f64()? > 0.05).then_some(row)
    });
    for (field, expected) in [
        ("user", "\"stw-bob\""),
        ("account", "\"biology\""),
        ("partition", "\"cpu\""),
        ("nodes", "[\"n2\"]"),
        ("cpus", "2.0"),
        ("processes", "1.0"),
        ("memory_limit_bytes", "209715200.0"),
        ("gpus", "null"),
    ] {
        assert_eq!(row[field].to_string(), expected, "{field}");
    }
    // One process cannot keep more than one core busy.
    assert!(row["cores_busy"].as_f64().unwrap() < 1.1, "{row}");
    let table = steward(&["now", "--prometheus", url]);
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.lines().any(|line| line.contains(&job.id) && line.contains("of 2 (")), "{table}");
}

#[test]
fn a_prometheus_that_is_not_there_is_named() {
    let output = steward(&["now", "--prometheus", "http://127.0.0.1:9"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("http://127.0.0.1:9") && text.contains("--prometheus"), "{text}");
    assert_eq!(text.trim_end().lines().count(), 1, "{text}");
    assert_eq!(steward(&["now", "--prometheus", "not an address"]).status.code(), Some(1));
}
