//! Job directories of a test's own, made in the real hierarchy beside Slurm's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use cgroups_rs::CgroupPid;
use cgroups_rs::fs::{Cgroup, hierarchies};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long to wait before looking again whether the killed are gone.
const PAUSE: Duration = Duration::from_millis(100);

/// A job directory with one step, and real processes in it; dropping it removes both, and what is
/// above if nobody else uses it.
#[derive(Debug)]
pub struct JobGroup {
    cgroups: Vec<Cgroup>,
    processes: Vec<Child>,
}

impl JobGroup {
    /// Makes `job` of node `node`, laid out as Slurm 22.05 does on this hierarchy.
    ///
    /// # Panics
    /// If the kernel refuses.
    pub fn make(node: &str, uid: u32, job: u32) -> Self {
        Self::make_step(node, uid, job, "step_batch")
    }

    /// The same for another step of the job.
    ///
    /// # Panics
    /// If the kernel refuses.
    pub fn make_step(node: &str, uid: u32, job: u32, step: &str) -> Self {
        let parts = if hierarchies::is_cgroup2_unified_mode() {
            let scope = format!("system.slice/{node}_slurmstepd.scope");
            vec![scope, format!("job_{job}"), step.to_owned(), "user".to_owned()]
        } else {
            let scope = format!("slurm_{node}");
            vec![scope, format!("uid_{uid}"), format!("job_{job}"), step.to_owned()]
        };
        let mut path = String::new();
        let mut cgroups = Vec::new();
        for part in parts {
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(&part);
            let cgroup = Cgroup::new(hierarchies::auto(), path.clone())
                .unwrap_or_else(|error| panic!("cgroup {path}: {error}"));
            cgroups.push(cgroup);
        }
        Self { cgroups, processes: Vec::new() }
    }

    /// Starts `command` and moves it into the step.
    ///
    /// # Panics
    /// If that fails.
    pub fn add(&mut self, command: &mut Command) {
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let pid = child.id();
        self.processes.push(child);
        assert!(self.adopt(pid.into()), "{command:?} could not be moved");
    }

    /// The process that was added first.
    ///
    /// # Panics
    /// If there is none.
    pub fn first(&mut self) -> &mut Child {
        self.processes.first_mut().unwrap_or_else(|| panic!("no process"))
    }

    /// Moves a process into the step; false if it is gone.
    ///
    /// # Panics
    /// If there is no step any more.
    pub fn adopt(&self, pid: u64) -> bool {
        let step = self.cgroups.last().unwrap_or_else(|| panic!("no step"));
        step.add_task_by_tgid(CgroupPid::from(pid)).is_ok()
    }

    /// The processes in the step.
    pub fn pids(&self) -> Vec<u64> {
        let procs = self.cgroups.last().map(Cgroup::procs).unwrap_or_default();
        procs.into_iter().map(|pid| pid.pid).filter(|pid| *pid > 0).collect()
    }

    /// Ends all processes in the step, whoever started them, and removes its directory; with `last`
    /// that of the job too. What is above stays for other jobs.
    pub fn remove(mut self, last: bool) {
        self.kill();
        let job = if hierarchies::is_cgroup2_unified_mode() { 1 } else { 2 };
        let own = self.cgroups.split_off(if last { job } else { job + 1 });
        for cgroup in own.iter().rev() {
            let _busy = cgroup.delete();
        }
        self.cgroups.clear();
    }

    fn kill(&mut self) {
        for child in &mut self.processes {
            // Already gone is as good.
            let _gone = child.kill();
            let _reaped = child.wait();
        }
        let mut tries = 0..1000;
        while tries.next().is_some() && !self.pids().is_empty() {
            for pid in self.pids().into_iter().filter_map(|pid| i32::try_from(pid).ok()) {
                let _gone = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for JobGroup {
    fn drop(&mut self) {
        self.kill();
        // Innermost first. A directory that another test still uses stays until that one ends.
        while let Some(cgroup) = self.cgroups.pop() {
            let _busy = cgroup.delete();
        }
    }
}

/// Where v2 is mounted; on a hybrid host beside v1, where an agent looks only if it is told to.
pub fn unified_root() -> PathBuf {
    let beside = Path::new("/sys/fs/cgroup/unified");
    if beside.is_dir() { beside } else { Path::new("/sys/fs/cgroup") }.to_path_buf()
}

/// A v2 directory with processes in it; dropping it ends them all, whoever started them, and
/// removes the directories.
#[derive(Debug)]
pub struct UnifiedJob {
    path: PathBuf,
    dirs: Vec<PathBuf>,
    processes: Vec<Child>,
}

impl UnifiedJob {
    /// Makes the directories `parts`, each below the one before.
    ///
    /// # Panics
    /// If the kernel refuses.
    pub fn make(parts: &[&str]) -> Self {
        let mut job = Self { path: unified_root(), dirs: Vec::new(), processes: Vec::new() };
        for part in parts {
            job.path.push(part);
            job.dirs.push(job.path.clone());
        }
        fs::create_dir_all(&job.path)
            .unwrap_or_else(|error| panic!("{}: {error}", job.path.display()));
        job
    }

    /// Starts `command` and moves it into the innermost directory.
    ///
    /// # Panics
    /// If that fails.
    pub fn add(&mut self, command: &mut Command) -> u32 {
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let pid = child.id();
        self.processes.push(child);
        fs::write(self.path.join("cgroup.procs"), pid.to_string())
            .unwrap_or_else(|error| panic!("cgroup.procs: {error}"));
        pid
    }

    /// Its processes.
    pub fn pids(&self) -> Vec<i32> {
        let text = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }
}

impl Drop for UnifiedJob {
    fn drop(&mut self) {
        // A test that failed must not panic again here.
        let mut tries = 0..300;
        while tries.next().is_some() && !self.pids().is_empty() {
            for pid in self.pids() {
                // Already gone is as good.
                let _gone = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
            thread::sleep(PAUSE);
        }
        for child in &mut self.processes {
            let _reaped = child.wait();
        }
        // Innermost first. A directory that another test still uses stays until that one ends.
        while let Some(dir) = self.dirs.pop() {
            let _busy = fs::remove_dir(&dir);
        }
    }
}
