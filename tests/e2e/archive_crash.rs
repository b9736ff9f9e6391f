//! An archive whose writers are killed, run out of space, or meet.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use steward_tests::archive::{self, Site, assert_same, done, rows};
use steward_tests::sacct_text::{Random, Recipe};

const HOUR: u64 = 3600;
const COLLECT: [&str; 4] = ["collect", "--days", "4", "--no-summary"];
const REBUILD: [&str; 2] = ["archive", "rebuild"];
/// One of those with most jobs.
const FORGET: [&str; 4] = ["archive", "forget-user", "user000", "--yes"];
/// How many are killed of each command.
const KILLED: usize = 200;
/// How many tries at a time.
const SIDE_BY_SIDE: usize = 4;

fn recipe() -> Recipe {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    Recipe { jobs: 200, days: 3, seed: 3, now, comments: false }
}

/// Both layers, without what differs between two times of doing the same.
fn contents(data: &Path) -> Vec<String> {
    ["processed", "raw"].iter().flat_map(|layer| rows(data, layer, &["collected_at"])).collect()
}

fn assert_tidy(data: &Path, what: &str) {
    assert!(!data.join("staging").exists(), "{what}: {:?}", archive::files(&data.join("staging")));
}

/// Kills a command again and again, each time over a copy of the site's archive and at another
/// moment, and then lets it come to its end.
fn killed(site: &Site, command: &[&str], times: usize) {
    let expected_at = site.beside("expected");
    archive::copy(&site.data(), &expected_at);
    let start = Instant::now();
    let said = done(&site.run(&expected_at, command));
    let takes = start.elapsed();
    let expected = contents(&expected_at);
    let what = command.join(" ");
    println!("{what}: {takes:?}: {said}");
    let (next, cut) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for side in 0..SIDE_BY_SIDE {
            let (next, cut, expected, what) = (&next, &cut, &expected, &what);
            let data = site.beside(&format!("side-{side}"));
            scope.spawn(move || {
                // With others at its side it takes longer than alone.
                let mut takes = takes * 2;
                loop {
                    // One that came to its end before it was killed does not count.
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if cut.load(Ordering::Relaxed) >= times || number >= times * 4 {
                        return;
                    }
                    archive::copy(&site.data(), &data);
                    if kill_once(site, &data, command, takes, number as u64) {
                        cut.fetch_add(1, Ordering::Relaxed);
                    }
                    let start = Instant::now();
                    done(&site.run(&data, command));
                    takes = (takes + start.elapsed()) / 2;
                    assert_same(&contents(&data), expected, &format!("{what}, kill {number}"));
                    assert_tidy(&data, what);
                }
            });
        }
    });
    let cut = cut.into_inner();
    println!("{what}: {cut} were cut off");
    assert!(cut >= times, "only {cut} of {times} were killed before their end");
}

/// Whether it was killed before its end.
fn kill_once(site: &Site, data: &Path, command: &[&str], takes: Duration, number: u64) -> bool {
    let mut random = Random::new(number + 1);
    let mut child = site
        .command(data, command)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("steward: {error}"));
    thread::sleep(takes.mul_f64(random.unit() * 1.1));
    child.kill().unwrap();
    !child.wait().unwrap().success()
}

#[test]
fn whoever_is_killed_loses_nothing_and_doubles_nothing() {
    let site = Site::default();
    let recipe = recipe();
    recipe.write_as_of(recipe.now - 8 * HOUR, &site.new_text()).unwrap();
    site.steward(&COLLECT);
    recipe.write(&site.new_text()).unwrap();
    killed(&site, &COLLECT, KILLED);
    site.steward(&COLLECT);
    killed(&site, &REBUILD, KILLED);
    killed(&site, &FORGET, KILLED);
}

/// A small file system of its own; dropping it takes it away.
struct Small {
    path: PathBuf,
}

