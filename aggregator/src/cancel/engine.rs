//! Doing what is planned, one job after the other: one that fails does not stop the rest.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use steward_common::time::Timestamp;

use super::case::{Case, Sight};
use super::note::{Kind, Messenger, Note, Told};
use super::plan::Plan;
use super::rails::Question;
use super::slurm::{Controller, Fate};
use crate::config::{Cancel, CancelMode as Mode};
use crate::store::audit::Entry;
use crate::store::cancels::{Act, Kept, Key, Mark};
use crate::store::exemptions::Exemption;
use crate::store::{Store, StoreError};

/// How long a note may take.
const TELL: Duration = Duration::from_secs(90);

/// For how long jobs are remembered.
const KEEP: Duration = Duration::from_secs(90 * 86_400);

/// Whoever acts.
#[derive(Debug)]
pub struct Engine<M> {
    /// The settings.
    pub config: Cancel,
    /// What is really done.
    pub mode: Mode,
    /// What was done before.
    pub store: Store,
    /// Who tells users.
    pub messenger: Option<M>,
    /// Who speaks to Slurm.
    pub slurm: Arc<dyn Controller>,
    /// Who runs this, for the audit log.
    pub actor: String,
    /// How long Slurm may take from scancel to the end of a job, by its own word.
    pub patience: Duration,
    /// The time: a run takes a while.
    pub clock: fn() -> Timestamp,
}

/// What came of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Came {
    /// Nothing is to be done.
    Nothing(String),
    /// It would be, and was not.
    Would(&'static str),
    /// It was done.
    Done(&'static str),
    /// It was to be done, and failed.
    Failed(String),
}

/// A line of the report.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Which run of a job.
    pub key: Key,
    /// As people know it.
    pub job: String,
    /// Whose.
    pub user: String,
    /// GPUs, idle ones and hours, where the job is idle now.
    pub figures: Option<(u32, u32, f64)>,
    /// What came of it.
    pub came: Came,
}

/// A run that fails in part goes on; this is why a single job's part ended.
type Part<T> = Result<T, String>;

fn told(error: StoreError) -> String {
    error.to_string()
}

impl<M: Messenger> Engine<M> {
    /// One run over what was seen.
    ///
    /// # Errors
    /// If the store cannot be read: nothing is done then.
    pub async fn pass(&self, sight: &Sight, now: Timestamp) -> Result<Vec<Line>, StoreError> {
        let exemptions = self.store.exemptions_at(now).await?;
        let list = self.store.cancels().await?;
        let mut lines = Vec::new();
        if self.mode != Mode::DryRun {
            self.store.forget_cancels(now.before(KEEP)).await?;
            self.follow_up(&list, sight, now, &mut lines).await;
        }
        let known: HashMap<Key, Kept> =
            list.into_iter().map(|kept| (kept.key.clone(), kept)).collect();
        self.spare(&known, sight, now, &mut lines).await;
        let mut acts = 0;
        for case in &sight.idle {
            let fresh = || Kept::new(case.key.clone(), case.user.clone());
            let kept = known.get(&case.key).cloned().unwrap_or_else(fresh);
            let came = match self.one(case, &kept, &exemptions, now, &mut acts).await {
                Ok(came) => came,
                Err(why) => Came::Failed(why),
            };
            lines.push(Line {
                key: case.key.clone(),
                job: case.shown.clone(),
                user: case.user.clone(),
                figures: Some((case.gpus, case.gpus_idle, case.hours)),
                came,
            });
        }
        Ok(lines)
    }

    fn entry(&self, action: &str, subject: String, detail: impl Into<String>) -> Entry {
        let (actor, action) = (self.actor.clone(), action.to_owned());
        Entry { actor, action, subject, detail: detail.into() }
    }

    /// Jobs that were to end and are not seen to run any more, and those whose owners were not told yet.
    async fn follow_up(&self, list: &[Kept], sight: &Sight, now: Timestamp, lines: &mut Vec<Line>) {
        for kept in list {
            let key = (kept.key.cluster.clone(), kept.key.job, kept.key.submitted);
            let is_seen = sight.running.contains_key(&key);
            let open = kept.is_acted_on() && kept.cancelled.is_none() && !is_seen;
            let untold = kept.cancelled.is_some() && kept.told.is_none();
            if !open && !untold {
                continue;
            }
            let came = match self.finish(kept, now).await {
                Ok(Some(what)) => Came::Done(what),
                Ok(None) => continue,
                Err(why) => Came::Failed(why),
            };
            let (job, user) = (kept.key.job.to_string(), kept.user.clone());
            lines.push(Line { key: kept.key.clone(), job, user, figures: None, came });
        }
    }

