//! `squeue --json`.

use std::io::Read;
use std::sync::Arc;

use serde::Deserializer;
use serde::de::MapAccess;
use steward_common::cluster::CurrentJob;
use steward_common::cluster::draft::{Desk, Draft, Figure};
use steward_common::cluster::words::Words;

use super::answer::{self, JsonError, Records, narrow, understood};
use super::value::Take;

/// What is read of a job beside its draft: the state, which newer versions list with its flags.
#[derive(Default)]
struct Raw {
    draft: Draft,
    states: States,
}

#[derive(Default)]
struct States(Vec<Arc<str>>);

impl Take for States {
    fn take<'de, M: MapAccess<'de>>(map: &mut M, words: &mut Words) -> Result<Self, M::Error> {
        Take::take(map, words).map(States)
    }
}

/// States that say how a run is or ended; the others are flags, of which squeue shows the first in
/// place of the state.
const BASE: [&str; 12] = [
    "PENDING",
    "RUNNING",
    "SUSPENDED",
    "COMPLETED",
    "CANCELLED",
    "FAILED",
    "TIMEOUT",
    "NODE_FAIL",
    "PREEMPTED",
    "BOOT_FAIL",
    "DEADLINE",
    "OUT_OF_MEMORY",
];

impl States {
    fn shown(self) -> Arc<str> {
        let flag = self.0.iter().find(|word| !BASE.contains(&&***word));
        flag.or(self.0.first()).cloned().unwrap_or_default()
    }
}

narrow! {
    RawVisitor for Raw {
        "account" Account => draft.account;
        "allocating_node" AllocatingNode => draft.submit_host;
        "array_job_id" ArrayJobId => draft.array_job;
        "array_task_id" ArrayTaskId => draft.array_task;
        "array_task_string" ArrayTaskString => draft.array_tasks;
        "cpus" Cpus => draft.cpus;
        "dependency" Dependency => draft.dependency;
        "eligible_time" EligibleTime => draft.eligible;
        "end_time" EndTime => draft.end;
        "features" Features => draft.features;
        "gres_detail" GresDetail => draft.gres;
        "het_job_id" HetJobId => draft.het_job;
        "het_job_offset" HetJobOffset => draft.het_offset;
        "job_id" JobId => draft.id;
        "job_state" JobState => states;
        "licenses" Licenses => draft.licences;
        "name" Name => draft.name;
        "node_count" NodeCount => draft.node_count;
        "nodes" Nodes => draft.nodes;
        "partition" Partition => draft.partition;
        "priority" Priority => draft.priority;
        "qos" Qos => draft.qos;
        "restart_cnt" RestartCnt => draft.restarts;
        "resv_name" ResvName => draft.reservation;
        "start_time" StartTime => draft.start;
        "state_description" StateDescription => draft.description;
        "state_reason" StateReason => draft.reason;
        "submit_time" SubmitTime => draft.submitted;
        "time_limit" TimeLimit => draft.time_limit;
        "tres_alloc_str" TresAlloc => draft.tres_alloc;
        "tres_per_job" TresPerJob => draft.gres_per_job;
        "tres_per_node" TresPerNode => draft.gres_per_node;
        "tres_per_task" TresPerTask => draft.gres_per_task;
        "tres_req_str" TresReq => draft.tres_req;
        "user_id" UserId => draft.uid;
        "user_name" UserName => draft.user;
    }
}

#[derive(Default)]
struct Jobs(Desk);

impl Records for Jobs {
    type Item = CurrentJob;

    fn record<'de, D: Deserializer<'de>>(&mut self, record: D) -> Result<CurrentJob, D::Error> {
        let Raw { mut draft, states } = record.deserialize_map(RawVisitor(&mut self.0.words))?;
        draft.state = states.shown();
        // Version 0.0.38 writes Slurm's own numbers for "none" and "no limit".
        if let Figure::At(minutes) = draft.time_limit {
            draft.time_limit = Figure::from_u32(minutes);
        }
        understood(self.0.job(draft))
    }
}

