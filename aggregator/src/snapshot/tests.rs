use std::path::Path;

use steward_common::slurm::state::JobState;

use super::*;
use crate::shutdown;

const FIXTURES: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/snapshot-slurm-22.05");

/// A Slurm that answers with what was recorded, as 22.05 does: no JSON of scontrol.
fn slurm(dir: &Path) -> Config {
    let script = |name: &str, body: &str| {
        let path = dir.join(name);
        std::fs::write(&path, format!("#!/bin/sh\ncd {FIXTURES}\n{body}\n")).unwrap();
        // By the shell: a file just written may be open for writing in a child of another test.
        vec!["sh".to_owned(), path.display().to_string()]
    };
    let mut config = Config::default();
    let gate = format!(
        "[ -e {} ] && {{ echo 'Unable to contact slurm controller' >&2; exit 1; }}",
        dir.join("down").display()
    );
    let hang = format!("[ -e {} ] && sleep 60", dir.join("hang").display());
    config.slurm.squeue = script("squeue", &format!("{gate}\ncat squeue.json"));
    config.slurm.sinfo = script("sinfo", &format!("{gate}\n{hang}\ncat sinfo.json"));
    config.slurm.sshare = script("sshare", &format!("{gate}\ncat sshare.txt"));
    config.slurm.sdiag = script("sdiag", &format!("{gate}\ncat sdiag.txt"));
    config.slurm.sacctmgr = script("sacctmgr", "echo '|physics|64||10|'");
    config.slurm.scontrol = script(
        "scontrol",
        "case \"$*\" in\n\
         *--json*) echo \"scontrol: unrecognized option '--json'\" >&2; exit 1;;\n\
         *config) echo 'ClusterName = steward';;\n\
         *partitions) cat scontrol-show-partitions.txt;;\n\
         *reservations) cat scontrol-show-reservations.txt;;\n\
         *licenses) cat scontrol-show-licenses.txt;;\n\
         esac",
    );
    config.exporter.timeout = steward_common::span::Span(Duration::from_secs(10));
    config
}

fn watcher(config: Config) -> (Watcher, shutdown::Stopper) {
    let (stopper, shutdown) = shutdown::channel();
    (Watcher::new(&Arc::new(config), None, &shutdown), stopper)
}

fn errors(snapshot: &Snapshot) -> Vec<&'static str> {
    let failed = snapshot.asked.iter().filter(|(_, asked)| asked.error.is_some());
    failed.map(|(question, _)| question.name()).collect()
}

#[test]
fn every_question_is_answered_by_the_way_that_this_slurm_knows() {
    let dir = tempfile::tempdir().unwrap();
    let (mut watcher, _stopper) = watcher(slurm(dir.path()));
    watcher.round().unwrap();
    let snapshot = watcher.last.unwrap();
    assert_eq!(snapshot.asked.len(), Question::ALL.len());
    assert_eq!(errors(&snapshot), Vec::<&str>::new(), "{:?}", snapshot.asked);
    assert_eq!(snapshot.cluster.as_str(), "steward");
    assert_eq!(snapshot.nodes.as_ref().unwrap().what.len(), 4);
    assert_eq!(snapshot.sums().unwrap().cpus.total(), 32);
    let jobs = snapshot.jobs.as_ref().unwrap();
    assert!(jobs.what.iter().any(|job| job.state == JobState::Running));
    assert_eq!(snapshot.limits.unwrap().what.len(), 1);
    assert!(snapshot.interval >= Duration::from_secs(30));
}

#[test]
fn e11_a_failing_command_keeps_what_was_known_and_never_looks_like_an_empty_cluster() {
    let dir = tempfile::tempdir().unwrap();
    let (mut watcher, _stopper) = watcher(slurm(dir.path()));
    watcher.round().unwrap();
    let before = watcher.last.clone().unwrap();
    std::fs::write(dir.path().join("down"), "").unwrap();
    watcher.round().unwrap();
    let down = watcher.last.clone().unwrap();
    assert_eq!(errors(&down), ["nodes", "jobs", "shares", "scheduler"]);
    assert!(Arc::ptr_eq(&down.nodes.as_ref().unwrap().what, &before.nodes.as_ref().unwrap().what));
    assert_eq!(down.jobs.as_ref().unwrap().at, before.jobs.as_ref().unwrap().at);
    let asked = &down.asked[&Question::Jobs];
    assert!(asked.error.as_ref().unwrap().contains("Unable to contact"), "{asked:?}");
    assert_eq!(asked.answered, before.asked[&Question::Jobs].answered);
    std::fs::remove_file(dir.path().join("down")).unwrap();
    watcher.round().unwrap();
    assert_eq!(errors(&watcher.last.unwrap()), Vec::<&str>::new());
}

#[test]
fn a_controller_that_is_down_at_the_start_shows_nothing_rather_than_zeros() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("down"), "").unwrap();
    let (mut watcher, _stopper) = watcher(slurm(dir.path()));
    watcher.round().unwrap();
    let snapshot = watcher.last.unwrap();
    assert!(snapshot.nodes.is_none() && snapshot.jobs.is_none() && snapshot.sums().is_none());
    assert!(snapshot.partitions.is_some());
}

#[test]
fn after_one_that_hangs_the_others_are_not_asked() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("hang"), "").unwrap();
    let mut config = slurm(dir.path());
    config.exporter.timeout = steward_common::span::Span(Duration::from_secs(1));
    let (mut watcher, _stopper) = watcher(config);
    let begun = Instant::now();
    watcher.round().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(10));
    let snapshot = watcher.last.unwrap();
    assert_eq!(errors(&snapshot).len(), Question::ALL.len());
    let error = snapshot.asked[&Question::Jobs].error.clone().unwrap();
    assert_eq!(error, "not asked, because nodes had no answer for long");
}

#[test]
fn a_question_that_was_broken_off_at_the_end_is_no_failure() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("hang"), "").unwrap();
    let (mut watcher, stopper) = watcher(slurm(dir.path()));
    let cluster = ClusterName::new("steward").unwrap();
    let before = Snapshot::unseen(cluster, now());
    watcher.last = Some(before.clone());
    stopper.stop();
    assert!(matches!(watcher.round(), Err(CommandError::Stopped)));
    assert_eq!(watcher.last.as_ref().unwrap().asked.len(), 0, "nothing is told of it");
    watcher.last = None;
    watcher.round_and_publish(&Publish::new(|_| panic!("it is the end")));
    assert!(!watcher.nameless);
}

#[test]
fn what_no_family_needs_is_not_asked() {
    let mut config = Config::default();
    config.exporter.families.licences = false;
    config.exporter.families.limits = false;
    let asked = wanted(&config);
    assert!(!asked.contains(&Question::Licences) && !asked.contains(&Question::Limits));
    assert!(asked.contains(&Question::Scheduler), "vpenso's names need it");
}

#[tokio::test]
async fn snapshots_come_again_and_again_until_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = slurm(dir.path());
    config.exporter.interval = steward_common::span::Span(Duration::from_millis(10));
    config.exporter.share = 1.0;
    let (stopper, shutdown) = shutdown::channel();
    let (sender, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let publish = Publish::new(move |snapshot| drop(sender.send(snapshot)));
    let watching = tokio::spawn(watch(Arc::new(config), publish, || true, shutdown));
    for _ in 0..2 {
        let snapshot = tokio::time::timeout(Duration::from_secs(60), seen.recv()).await.unwrap();
        assert!(snapshot.unwrap().nodes.is_some());
    }
    stopper.stop();
    tokio::time::timeout(Duration::from_secs(20), watching).await.unwrap().unwrap();
}
