//! Slurm: `slurm[_N]/uid_U/job_J/step_S/task_T` on v1, `[N_]slurmstepd.scope/J/step_S/…` on v2.

use steward_common::id::StepId;
use steward_common::slurm::cgroup_path::{self, Version};

use super::{Directory, Scheduler, Share};

/// Users own what is below this; a scope that they make there is not Slurm's.
const OF_USERS: &str = "user.slice";

/// Every layout that Slurm has had, without a flag.
#[derive(Clone, Copy, Debug)]
pub struct Slurm;

impl Scheduler for Slurm {
    fn directory(&self, version: Version, path: &[&str]) -> Directory {
        if path.contains(&OF_USERS) {
            return Directory::Foreign;
        }
        // The outermost scope is that of this host; one inside a job is the job's own affair. The
        // other version's names mean nothing in this tree.
        let scope = path.iter().enumerate().find_map(|(at, name)| {
            let scope = cgroup_path::scope_dir(name).filter(|scope| scope.version == version)?;
            Some((scope, path.get(at + 1..)?))
        });
        let Some((scope, below)) = scope else { return Directory::Above };
        match below {
            [] => Directory::Scope(scope.node),
            [name] => match (cgroup_path::job_dir(name), cgroup_path::uid_dir(name)) {
                (Some(job), _) => Directory::Job(job, None),
                (None, Some(_)) => Directory::Above,
                (None, None) => Directory::Foreign,
            },
            [user, name] => match (cgroup_path::uid_dir(user), cgroup_path::job_dir(name)) {
                (Some(uid), Some(job)) => Directory::Job(job, Some(uid)),
                _ => Directory::Foreign,
            },
            _ => Directory::Foreign,
        }
    }

    fn share(&self, version: Version, path: &[&str]) -> Option<Share> {
        let step = path.first().map(|name| cgroup_path::step_dir(name));
        match (version, path, step) {
            // v1 allows processes in every directory.
            (Version::V1, _, Some(Some(StepId::Extern))) => Some(Share::Extern),
            (Version::V1, _, _) => Some(Share::Job),
            (Version::V2, [_, "slurm", ..], Some(Some(_))) => Some(Share::Daemon),
            (Version::V2, [_, _, ..], Some(Some(StepId::Extern))) => Some(Share::Extern),
            (Version::V2, [_, _, ..], Some(Some(_))) => Some(Share::Job),
            (Version::V2, _, _) => None,
        }
    }

    fn keeps_idle_jobs(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steward_common::slurm::cgroup_path::JobDir;

    fn directory(version: Version, path: &str) -> Directory {
        Slurm.directory(version, &path.split('/').collect::<Vec<_>>())
    }

    fn job(id: u32, uid: Option<u32>) -> Directory {
        let id = steward_common::id::JobId::new(id).unwrap();
        Directory::Job(JobDir::Id(id), uid.map(steward_common::id::Uid::new))
    }

    #[test]
    fn every_layout_is_told_from_what_stands_beside_it() {
        use Version::{V1, V2};
        let node = |name: &str| Directory::Scope(Some(name.parse().unwrap()));
        for (version, path, expected) in [
            (V1, "slurm", Directory::Scope(None)),
            (V1, "slurm_n1", node("n1")),
            (V1, "slurm_n1/uid_1001", Directory::Above),
            (V1, "slurm_n1/uid_1001/job_3", job(3, Some(1001))),
            (V1, "slurm_n1/uid_1001/job_3/step_0", Directory::Foreign),
            (V1, "kubepods/pod1/slurm/uid_7/job_3", job(3, Some(7))),
            (V2, "slurm", Directory::Above),
            (V2, "system.slice", Directory::Above),
            (V2, "system.slice/slurmstepd.scope", Directory::Scope(None)),
            (V2, "own.slice/n1_slurmstepd.scope", node("n1")),
            (V2, "system.slice/slurmstepd.scope/job_3", job(3, None)),
            (V2, "system.slice/slurmstepd.scope/system", Directory::Foreign),
            (V2, "system.slice/slurmstepd.scope/slurmd", Directory::Foreign),
            (V2, "user.slice/slurmstepd.scope/job_3", Directory::Foreign),
            (V1, "system.slice/slurmstepd.scope", Directory::Above),
        ] {
            assert_eq!(directory(version, path), expected, "{path}");
        }
        let sluid = directory(V2, "system.slice/slurmstepd.scope/s5K1KKYAYG5D00");
        assert!(matches!(sluid, Directory::Job(JobDir::Sluid(_), None)));
    }

    #[test]
    fn the_daemon_the_placeholder_and_the_job_are_told_apart() {
        let share = |version, path: &str| {
            Slurm.share(version, &path.split('/').filter(|n| !n.is_empty()).collect::<Vec<_>>())
        };
        for (path, expected) in [
            ("", None),
            ("step_0", None),
            ("step_0/slurm", Some(Share::Daemon)),
            ("step_0/user", Some(Share::Job)),
            ("step_0/user/task_special", Some(Share::Job)),
            ("step_extern/user/task_0", Some(Share::Extern)),
            ("step_extern/slurm", Some(Share::Daemon)),
            ("else/user", None),
        ] {
            assert_eq!(share(Version::V2, path), expected, "{path}");
        }
        assert_eq!(share(Version::V1, ""), Some(Share::Job));
        assert_eq!(share(Version::V1, "step_batch/task_0"), Some(Share::Job));
        assert_eq!(share(Version::V1, "step_extern/task_0"), Some(Share::Extern));
    }
}
