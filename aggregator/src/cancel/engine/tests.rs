use std::sync::Mutex;

use super::*;
use crate::cancel::timing::{Course, Timing};
use crate::config::Span;
use crate::store::cancels::{Base, Decision};
use crate::store::exemptions::Wanted;

const START: i64 = 1_000_000;

fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

fn at(minute: u64) -> Timestamp {
    Timestamp::new(START).after(minutes(minute))
}

/// A Slurm whose jobs live until they are killed; some cannot be.
#[derive(Debug, Default)]
struct Fake {
    over: Mutex<Vec<u32>>,
    said: Mutex<Vec<String>>,
    stubborn: Vec<u32>,
    immortal: Vec<u32>,
}

impl Controller for Fake {
    fn fate(&self, _: &str, job: u32) -> Result<Fate, String> {
        Ok(if self.over.lock().unwrap().contains(&job) {
            Fate::Over("CANCELLED".to_owned())
        } else {
            Fate::Lives { state: "RUNNING".to_owned(), submitted: None }
        })
    }

    fn signal(&self, _: &str, job: u32, signal: &str) -> Result<(), String> {
        self.said.lock().unwrap().push(format!("{signal} {job}"));
        if self.stubborn.contains(&job) { Err("no".to_owned()) } else { Ok(()) }
    }

    fn kill(&self, _: &str, job: u32) -> Result<(), String> {
        self.said.lock().unwrap().push(format!("kill {job}"));
        if self.stubborn.contains(&job) {
            return Err("no".to_owned());
        }
        if !self.immortal.contains(&job) {
            self.over.lock().unwrap().push(job);
        }
        Ok(())
    }
}

/// Who remembers what users were told; for a time it can tell nobody.
#[derive(Debug, Default, Clone)]
struct Post {
    notes: Arc<Mutex<Vec<Note>>>,
    shut: Arc<Mutex<bool>>,
}

impl Messenger for Post {
    async fn tell(&self, note: &Note) -> Result<Told, String> {
        if *self.shut.lock().unwrap() {
            return Err("no post".to_owned());
        }
        self.notes.lock().unwrap().push(note.clone());
        Ok(Told::HandedOver)
    }
}

struct Stage {
    engine: Engine<Post>,
    slurm: Arc<Fake>,
    post: Post,
    _dir: tempfile::TempDir,
}

impl Stage {
    async fn with(slurm: Fake, change: impl Fn(&mut Engine<Post>)) -> Stage {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("a.db")).await.unwrap();
        let (slurm, post) = (Arc::new(slurm), Post::default());
        let mut engine = Engine {
            config: Cancel::default(),
            mode: Mode::Automatic,
            store,
            messenger: Some(post.clone()),
            slurm: Arc::clone(&slurm) as Arc<dyn Controller>,
            actor: "service".to_owned(),
            patience: Duration::from_millis(300),
            clock: || Timestamp::new(0),
        };
        change(&mut engine);
        Stage { engine, slurm, post, _dir: dir }
    }

    async fn new() -> Stage {
        Stage::with(Fake::default(), |_| {}).await
    }

    /// Looks at this minute at jobs that have been idle since they began.
    async fn look(&self, minute: u64, jobs: &[u32]) -> Vec<Came> {
        self.see(minute, jobs.iter().map(|job| case(*job, minute)).collect()).await
    }

    async fn see(&self, minute: u64, idle: Vec<Case>) -> Vec<Came> {
        let over = self.slurm.over.lock().unwrap().clone();
        let idle: Vec<Case> =
            idle.into_iter().filter(|case| !over.contains(&case.key.job)).collect();
        let running = idle
            .iter()
            .map(|case| ((case.key.cluster.clone(), case.key.job, case.key.submitted), "x".into()))
            .collect();
        let sight = Sight { idle, running, ..Sight::default() };
        let lines = self.engine.pass(&sight, at(minute)).await.unwrap();
        lines.into_iter().map(|line| line.came).collect()
    }

    fn said(&self) -> Vec<String> {
        self.slurm.said.lock().unwrap().clone()
    }

    fn told(&self) -> Vec<(String, &'static str)> {
        let notes = self.post.notes.lock().unwrap();
        notes.iter().map(|note| (note.job.clone(), note.kind.name())).collect()
    }

    /// Warned at 60 and 105 minutes.
    async fn warned(&self, jobs: &[u32]) {
        for minute in [60, 105] {
            let came = self.look(minute, jobs).await;
            assert!(came.iter().all(|came| matches!(came, Came::Done(_))), "{came:?}");
        }
    }
}

