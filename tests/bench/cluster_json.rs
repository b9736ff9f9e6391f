//! A large cluster as Slurm 22.05 tells of it in JSON: made from the records of a real one, whose
//! shape it must have.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// Where the real ones are.
fn recorded(name: &str) -> Result<Value> {
    let path = PathBuf::from("tests/fixtures/snapshot-slurm-22.05").join(name);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(serde_json::from_str(&text)?)
}

/// The next of a sequence without pattern; the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Keys with the types of their values, at any depth; numbers as keys are one key.
fn shape(value: &Value, path: &str, into: &mut BTreeSet<String>) {
    let kind = match value {
        Value::Null => "nothing",
        Value::Bool(_) => "flag",
        Value::Number(number) if number.is_f64() => "decimal",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(list) => {
            list.iter().for_each(|one| shape(one, &format!("{path}[]"), into));
            "list"
        }
        Value::Object(object) => {
            for (key, one) in object {
                let key = if key.bytes().all(|byte| byte.is_ascii_digit()) { "#" } else { key };
                shape(one, &format!("{path}.{key}"), into);
            }
            "object"
        }
    };
    into.insert(format!("{path}: {kind}"));
}

/// Refuses a record with a key or a type that no real one has, or without a key that all have.
fn must_be_like(made: &Value, real: &[Value]) -> Result<()> {
    let mut known = BTreeSet::new();
    real.iter().for_each(|one| shape(one, "", &mut known));
    let mut found = BTreeSet::new();
    shape(made, "", &mut found);
    let strange: Vec<_> = found.difference(&known).collect();
    ensure!(strange.is_empty(), "no record of Slurm has {strange:?}");
    let keys = |one: &Value| -> BTreeSet<String> {
        one.as_object().map(|all| all.keys().cloned().collect()).unwrap_or_default()
    };
    let made = keys(made);
    let common = real.iter().map(keys).reduce(|one, other| &one & &other).unwrap_or_default();
    let missing: Vec<_> = common.difference(&made).collect();
    ensure!(missing.is_empty(), "every record of Slurm has {missing:?}");
    Ok(())
}

/// Writes as Slurm does: indented, one record after the other.
fn write(
    path: &Path,
    name: &str,
    head: &Value,
    records: impl Iterator<Item = Value>,
) -> Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let meta = serde_json::to_string_pretty(&head["meta"])?;
    write!(file, "{{\n  \"meta\": {meta},\n  \"errors\": [],\n  \"{name}\": [\n")?;
    for (place, record) in records.enumerate() {
        if place > 0 {
            file.write_all(b",\n")?;
        }
        serde_json::to_writer_pretty(&mut file, &record)?;
    }
    file.write_all(b"\n  ]\n}\n")?;
    file.flush()?;
    Ok(())
}

/// Writes the queue and the nodes of a cluster into `directory`.
///
/// # Errors
/// If a record that is made has not the shape of the real ones.
pub fn make(directory: &Path, nodes: u64, jobs: u64) -> Result<(PathBuf, PathBuf)> {
    let (queue, list) = (directory.join("squeue.json"), directory.join("sinfo.json"));
    let real_jobs = recorded("squeue.json")?;
    let real = real_jobs["jobs"].as_array().context("jobs")?.clone();
    let of = |state: &str| {
        let found = real.iter().find(|job| job["job_state"] == state && job["array_job_id"] == 0);
        found.cloned().with_context(|| format!("no {state} job was recorded"))
    };
    let templates = [of("RUNNING")?, of("PENDING")?, of("COMPLETED")?];
    let mut dice = Dice(7);
    let mut sample = Vec::new();
    let make_one = |number: u64, dice: &mut Dice| job(number, nodes, &templates, dice);
    for number in 0..1000 {
        sample.push(make_one(number, &mut dice));
    }
    sample.iter().try_for_each(|one| must_be_like(one, &real))?;
    write(&queue, "jobs", &real_jobs, (0..jobs).map(|number| make_one(number, &mut dice)))?;

    let real_nodes = recorded("sinfo.json")?;
    let real = real_nodes["nodes"].as_array().context("nodes")?.clone();
    let template = real.iter().find(|node| node["name"] == "n3").context("n3")?.clone();
    for number in 0..1000 {
        must_be_like(&node(number, &template, &mut dice), &real)?;
    }
    let all = (0..nodes).map(|number| node(number, &template, &mut dice));
    write(&list, "nodes", &real_nodes, all)?;
    Ok((queue, list))
}

/// Sets fields of a record that are there.
fn set(record: &mut Value, fields: Value) {
    for (key, value) in fields.as_object().expect("an object") {
        record[key] = value.clone();
    }
}

