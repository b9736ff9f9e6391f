//! Real jobs in a real archive, and what sacct says of them, asked and read here in another way.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::archive::{done, records};
use crate::service;
use crate::slurm::{self, Job};
use crate::testbed::Testbed;
use crate::wait;

/// A run of the archive, by column.
pub type Record = BTreeMap<String, String>;

/// Until a job has ended and slurmdbd knows it, on a machine that is full of other tests.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// What brings all that is new into the archive.
pub const COLLECT: [&str; 4] = ["collect", "--days", "1", "--no-summary"];

/// The program, over an archive of the testbed's jobs.
#[must_use]
pub fn command(data: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.arg("120").arg(service::program()).args(arguments).arg("--data-dir").arg(data);
    command.env("SLURM_CONF", Testbed::get().slurm_conf()).env("STEWARD_CONFIG", "/dev/null");
    command
}

/// Collects what is new.
fn collect(data: &Path) {
    let output = command(data, &COLLECT).output();
    done(&output.unwrap_or_else(|error| panic!("steward: {error}")));
}

/// The runs of a job, the first one first.
#[must_use]
pub fn runs(all: &[Record], id: &str) -> Vec<Record> {
    let mut runs: Vec<Record> =
        all.iter().filter(|record| record["job_id_raw"] == id).cloned().collect();
    runs.sort_by_key(|record| record["submit_time"].clone());
    runs
}

/// Collects until the archive has what is asked for.
///
/// # Panics
/// If it does not come to have it.
pub fn archived<T>(data: &Path, what: &str, mut look: impl FnMut(&[Record]) -> Option<T>) -> T {
    wait::until(what, PATIENCE, || {
        collect(data);
        look(&records(data))
    })
}

/// Waits until slurmdbd knows that a job and its steps are over: it hears of the ends of steps a moment
/// before or after that of the job.
///
/// # Panics
/// If they go on.
pub fn wait_known(job: &Job) {
    wait::until_true(&format!("job {} and its steps end", job.id), PATIENCE, || {
        let ends = slurm::run("sacct", &["-nPD", "-j", &job.id, "-o", "End"]);
        !ends.is_empty() && ends.lines().all(|end| end != "Unknown")
    });
}

/// Collects until the archive has what is asked for of a job, the job's steps are over, and what is
/// known of them is collected.
///
/// # Panics
/// If that does not come about.
pub fn settled<T>(data: &Path, job: &Job, look: impl Fn(&[Record]) -> Option<T>) -> T {
    let what = format!("job {} in the archive", job.id);
    archived(data, &what, &look);
    wait_known(job);
    archived(data, &what, look)
}

/// The job's one run, when it has ended.
#[must_use]
pub fn ended(data: &Path, job: &Job) -> Record {
    settled(data, job, |all| {
        let run = runs(all, &job.id).pop()?;
        (run["is_complete"] == "true").then_some(run)
    })
}

/// The figure in a column.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn number(record: &Record, column: &str) -> f64 {
    record[column].parse().unwrap_or_else(|_| panic!("{column} is {}", record[column]))
}

/// Whether two figures are the same, but for what is lost in between.
#[must_use]
pub fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-6 * expected.abs().max(1.0)
}

/// A time as Slurm writes it, in seconds.
fn seconds(text: &str) -> f64 {
    let (days, time) = text.split_once('-').unwrap_or(("0", text));
    let number = |text: &str| text.parse::<f64>().unwrap_or_else(|error| panic!("{text}: {error}"));
    let sum = time.split(':').fold(0.0, |sum, part| sum * 60.0 + number(part));
    sum + 86_400.0 * number(days)
}

/// How much of one resource a text such as `cpu=2,mem=1048576` names, without units.
fn amount(text: &str, resource: &str) -> Option<f64> {
    let found = text.split(',').filter_map(|part| part.split_once('='));
    let (_, figure) = found.into_iter().find(|(name, _)| *name == resource)?;
    // Megabytes stay such even where sacct is told not to convert.
    let (figure, unit) = match figure.strip_suffix('M') {
        Some(figure) => (figure, f64::from(1 << 20)),
        None => (figure, 1.0),
    };
    Some(unit * figure.parse::<f64>().unwrap_or_else(|error| panic!("{text}: {error}")))
}

/// What is asked of sacct, in this order.
const FIELDS: [&str; 13] = [
    "JobIDRaw",
    "Submit",
    "Start",
    "End",
    "ElapsedRaw",
    "AllocCPUS",
    "ExitCode",
    "TotalCPU",
    "AllocNodes",
    "ReqTRES",
    "AllocTRES",
    "TRESUsageInTot",
    "NTasks",
];

