//! What Slurm wrote into the environment of a job's processes.
//!
//! A user can change it, so nothing here decides who is charged or which job a process belongs to.

use std::num::NonZeroU32;

use steward_common::slurm::gres;

use super::error::ReadError;
use super::process::ProcessId;
use super::risky::Risky;

/// The variables that the agent uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// SLURM_CLUSTER_NAME.
    pub cluster: Option<String>,
    /// SLURM_JOB_ID.
    pub job: Option<String>,
    /// SLURM_JOB_SLUID, from Slurm 25.11 on.
    pub sluid: Option<String>,
    /// SLURM_JOB_ACCOUNT.
    pub account: Option<String>,
    /// SLURM_JOB_PARTITION.
    pub partition: Option<String>,
    /// SLURM_ARRAY_JOB_ID.
    pub array_job: Option<String>,
    /// SLURM_ARRAY_TASK_ID.
    pub array_task: Option<String>,
    /// SLURM_RESTART_COUNT: absent in the first run of a job.
    pub restarts: Option<String>,
    /// The figure of SLURM_JOB_CPUS_PER_NODE if it is the same on all nodes, else
    /// SLURM_CPUS_ON_NODE, which within a step may be the step's.
    pub cpus: Option<NonZeroU32>,
    /// SLURM_JOB_GPUS, else SLURM_STEP_GPUS: Slurm's indices of the GPUs on this node.
    pub gpus: Option<Vec<u32>>,
}

/// A user may write anything into it; no node has more.
const MOST_GPUS: usize = 64;

/// Reads the environment of `process`: never of one in uninterruptible sleep, nor twice.
///
/// # Errors
/// If the process is gone, may not be read, or does not let itself be read in time.
pub fn read(risky: &mut Risky, process: ProcessId) -> Result<Environment, ReadError> {
    let bytes = risky.read(process, "environ")?;
    if bytes.is_empty() {
        // In the middle of an exec, or at its end.
        return Err(ReadError::Vanished { path: risky.path(process.pid, "environ") });
    }
    parse(&bytes).map_err(|found| {
        let path = risky.path(process.pid, "environ");
        ReadError::malformed(&path, "a list of GPU numbers", &found)
    })
}

fn parse(bytes: &[u8]) -> Result<Environment, String> {
    let all: Vec<(&[u8], &[u8])> = bytes
        .split(|byte| *byte == 0)
        .filter_map(|entry| {
            let equals = entry.iter().position(|byte| *byte == b'=')?;
            Some((entry.get(..equals)?, entry.get(equals + 1..)?))
        })
        .filter(|(name, _)| name.starts_with(b"SLURM_"))
        .collect();
    let value = |name: &str| -> Option<String> {
        let (_, text) = all.iter().find(|(key, _)| *key == name.as_bytes())?;
        (!text.is_empty()).then(|| String::from_utf8_lossy(text).into_owned())
    };
    let cpus = value("SLURM_JOB_CPUS_PER_NODE")
        .and_then(|text| same_on_all_nodes(&text))
        .or_else(|| value("SLURM_CPUS_ON_NODE").and_then(|text| text.parse().ok()));
    let gpus = match value("SLURM_JOB_GPUS").or_else(|| value("SLURM_STEP_GPUS")) {
        Some(text) => match gres::index_list(&text) {
            Ok(gpus) if gpus.len() <= MOST_GPUS => Some(gpus),
            _ => return Err(text),
        },
        None => None,
    };
    Ok(Environment {
        cluster: value("SLURM_CLUSTER_NAME"),
        job: value("SLURM_JOB_ID"),
        sluid: value("SLURM_JOB_SLUID"),
        account: value("SLURM_JOB_ACCOUNT"),
        partition: value("SLURM_JOB_PARTITION"),
        array_job: value("SLURM_ARRAY_JOB_ID"),
        array_task: value("SLURM_ARRAY_TASK_ID"),
        restarts: value("SLURM_RESTART_COUNT"),
        cpus,
        gpus,
    })
}

