use std::sync::Arc;
use std::time::Duration;

use steward_common::job::{AgentUse, NodeUse};
use steward_common::slurm::sacct::{Field, Layout};
use steward_common::time::Timestamp;

use super::rebuild::{self, Order};
use super::retention::Retention;
use crate::archive::cells::texts;
use crate::archive::files::Look;
use crate::archive::ids::Known;
use crate::archive::raw::{Form, Key, RawWriter};
use crate::archive::shelf::Directory;
use crate::archive::{Archive, ArchiveError, Day, Part, agent, carry};
use crate::collect::Watch;
use crate::jobs::{Question, Whose};

struct Unwatched;

impl Watch for Unwatched {
    fn begin(&self, _: usize) {}
    fn part_done(&self, _: u64) {}
}

fn archive(directory: &std::path::Path) -> Archive {
    Archive::new(Arc::new(Directory::new(directory)), directory.join(".lock"))
}

fn layout() -> Layout {
    let fields =
        [Field::JobIdRaw, Field::JobId, Field::User, Field::State, Field::Submit, Field::End];
    Layout::new(|field| fields.contains(&field))
}

/// A change that adds a raw file with these rows, of which each is a form, a text and an end.
fn add(archive: &Archive, at: i64, rows: &[(Form, String, Option<i64>)]) {
    let rows: Vec<_> =
        rows.iter().map(|(form, text, end)| (7, *form, text.clone(), *end)).collect();
    add_jobs(archive, at, &rows);
}

/// The same of several jobs, whose numbers come first.
fn add_jobs(archive: &Archive, at: i64, rows: &[(u32, Form, String, Option<i64>)]) {
    let lock = archive.lock(Duration::from_secs(30), || {}).unwrap();
    let mut change = archive.change(lock).unwrap();
    change.manifest.clusters.entry("c1".to_owned()).or_default();
    let file = archive.shelf().scratch().unwrap();
    let now = Timestamp::new(at);
    let mut writer = RawWriter::new(file, change.generation(), &layout().names(), now).unwrap();
    for (job, form, text, end) in rows {
        let (job, submit) = (Some(*job), Some(Timestamp::new(100)));
        let key = Key { job, submit, end: end.map(Timestamp::new), step: None };
        writer.push(key, *form, text.as_bytes()).unwrap();
    }
    let name = change.raw_name("c1", Day::of(now), "0000");
    archive.shelf().put(writer.finish().unwrap(), &name).unwrap();
    change.commit().unwrap();
}

fn rebuild(archive: &Archive) -> Vec<rebuild::Rebuilt> {
    let lock = archive.lock(Duration::from_secs(30), || {}).unwrap();
    rebuild::run(archive, lock, &order(), &Unwatched).unwrap().0
}

fn order() -> Order<'static> {
    Order {
        cluster: None,
        now: Timestamp::new(1_000_000),
        retention: Retention::default(),
        stop: &|| false,
    }
}

fn plain(state: &str, end: &str) -> String {
    format!("7\x1f7\x1fann\x1f{state}\x1f100\x1f{end}\x1f7")
}

fn job_seven() -> Question {
    Question {
        whose: Whose::All,
        from: 0,
        to: i64::MAX,
        states: Vec::new(),
        accounts: Vec::new(),
        partitions: Vec::new(),
        clusters: Vec::new(),
        name: None,
        job_id: Some("7".to_owned()),
        limit: 0,
    }
}

#[test]
fn a_file_that_is_lost_is_named_by_all_who_miss_it() {
    let directory = tempfile::tempdir().unwrap();
    let archive = archive(directory.path());
    add(&archive, 900, &[(Form::Plain, plain("COMPLETED", "700"), Some(700))]);
    rebuild(&archive);
    let lost = || {
        let now = Timestamp::new(1000);
        crate::status::look(&archive, now, Duration::ZERO).unwrap().unwrap().lost
    };
    assert_eq!(lost(), Vec::<String>::new());
    let name = "processed/cluster=c1/1970-01-01.parquet";
    let path = directory.path().join(name);
    let whole = std::fs::read(&path).unwrap();
    // Another size is seen without opening it.
    std::fs::write(&path, [whole.as_slice(), b"x"].concat()).unwrap();
    assert_eq!(lost(), [name]);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(lost(), [name]);
    assert_eq!(archive.named(Look::Reading).unwrap().lost, [name]);
    let missed = archive.jobs(&job_seven()).unwrap_err().to_string();
    assert!(missed.starts_with(&format!("{}: is missing", path.display())), "{missed}");
    assert!(missed.contains("steward archive rebuild"), "{missed}");
    // While it is being moved it is in staging.
    let entry = archive.manifest().unwrap().clusters["c1"].days[&Day::of(Timestamp::new(700))];
    let waiting = directory.path().join(format!("staging/{}/{name}", entry.generation));
    std::fs::create_dir_all(waiting.parent().unwrap()).unwrap();
    std::fs::write(&waiting, &whole).unwrap();
    assert_eq!(lost(), Vec::<String>::new());
}

