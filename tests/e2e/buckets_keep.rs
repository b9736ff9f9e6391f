//! What becomes of an archive over time, in object storage: what becomes of one in a directory.

use std::path::Path;

use steward_tests::archive::{assert_same, files, rows};
use steward_tests::centre::{CLUSTER, Centre};
use steward_tests::object_storage::{ObjectStorage, place};
use steward_tests::python;

use crate::archive_import::WRITE;
use crate::buckets::text;

const COLLECT: [&str; 4] = ["collect", "--days", "3", "--no-summary"];
const REBUILD: [&str; 2] = ["archive", "rebuild"];

/// The same jobs, collected into a directory and into a bucket.
struct Pair {
    storage: ObjectStorage,
    dir: tempfile::TempDir,
    local: Centre,
    remote: Centre,
}

impl Pair {
    fn collected(archive: &str) -> Pair {
        let storage = ObjectStorage::start();
        let dir = tempfile::tempdir().unwrap();
        let text = text(dir.path(), 600);
        let root = dir.path().join("archive");
        let settings = format!("{archive}\n{}", storage.settings(dir.path()));
        let local = Centre::new(dir.path(), "local", root.to_str().unwrap(), &text, archive);
        let remote = Centre::new(dir.path(), "remote", &place("k"), &text, &settings);
        let pair = Pair { storage, dir, local, remote };
        pair.both(&COLLECT);
        pair
    }

    /// Does the same to both, which says and changes the same.
    fn both(&self, args: &[&str]) -> String {
        let said = self.local.done(args);
        assert_eq!(self.remote.done(args), said, "{args:?}");
        let what = self.storage.differences(self.dir.path(), "k", &["names", "raw"]);
        assert_eq!(what, "", "{args:?}");
        said
    }

    fn local(&self) -> std::path::PathBuf {
        self.dir.path().join("archive")
    }

    /// What was in the bucket when the two were last compared.
    fn fetched(&self) -> std::path::PathBuf {
        self.dir.path().join("copy-k")
    }
}

fn jobs(data: &Path) -> Vec<String> {
    rows(data, "processed", &[])
}

#[test]
fn an_archive_in_a_bucket_is_rebuilt_from_its_raw_rows() {
    let pair = Pair::collected("");
    let before = jobs(&pair.fetched());
    // All days are lost; what was open has no other place.
    pair.storage.script(
        "for one in list(bucket.objects.filter(Prefix='k/processed/')):\n\
         \x20   if 'open' not in one.key:\n\
         \x20       one.delete()\n",
        &[],
        pair.dir.path(),
    );
    for file in files(&pair.local().join("processed")) {
        if !file.ends_with("open.parquet") {
            std::fs::remove_file(file).unwrap();
        }
    }
    let said = pair.both(&REBUILD);
    assert!(said.contains(&format!("{} runs computed anew", before.len())), "{said}");
    assert_same(&jobs(&pair.fetched()), &before, "rebuilt");
}

#[test]
fn a_user_is_forgotten_in_a_bucket_too() {
    let pair = Pair::collected("");
    let user = "user000";
    let is_his = |line: &&String| line.contains(&format!(" user={user} "));
    let before = jobs(&pair.fetched());
    let runs = before.iter().filter(is_his).count();
    assert!(runs > 10, "{runs}");
    let said = pair.both(&["archive", "forget-user", user, "--yes"]);
    assert!(said.starts_with(&format!("{runs} runs and ")), "{said}");
    let expected: Vec<String> = before.iter().filter(|line| !is_his(line)).cloned().collect();
    assert_same(&jobs(&pair.fetched()), &expected, "jobs of others");
    for again in [&COLLECT[..], &REBUILD] {
        pair.both(again);
        for file in files(&pair.fetched()) {
            let bytes = std::fs::read(&file).unwrap();
            let found = bytes.windows(user.len()).any(|part| part == user.as_bytes());
            assert!(!found, "after {again:?}: {}", file.display());
        }
        assert_eq!(jobs(&pair.fetched()).len(), expected.len(), "after {again:?}");
    }
}

#[test]
fn what_is_too_old_goes_from_a_bucket_too() {
    let pair = Pair::collected("retention_processed = \"1d\"\nretention_raw = \"1d\"\n");
    let kept = jobs(&pair.fetched()).len();
    let raw = rows(&pair.fetched(), "raw", &[]).len();
    // Raw rows are by the day of the collection: some of long ago.
    pair.storage.script(
        "import re\n\
         for one in list(bucket.objects.filter(Prefix='k/raw/')):\n\
         \x20   old = re.sub('date=[0-9-]+', 'date=2020-01-01', one.key)\n\
         \x20   bucket.Object(old).copy({'Bucket': bucket.name, 'Key': one.key})\n",
        &[],
        pair.dir.path(),
    );
    let days = pair.local().join("raw").join(format!("cluster={CLUSTER}"));
    let today = std::fs::read_dir(&days).unwrap().next().unwrap().unwrap().path();
    steward_tests::archive::copy(&today, &days.join("date=2020-01-01"));
    let said = pair.both(&COLLECT);
    assert!(said.contains("let go as too old: "), "{said}");
    assert_eq!(rows(&pair.fetched(), "raw", &[]).len(), raw);
    assert_eq!(jobs(&pair.fetched()).len(), kept);
    assert!(!files(&pair.fetched()).iter().any(|file| file.display().to_string().contains("2020")));
    // What is kept of three days is what ended in the last one or two of them, or goes on.
    let all = Pair::collected("");
    assert!(kept < jobs(&all.fetched()).len(), "{kept}");
}

#[test]
fn an_archive_of_slurm_usage_is_taken_over_into_a_bucket() {
    let pair = Pair::collected("");
    let collected = jobs(&pair.fetched()).len();
    python::script(WRITE, &["[]"], pair.dir.path(), &[]);
    let usage = pair.dir.path().join("usage").display().to_string();
    let import =
        ["import", "slurm-usage", &usage, "--cluster", CLUSTER, "--time-zone", "Europe/Berlin"];
    let said = pair.both(&import);
    assert!(said.starts_with("5 runs were taken over"), "{said}");
    assert_eq!(jobs(&pair.fetched()).len(), collected + 5);
    assert!(pair.both(&import).starts_with("0 runs were taken over"));
    pair.both(&REBUILD);
    assert_eq!(jobs(&pair.fetched()).len(), collected + 5);
}