/// `4` or `4(x2)` is 4 on each node; `4,2` does not say which node this is.
fn same_on_all_nodes(text: &str) -> Option<NonZeroU32> {
    let count = match text.split_once("(x") {
        Some((count, times)) => {
            times.strip_suffix(')')?.parse::<u32>().ok()?;
            count
        }
        None => text,
    };
    count.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn environment(pairs: &[(&str, &str)]) -> Result<Environment, String> {
        let text: String = pairs.iter().map(|(key, value)| format!("{key}={value}\0")).collect();
        parse(text.as_bytes())
    }

    #[test]
    fn gpu_numbers_are_numbers_and_not_characters() {
        for (text, expected) in
            [("0,1,10", vec![0, 1, 10]), ("10", vec![10]), ("0-3", vec![0, 1, 2, 3])]
        {
            let found = environment(&[("SLURM_JOB_GPUS", text)]).unwrap();
            assert_eq!(found.gpus, Some(expected), "{text}");
        }
        assert_eq!(environment(&[]).unwrap().gpus, None);
        assert_eq!(environment(&[("SLURM_JOB_GPUS", "")]).unwrap().gpus, None);
        assert!(environment(&[("SLURM_JOB_GPUS", "GPU-a1b2")]).is_err());
        assert!(environment(&[("SLURM_JOB_GPUS", "0-4095")]).is_err());
    }

    #[test]
    fn the_job_wins_over_the_step() {
        let found = environment(&[("SLURM_STEP_GPUS", "1"), ("SLURM_JOB_GPUS", "0,1")]).unwrap();
        assert_eq!(found.gpus, Some(vec![0, 1]));
    }

    #[test]
    fn cpus_come_from_the_node_or_from_a_figure_that_holds_for_all_nodes() {
        for (pairs, expected) in [
            (vec![("SLURM_CPUS_ON_NODE", "4")], Some(4)),
            (vec![("SLURM_JOB_CPUS_PER_NODE", "2(x3)")], Some(2)),
            (vec![("SLURM_JOB_CPUS_PER_NODE", "8")], Some(8)),
            (vec![("SLURM_JOB_CPUS_PER_NODE", "4,2")], None),
            (vec![("SLURM_JOB_CPUS_PER_NODE", "4,2"), ("SLURM_CPUS_ON_NODE", "2")], Some(2)),
            (vec![("SLURM_CPUS_ON_NODE", "1"), ("SLURM_JOB_CPUS_PER_NODE", "8")], Some(8)),
            (vec![("SLURM_CPUS_ON_NODE", "0")], None),
            (vec![("SLURM_CPUS_ON_NODE", "many")], None),
            (vec![], None),
        ] {
            let cpus = environment(&pairs).unwrap().cpus.map(NonZeroU32::get);
            assert_eq!(cpus, expected, "{pairs:?}");
        }
    }

    proptest! {
        #[test]
        fn a_figure_holds_for_all_nodes_or_is_not_used(count: u32, times: u32, other: u32) {
            let expected = NonZeroU32::new(count);
            prop_assert_eq!(same_on_all_nodes(&count.to_string()), expected);
            prop_assert_eq!(same_on_all_nodes(&format!("{count}(x{times})")), expected);
            prop_assert_eq!(same_on_all_nodes(&format!("{count},{other}")), None);
            prop_assert_eq!(same_on_all_nodes(&format!("{count}(x{times}),{other}")), None);
            for bad in [format!("-{count}"), format!("{count}(x{times}"), format!("99999{count:010}")] {
                prop_assert_eq!(same_on_all_nodes(&bad), None);
            }
        }

        #[test]
        fn whatever_a_user_writes_there_are_few_gpus_and_texts_stay_as_they_are(
            gpus in "[0-9,-]{0,12}|\\PC{0,12}", cpus in "\\PC{0,8}|[0-9()x,]{0,8}",
            bytes in proptest::collection::vec(1_u8..=255, 0..12),
        ) {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let pairs: [(&str, &[u8]); 3] = [
                ("SLURM_JOB_GPUS", gpus.as_bytes()),
                ("SLURM_JOB_CPUS_PER_NODE", cpus.as_bytes()),
                ("SLURM_JOB_ACCOUNT", &bytes),
            ];
            let whole: Vec<u8> = pairs
                .iter()
                .flat_map(|(key, value)| [key.as_bytes(), b"=", value, b"\0"].concat())
                .collect();
            match parse(&whole) {
                Ok(read) => {
                    prop_assert_eq!(read.account, (!text.is_empty()).then_some(text));
                    prop_assert_eq!(read.gpus.is_none(), gpus.is_empty());
                    prop_assert!(read.gpus.is_none_or(|list| list.len() <= MOST_GPUS));
                    prop_assert_eq!((read.job, read.restarts, read.partition), (None, None, None));
                }
                Err(found) => prop_assert_eq!(found, gpus),
            }
        }
    }
}