fn case(job: u32, minute: u64) -> Case {
    let (instance, cluster) = ("cancel-zero-gpu-jobs".to_owned(), "c1".to_owned());
    let seconds = minutes(minute).as_secs_f64();
    Case {
        key: Key { instance, cluster, job, submitted: Timestamp::new(START) },
        shown: job.to_string(),
        user: "alice".to_owned(),
        partition: "gpu".to_owned(),
        course: Course::Fixed,
        timing: Timing {
            first: Some(minutes(60)),
            second: Some(minutes(105)),
            cancel: Some(minutes(120)),
            sliding_warning: Some(minutes(240)),
            sliding_cancel: Some(minutes(300)),
        },
        idle: minutes(minute),
        gpus: 2,
        gpus_idle: 2,
        gpus_exact: 2,
        coverage: 1.0,
        hours: seconds / 3600.0,
        time_left: Some(minutes(600)),
        used: Base {
            at: Some(at(minute)),
            cpu: Some((0.01 * seconds, seconds)),
            io: Some((100.0 * seconds, seconds)),
        },
    }
}

#[tokio::test]
async fn a_job_is_warned_twice_then_signalled_then_ended_and_only_then_told() {
    let stage = Stage::new().await;
    stage.warned(&[7]).await;
    let notes = stage.post.notes.lock().unwrap().clone();
    assert_eq!(notes[0].cancel_at, Some(at(120)));
    assert_eq!((notes[1].cancel_at, notes[1].gpus_idle), (Some(at(120)), Some(2)));
    assert!(matches!(stage.look(119, &[7]).await[..], [Came::Nothing(_)]));
    assert_eq!(stage.look(120, &[7]).await, [Came::Done("sent the signal")]);
    assert!(matches!(stage.look(124, &[7]).await[..], [Came::Nothing(_)]), "the grace");
    assert_eq!(stage.said(), ["TERM 7"]);
    assert_eq!(stage.look(125, &[7]).await, [Came::Done("cancelled")]);
    assert_eq!(stage.said(), ["TERM 7", "kill 7"]);
    let kinds: Vec<&str> = stage.told().iter().map(|(_, kind)| *kind).collect();
    assert_eq!(kinds, ["first-warning", "second-warning", "cancelled"]);
    assert_eq!(stage.look(130, &[7]).await, [], "nothing is left to do");
    let log = stage.engine.store.audited(Timestamp::new(0)).await.unwrap();
    let actions: Vec<&str> = log.iter().map(|made| made.entry.action.as_str()).collect();
    let expected = [
        "warned",
        "warned",
        "cancel: signal is to be sent",
        "cancel: signal sent",
        "cancel: end is to come",
        "cancelled",
        "told of the end",
    ];
    assert_eq!(actions, expected);
}

/// Each rail by itself keeps a job that would have been cancelled.
#[tokio::test]
async fn each_rail_alone_prevents() {
    type Change = fn(&mut Case);
    let cases: [(&str, Change); 8] = [
        ("seen 98.9 %", |case| case.coverage = 0.989),
        ("exactly at 0", |case| case.gpus_exact = 1),
        ("CPUs were busy", |case| case.used.cpu = case.used.cpu.map(|(_, s)| (1e5, s))),
        ("CPUs did since the warning is not known", |case| case.used.cpu = None),
        // The counter stands still because the agent died.
        ("CPUs did", |case| case.used.cpu = case.used.cpu.map(|(used, _)| (used, 3700.0))),
        ("MiB a second", |case| case.used.io = case.used.io.map(|(_, s)| (1e11, s))),
        ("read and wrote since the warning is not known", |case| case.used.io = None),
        ("ends by itself", |case| case.time_left = Some(minutes(9))),
    ];
    for (why, change) in cases {
        let stage = Stage::new().await;
        stage.warned(&[7]).await;
        let mut bad = case(7, 120);
        change(&mut bad);
        let came = stage.see(120, vec![bad]).await;
        let text = format!("{came:?}");
        assert!(matches!(came[..], [Came::Nothing(_)]) && text.contains(why), "{why}: {text}");
        assert_eq!(text.matches("; ").count(), 0, "only one reason: {text}");
        assert_eq!(stage.said(), [""; 0], "{why}");
        let fine = stage.see(120, vec![case(7, 120)]).await;
        assert_eq!(fine, [Came::Done("sent the signal")], "{why}");
    }
}

#[tokio::test]
async fn checks_that_are_switched_off_do_not_prevent() {
    let stage = Stage::with(Fake::default(), |engine| {
        (engine.config.busy_cpus, engine.config.io_mib) = (-1.0, -1.0);
    })
    .await;
    stage.warned(&[7]).await;
    let mut dark = case(7, 120);
    (dark.used.cpu, dark.used.io) = (None, None);
    assert_eq!(stage.see(120, vec![dark]).await, [Came::Done("sent the signal")]);
}