#[test]
fn jobs_are_found_by_the_id_that_tables_show() {
    let directory = tempfile::tempdir().unwrap();
    let archive = archive(directory.path());
    let text = |number: u32, shown: &str| {
        format!("{number}\x1f{shown}\x1fann\x1fCOMPLETED\x1f100\x1f700\x1f{number}")
    };
    // The last task of an array has the array's own number.
    let jobs = [(17, "17_5"), (18, "17_3"), (23, "22+1"), (30, "30")];
    add_jobs(
        &archive,
        900,
        &jobs.map(|(number, shown)| (number, Form::Plain, text(number, shown), Some(700))),
    );
    rebuild(&archive);
    let numbers = |known| -> Vec<(String, u32)> {
        let found = archive.ids(None, known).unwrap().into_iter();
        found.map(|one| (one.shown, one.number)).collect()
    };
    for (number, shown) in jobs {
        assert_eq!(numbers(Known::As(shown)), [(shown.to_owned(), number)]);
    }
    assert_eq!(numbers(Known::As("17_4")), []);
    assert_eq!(numbers(Known::As("17")), []);
    assert_eq!(numbers(Known::TasksOf(17)), [("17_3".to_owned(), 18), ("17_5".to_owned(), 17)]);
    assert_eq!(numbers(Known::TasksOf(30)), []);
    assert_eq!(archive.ids(Some("c2"), Known::As("17_3")).unwrap().len(), 0);
}

#[test]
fn who_reads_without_a_manifest_hears_that_it_is_lost_if_there_are_files() {
    let directory = tempfile::tempdir().unwrap();
    let archive = archive(directory.path());
    assert!(archive.must_match(&archive.manifest().unwrap()).is_ok());
    add(&archive, 900, &[(Form::Plain, plain("COMPLETED", "700"), Some(700))]);
    rebuild(&archive);
    std::fs::remove_file(directory.path().join("manifest.json")).unwrap();
    let place = crate::config::Location::Directory(directory.path().to_owned());
    let config = crate::config::Config::default();
    let error = crate::command::reader::open(&place, &config).err().unwrap();
    assert!(error.to_string().contains("steward archive rebuild"), "{error}");
    assert!(!crate::command::reader::is_closed(&error));
}

#[test]
fn a_run_says_when_it_was_collected() {
    let directory = tempfile::tempdir().unwrap();
    let archive = archive(directory.path());
    add(&archive, 500, &[(Form::Plain, plain("RUNNING", "Unknown"), None)]);
    add(&archive, 900, &[(Form::Plain, plain("COMPLETED", "700"), Some(700))]);
    rebuild(&archive);
    let runs = archive.jobs(&job_seven()).unwrap().runs;
    let told: Vec<_> = runs.iter().map(|run| (run.state.as_str(), run.collected_at)).collect();
    assert_eq!(told, [("COMPLETED", Some(900))]);
}

