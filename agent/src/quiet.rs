//! The agent out of the way of the jobs: a low priority, and cores that it stays on.
//!
//! Both belong to a thread, and threads that it starts later have them too: to be called first of
//! all, before any other thread is there.

use std::io;
use std::path::Path;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use preempt_rt::sched::{self, PreemptRtError, Scheduler, SchedulerParams};

use crate::kernel::{cpu_set, file, thread};

/// How readily the agent gives way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// As it was started.
    #[default]
    Normal,
    /// With this niceness, from 1 to 19, or with the one that it was started with if that is more.
    Nice(u8),
    /// Only where no other thread wants to run. On a node whose cores are all busy, scans are late.
    Idle,
}

/// Why the agent is not as quiet as it should be.
#[derive(Debug, thiserror::Error)]
pub enum NotQuiet {
    /// There is no such niceness.
    #[error("niceness {0}: must be from 1 (a little) to 19 (the most)")]
    Niceness(u8),
    /// No core is left to run on.
    #[error("no core to stay on: name one at least, or leave the list out")]
    NoCore,
    /// Some cores are not to be had.
    #[error(
        "cores {0:?} are not on this host or not open to the agent: choose others, or let CPUAffinity= and AllowedCPUs= of its unit have them"
    )]
    Cores(Vec<u32>),
    /// The kernel said no.
    #[error(
        "cannot set {what}: {source}: allow it (SystemCallFilter= with @resources), or set Nice=, CPUSchedulingPolicy= and CPUAffinity= in the agent's unit instead"
    )]
    Refused {
        /// What should have been set.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// Lowers the priority of the calling thread, and keeps it on `cores` if there is a list.
///
/// # Errors
/// If the kernel does not do it, or not all of it; what it did stays.
pub fn apply(priority: Priority, cores: Option<&[u32]>) -> Result<(), NotQuiet> {
    lower(priority)?;
    cores.map_or(Ok(()), stay_on)
}

fn lower(priority: Priority) -> Result<(), NotQuiet> {
    match priority {
        Priority::Normal => Ok(()),
        Priority::Nice(niceness @ 1..=19) => {
            let refused =
                |error: rustix::io::Errno| NotQuiet::Refused { what: "Nice", source: error.into() };
            let now = rustix::process::getpriority_process(None).map_err(refused)?;
            // To raise it again needs privileges, and whoever started the agent so meant it.
            if now >= i32::from(niceness) {
                return Ok(());
            }
            rustix::process::setpriority_process(None, niceness.into()).map_err(refused)
        }
        Priority::Nice(niceness) => Err(NotQuiet::Niceness(niceness)),
        Priority::Idle => {
            let idle = SchedulerParams { priority: 0 };
            sched::set_scheduler(sched::Pid::current_thread(), Scheduler::SCHED_IDLE, idle).map_err(
                |error| NotQuiet::Refused {
                    what: "the idle policy",
                    source: match error {
                        PreemptRtError::Errno(errno) => io::Error::from_raw_os_error(errno),
                        other => io::Error::other(other),
                    },
                },
            )
        }
    }
}

fn stay_on(cores: &[u32]) -> Result<(), NotQuiet> {
    if cores.is_empty() {
        return Err(NotQuiet::NoCore);
    }
    let mut set = CpuSet::new();
    // The C library's set ends at 1024.
    let mut put = |core: u32| set.set(usize::try_from(core).ok()?).ok();
    let beyond: Vec<u32> = cores.iter().copied().filter(|core| put(*core).is_none()).collect();
    if !beyond.is_empty() {
        return Err(NotQuiet::Cores(beyond));
    }
    let what = "the cores to stay on";
    match sched_setaffinity(Pid::from_raw(0), &set) {
        Ok(()) => {}
        Err(nix::errno::Errno::EINVAL) => return Err(NotQuiet::Cores(cores.to_vec())),
        Err(error) => return Err(NotQuiet::Refused { what, source: error.into() }),
    }
    // The kernel leaves out in silence what is not to be had, as long as one core is left.
    let got = own_cpus().map_err(|source| NotQuiet::Refused { what, source })?;
    let missing: Vec<u32> = cores.iter().copied().filter(|core| !got.contains(*core)).collect();
    if missing.is_empty() { Ok(()) } else { Err(NotQuiet::Cores(missing)) }
}

/// Where the calling thread may run. Not by the system call of that name: it fails where the
/// kernel knows more CPUs than the C library's set holds.
fn own_cpus() -> io::Result<cpu_set::CpuSet> {
    let path = Path::new("/proc/thread-self/status");
    file::bytes(path, |bytes| thread::parse(path, 0, bytes))
        .flatten()
        .map(|own| own.cpus)
        .map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `work` on a thread of its own, which may do to itself what it likes.
    fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
        std::thread::spawn(work).join().unwrap()
    }

    /// Niceness and policy of the calling thread as the kernel tells them: fields 19 and 41.
    fn own_priority() -> (i64, u64) {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        (fields[19 - 3].parse().unwrap(), fields[41 - 3].parse().unwrap())
    }

    #[test]
    fn a_nice_thread_is_nice_and_so_are_those_it_starts() {
        let before = own_priority();
        let after = aside(|| {
            apply(Priority::Nice(19), None).unwrap();
            // Less than it is: it stays.
            apply(Priority::Nice(1), None).unwrap();
            [own_priority(), aside(own_priority)]
        });
        assert_eq!(after, [(19, before.1); 2]);
        assert_eq!(own_priority(), before, "the thread that did not ask is as it was");
    }

    #[test]
    fn an_idle_thread_has_the_idle_policy_and_so_have_those_it_starts() {
        const SCHED_IDLE: u64 = 5;
        let (niceness, _) = own_priority();
        let after = aside(|| {
            apply(Priority::Idle, None).unwrap();
            [own_priority(), aside(own_priority)]
        });
        assert_eq!(after, [(niceness, SCHED_IDLE); 2]);
    }

    #[test]
    fn a_normal_thread_is_as_it_was() {
        let before = own_priority();
        let after = aside(|| {
            apply(Priority::Normal, None).unwrap();
            own_priority()
        });
        assert_eq!(after, before);
    }

    #[test]
    fn a_thread_stays_on_its_cores_and_so_do_those_it_starts() {
        let core = (0..cpu_set::MOST).find(|core| own_cpus().unwrap().contains(*core)).unwrap();
        let after = aside(move || {
            apply(Priority::Normal, Some(&[core])).unwrap();
            [own_cpus().unwrap(), aside(|| own_cpus().unwrap())]
        });
        assert_eq!(after, [(); 2].map(|()| [core].into_iter().collect()));
    }

    #[test]
    fn what_cannot_be_says_what_to_do() {
        let core = (0..cpu_set::MOST).find(|core| own_cpus().unwrap().contains(*core)).unwrap();
        let table = [
            (Priority::Nice(0), None, "niceness 0: must be from 1"),
            (Priority::Nice(20), None, "niceness 20: must be from 1"),
            (Priority::Normal, Some(vec![]), "name one at least"),
            (Priority::Normal, Some(vec![core, 1023]), "cores [1023] are not on this host"),
            (Priority::Normal, Some(vec![1023]), "cores [1023] are not on this host"),
            (Priority::Normal, Some(vec![core, 5000]), "cores [5000] are not on this host"),
        ];
        for (priority, cores, words) in table {
            let message = aside(move || apply(priority, cores.as_deref()).unwrap_err().to_string());
            assert!(message.contains(words), "{message}");
        }
    }
}
