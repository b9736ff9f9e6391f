//! Where in Slurm's tree of control groups a path is.
//!
//! Below a scope directory, version 1 has `uid_U/job_J/step_S/task_T`, version 2 has
//! `J/step_S/slurm` and `J/step_S/user/task_T`, where `J` is `job_<id>` or, since Slurm 26.05, a
//! SLUID. What stands before the scope differs between sites (a slice of any name, the groups of a
//! container) and does not matter.

use super::number::canonical_u32;
use super::sluid::Sluid;
use crate::id::{JobId, NodeName, StepId, Uid};

/// The version of control groups that a layout belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// One tree for each controller.
    V1,
    /// One tree for all.
    V2,
}

/// The directory that holds all jobs of one slurmd.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Scope {
    /// The version that names its scope so.
    pub version: Version,
    /// The node, where several slurmd share a host.
    pub node: Option<NodeName>,
}

/// What names a job in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobDir {
    /// Its id: `job_123`.
    Id(JobId),
    /// The name of its run: `s5K1KKYAYG5D00`.
    Sluid(Sluid),
}

/// A task of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Task {
    /// `task_0`.
    Number(u32),
    /// `task_special`: processes of the step that belong to no task of it.
    Special,
}

/// The innermost directory of Slurm's that a path enters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// The job.
    Job,
    /// The step.
    Step,
    /// The step's slurmstepd: `slurm`.
    StepSlurm,
    /// The step's user processes: `user`.
    User,
    /// A task.
    Task,
}

/// A place in the tree of a job.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CgroupPlace {
    /// The scope.
    pub scope: Scope,
    /// The user, whom only version 1 names.
    pub uid: Option<Uid>,
    /// The job.
    pub job: JobDir,
    /// The step, if the path enters one.
    pub step: Option<StepId>,
    /// The task, if the path enters one.
    pub task: Option<Task>,
    /// The innermost directory of Slurm's.
    pub part: Part,
    /// Whether the path goes on from there, into groups that the job made itself.
    pub below: bool,
}

/// A path at or below a scope.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Found {
    /// In a job.
    Job(CgroupPlace),
    /// The scope itself.
    Scope(Scope),
    /// A user's directory in version 1, which holds jobs.
    Uid(Scope, Uid),
    /// `system` or `slurmd` in the scope: Slurm's own processes, of no job.
    Slurm(Scope),
}

impl Found {
    /// The place in a job, if it is one.
    #[must_use]
    pub fn job(self) -> Option<CgroupPlace> {
        match self {
            Found::Job(place) => Some(place),
            _ => None,
        }
    }
}

/// Finds out what a path is: relative to a mount of control groups, or absolute. `None` if it is
/// not in a scope of Slurm, or in one but in no directory that Slurm makes there.
///
/// In nested scopes (Slurm run inside a job) the outermost counts, which is that of this host.
#[must_use]
pub fn parse(path: &str) -> Option<Found> {
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    names.iter().enumerate().find_map(|(at, name)| {
        let scope = scope_dir(name)?;
        below_scope(scope, names.get(at + 1..)?)
    })
}

fn below_scope(scope: Scope, names: &[&str]) -> Option<Found> {
    let (uid, names) = match (scope.version, names) {
        (_, []) => return Some(Found::Scope(scope)),
        (Version::V1, [uid, rest @ ..]) => (Some(uid_dir(uid)?), rest),
        (Version::V2, ["system" | "slurmd", ..]) => return Some(Found::Slurm(scope)),
        (Version::V2, rest) => (None, rest),
    };
    let (job, names) = match (uid, names) {
        (Some(uid), []) => return Some(Found::Uid(scope, uid)),
        (_, [job, rest @ ..]) => (job_dir(job)?, rest),
        (None, []) => return None,
    };
    let mut place =
        CgroupPlace { scope, uid, job, step: None, task: None, part: Part::Job, below: false };
    place.below = names.iter().try_for_each(|name| enter(&mut place, name)).is_none();
    Some(Found::Job(place))
}

/// Goes into a directory of Slurm's; `None` if there is none of that name at this place.
fn enter(place: &mut CgroupPlace, name: &str) -> Option<()> {
    place.part = match (place.part, name) {
        (Part::Job, name) => {
            place.step = Some(step_dir(name)?);
            Part::Step
        }
        (Part::Step, "slurm") => Part::StepSlurm,
        (Part::Step, "user") => Part::User,
        (Part::Step | Part::User, name) => {
            place.task = Some(task_dir(name)?);
            Part::Task
        }
        (Part::StepSlurm | Part::Task, _) => return None,
    };
    Some(())
}

/// `slurm`, `slurm_n1`, `slurmstepd.scope`, `n1_slurmstepd.scope`.
#[must_use]
pub fn scope_dir(name: &str) -> Option<Scope> {
    let scope = |version, node| Some(Scope { version, node });
    match name {
        "slurm" => return scope(Version::V1, None),
        "slurmstepd.scope" => return scope(Version::V2, None),
        _ => {}
    }
    if let Some(node) = name.strip_suffix("_slurmstepd.scope") {
        return scope(Version::V2, Some(NodeName::new(node).ok()?));
    }
    let node = name.strip_prefix("slurm_")?;
    if is_systemd_unit(node) {
        return None;
    }
    scope(Version::V1, Some(NodeName::new(node).ok()?))
}

/// `slurm_exporter.service` is a unit beside Slurm's scope, not the scope of a node.
fn is_systemd_unit(name: &str) -> bool {
    let kinds = [".service", ".scope", ".slice", ".socket", ".mount", ".d"];
    kinds.iter().any(|kind| name.ends_with(kind))
}

/// `uid_1000`.
#[must_use]
pub fn uid_dir(name: &str) -> Option<Uid> {
    name.strip_prefix("uid_")?.parse().ok()
}

/// `job_123` or a SLUID as Slurm writes it.
#[must_use]
pub fn job_dir(name: &str) -> Option<JobDir> {
    match name.strip_prefix("job_") {
        Some(id) => id.parse().ok().map(JobDir::Id),
        None => Sluid::from_canonical(name).map(JobDir::Sluid),
    }
}

/// `step_batch`, `step_0`, `step_0+1`.
#[must_use]
pub fn step_dir(name: &str) -> Option<StepId> {
    let step = name.strip_prefix("step_")?;
    if step.starts_with("step_") {
        return None;
    }
    step.parse().ok()
}

/// `task_0`, `task_special`.
#[must_use]
pub fn task_dir(name: &str) -> Option<Task> {
    match name.strip_prefix("task_")? {
        "special" => Some(Task::Special),
        number => canonical_u32(number).map(Task::Number),
    }
}

#[cfg(test)]
mod tests;