#[test]
fn the_newest_measurement_of_agents_is_attached_to_the_newest_version() {
    let directory = tempfile::tempdir().unwrap();
    let archive = archive(directory.path());
    let measured = |gpu_seconds| {
        let node = NodeUse {
            node: "n1".to_owned(),
            cpu_seconds: Some(1.0),
            peak_memory_bytes: None,
            gpus: None,
        };
        let agent = AgentUse { nodes: vec![node], gpu_seconds, ..AgentUse::default() };
        agent::write(&agent).unwrap()
    };
    add(&archive, 150, &[(Form::Plain, plain("RUNNING", "Unknown"), None)]);
    add(
        &archive,
        300,
        &[
            (Form::Agent, measured(Some(5.0)), Some(200)),
            (Form::Plain, plain("COMPLETED", "200"), Some(200)),
        ],
    );
    add(
        &archive,
        400,
        &[
            (Form::Malformed, "what is this".to_owned(), None),
            (Form::Agent, measured(Some(9.0)), Some(200)),
        ],
    );
    let done = rebuild(&archive);
    assert_eq!((done[0].runs, done[0].days, done[0].unreadable), (1, 1, 0));
    let manifest = archive.manifest().unwrap();
    let entry = manifest.clusters["c1"].days[&Day::of(Timestamp::new(200))];
    let day = Part::Day(Day::of(Timestamp::new(200)));
    let table = archive.open("c1", day, entry).unwrap().unwrap();
    // It was written anew when more was measured.
    let seen = carry::seen(&table).unwrap();
    assert_eq!(seen[&(7, Timestamp::new(100))].1, Timestamp::new(400));
    let batch = table.batches(None, false).unwrap().next().unwrap().unwrap();
    let gpu: Vec<Option<f64>> = crate::archive::cells::real(&batch, "gpu_used_seconds").collect();
    assert_eq!(gpu, [Some(9.0)]);
}

/// The states of all runs, of one part after the other.
fn states(archive: &Archive) -> Vec<String> {
    let manifest = archive.manifest().unwrap();
    let cluster = &manifest.clusters["c1"];
    let days = cluster.days.iter().map(|(day, entry)| (Part::Day(*day), *entry));
    let mut states = Vec::new();
    for (part, entry) in days.chain(cluster.open.map(|entry| (Part::Open, entry))) {
        let table = archive.open("c1", part, entry).unwrap().unwrap();
        for batch in table.batches(None, false).unwrap() {
            let batch = batch.unwrap();
            states.extend(texts(&batch, "state").map(|state| state.unwrap().to_owned()));
        }
    }
    states
}