/// A row of sacct.
type Row<'t> = BTreeMap<&'static str, &'t str>;

/// Holds a run against what sacct says of it.
///
/// # Panics
/// If they differ.
pub fn assert_accounted(run: &Record) {
    let id = &run["job_id_raw"];
    let fields = FIELDS.join(",");
    let args = ["SLURM_TIME_FORMAT=%s", "sacct", "-nPD", "--noconvert", "-j", id, "-o", &fields];
    let text = slurm::run("env", &args);
    let (mut own, mut steps): (Vec<Row<'_>>, Vec<Row<'_>>) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let row: Row<'_> = FIELDS.into_iter().zip(line.split('|')).collect();
        if row["JobIDRaw"] == id {
            own.push(row);
        } else if row["JobIDRaw"].starts_with(&format!("{id}."))
            && own.last().is_some_and(|own| own["Submit"] == run["submit_time"])
        {
            steps.push(row);
        }
    }
    let own = own
        .into_iter()
        .find(|own| own["Submit"] == run["submit_time"])
        .unwrap_or_else(|| panic!("{text}"));
    let known =
        |text: &str| if text.parse::<u64>().is_ok() { text.to_owned() } else { "null".to_owned() };
    assert_eq!(
        (&run["start_time"], &run["end_time"]),
        (&known(own["Start"]), &known(own["End"])),
        "{text}"
    );
    assert_eq!(run["elapsed_seconds"], own["ElapsedRaw"], "{text}");
    if own["AllocNodes"] != "0" {
        assert_eq!(run["alloc_cpus"], own["AllocCPUS"], "{text}");
    }
    let (code, signal) = own["ExitCode"].split_once(':').unwrap_or_else(|| panic!("{text}"));
    assert_eq!((&*run["exit_code"], &*run["exit_signal"]), (code, signal), "{text}");
    let of_steps: f64 = steps.iter().map(|step| seconds(step["TotalCPU"])).sum();
    let cpu = if steps.is_empty() { seconds(own["TotalCPU"]) } else { of_steps };
    let found = run["total_cpu_seconds"].parse().unwrap_or(0.0);
    assert!((cpu - found).abs() < 0.01, "{found} s of CPU in the archive, {cpu} by sacct: {text}");
    assert_eq!(run["steps"], steps.len().to_string(), "{text}");
    assert_memory(run, &own, &steps, &text);
    assert_gpus(run, &own, &text);
}

/// Memory is that of all tasks of the step with most of it; what only waits is no such step.
fn assert_memory(run: &Record, own: &Row<'_>, steps: &[Row<'_>], text: &str) {
    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    let asked = amount(own["ReqTRES"], "mem").unwrap_or_else(|| panic!("no memory: {text}"));
    let found = number(run, "req_mem_mb");
    assert!(near(found, mib(asked)), "{found} MiB were asked for: {text}");
    // What never ran was given none.
    let held = amount(own["AllocTRES"], "mem").unwrap_or(asked);
    let found = number(run, "alloc_mem_mb");
    assert!(near(found, mib(held)), "{found} MiB were held: {text}");
    let hours = mib(held) / 1024.0 * number(run, "elapsed_seconds") / 3600.0;
    assert!(near(number(run, "memory_gb_hours_reserved"), hours), "{hours} GiB-hours: {text}");
    let works = |step: &&Row<'_>| !step["JobIDRaw"].ends_with(".extern");
    let used = steps.iter().filter(works).filter_map(|step| amount(step["TRESUsageInTot"], "mem"));
    // None at all is what Slurm says of a step that ended before it was looked at.
    let most = used.fold(0.0, f64::max);
    let found = run["max_rss_mb"].parse().unwrap_or(0.0);
    if steps.iter().any(|step| works(&step)) {
        assert!(near(found, mib(most)), "{found} MiB at the most, by sacct {}: {text}", mib(most));
    }
}

fn assert_gpus(run: &Record, own: &Row<'_>, text: &str) {
    let given = own["AllocTRES"];
    let gpus = amount(given, "gres/gpu").unwrap_or(0.0);
    assert_eq!(number(run, "alloc_gpus"), gpus, "{text}");
    let hours = gpus * number(run, "elapsed_seconds") / 3600.0;
    assert!(near(number(run, "gpu_hours_reserved"), hours), "{hours} hours: {text}");
    let mut types: Vec<&str> =
        given.split(',').filter_map(|part| part.strip_prefix("gres/gpu:")).collect();
    types.sort_unstable();
    let types = if types.is_empty() { "null".to_owned() } else { types.join(",") };
    assert_eq!(run["gpu_types"], types, "{text}");
}