#[tokio::test]
async fn an_exempt_owner_is_neither_warned_nor_loses_a_job() {
    let stage = Stage::new().await;
    stage.warned(&[7]).await;
    let wanted = Wanted {
        user: "alice".to_owned(),
        rule: Some("cancel-zero-gpu-jobs".to_owned()),
        cluster: None,
        reason: "x".to_owned(),
        ends: at(200),
    };
    stage.engine.store.exempt(wanted, "root", at(110)).await.unwrap();
    let came = format!("{:?}", stage.look(150, &[7, 8]).await);
    assert_eq!(came.matches("exempt").count(), 2, "{came}");
    assert_eq!((stage.said().len(), stage.told().len()), (0, 2));
    assert_eq!(stage.look(200, &[7]).await, [Came::Done("sent the signal")], "it has ended");
}

#[tokio::test]
async fn nobody_is_cancelled_who_could_not_be_warned() {
    let stage = Stage::new().await;
    *stage.post.shut.lock().unwrap() = true;
    for minute in [60, 105, 120, 500] {
        assert!(matches!(stage.look(minute, &[7]).await[..], [Came::Failed(_)]));
    }
    *stage.post.shut.lock().unwrap() = false;
    // A late warning leaves the same time until the end.
    for (minute, done) in [(600, true), (644, false), (645, true), (659, false), (660, true)] {
        let came = stage.look(minute, &[7]).await;
        assert_eq!(matches!(came[..], [Came::Done(_)]), done, "{minute}: {came:?}");
    }
    assert_eq!(stage.said(), ["TERM 7"]);
}

#[tokio::test]
async fn limits_of_a_run_and_of_an_hour_hold() {
    let stage = Stage::with(Fake::default(), |engine| {
        (engine.config.most_per_run, engine.config.most_per_hour) = (2, 3);
    })
    .await;
    stage.warned(&[1, 2, 3, 4, 5]).await;
    let done = |came: &[Came]| came.iter().filter(|one| matches!(one, Came::Done(_))).count();
    let came = stage.look(120, &[1, 2, 3, 4, 5]).await;
    assert_eq!(done(&came), 2, "{came:?}");
    assert!(format!("{came:?}").contains("cancel.most_per_run"));
    let came = stage.look(121, &[1, 2, 3, 4, 5]).await;
    assert_eq!(done(&came), 1, "{came:?}");
    assert!(format!("{came:?}").contains("cancel.most_per_hour"));
    // Those that were begun go on, the others wait for the hour to pass.
    stage.look(130, &[1, 2, 3, 4, 5]).await;
    let said = stage.said();
    assert_eq!(said.iter().filter(|said| said.starts_with("kill")).count(), 3, "{said:?}");
    assert_eq!(done(&stage.look(179, &[4, 5]).await), 0);
    assert_eq!(done(&stage.look(181, &[4, 5]).await), 2);
}

#[tokio::test]
async fn one_that_fails_does_not_stop_the_rest_and_is_never_called_cancelled() {
    let fake = Fake { stubborn: vec![2], ..Fake::default() };
    let stage = Stage::with(fake, |engine| engine.config.signal = String::new()).await;
    stage.warned(&[1, 2, 3]).await;
    let came = stage.look(120, &[1, 2, 3]).await;
    let cancelled = Came::Done("cancelled");
    assert!(came[0] == cancelled && came[2] == cancelled, "{came:?}");
    assert!(matches!(&came[1], Came::Failed(why) if why.contains("scancel failed")), "{came:?}");
    let told = stage.told();
    let ends: Vec<&str> =
        told.iter().filter(|(_, kind)| *kind == "cancelled").map(|(job, _)| &**job).collect();
    assert_eq!(ends, ["1", "3"]);
    assert!(matches!(stage.look(125, &[2]).await[..], [Came::Failed(_)]), "it is tried again");
}

#[tokio::test]
async fn a_job_that_lives_on_after_scancel_is_not_called_cancelled() {
    let fake = Fake { immortal: vec![7], ..Fake::default() };
    let stage = Stage::with(fake, |engine| engine.config.grace = Span(Duration::ZERO)).await;
    stage.warned(&[7]).await;
    let came = stage.look(120, &[7]).await;
    assert!(matches!(&came[0], Came::Failed(why) if why.contains("lives")), "{came:?}");
    assert_eq!(stage.told().len(), 2, "the two warnings");
}

