//! What a slurmstepd says of itself: the way from a SLUID in a cgroup path to a job id.

use crate::id::{JobId, NodeName, StepId};

/// Reads the title of a slurmstepd process, `slurmstepd: [1234.batch]`; more may follow.
///
/// `None` for any other command line, and for `slurmstepd infinity`, which is of no job.
#[must_use]
pub fn title(command_line: &str) -> Option<(JobId, StepId)> {
    let rest = command_line.strip_prefix("slurmstepd: [")?;
    let (name, _) = rest.split_once(']')?;
    let (job, step) = name.split_once('.')?;
    Some((job.parse().ok()?, bare_step(step)?))
}

fn bare_step(text: &str) -> Option<StepId> {
    let step: StepId = text.parse().ok()?;
    (!text.starts_with("step_")).then_some(step)
}

/// Reads the name of a slurmstepd's socket in SlurmdSpoolDir, `<node>_<job>.<step>[.<component>]`,
/// with the step as a raw number. The node's name may have underscores itself.
#[must_use]
pub fn socket(name: &str) -> Option<(NodeName, JobId, StepId)> {
    let (node, rest) = name.rsplit_once('_')?;
    let mut numbers = rest.split('.');
    let job = numbers.next()?.parse().ok()?;
    let step = super::number::canonical_u32(numbers.next()?)?;
    let component = match numbers.next() {
        Some(text) => Some(super::number::canonical_u32(text)?),
        None => None,
    };
    if numbers.next().is_some() {
        return None;
    }
    let step = StepId::from_raw(step, component)?;
    Some((NodeName::new(node).ok()?, job, step))
}

#[cfg(test)]
mod tests {
    use super::{socket, title};
    use crate::id::StepId;
    use proptest::prelude::*;

    #[test]
    fn titles() {
        let cases = [
            ("slurmstepd: [1234.batch]", Some((1234, StepId::Batch))),
            ("slurmstepd: [1234.extern]", Some((1234, StepId::Extern))),
            ("slurmstepd: [7.0]", Some((7, StepId::new(0)))),
            ("slurmstepd: [7.interactive] stepmgr", Some((7, StepId::Interactive))),
            ("slurmstepd: [7.0+1]", Some((7, StepId::Number { step: 0, het: Some(1) }))),
            ("/usr/sbin/slurmstepd infinity", None),
            ("slurmstepd: [7]", None),
            ("slurmstepd: [0.batch]", None),
            ("slurmstepd: [7.step_batch]", None),
            ("slurmstepd: [7.batch", None),
            ("vi slurmstepd: [7.batch]", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let read = title(text).map(|(job, step)| (job.get(), step));
            assert_eq!(read, expected, "{text:?}");
        }
    }

    #[test]
    fn sockets() {
        let cases = [
            ("n1_1234.4294967291", Some(("n1", 1234, StepId::Batch))),
            ("gpu_node_01_5.0", Some(("gpu_node_01", 5, StepId::new(0)))),
            ("n1.site_5.3.1", Some(("n1.site", 5, StepId::Number { step: 3, het: Some(1) }))),
            ("n1_5.4294967294", None),
            ("n1_5", None),
            ("_5.0", None),
            ("n1_5.0.1.2", None),
            ("n1_x.0", None),
            ("cred_state", None),
            ("slurmd.pid", None),
        ];
        for (text, expected) in cases {
            let read = socket(text);
            let read = read.as_ref().map(|(n, job, step)| (n.as_str(), job.get(), *step));
            assert_eq!(read, expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC*|slurmstepd: \\[[0-9.+a-z]{0,12}\\]|[a-z_.0-9]{0,20}") {
            let _ = title(&text);
            let _ = socket(&text);
        }
    }
}
