//! The summary that Jobstats leaves in a job's comment: `JS1:` and base64 of gzip of JSON.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Value, json};

use super::job::Job;

/// The comment of a job; empty if it has not ended or never ran.
pub fn of(job: &Job) -> String {
    if job.start.is_none() || job.end.is_none() {
        return String::new();
    }
    if job.elapsed < 60 {
        return "JS1:Short".to_owned();
    }
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    let text = summary(job).to_string();
    packed.write_all(text.as_bytes()).expect("memory");
    format!("JS1:{}", STANDARD.encode(packed.finish().expect("memory")))
}

fn summary(job: &Job) -> Value {
    let count = job.nodes.max(1);
    let gpus = job.gpus.map_or(0, |gpus| gpus.count);
    let cpus = (job.cpus / count).max(1);
    let most = job.steps.iter().map(|step| step.memory.1).max().unwrap_or(0);
    let nodes: Map<String, Value> = (0..count)
        .map(|place| {
            let memory = job.memory * 1_048_576 / count;
            let mut node = json!({
                "cpus": cpus,
                "total_memory": memory,
                "used_memory": (most / count).min(memory),
                "total_time": (job.cpu() / count) as f64 / 1000.0,
            });
            let here = gpus / count + u64::from(place < gpus % count);
            if here > 0 {
                let of = |value: &dyn Fn(u64) -> Value| -> Value {
                    (0..here).map(|gpu| (gpu.to_string(), value(gpu))).collect()
                };
                // Of ten GPUs one is idle.
                node["gpu_utilization"] = of(&|gpu| match (job.id + gpu) % 10 {
                    0 => json!(0),
                    _ => json!(((job.id * 37 + gpu * 11) % 1000) as f64 / 10.0),
                });
                node["gpu_used_memory"] = of(&|gpu| json!(((job.id + gpu) % 80) << 30));
                node["gpu_total_memory"] = of(&|_| json!(80_u64 << 30));
            }
            (format!("c{:04}", job.first_node + place), node)
        })
        .collect();
    json!({ "gpus": gpus, "nodes": nodes, "total_time": job.elapsed })
}