fn job(number: u64, nodes: u64, templates: &[Value; 3], dice: &mut Dice) -> Value {
    let kind = match dice.below(10) {
        0..=5 => 0,
        6..=8 => 1,
        _ => 2,
    };
    let mut job = templates[kind].clone();
    let user = dice.below(600);
    let (cpus, memory) = (1 + dice.below(64), 1 + dice.below(256));
    let gpus = if dice.below(5) == 0 { 1 + dice.below(4) } else { 0 };
    let gres = if gpus > 0 { format!(",gres/gpu={gpus}") } else { String::new() };
    let tres = format!("cpu={cpus},mem={memory}G,node=1,billing={cpus}{gres}");
    let host = format!("node{:05}", dice.below(nodes));
    let begin = 1_794_000_000 + number;
    set(
        &mut job,
        json!({
            "job_id": 1_000_000 + number,
            "account": format!("project{:03}", user % 150),
            "user_name": format!("user{user:04}"),
            "user_id": 10_000 + user,
            "name": format!("run-{}-{}", user, dice.below(50)),
            "partition": format!("part{:02}", dice.below(20)),
            "cpus": cpus,
            "submit_time": begin,
            "eligible_time": begin,
            "tres_req_str": tres,
            "current_working_directory": format!("/home/user{user:04}/project/run{number}"),
            "standard_output": format!("/home/user{user:04}/project/run{number}/slurm-{number}.out"),
        }),
    );
    if kind == 0 {
        let cores: Vec<(String, Value)> =
            (0..cpus).map(|core| (core.to_string(), json!("allocated"))).collect();
        let cores: serde_json::Map<String, Value> = cores.into_iter().collect();
        let detail =
            if gpus > 0 { vec![format!("gpu:a100:{gpus}(IDX:0-{gpus})")] } else { Vec::new() };
        set(
            &mut job,
            json!({ "nodes": host, "batch_host": host, "tres_alloc_str": tres, "gres_detail": detail }),
        );
        job["job_resources"]["nodes"] = json!(host);
        job["job_resources"]["allocated_cores"] = json!(cpus);
        job["job_resources"]["allocated_nodes"][0]["nodename"] = json!(host);
        job["job_resources"]["allocated_nodes"][0]["memory_allocated"] = json!(memory * 1024);
        job["job_resources"]["allocated_nodes"][0]["sockets"]["0"]["cores"] = Value::Object(cores);
    } else if kind == 1 && dice.below(4) == 0 {
        let last = 1 + dice.below(500);
        set(
            &mut job,
            json!({
                "array_job_id": 1_000_000 + number,
                "array_task_string": format!("0-{last}%10"),
                "state_reason": "JobArrayTaskLimit",
            }),
        );
    } else if kind == 1 {
        let reasons = ["Priority", "Resources", "Dependency", "QOSMaxCpuPerUserLimit"];
        job["state_reason"] = json!(reasons[dice.below(4) as usize]);
    }
    job
}

fn node(number: u64, template: &Value, dice: &mut Dice) -> Value {
    let mut node = template.clone();
    let has_gpus = number.is_multiple_of(7);
    let total = if has_gpus { 64 } else { 128 };
    let (state, used) = match dice.below(20) {
        0..=10 => ("mixed", 1 + dice.below(total - 1)),
        11..=16 => ("allocated", total),
        17..=18 => ("idle", 0),
        _ => ("down", 0),
    };
    let drained = dice.below(33) == 0;
    let flags: Vec<&str> = if drained { vec!["DRAIN"] } else { Vec::new() };
    let gres = if has_gpus { "gpu:a100:4(S:0-1)" } else { "" };
    let gres_used = match (has_gpus, used) {
        (true, 0) => "gpu:a100:0(IDX:N/A)",
        (true, _) => "gpu:a100:3(IDX:0-2)",
        (false, _) => "gpu:0",
    };
    set(
        &mut node,
        json!({
            "name": format!("node{number:05}"),
            "hostname": format!("node{number:05}"),
            "cpus": total,
            "alloc_cpus": used,
            "idle_cpus": total - used,
            "real_memory": 512_000,
            "alloc_memory": used * 3500,
            "state": state,
            "state_flags": flags,
            "gres": gres,
            "gres_used": gres_used,
            "partitions": [format!("part{:02}", number % 20), "part00"],
            "reason": if drained { "memory errors" } else { "" },
            "reason_changed_at": if drained { 1_794_000_000 } else { 0 },
            "reason_set_by_user": if drained { json!("root") } else { Value::Null },
        }),
    );
    node
}
