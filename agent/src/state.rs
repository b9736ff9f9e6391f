//! What a restarted agent must know so that counters go on: a small file, written after each scan.
//!
//! Processes are not in it. They are read anew; one that ended meanwhile is missing from the sum,
//! and the total stands still until the others have made up for it, rather than going back.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use steward_common::id::{JobId, NodeName};

use crate::counts::{CountLedger, PartLedger};
use crate::ledger::{CpuBase, IoBase, IoLedger};
use crate::node::Peaks;
use crate::run::{Run, Trail};
use crate::threads::{ThreadBase, ThreadLedger};

/// The form of the file; another one is not read.
const VERSION: u32 = 2;

/// A job whose directory was re-made while no agent ran is taken for the same run only if the
/// agent was away for no longer than this: job ids may begin anew.
const TRUSTED: Duration = Duration::from_secs(300);

#[derive(Debug, Deserialize, Serialize)]
struct File {
    version: u32,
    /// After a boot, job ids and directories mean something else.
    boot: String,
    /// When it was written, in seconds since 1970.
    saved: u64,
    runs: Vec<Entry>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Entry {
    node: String,
    job: u32,
    sluid: Option<String>,
    restarts: Option<String>,
    since: Option<SystemTime>,
    idle_since: Option<SystemTime>,
    cpu: CpuBase,
    counts: CountLedger,
    parts: PartLedger,
    io: IoBase,
    threads: ThreadBase,
    peaks: Peaks,
}

/// Where the file is.
#[derive(Debug)]
pub struct State {
    path: PathBuf,
    boot: String,
}

impl State {
    /// The file at `path`; nothing is read or written yet. An agent that reports one node only has
    /// a file of its own, since others may run beside it.
    #[must_use]
    pub fn new(path: &Path, node: Option<&NodeName>, proc_root: &Path) -> Self {
        let boot = fs::read_to_string(proc_root.join("sys/kernel/random/boot_id"));
        let path = match (node, path.file_stem()) {
            (Some(node), Some(stem)) => {
                path.with_file_name(format!("{}-{node}.json", stem.to_string_lossy()))
            }
            _ => path.to_path_buf(),
        };
        // Without a boot id every run of the agent is of the same, unnamed boot.
        Self { path, boot: boot.unwrap_or_default().trim().to_owned() }
    }

    /// The runs that an earlier agent left; none if there is no file of this boot and form.
    ///
    /// # Errors
    /// If there is a file and it cannot be understood.
    pub fn load(&self) -> Result<BTreeMap<(NodeName, JobId), Run>, String> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(format!("{}: {error}", self.path.display())),
        };
        let file: File = serde_json::from_str(&text)
            .map_err(|error| format!("{}: {error}", self.path.display()))?;
        if file.version != VERSION || file.boot != self.boot {
            return Ok(BTreeMap::new());
        }
        let old = now().saturating_sub(file.saved) > TRUSTED.as_secs();
        let run = |entry: Entry| {
            let key = (entry.node.parse().ok()?, JobId::new(entry.job)?);
            let sluid = match entry.sluid {
                Some(text) => Some(text.parse().ok()?),
                None => None,
            };
            let mut run = Run::new(sluid, None).restarted_before(entry.restarts);
            run.cpu = entry.cpu;
            run.counts = entry.counts;
            run.parts = entry.parts;
            run.trail = Some(Box::new(Trail {
                io: IoLedger::resumed(entry.io.clone()),
                threads: ThreadLedger::resumed(entry.threads),
                ..Trail::default()
            }));
            run.bases = (entry.io, entry.threads);
            run.since = entry.since;
            run.idle_since = entry.idle_since;
            run.peaks = entry.peaks;
            run.same_directory_only = old;
            Some((key, run))
        };
        Ok(file.runs.into_iter().filter_map(run).collect())
    }

    /// Writes `runs` down, whole or not at all.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, runs: &BTreeMap<(NodeName, JobId), Run>) -> Result<(), String> {
        let runs = runs
            .iter()
            .map(|((node, job), run)| Entry {
                node: node.to_string(),
                job: job.get(),
                sluid: run.sluid.map(|sluid| sluid.to_string()),
                restarts: run.restarts(),
                since: run.since,
                idle_since: run.idle_since,
                cpu: run.cpu.base(),
                counts: run.counts.clone(),
                parts: run.parts.clone(),
                io: run.bases.0.clone(),
                threads: run.bases.1,
                peaks: run.peaks,
            })
            .collect();
        let file = File { version: VERSION, boot: self.boot.clone(), saved: now(), runs };
        self.write(&file).map_err(|error| format!("{}: {error}", self.path.display()))
    }

    fn write(&self, file: &File) -> io::Result<()> {
        if let Some(dir) = self.path.parent() {
            fs::create_dir_all(dir)?;
        }
        let new = self.path.with_extension("new");
        let mut out = BufWriter::new(fs::File::create(&new)?);
        serde_json::to_writer(&mut out, file)?;
        out.flush()?;
        fs::rename(new, &self.path)
    }
}

