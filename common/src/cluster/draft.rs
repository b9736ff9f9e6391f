//! A job as Slurm's commands tell of it, before it is understood: the one way from their fields,
//! JSON or text, to a [`CurrentJob`].

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::job::{ArrayPart, ArrayTask, CurrentJob, Gpus, HetPart};
use super::reason;
use super::words::Words;
use crate::id::{JobId, Uid};
use crate::limit::Limit;
use crate::slurm::state::JobState;
use crate::slurm::{ParseError, array, gres, tres};
use crate::time::Timestamp;
use crate::unit::Bytes;

/// A number of Slurm's, which may be missing or without bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Figure {
    /// Not stated.
    #[default]
    Unset,
    /// Without bound.
    Infinite,
    /// This much.
    At(u64),
}

impl Figure {
    /// Slurm's 32-bit numbers for "no value" and "infinite", which older versions print as they
    /// are.
    #[must_use]
    pub fn from_u32(number: u64) -> Figure {
        match number {
            0xffff_fffe => Figure::Unset,
            0xffff_ffff => Figure::Infinite,
            number => Figure::At(number),
        }
    }

    /// The number, if there is one.
    #[must_use]
    pub fn at(self) -> Option<u64> {
        match self {
            Figure::At(number) => Some(number),
            _ => None,
        }
    }

    fn u32(self) -> Option<u32> {
        self.at().and_then(|number| number.try_into().ok())
    }

    /// As a moment; 0 is none.
    #[must_use]
    pub fn time(self) -> Option<Timestamp> {
        let seconds = self.at().filter(|seconds| *seconds > 0)?;
        i64::try_from(seconds).ok().map(Timestamp::new)
    }
}

/// The fields of a job.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    /// Raw id.
    pub id: Figure,
    /// Id of the array; 0 is none.
    pub array_job: Figure,
    /// The task, if it is one.
    pub array_task: Figure,
    /// The tasks that wait, if it stands for some.
    pub array_tasks: Arc<str>,
    /// Id of the heterogeneous job; 0 is none.
    pub het_job: Figure,
    /// Which part of it.
    pub het_offset: Figure,
    /// Name of the user.
    pub user: Arc<str>,
    /// Number of the user.
    pub uid: Figure,
    /// Account.
    pub account: Arc<str>,
    /// Partition or partitions.
    pub partition: Arc<str>,
    /// Quality of service.
    pub qos: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// State, as squeue shows it.
    pub state: Arc<str>,
    /// Why it waits.
    pub reason: Arc<str>,
    /// The same with details.
    pub description: Arc<str>,
    /// Host list.
    pub nodes: Arc<str>,
    /// Number of nodes.
    pub node_count: Figure,
    /// Number of CPUs.
    pub cpus: Figure,
    /// What it holds.
    pub tres_alloc: Arc<str>,
    /// What it asks for.
    pub tres_req: Arc<str>,
    /// Generic resources that it holds, a text for each node.
    pub gres: Vec<Arc<str>>,
    /// Generic resources that it asks for in all.
    pub gres_per_job: Arc<str>,
    /// The same for each node.
    pub gres_per_node: Arc<str>,
    /// The same for each task.
    pub gres_per_task: Arc<str>,
    /// Time of submission.
    pub submitted: Figure,
    /// Time of eligibility.
    pub eligible: Figure,
    /// Begin.
    pub start: Figure,
    /// End.
    pub end: Figure,
    /// Time limit in minutes.
    pub time_limit: Figure,
    /// Priority.
    pub priority: Figure,
    /// Reservation.
    pub reservation: Arc<str>,
    /// Licences.
    pub licences: Arc<str>,
    /// What it depends on.
    pub dependency: Arc<str>,
    /// Features.
    pub features: Arc<str>,
    /// Where it was submitted.
    pub submit_host: Arc<str>,
    /// Number of restarts.
    pub restarts: Figure,
}

/// Memory and GPUs of a list of resources.
#[derive(Debug, Clone, Default)]
struct Held {
    cpus: Option<u64>,
    memory: Option<Bytes>,
    gpus: Gpus,
}

/// Makes jobs of drafts; remembers what it has read, for most jobs are like others.
#[derive(Debug, Default)]
pub struct Desk {
    /// The words of the answer.
    pub words: Words,
    held: HashMap<Arc<str>, Held>,
}

