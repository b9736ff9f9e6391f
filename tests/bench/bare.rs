//! The baseline: what any reader must do for the same figures, and nothing else. Walk the job
//! directories, read stat, io and the number of descriptors of every process and six cgroup files
//! of every job, parse the numbers, add them up.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// What one cycle saw; printed so that the work cannot be left out.
#[derive(Debug, Default)]
pub struct Seen {
    /// Job directories.
    pub jobs: u64,
    /// Processes.
    pub processes: u64,
    /// The sum of all numbers.
    pub sum: u64,
}

/// One file, one read.
fn read<'a>(path: &str, buffer: &'a mut [u8]) -> &'a [u8] {
    let length = File::open(path).and_then(|mut file| file.read(buffer)).unwrap_or(0);
    &buffer[..length]
}

/// The sum of the numbers in `text`.
fn sum(text: &[u8]) -> u64 {
    let (mut total, mut number) = (0_u64, 0_u64);
    for byte in text {
        if byte.is_ascii_digit() {
            number = number.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
        } else {
            total = total.wrapping_add(number);
            number = 0;
        }
    }
    total
}

/// One cycle over the jobs of `node`.
pub fn cycle(node: &str) -> Seen {
    let mut seen = Seen::default();
    let v2 = Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
    let (scope, files, leaf): (String, &[&str], &str) = if v2 {
        (
            format!("/sys/fs/cgroup/system.slice/{node}_slurmstepd.scope"),
            &[
                "cpu.stat",
                "memory.current",
                "memory.peak",
                "memory.max",
                "memory.stat",
                "memory.events",
            ],
            "step_batch/user/task_0",
        )
    } else {
        (
            format!("/sys/fs/cgroup/memory/slurm_{node}/uid_1001"),
            &[
                "../../../../cpuacct/cpuacct.usage",
                "../../../../cpuacct/cpuacct.stat",
                "memory.usage_in_bytes",
                "memory.max_usage_in_bytes",
                "memory.limit_in_bytes",
                "memory.stat",
            ],
            "step_batch/task_0",
        )
    };
    let mut buffer = vec![0; 65536];
    for entry in fs::read_dir(&scope).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name.starts_with("job_")) else { continue };
        seen.jobs += 1;
        for file in files {
            let path = match file.strip_prefix("../../../../cpuacct/") {
                Some(file) => {
                    format!("/sys/fs/cgroup/cpuacct/slurm_{node}/uid_1001/{name}/{file}")
                }
                None => format!("{scope}/{name}/{file}"),
            };
            seen.sum = seen.sum.wrapping_add(sum(read(&path, &mut buffer)));
        }
        let procs = read(&format!("{scope}/{name}/{leaf}/cgroup.procs"), &mut buffer).to_vec();
        for pid in String::from_utf8_lossy(&procs).lines() {
            seen.processes += 1;
            for file in ["stat", "io"] {
                let text = read(&format!("/proc/{pid}/{file}"), &mut buffer);
                seen.sum = seen.sum.wrapping_add(sum(text));
            }
            let size = fs::metadata(format!("/proc/{pid}/fd"));
            seen.sum = seen.sum.wrapping_add(size.map_or(0, |fd| fd.len()));
        }
    }
    seen
}