/// Seconds since 1970; a clock that is not set makes every file an old one.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(u64::MAX, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::cgroup::{CpuStats, Generation};
    use crate::kernel::process::{Io, ProcessId};

    fn key() -> (NodeName, JobId) {
        ("n1".parse().unwrap(), "7".parse().unwrap())
    }

    fn seconds(seconds: u64) -> CpuStats {
        let time = Some(Duration::from_secs(seconds));
        CpuStats {
            total: time,
            cores: Some(vec![(0, Duration::from_secs(seconds))]),
            ..CpuStats::default()
        }
    }

    fn made(inode: u64) -> Generation {
        Generation { accounting: true, inode }
    }

    fn io(bytes: u64) -> Io {
        Io::from_counts([bytes; 6])
    }

    #[test]
    fn a_restarted_agent_goes_on_where_the_first_one_was() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::new(&dir.path().join("run/state.json"), None, Path::new("/proc"));
        assert!(state.load().unwrap().is_empty());

        let mut run = Run::new(None, None);
        let mut trail = Trail::default();
        run.cpu.observe(seconds(30), made(1));
        run.cpu.observe(seconds(5), made(2));
        let ended = ProcessId { pid: 1, started: 1 };
        let live = ProcessId { pid: 2, started: 2 };
        for met in [vec![ended, live], vec![live]] {
            trail.io.begin(2);
            for id in met {
                trail.io.see(id, 99, io(100));
            }
            trail.io.finish();
        }
        run.bases.0 = trail.io.base();
        state.save(&BTreeMap::from([(key(), run)])).unwrap();

        let mut run = state.load().unwrap().remove(&key()).unwrap();
        // The directory is the one that was seen last: its 5 s are in its present 6.
        let cpu = run.cpu.observe(seconds(6), made(2));
        assert_eq!(cpu.total, Some(Duration::from_secs(36)));
        assert_eq!(cpu.cores, Some(vec![(0, Duration::from_secs(36))]));
        let mut trail = run.trail.take().unwrap();
        trail.io.begin(2);
        trail.io.see(live, 99, io(150));
        assert_eq!(trail.io.finish().rchar, 250);
    }

    #[test]
    fn another_boot_another_form_and_half_a_file_are_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.json");
        let state = State::new(&path, None, Path::new("/proc"));
        state.save(&BTreeMap::from([(key(), Run::default())])).unwrap();
        assert_eq!(state.load().unwrap().len(), 1);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace(&state.boot, "another")).unwrap();
        assert!(state.load().unwrap().is_empty());
        fs::write(&path, text.replace("\"version\":2", "\"version\":1")).unwrap();
        assert!(state.load().unwrap().is_empty());
        fs::write(&path, &text).unwrap();
        assert!(!state.load().unwrap()[&key()].same_directory_only);
        let saved = format!("\"saved\":{}", now());
        let long_ago = text.replace(&saved[..saved.len() - 4], "\"saved\":1000");
        fs::write(&path, long_ago).unwrap();
        assert!(state.load().unwrap()[&key()].same_directory_only);
        fs::write(&path, &text[..text.len() / 2]).unwrap();
        assert!(state.load().unwrap_err().contains("state.json"));
    }
}