/// Reads the queue from the pipe.
///
/// # Errors
/// If it is no such answer; an answer that was cut off is none.
pub fn read(from: impl Read) -> Result<Vec<CurrentJob>, JsonError> {
    answer::read(from, "jobs", Jobs::default())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use steward_common::cluster::queue;
    use steward_common::limit::Limit;

    use super::*;

    /// Recorded from the testbed: see the README beside them.
    macro_rules! recorded {
        ($name:literal) => {
            include_str!(concat!("../../../../../tests/fixtures/snapshot-slurm-22.05/", $name))
        };
    }

    #[test]
    fn the_queue_of_slurm_22_05() {
        let jobs = read(recorded!("squeue.json").as_bytes()).unwrap();
        let mut tasks: BTreeMap<&str, u64> = BTreeMap::new();
        for job in &jobs {
            *tasks.entry(job.state.name()).or_default() += job.tasks();
        }
        let counted = recorded!("squeue-states.txt").lines().map(|line| {
            let (count, state) = line.trim().split_once(' ').unwrap();
            (state, count.parse().unwrap())
        });
        assert_eq!(tasks, counted.collect());
    }

    #[test]
    fn json_and_text_tell_the_same() {
        let by_id = |jobs: Vec<CurrentJob>| -> BTreeMap<_, _> {
            jobs.into_iter().map(|job| (job.id, job)).collect()
        };
        let json = by_id(read(recorded!("squeue.json").as_bytes()).unwrap());
        let text = by_id(queue::parse(recorded!("squeue.txt")).unwrap());
        assert_eq!(json.keys().collect::<Vec<_>>(), text.keys().collect::<Vec<_>>());
        for (id, json) in &json {
            let text = &text[id];
            let same = |job: &CurrentJob| {
                let mut job = job.clone();
                // Text alone has it; and text has the words of an end too.
                job.submit_host = None;
                job.eligible = None;
                if job.state.is_ended() || job.state.is_pending() {
                    (job.start, job.end, job.tres) = (None, None, Arc::default());
                    job.array = job.array.filter(|_| !job.state.is_ended());
                }
                job
            };
            assert_eq!(same(json), same(text));
        }
    }

    #[test]
    fn a_queue_after_everything_was_cancelled() {
        let jobs = read(recorded!("squeue-ended.json").as_bytes()).unwrap();
        assert!(jobs.iter().all(|job| job.state.is_ended() || job.holds_nodes()), "{jobs:?}");
    }

    /// As Slurm 23.11 and later write them (data parser 0.0.40).
    #[test]
    fn a_job_of_a_newer_slurm() {
        let text = r#"{"jobs":[{"job_id":9,"job_state":["RUNNING","COMPLETING"],"user_name":"a",
            "time_limit":{"set":true,"infinite":true,"number":0},
            "array_job_id":{"set":true,"infinite":false,"number":0},
            "array_task_id":{"set":false,"infinite":false,"number":0},
            "cpus":{"set":true,"infinite":false,"number":4},"allocating_node":"login1",
            "tres_alloc_str":"cpu=4,mem=8G,node=1,gres/gpu=2,gres/gpu:a100=2",
            "job_resources":{"nodes":{"list":"n1"}},"start_time":{"set":true,"number":1794827410}}],
            "warnings":[],"errors":[]}"#;
        let [job] = read(text.as_bytes()).unwrap().try_into().unwrap();
        assert_eq!(job.state.name(), "COMPLETING");
        assert_eq!((job.time_limit, job.cpus), (Some(Limit::Unlimited), Some(4)));
        assert_eq!(job.array, None);
        assert_eq!(job.gpus.by_type, [("a100".into(), 2)]);
        assert_eq!(job.submit_host.as_deref(), Some("login1"));
        assert_eq!(job.memory.unwrap().get(), 8 << 30);
        let later = job.start.unwrap().after(Duration::from_secs(5));
        assert_eq!(job.elapsed(later), Some(Duration::from_secs(5)));
    }

    #[test]
    fn what_is_no_queue_is_an_error_and_never_an_empty_one() {
        for (text, why) in [
            ("", "EOF"),
            ("{\"jobs\":[{\"job_id\":1}", "EOF"),
            ("{\"meta\":{}}", "no \"jobs\""),
            (
                "{\"jobs\":[],\"errors\":[{\"error\":\"timeout\",\"description\":\"x\"}]}",
                "timeout: x",
            ),
            ("{\"jobs\":[{\"job_id\":0}]}", "job id"),
            ("squeue: error", "expected"),
        ] {
            let error = read(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(why), "{text:?}: {error}");
        }
        assert_eq!(read("{\"jobs\":[]}".as_bytes()).unwrap(), []);
    }
}