/// Takes the raw rows away that were collected from then on, as if they had not been kept.
fn drop_raw(directory: &std::path::Path, generation: u64) {
    let raw = directory.join("raw/cluster=c1/date=1970-01-01");
    for file in std::fs::read_dir(raw).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.split('-').next().unwrap().parse::<u64>().unwrap() >= generation {
            std::fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn what_was_collected_after_the_last_raw_row_stays() {
    for (second, expected) in
        [(plain("COMPLETED", "200"), "COMPLETED"), (plain("SUSPENDED", "Unknown"), "SUSPENDED")]
    {
        let directory = tempfile::tempdir().unwrap();
        let archive = archive(directory.path());
        add(&archive, 150, &[(Form::Plain, plain("RUNNING", "Unknown"), None)]);
        let end = (expected == "COMPLETED").then_some(200);
        add(&archive, 300, &[(Form::Plain, second, end)]);
        rebuild(&archive);
        assert_eq!(states(&archive), [expected]);
        drop_raw(directory.path(), 2);
        let done = rebuild(&archive);
        assert_eq!((states(&archive), done[0].carried), (vec![expected.to_owned()], 1));
    }
}

#[test]
fn a_run_whose_raw_rows_cannot_be_read_stays_as_it_stands() {
    let directory = tempfile::tempdir().unwrap();
    let archive = archive(directory.path());
    add(&archive, 150, &[(Form::Plain, plain("COMPLETED", "200"), Some(200))]);
    rebuild(&archive);
    add(&archive, 300, &[(Form::Plain, "7 what is this".to_owned(), Some(200))]);
    let done = rebuild(&archive);
    assert_eq!((done[0].unreadable, done[0].carried), (1, 1));
    assert_eq!(states(&archive), ["COMPLETED"]);
}

#[test]
fn a_file_that_cannot_be_read_now_is_not_taken_for_damaged() {
    let directory = tempfile::tempdir().unwrap();
    let archive = archive(directory.path());
    add(&archive, 150, &[(Form::Plain, plain("COMPLETED", "200"), Some(200))]);
    rebuild(&archive);
    let path = directory.path().join("processed/cluster=c1/1970-01-01.parquet");
    let whole = std::fs::read(&path).unwrap();
    // Half of it is damage, and is made anew.
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert_eq!(rebuild(&archive)[0].runs, 1);
    // Reading a directory fails as reading from a disk does that is gone.
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let day = Day::of(Timestamp::new(200));
    let entry = archive.manifest().unwrap().clusters["c1"].days[&day];
    let failed = archive.open("c1", Part::Day(day), entry).map(|_| ()).unwrap_err();
    assert!(matches!(failed, ArchiveError::File { .. }), "{failed:?}");
    let lock = archive.lock(Duration::from_secs(30), || {}).unwrap();
    let failed = rebuild::run(&archive, lock, &order(), &Unwatched).map(|_| ()).unwrap_err();
    assert!(failed.to_string().contains("Is a directory"), "{failed}");
}

#[test]
fn a_manifest_that_is_lost_is_made_anew_and_nothing_is_taken_for_rubbish() {
    let directory = tempfile::tempdir().unwrap();
    let archive = archive(directory.path());
    add(&archive, 150, &[(Form::Plain, plain("RUNNING", "Unknown"), None)]);
    add(&archive, 300, &[(Form::Plain, plain("COMPLETED", "200"), Some(200))]);
    rebuild(&archive);
    std::fs::remove_dir_all(directory.path().join("raw/cluster=c1/date=1970-01-01")).unwrap();
    add(&archive, 300, &[(Form::Plain, plain("FAILED", "200"), Some(200))]);
    std::fs::remove_file(directory.path().join("manifest.json")).unwrap();
    let refused = archive.change(archive.lock(Duration::from_secs(30), || {}).unwrap());
    let why = refused.map(|_| ()).unwrap_err().to_string();
    assert!(why.contains("manifest.json") && why.contains("generation 4"), "{why}");
    let done = rebuild(&archive);
    assert_eq!((done[0].runs, done[0].carried), (1, 0));
    assert_eq!(archive.manifest().unwrap().generation, 5);
    // What stands in no raw file is found as well.
    std::fs::remove_dir_all(directory.path().join("raw")).unwrap();
    add(&archive, 600, &[(Form::Malformed, String::new(), None)]);
    std::fs::remove_file(directory.path().join("manifest.json")).unwrap();
    let done = rebuild(&archive);
    assert_eq!((done[0].runs, done[0].carried), (0, 1));
    // Even if nothing but jobs is left.
    std::fs::remove_dir_all(directory.path().join("raw")).unwrap();
    std::fs::remove_file(directory.path().join("manifest.json")).unwrap();
    assert!(archive.change(archive.lock(Duration::from_secs(30), || {}).unwrap()).is_err());
    let done = rebuild(&archive);
    assert_eq!((done[0].runs, done[0].carried), (0, 1));
}

#[test]
fn who_was_forgotten_stays_so_without_the_manifest() {
    let directory = tempfile::tempdir().unwrap();
    let archive = archive(directory.path());
    let row = || [(Form::Plain, plain("COMPLETED", "200"), Some(200))];
    add(&archive, 300, &row());
    assert_eq!(rebuild(&archive)[0].runs, 1);
    let now = Timestamp::new(400);
    let ann = super::forget::Order { user: "ann", cluster: None, now, stop: &|| false };
    let lock = archive.lock(Duration::from_secs(30), || {}).unwrap();
    assert_eq!(super::forget::run(&archive, lock, &ann).unwrap().0.runs, 1);
    let forgotten = archive.manifest().unwrap().forgotten;
    assert_eq!(forgotten.len(), 1);
    for is_all in [false, true] {
        std::fs::remove_file(directory.path().join("manifest.json")).unwrap();
        if is_all {
            std::fs::remove_dir_all(directory.path().join("raw")).unwrap();
        }
        rebuild(&archive);
        add(&archive, 500, &row());
        let done = rebuild(&archive);
        assert_eq!(done[0].runs, 0, "all: {is_all}");
        assert_eq!(archive.manifest().unwrap().forgotten, forgotten, "all: {is_all}");
    }
    std::fs::remove_file(directory.path().join("manifest.json")).unwrap();
    std::fs::write(directory.path().join("forgotten.json"), "[{").unwrap();
    let why = archive.manifest().unwrap_err().to_string();
    assert!(why.contains("forgotten.json") && why.contains("forget the users again"), "{why}");
}
