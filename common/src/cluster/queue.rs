//! The queue as text, for Slurm without JSON: `squeue -h -a -t all -O` with [`format()`], times as
//! seconds (`SLURM_TIME_FORMAT=%s`) and lists uncut (`SLURM_BITSTR_LEN=0`).

use std::sync::Arc;

use super::draft::{Desk, Draft, Figure};
use super::job::CurrentJob;
use crate::limit::Limit;
use crate::slurm::ParseError;
use crate::slurm::duration::{self, TimeLimit};
use crate::slurm::number::digits;

/// Ends a column; no name may hold it.
const COLUMN: char = '\u{1f}';

/// Ends a record; a job's name, the last column, may hold line breaks.
const RECORD: char = '\u{1e}';

/// Squeue's names of the columns, in the order of the reader below.
const COLUMNS: [&str; 32] = [
    "JobID",
    "ArrayJobID",
    "ArrayTaskID",
    "HetJobID",
    "HetJobOffset",
    "State",
    "Reason",
    "UserName",
    "UserID",
    "Account",
    "Partition",
    "QOS",
    "NumCPUs",
    "NumNodes",
    "NodeList",
    "TimeLimit",
    "SubmitTime",
    "EligibleTime",
    "StartTime",
    "EndTime",
    "PriorityLong",
    "Reservation",
    "Licenses",
    "Dependency",
    "Feature",
    "AllocNodes",
    "RestartCnt",
    "tres-alloc",
    "tres-per-job",
    "tres-per-node",
    "tres-per-task",
    "Name",
];

/// The argument of `squeue -O`.
#[must_use]
pub fn format() -> String {
    let mut format = String::new();
    for column in COLUMNS {
        let last = column == "Name";
        format.push_str(column);
        format.push(':');
        format.push(if last { RECORD } else { COLUMN });
        if !last {
            format.push(',');
        }
    }
    format
}

/// Reads the queue.
///
/// # Errors
/// If a record has not the columns that were asked for, or a figure is none.
pub fn parse(text: &str) -> Result<Vec<CurrentJob>, ParseError> {
    let mut desk = Desk::default();
    let mut jobs = Vec::new();
    for record in text.split(RECORD).map(|record| record.trim_start_matches('\n')) {
        if !record.is_empty() {
            jobs.push(parse_record(record, &mut desk)?);
        }
    }
    Ok(jobs)
}

fn parse_record(record: &str, desk: &mut Desk) -> Result<CurrentJob, ParseError> {
    let wrong = || ParseError::new("job", record, "a record of squeue with 32 columns");
    let columns: Vec<&str> = record.splitn(COLUMNS.len(), COLUMN).collect();
    let columns: [&str; COLUMNS.len()] = columns.try_into().map_err(|_| wrong())?;
    let [
        id,
        array_job,
        array_task,
        het_job,
        het_offset,
        state,
        reason,
        user,
        uid,
        account,
        partition,
        qos,
        cpus,
        node_count,
        nodes,
        time_limit,
        submitted,
        eligible,
        start,
        end,
        priority,
        reservation,
        licences,
        dependency,
        features,
        submit_host,
        restarts,
        tres,
        per_job,
        per_node,
        per_task,
        name,
    ] = columns;
    let figure = |text: &str| match text {
        "" | "N/A" | "(null)" | "Unknown" => Ok(Figure::Unset),
        text => digits(text).map(Figure::At).ok_or_else(wrong),
    };
    let mut word = |text: &str| match text {
        "N/A" | "(null)" => Arc::default(),
        text => desk.words.intern(text),
    };
    // The first job of an array is its own number's; others have none of their own.
    let (task, tasks) = match digits(array_task) {
        Some(task) => (Figure::At(task), ""),
        None => (Figure::Unset, array_task),
    };
    let draft = Draft {
        id: figure(id)?,
        array_job: figure(array_job)?,
        array_task: task,
        array_tasks: word(tasks),
        het_job: figure(het_job)?,
        het_offset: figure(het_offset)?,
        user: word(user),
        uid: figure(uid)?,
        account: word(account),
        partition: word(partition),
        qos: word(qos),
        name: word(name),
        state: word(state),
        reason: word(reason),
        description: Arc::default(),
        nodes: word(nodes),
        node_count: figure(node_count)?,
        cpus: figure(cpus)?,
        tres_alloc: word(tres),
        tres_req: Arc::default(),
        gres: Vec::new(),
        gres_per_job: word(per_job),
        gres_per_node: word(per_node),
        gres_per_task: word(per_task),
        submitted: figure(submitted)?,
        eligible: figure(eligible)?,
        start: figure(start)?,
        end: figure(end)?,
        time_limit: match duration::limit(time_limit)? {
            Some(TimeLimit::Own(Limit::Unlimited)) => Figure::Infinite,
            Some(TimeLimit::Own(Limit::At(limit))) => Figure::At(limit.as_secs() / 60),
            _ => Figure::Unset,
        },
        priority: figure(priority)?,
        reservation: word(reservation),
        licences: word(licences),
        dependency: word(dependency),
        features: word(features),
        submit_host: word(submit_host),
        restarts: figure(restarts)?,
    };
    desk.job(draft)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;

    /// Recorded from the testbed: see the README beside it.
    const RECORDED: &str = include_str!("../../../tests/fixtures/snapshot-slurm-22.05/squeue.txt");
    const STATES: &str =
        include_str!("../../../tests/fixtures/snapshot-slurm-22.05/squeue-states.txt");

    #[test]
    fn the_queue_as_text() {
        let jobs = parse(RECORDED).unwrap();
        let mut tasks: BTreeMap<&str, u64> = BTreeMap::new();
        for job in &jobs {
            *tasks.entry(job.state.name()).or_default() += job.tasks();
        }
        // As squeue -r counts them.
        let counted = STATES.lines().map(|line| {
            let (count, state) = line.trim().split_once(' ').unwrap();
            (state, count.parse().unwrap())
        });
        assert_eq!(tasks, counted.collect());
        let find = |name: &str| jobs.iter().find(|job| job.shown_id().ends_with(name)).unwrap();
        let waiting = find("_[3-999%3]");
        assert_eq!(waiting.tasks(), 997);
        assert_eq!(waiting.reason.as_deref(), Some("JobArrayTaskLimit"));
        assert_eq!(waiting.time_limit, Some(Limit::At(Duration::from_secs(300))));
        assert_eq!(find("+1").het.unwrap().offset, 1);
        let train = jobs.iter().find(|job| &*job.name == "train \"x\"|y").unwrap();
        assert_eq!((train.gpus.total, train.cpus), (1, Some(2)));
        assert_eq!(train.gpus.by_type, [("fake".into(), 1)]);
        assert_eq!(train.memory.unwrap().get(), 300 << 20);
        assert!(train.start.is_some() && train.submit_host.is_some());
        let reasons: Vec<_> = jobs.iter().filter_map(|job| job.reason.as_deref()).collect();
        assert!(reasons.contains(&"ReqNodeNotAvail, UnavailableNodes"), "{reasons:?}");
        assert!(parse("squeue: error\u{1e}").is_err());
        assert_eq!(parse("").unwrap(), []);
    }
}