    async fn finish(&self, kept: &Kept, now: Timestamp) -> Part<Option<&'static str>> {
        let claimed = self.store.claim_cancel(&kept.key, &kept.user, now).await.map_err(told)?;
        let Some(kept) = claimed else { return Ok(None) };
        let done = self.finish_claimed(&kept, None, now).await;
        self.store.release_cancel(&kept.id).await.map_err(told)?;
        done
    }

    /// Asks Slurm whether a job is over, and only then says so.
    async fn finish_claimed(
        &self,
        kept: &Kept,
        case: Option<&Case>,
        now: Timestamp,
    ) -> Part<Option<&'static str>> {
        let Key { cluster, job, .. } = &kept.key;
        let subject = format!("job {job} of {} on {cluster}", kept.user);
        if kept.cancelled.is_none() {
            match self.fate(&kept.key).await? {
                Fate::Over(state) => {
                    let entry =
                        self.entry("cancelled", subject.clone(), format!("squeue: {state}"));
                    let mark = self.store.mark_cancel(&kept.id, Mark::Cancelled, now, &entry);
                    mark.await.map_err(told)?;
                }
                // Another run of it may be meant; nobody knows, so nothing is said.
                Fate::Lives { .. } => return Ok(None),
            }
        }
        let note = Note {
            id: format!("{}/{}", kept.id, Kind::Cancelled.name()),
            user: kept.user.clone(),
            cluster: cluster.clone(),
            job: case.map_or_else(|| job.to_string(), |case| case.shown.clone()),
            partition: case.map(|case| case.partition.clone()),
            kind: Kind::Cancelled,
            instance: kept.key.instance.clone(),
            gpus: case.map(|case| case.gpus),
            gpus_idle: case.map(|case| case.gpus_idle),
            hours: case.map(|case| case.hours),
            cancel_at: None,
        };
        self.tell(&note)
            .await
            .map_err(|why| format!("cancelled, but its owner was not told: {why}"))?;
        let entry = self.entry("told of the end", subject, "");
        self.store.mark_cancel(&kept.id, Mark::Told, now, &entry).await.map_err(told)?;
        Ok(Some("cancelled"))
    }

    async fn tell(&self, note: &Note) -> Part<()> {
        let Some(messenger) = &self.messenger else { return Err("nobody tells users".to_owned()) };
        match tokio::time::timeout(TELL, messenger.tell(note)).await {
            Ok(Ok(Told::HandedOver)) => Ok(()),
            Ok(Ok(Told::NotNow(why))) => Err(why),
            Ok(Err(why)) => Err(why),
            Err(_) => Err("the note took too long".to_owned()),
        }
    }

    async fn fate(&self, key: &Key) -> Part<Fate> {
        let (slurm, cluster, job) = (Arc::clone(&self.slurm), key.cluster.clone(), key.job);
        let asked = tokio::task::spawn_blocking(move || slurm.fate(&cluster, job));
        let fate = asked.await.map_err(|error| error.to_string())??;
        // Its number may have a new run: that one is not ours, and ours is over.
        if let Fate::Lives { submitted: Some(submitted), .. } = &fate
            && *submitted != key.submitted
        {
            return Ok(Fate::Over("requeued".to_owned()));
        }
        Ok(fate)
    }

    /// Jobs that work again begin anew.
    async fn spare(
        &self,
        known: &HashMap<Key, Kept>,
        sight: &Sight,
        now: Timestamp,
        lines: &mut Vec<Line>,
    ) {
        for key in &sight.busy {
            let Some(kept) = known.get(key) else { continue };
            if !(kept.is_warned() || kept.is_acted_on()) || kept.cancelled.is_some() {
                continue;
            }
            let shown = sight.running.get(&(key.cluster.clone(), key.job, key.submitted));
            let job = shown.cloned().unwrap_or_else(|| key.job.to_string());
            let came = if self.mode == Mode::DryRun {
                Came::Would("spare it: it works again")
            } else {
                let subject = format!("job {job} of {} on {}", kept.user, key.cluster);
                let entry = self.entry("spared", subject, "it works again");
                match self.store.reset_cancel(&kept.id, now, &entry).await {
                    Ok(()) => Came::Done("spared: it works again"),
                    Err(error) => Came::Failed(told(error)),
                }
            };
            let user = kept.user.clone();
            lines.push(Line { key: key.clone(), job, user, figures: None, came });
        }
    }

    async fn one(
        &self,
        case: &Case,
        kept: &Kept,
        exemptions: &[Exemption],
        now: Timestamp,
        acts: &mut u32,
    ) -> Part<Came> {
        let config = &self.config;
        let plan = |kept: &Kept| {
            let question = Question { case, kept, exemptions, config, now };
            Plan::of(&question, self.mode)
        };
        // An agent that came late, or was away when the job was warned, is a base from now on.
        let lacks = (kept.base.cpu.is_none() && case.used.cpu.is_some())
            || (kept.base.io.is_none() && case.used.io.is_some());
        if lacks && kept.is_warned() && self.mode != Mode::DryRun {
            self.store.base_cancel(&kept.id, case.used).await.map_err(told)?;
        }
        let first = plan(kept);
        match &first {
            Plan::Wait(why) => return Ok(Came::Nothing(why.clone())),
            Plan::Leave(why) => return Ok(Came::Nothing(format!("left: {}", why.join("; ")))),
            _ if self.mode == Mode::DryRun => return Ok(Came::Would(would(&first))),
            _ => {}
        }
        let claimed = self.store.claim_cancel(&case.key, &case.user, now).await.map_err(told)?;
        let Some(kept) = claimed else {
            return Ok(Came::Nothing("another process is at it".to_owned()));
        };
        // Another process may have acted since.
        let done = if plan(&kept) == first {
            self.act(case, &kept, first, now, acts).await
        } else {
            Ok(Came::Nothing("another process was quicker".to_owned()))
        };
        self.store.release_cancel(&kept.id).await.map_err(told)?;
        done
    }

    async fn act(
        &self,
        case: &Case,
        kept: &Kept,
        plan: Plan,
        now: Timestamp,
        acts: &mut u32,
    ) -> Part<Came> {
        match plan {
            Plan::Wait(why) => Ok(Came::Nothing(why)),
            Plan::Leave(why) => Ok(Came::Nothing(why.join("; "))),
            Plan::Spare => {
                let entry = self.entry("spared", case.subject(), "it worked since the warning");
                self.store.reset_cancel(&kept.id, now, &entry).await.map_err(told)?;
                Ok(Came::Done("spared: it worked since the warning"))
            }
            Plan::Warn(kind, end) => self.warn(case, kept, kind, end, now).await,
            Plan::Propose => {
                let entry = self.entry("cancel proposed", case.subject(), &kept.id);
                let mark = self.store.mark_cancel(&kept.id, Mark::Proposed, now, &entry);
                mark.await.map_err(told)?;
                Ok(Came::Done("proposed to the administrators"))
            }
            Plan::Signal => self.signal(case, kept, now, acts).await,
            Plan::Kill => self.kill(case, kept, now, acts).await,
        }
    }

    async fn warn(
        &self,
        case: &Case,
        kept: &Kept,
        kind: Kind,
        end: Option<Timestamp>,
        now: Timestamp,
    ) -> Part<Came> {
        let note = Note {
            id: format!("{}/{}", kept.id, kind.name()),
            user: case.user.clone(),
            cluster: case.key.cluster.clone(),
            job: case.shown.clone(),
            partition: Some(case.partition.clone()),
            kind,
            instance: case.key.instance.clone(),
            gpus: Some(case.gpus),
            gpus_idle: Some(case.gpus_idle),
            hours: Some(case.hours),
            cancel_at: end,
        };
        self.tell(&note).await.map_err(|why| format!("not warned: {why}"))?;
        if kept.base.at.is_none() {
            self.store.base_cancel(&kept.id, case.used).await.map_err(told)?;
        }
        let (mark, done) = match kind {
            Kind::Warning1 => (Mark::First, "warned"),
            Kind::Warning2 => (Mark::Second, "warned again"),
            Kind::SlidingWarning => (Mark::Sliding, "warned"),
            Kind::Cancelled => return Err("a warning is no end".to_owned()),
        };
        // The moment of the note counts, not that of the look.
        let entry = self.entry("warned", case.subject(), kind.name());
        let at = (self.clock)().max(now);
        self.store.mark_cancel(&kept.id, mark, at, &entry).await.map_err(told)?;
        Ok(Came::Done(done))
    }

    /// Writes down what is about to be done, within the limits.
    async fn begin(
        &self,
        case: &Case,
        kept: &Kept,
        act: Act,
        now: Timestamp,
        acts: &mut u32,
    ) -> Part<Option<String>> {
        // What was begun before counts already.
        if !kept.is_acted_on() && *acts >= self.config.most_per_run {
            let most = self.config.most_per_run;
            return Ok(Some(format!(
                "left: {most} jobs in this run are enough (cancel.most_per_run)"
            )));
        }
        let action = match act {
            Act::Signal => "cancel: signal is to be sent",
            Act::Kill => "cancel: end is to come",
        };
        let detail = format!("{} idle of {} GPUs, {:.1} h", case.gpus_idle, case.gpus, case.hours);
        let entry = self.entry(action, case.subject(), detail);
        let most = self.config.most_per_hour;
        if !self.store.act_cancel(&kept.id, act, most, now, &entry).await.map_err(told)? {
            return Ok(Some(format!(
                "left: {most} jobs in an hour are enough (cancel.most_per_hour)"
            )));
        }
        if !kept.is_acted_on() {
            *acts += 1;
        }
        Ok(None)
    }

    async fn signal(&self, case: &Case, kept: &Kept, now: Timestamp, acts: &mut u32) -> Part<Came> {
        if let Fate::Over(state) = self.fate(&case.key).await? {
            return Ok(Came::Nothing(format!("it is over by itself ({state})")));
        }
        if let Some(why) = self.begin(case, kept, Act::Signal, now, acts).await? {
            return Ok(Came::Nothing(why));
        }
        let (slurm, signal) = (Arc::clone(&self.slurm), self.config.signal.clone());
        let (cluster, job) = (case.key.cluster.clone(), case.key.job);
        let sent = tokio::task::spawn_blocking(move || slurm.signal(&cluster, job, &signal));
        let sent = sent.await.map_err(|error| error.to_string())?;
        if let Err(why) = sent {
            let entry = self.entry("cancel: signal failed", case.subject(), &why);
            self.store.audit(entry).await.map_err(told)?;
            return Err(format!("the signal was not sent: {why}"));
        }
        let entry = self.entry("cancel: signal sent", case.subject(), &self.config.signal);
        let at = (self.clock)().max(now);
        self.store.mark_cancel(&kept.id, Mark::Sent, at, &entry).await.map_err(told)?;
        Ok(Came::Done("sent the signal"))
    }

    async fn kill(&self, case: &Case, kept: &Kept, now: Timestamp, acts: &mut u32) -> Part<Came> {
        if let Fate::Over(state) = self.fate(&case.key).await? {
            // One that ended in the meantime was not cancelled by us, unless we had begun.
            if !kept.is_acted_on() {
                return Ok(Came::Nothing(format!("it is over by itself ({state})")));
            }
            self.finish_claimed(kept, Some(case), now).await?;
            return Ok(Came::Done("cancelled"));
        }
        if let Some(why) = self.begin(case, kept, Act::Kill, now, acts).await? {
            return Ok(Came::Nothing(why));
        }
        let (slurm, cluster, job) =
            (Arc::clone(&self.slurm), case.key.cluster.clone(), case.key.job);
        let killed = tokio::task::spawn_blocking(move || slurm.kill(&cluster, job));
        let killed = killed.await.map_err(|error| error.to_string())?;
        if let Err(why) = killed {
            let entry = self.entry("cancel: scancel failed", case.subject(), &why);
            self.store.audit(entry).await.map_err(told)?;
            return Err(format!("scancel failed: {why}"));
        }
        let deadline = tokio::time::Instant::now() + self.patience;
        loop {
            match self.finish_claimed(kept, Some(case), now).await? {
                Some(_) => return Ok(Came::Done("cancelled")),
                None if tokio::time::Instant::now() < deadline => {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                None => {
                    let why = "scancel found nothing wrong, and squeue says that it lives";
                    let entry = self.entry("cancel: job lives", case.subject(), why);
                    self.store.audit(entry).await.map_err(told)?;
                    return Err(why.to_owned());
                }
            }
        }
    }
}

fn would(plan: &Plan) -> &'static str {
    match plan {
        Plan::Warn(Kind::Warning2, _) => "warn again",
        Plan::Warn(..) => "warn",
        Plan::Propose => "propose it",
        Plan::Signal => "send the signal",
        Plan::Kill => "cancel it",
        Plan::Spare => "spare it: it worked since the warning",
        Plan::Wait(_) | Plan::Leave(_) => "do nothing",
    }
}

#[cfg(test)]
mod tests;