impl Desk {
    /// Understands a job.
    ///
    /// # Errors
    /// If it has no id, or its resources or array tasks cannot be read.
    pub fn job(&mut self, draft: Draft) -> Result<CurrentJob, ParseError> {
        let id = draft.id.u32().and_then(JobId::new).ok_or_else(|| {
            ParseError::new("job", &format!("{:?}", draft.id), "a record with a job id")
        })?;
        let array = match (draft.array_job.u32().and_then(JobId::new), draft.array_task.u32()) {
            (Some(job), Some(task)) => Some(ArrayPart { job, task: ArrayTask::One(task) }),
            (Some(job), None) if !draft.array_tasks.is_empty() => {
                let count = array::count(&draft.array_tasks)?;
                let list = Arc::clone(&draft.array_tasks);
                Some(ArrayPart { job, task: ArrayTask::Waiting { list, count } })
            }
            _ => None,
        };
        let het = draft
            .het_job
            .u32()
            .and_then(JobId::new)
            .map(|job| HetPart { job, offset: draft.het_offset.u32().unwrap_or(0) });
        let tres = if draft.tres_alloc.is_empty() { &draft.tres_req } else { &draft.tres_alloc };
        let mut held = self.held(tres)?;
        if held.gpus.total > 0 && held.gpus.by_type.is_empty() {
            held.gpus.by_type = self.types(&draft, held.gpus.total);
        }
        let some = |word: &Arc<str>| (!word.is_empty()).then(|| Arc::clone(word));
        Ok(CurrentJob {
            id,
            array,
            het,
            uid: draft.uid.u32().map(Uid::new),
            state: JobState::from(&*draft.state),
            reason: self.reason(&draft),
            node_count: draft.node_count.at(),
            cpus: draft.cpus.at().or(held.cpus),
            memory: held.memory,
            gpus: held.gpus,
            tres: Arc::clone(tres),
            submitted: draft.submitted.time(),
            eligible: draft.eligible.time(),
            start: draft.start.time(),
            end: draft.end.time(),
            time_limit: match draft.time_limit {
                Figure::Unset => None,
                Figure::Infinite => Some(Limit::Unlimited),
                Figure::At(minutes) => {
                    Some(Limit::At(Duration::from_secs(minutes.saturating_mul(60))))
                }
            },
            priority: draft.priority.at(),
            reservation: some(&draft.reservation),
            licences: some(&draft.licences),
            dependency: some(&draft.dependency),
            features: some(&draft.features),
            submit_host: some(&draft.submit_host),
            restarts: draft.restarts.at(),
            user: draft.user,
            account: draft.account,
            partition: draft.partition,
            qos: draft.qos,
            name: draft.name,
            nodes: draft.nodes,
        })
    }

    fn held(&mut self, tres: &Arc<str>) -> Result<Held, ParseError> {
        if let Some(held) = self.held.get(tres) {
            return Ok(held.clone());
        }
        let mut held = Held {
            cpus: tres::amount(tres, "cpu")?,
            memory: tres::amount(tres, "mem")?.map(Bytes::new),
            gpus: Gpus::default(),
        };
        if let Some((total, types)) = tres::gpus(tres)? {
            let pairs = types.split(',').filter_map(|pair| pair.split_once('='));
            let count =
                |(model, count): (&str, &str)| Some((Arc::from(model), count.parse().ok()?));
            held.gpus = Gpus { total, by_type: pairs.filter_map(count).collect() };
        }
        self.held.insert(Arc::clone(tres), held.clone());
        Ok(held)
    }

    /// The types of a job's GPUs, of what it holds if Slurm says so there, else of what it asked
    /// for, if that is of one type. What cannot be read states no type.
    fn types(&mut self, draft: &Draft, total: u64) -> Vec<(Arc<str>, u64)> {
        let mut types: BTreeMap<String, u64> = BTreeMap::new();
        for item in draft.gres.iter().filter_map(|text| gres::parse(text).ok()).flatten() {
            if let ("gpu", Some(model)) = (item.name.as_str(), item.model) {
                let sum = types.entry(model).or_default();
                *sum = sum.saturating_add(item.count);
            }
        }
        if types.is_empty() {
            let asked = [&draft.gres_per_job, &draft.gres_per_node, &draft.gres_per_task];
            let asked = asked.into_iter().filter_map(|text| gres::parse(text).ok());
            let mut models: Vec<String> = asked
                .flatten()
                .filter(|item| item.name == "gpu")
                .filter_map(|item| item.model)
                .collect();
            models.dedup();
            if let [model] = models.as_slice() {
                types.insert(model.clone(), total);
            }
        }
        types.into_iter().map(|(model, count)| (self.words.intern(&model), count)).collect()
    }

    /// The details say more where they begin with the reason itself, as those about nodes do.
    fn reason(&mut self, draft: &Draft) -> Option<Arc<str>> {
        let told = &*draft.reason;
        let details =
            draft.description.strip_prefix(told).is_some_and(|rest| rest.starts_with(','));
        let text = if details { &*draft.description } else { told };
        match reason::label(text) {
            label if matches!(&*label, "" | "None") => None,
            label => Some(self.words.intern(&label)),
        }
    }
}
