//! Job directories of a test's own, made in the real hierarchy beside Slurm's.

use std::process::{Child, Command};

use cgroups_rs::CgroupPid;
use cgroups_rs::fs::{Cgroup, hierarchies};

/// A job directory with one step, and real processes in it; dropping it removes both.
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
        let parts = if hierarchies::is_cgroup2_unified_mode() {
            let scope = format!("system.slice/{node}_slurmstepd.scope");
            vec![scope, format!("job_{job}"), "step_batch".to_owned(), "user".to_owned()]
        } else {
            let scope = format!("slurm_{node}");
            vec![scope, format!("uid_{uid}"), format!("job_{job}"), "step_batch".to_owned()]
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
        let pid = CgroupPid::from(u64::from(child.id()));
        let step = self.cgroups.last().unwrap_or_else(|| panic!("no step"));
        step.add_task_by_tgid(pid).unwrap_or_else(|error| panic!("cgroup.procs: {error}"));
        self.processes.push(child);
    }
}

impl Drop for JobGroup {
    fn drop(&mut self) {
        for child in &mut self.processes {
            // Already gone is as good.
            let _gone = child.kill();
            let _reaped = child.wait();
        }
        // Innermost first. A directory that another test still uses stays until that one ends.
        while let Some(cgroup) = self.cgroups.pop() {
            let _busy = cgroup.delete();
        }
    }
}