#[tokio::test]
async fn a_job_that_works_again_begins_anew() {
    let stage = Stage::new().await;
    stage.warned(&[7]).await;
    let busy = Sight { busy: vec![case(7, 110).key], ..Sight::default() };
    let lines = stage.engine.pass(&busy, at(110)).await.unwrap();
    assert_eq!(lines[0].came, Came::Done("spared: it works again"));
    assert!(stage.engine.pass(&busy, at(111)).await.unwrap().is_empty());
    // Idle for some hours after that: warned anew, with a note of its own.
    let late = |minute: u64, idle: u64| {
        let mut late = case(7, minute);
        (late.course, late.idle) = (Course::Sliding, minutes(idle));
        late
    };
    assert_eq!(stage.see(400, vec![late(400, 290)]).await, [Came::Done("warned")]);
    assert!(matches!(stage.see(459, vec![late(459, 349)]).await[..], [Came::Nothing(_)]));
    // It worked at 500, nobody looked until 801: the old warning does not count.
    let again = stage.see(801, vec![late(801, 301)]).await;
    assert_eq!(again, [Came::Done("spared: it worked since the warning")]);
    assert_eq!(stage.see(802, vec![late(802, 302)]).await, [Came::Done("warned")]);
    assert_eq!(stage.see(862, vec![late(862, 362)]).await, [Came::Done("sent the signal")]);
    let notes = stage.post.notes.lock().unwrap();
    let ids: std::collections::HashSet<&str> = notes.iter().map(|note| &*note.id).collect();
    assert_eq!(ids.len(), 4, "no note is taken for another");
}

#[tokio::test]
async fn a_job_that_works_after_the_signal_lives_and_one_that_saves_its_work_does_not() {
    let stage = Stage::new().await;
    stage.warned(&[7, 8]).await;
    stage.look(120, &[7, 8]).await;
    let mut saving = case(7, 126);
    saving.used.io = saving.used.io.map(|(_, seconds)| (1e12, seconds));
    let busy = vec![case(8, 126).key];
    let running = [7, 8].map(|job| (("c1".to_owned(), job, Timestamp::new(START)), "x".to_owned()));
    let sight = Sight { idle: vec![saving], busy, running: running.into(), ..Sight::default() };
    let came = stage.engine.pass(&sight, at(126)).await.unwrap();
    assert_eq!(came[0].came, Came::Done("spared: it works again"));
    assert_eq!(came[1].came, Came::Done("cancelled"));
    assert_eq!(stage.said(), ["TERM 7", "TERM 8", "kill 7"]);
}

#[tokio::test]
async fn what_was_begun_when_the_program_died_is_finished() {
    let stage = Stage::new().await;
    stage.warned(&[7, 8]).await;
    let store = &stage.engine.store;
    let entry = stage.engine.entry("test", String::new(), "");
    // It died between the intent and the signal of 7, and between scancel of 8 and its look.
    for (job, act) in [(7, Act::Signal), (8, Act::Kill)] {
        let kept =
            store.claim_cancel(&case(job, 120).key, "alice", at(120)).await.unwrap().unwrap();
        assert!(store.act_cancel(&kept.id, act, 10, at(120), &entry).await.unwrap());
    }
    stage.slurm.over.lock().unwrap().push(8);
    assert!(matches!(stage.look(121, &[7]).await[..], [Came::Nothing(_)]), "for five minutes");
    let came = stage.look(126, &[7]).await;
    assert_eq!(came, [Came::Done("cancelled"), Came::Done("sent the signal")]);
    assert_eq!(stage.said(), ["TERM 7"], "no job without its signal, and none twice");
    assert_eq!(stage.told().last().unwrap(), &("8".to_owned(), "cancelled"));
}

#[tokio::test]
async fn an_administrator_decides_where_that_is_asked_for() {
    let stage = Stage::with(Fake::default(), |engine| engine.mode = Mode::Approval).await;
    stage.warned(&[7, 8]).await;
    let came = stage.look(120, &[7, 8]).await;
    assert_eq!(came, [const { Came::Done("proposed to the administrators") }; 2]);
    assert!(format!("{:?}", stage.look(121, &[7, 8]).await).contains("waits for approval"));
    let store = &stage.engine.store;
    let all = store.cancels().await.unwrap();
    let no = Decision::Rejected("course".to_owned());
    assert!(store.decide_cancel(&all[0].id, &no, "root", at(122)).await.unwrap());
    assert!(store.decide_cancel(&all[1].id, &Decision::Approved, "root", at(122)).await.unwrap());
    let came = stage.look(123, &[7, 8]).await;
    assert!(format!("{:?}", came[0]).contains("root rejected it: course"), "{came:?}");
    assert_eq!(came[1], Came::Done("sent the signal"));
}

#[tokio::test]
async fn a_dry_run_says_what_would_be_done_and_does_nothing() {
    let stage = Stage::with(Fake::default(), |engine| engine.mode = Mode::DryRun).await;
    assert_eq!(stage.look(120, &[7]).await, [Came::Would("warn")]);
    assert_eq!(stage.look(500, &[7]).await, [Came::Would("warn")], "nobody was warned");
    assert_eq!((stage.said().len(), stage.told().len()), (0, 0));
    assert!(stage.engine.store.cancels().await.unwrap().is_empty());
}