impl Small {
    fn mount(path: PathBuf) -> Small {
        fs::create_dir_all(&path).unwrap();
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=20m", "steward-test"])
            .arg(&path)
            .status()
            .unwrap();
        assert!(status.success(), "mount {}", path.display());
        Small { path }
    }

    /// Leaves so many bytes free.
    fn fill(&self, free: u64) {
        let ballast = self.path.join("ballast");
        drop(fs::remove_file(&ballast));
        let mut file = File::create(&ballast).unwrap();
        let block = vec![0; 4096];
        while file.write_all(&block).is_ok() {}
        let length = file.metadata().unwrap().len();
        file.set_len(length.saturating_sub(free)).unwrap();
    }

    fn empty(&self) {
        fs::remove_file(self.path.join("ballast")).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let status = Command::new("umount").arg("--lazy").arg(&self.path).status();
        assert!(status.is_ok_and(|status| status.success()), "umount {}", self.path.display());
    }
}

#[test]
fn a_full_disk_is_named_and_nothing_is_lost() {
    let site = Site::default();
    let small = Small::mount(site.beside("small"));
    let data = small.path.join("archive");
    let recipe = recipe();
    recipe.write_as_of(recipe.now - 8 * HOUR, &site.new_text()).unwrap();
    done(&site.run(&data, &COLLECT));
    recipe.write(&site.new_text()).unwrap();
    for command in [&COLLECT[..], &REBUILD, &FORGET] {
        let what = command.join(" ");
        let before = contents(&data);
        let expected_at = site.beside("expected");
        archive::copy(&data, &expected_at);
        done(&site.run(&expected_at, command));
        let mut failed = 0;
        for free in [0, 4, 16, 48, 100, 150] {
            small.fill(free * 1024);
            let output = site.run(&data, command);
            if output.status.success() {
                break;
            }
            failed += 1;
            assert_eq!(output.status.code(), Some(1), "{what} with {free} KiB");
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            let named = why.contains(&data.display().to_string());
            assert_eq!(why.matches("No space left").count(), 1, "{why}");
            assert!(named, "{what} with {free} KiB: {why}");
            assert_same(&counting(&site, &data), &before, &format!("{what} with {free} KiB"));
        }
        assert!(failed >= 3, "{what}: only {failed} times the space was not enough");
        small.empty();
        done(&site.run(&data, command));
        assert_same(&contents(&data), &contents(&expected_at), &what);
        assert_tidy(&data, &what);
    }
}

/// What counts, whatever else lies there.
fn counting(site: &Site, data: &Path) -> Vec<String> {
    let list = done(&site.run(data, &["archive", "files", "--json"]));
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let counts = |path: &Path| {
        let path = path.display().to_string();
        list["files"].as_array().unwrap().iter().any(|file| file["path"] == path.as_str())
    };
    let found = ["processed", "raw"]
        .iter()
        .flat_map(|layer| archive::rows_of(data, layer, &["collected_at"], &counts));
    found.collect()
}

#[test]
fn two_collectors_at_once_come_one_after_the_other() {
    let site = Site::default();
    recipe().write(&site.new_text()).unwrap();
    let one = site.beside("one");
    done(&site.run(&one, &COLLECT));
    let start = || {
        let mut command = site.command(&site.data(), &COLLECT);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).env("STEWARD_LOG", "info");
        command.spawn().unwrap()
    };
    let both = [start(), start()].map(|child| child.wait_with_output().unwrap());
    let said: Vec<String> = both.iter().map(done).collect();
    let waited = both
        .iter()
        .filter(|output| String::from_utf8_lossy(&output.stderr).contains("waiting for it"));
    assert_eq!(waited.count(), 1, "{both:?}");
    let new = said.iter().filter(|text| text.contains(" 0 runs new or changed")).count();
    assert_eq!(new, 1, "{said:?}");
    assert_same(&contents(&site.data()), &contents(&one), "two at once");
    assert_tidy(&site.data(), "two at once");
}
