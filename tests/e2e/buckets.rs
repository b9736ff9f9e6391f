//! The archive in object storage: the same as in a directory.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use steward_tests::centre::{Centre, Text};
use steward_tests::object_storage::{ObjectStorage, place};
use steward_tests::sacct_text::Recipe;
use steward_tests::service::{Service, program, steward_as};
use steward_tests::shared;

/// Jobs of three days.
pub fn text(dir: &Path, jobs: u64) -> Text {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    Text::write(&dir.join("text"), Recipe { jobs, days: 3, seed: 7, now, comments: false })
}

#[test]
fn the_archive_is_the_same_in_a_directory_and_in_a_bucket() {
    let storage = ObjectStorage::start();
    let dir = tempfile::tempdir().unwrap();
    let text = text(dir.path(), 3000);
    let settings = storage.settings(dir.path());
    let root = dir.path().join("archive");
    let local = Centre::new(dir.path(), "local", root.to_str().unwrap(), &text, "");
    let remote = Centre::new(dir.path(), "remote", &place("years/of"), &text, &settings);
    let collect = ["collect", "--days", "3"];
    for centre in [&local, &remote] {
        let said = centre.done(&collect);
        assert!(said.contains("runs new or changed"), "{said}");
        // What has been collected is not collected again.
        let again = centre.done(&collect);
        assert!(again.starts_with("c1: 0 runs new or changed"), "{again}");
    }
    assert_eq!(storage.differences(dir.path(), "years/of", &["names", "raw"]), "");
    let ask = ["analyze", "--days", "3", "--table", "users", "--format", "csv"];
    assert_eq!(local.done(&ask), remote.done(&ask));
}

#[test]
fn a_writer_that_dies_leaves_a_bucket_as_it_was_or_as_it_shall_be() {
    let storage = ObjectStorage::start();
    let dir = tempfile::tempdir().unwrap();
    let text = text(dir.path(), 1500);
    let settings = storage.settings(dir.path());
    let root = dir.path().join("archive");
    let local = Centre::new(dir.path(), "local", root.to_str().unwrap(), &text, "");
    let remote = Centre::new(dir.path(), "remote", &place("a"), &text, &settings);
    let collect = ["collect", "--days", "3", "--no-summary"];
    local.done(&collect);
    for round in 0..8 {
        let mut child = remote.start(&collect);
        std::thread::sleep(Duration::from_millis(60 * (round + 1) * (round + 1)));
        child.kill().and_then(|()| child.wait()).unwrap();
        // Whatever is there can be read.
        let read = remote.run(&["analyze", "--days", "3"]);
        let said = String::from_utf8_lossy(&read.stderr);
        assert!(read.status.success() || said.contains("nothing was collected yet"), "{said}");
    }
    // One that died after its manifest and before its files were in their places, one before.
    remote.done(&collect);
    storage.script(
        "import json\n\
         manifest = json.load(bucket.Object('a/manifest.json').get()['Body'])\n\
         generation, mark = manifest['generation'], manifest['mark']\n\
         for one in list(bucket.objects.filter(Prefix='a/processed/')):\n\
         \x20   if 'open' in one.key:\n\
         \x20       name = f'a/staging/{generation}-{mark:08x}/' + one.key[2:]\n\
         \x20       bucket.Object(name).copy({'Bucket': bucket.name, 'Key': one.key})\n\
         \x20       one.delete()\n\
         bucket.put_object(Key=f'a/staging/{generation + 1}/processed/cluster=c1/x', Body=b'x')\n",
        &[],
        dir.path(),
    );
    remote.done(&["analyze", "--days", "3"]);
    remote.done(&collect);
    assert_eq!(storage.differences(dir.path(), "a", &[]), "");
    let left = "print([one.key for one in bucket.objects.filter(Prefix='a/staging/')])";
    assert_eq!(storage.script(left, &[], dir.path()).trim(), "[]");
}

#[test]
fn what_is_larger_than_a_piece_goes_and_comes_in_several() {
    let storage = ObjectStorage::start();
    let dir = tempfile::tempdir().unwrap();
    let text = text(dir.path(), 50);
    let settings = storage.settings(dir.path());
    let centre = Centre::new(dir.path(), "remote", &place("b"), &text, &settings);
    // The manifest keeps what it does not have to know about: 20 MiB of it.
    storage.script(
        "import json\n\
         imports = [{'from': 'x' * (20 << 20), 'at': 1, 'runs': 2}]\n\
         manifest = {'schema': 1, 'generation': 4, 'clusters': {}, 'imports': imports}\n\
         bucket.put_object(Key='b/manifest.json', Body=json.dumps(manifest).encode())\n",
        &[],
        dir.path(),
    );
    centre.done(&["collect", "--days", "3"]);
    let seen = storage.script(
        "import json\n\
         one = bucket.Object('b/manifest.json').get()\n\
         manifest = json.load(one['Body'])\n\
         print(manifest['generation'], len(manifest['imports'][0]['from']), one['ETag'])\n",
        &[],
        dir.path(),
    );
    assert!(seen.starts_with("5 20971520 "), "{seen}");
    assert!(seen.trim().ends_with("-3\""), "not in three parts: {seen}");
}

#[test]
fn what_is_wrong_with_a_bucket_is_said() {
    let storage = ObjectStorage::start();
    let dir = tempfile::tempdir().unwrap();
    let text = text(dir.path(), 10);
    let settings = storage.settings(dir.path());
    let said = |place: &str, settings: &str, command: &str| {
        let centre = Centre::new(dir.path(), "wrong", place, &text, settings);
        let output = centre.run(&[command]);
        assert_eq!(output.status.code(), Some(1), "{place}");
        String::from_utf8(output.stderr).unwrap()
    };
    for command in ["analyze", "collect"] {
        let error = said("s3://nowhere/x", &settings, command);
        assert!(error.contains("s3://nowhere/x") && error.contains("NoSuchBucket"), "{error}");
    }
    let secure = settings.replace("allow_http = true", "allow_http = false");
    let error = said(&place("x"), &secure, "analyze");
    assert!(error.contains("s3://jobs/x/manifest.json"), "{error}");
    std::fs::remove_file(dir.path().join("secret-key")).unwrap();
    let error = said(&place("x"), &settings, "analyze");
    assert!(error.contains("secret-key"), "{error}");
}

#[test]
fn who_has_no_keys_is_answered_by_the_service() {
    let storage = ObjectStorage::start();
    let shared = shared::directory();
    let dir = shared.path();
    let keys = storage.settings(dir);
    Centre::new(dir, "centre", &place("x"), &text(dir, 50), &keys).done(&[
        "collect",
        "--days",
        "3",
        "--no-summary",
    ]);
    let closed = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(dir.join("secret-key"), closed).unwrap();
    let archive = |place: &str| format!("[archive]\ndirectory = {place:?}\n");
    let service = Service::start(dir, "one", &(archive(&place("x")) + &keys));
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();

    // Alice may not read the key.
    let config = dir.join("one.toml");
    let alice = |args: &[&str]| {
        steward_as("stw-alice", &[&["--config", config.to_str().unwrap()], args].concat())
    };
    let own = alice(&["jobs", "--json"]);
    assert!(own.status.success(), "{}", said(&own));
    let others = said(&alice(&["jobs", "--all-users"]));
    assert!(others.contains("own jobs only"), "{others}");
    let none = said(&alice(&["analyze"]));
    assert!(none.contains("No data found"), "{none}");
    let status = said(&alice(&["status"]));
    assert!(status.contains("steward service status"), "{status}");

    // No keys at all, half of them, and an archive that is not here.
    let keyless = keys.lines().filter(|line| !line.contains("key_file"));
    let keyless: String = keyless.map(|line| format!("{line}\n")).collect();
    let nowhere = dir.join("nowhere");
    for (name, settings) in [
        ("keyless", archive(&place("x")) + &keyless),
        ("half", archive(&place("x")) + &keyless),
        ("nowhere", archive(nowhere.to_str().unwrap())),
    ] {
        let config = dir.join(format!("{name}.toml"));
        let socket = format!("[serve]\nsocket = {:?}\n", service.socket());
        std::fs::write(&config, settings + &socket).unwrap();
        for command in [&["jobs", "--all-users", "--limit=1"][..], &["analyze", "--days=3"]] {
            let mut asking = Command::new(program());
            asking.arg("--config").arg(&config).args(command).arg("--json");
            // No machine of a cloud gives us its keys.
            asking.env("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9");
            if name == "half" {
                asking.env("AWS_ACCESS_KEY_ID", "testing");
            }
            let output = asking.output().unwrap();
            assert!(output.status.success(), "{name} {command:?}: {}", said(&output));
            assert!(!output.stdout.is_empty(), "{name} {command:?}");
        }
    }
}

/// Puts a writer on another machine into the manifest, who began so many minutes ago.
fn elsewhere(storage: &ObjectStorage, dir: &Path, minutes: u64) {
    let script = "import json, sys, time\n\
                  manifest = json.load(bucket.Object('w/manifest.json').get()['Body'])\n\
                  since = time.time_ns() - int(sys.argv[1]) * 60 * 10**9\n\
                  manifest['writer'] = {'host': 'far-away', 'process': 7, 'since': since}\n\
                  bucket.put_object(Key='w/manifest.json', Body=json.dumps(manifest).encode())\n";
    storage.script(script, &[&minutes.to_string()], dir);
}

#[test]
fn two_machines_that_write_at_once_are_kept_apart() {
    let storage = ObjectStorage::start();
    let dir = tempfile::tempdir().unwrap();
    let text = text(dir.path(), 1500);
    let settings = storage.settings(dir.path());
    let root = dir.path().join("archive");
    let local = Centre::new(dir.path(), "local", root.to_str().unwrap(), &text, "");
    let collect = ["collect", "--days", "3", "--no-summary"];
    local.done(&collect);
    // Two state directories: neither sees the other's lock.
    let one = Centre::new(dir.path(), "one", &place("w"), &text, &settings);
    let two = Centre::new(dir.path(), "two", &place("w"), &text, &settings);
    let mut overtaken = 0;
    for round in 0..4 {
        let first = one.start(&collect);
        std::thread::sleep(Duration::from_millis(300 * round));
        let second = two.start(&collect);
        for child in [first, second] {
            let end = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&end.stderr);
            overtaken += usize::from(!end.status.success());
            let clear = said.contains("another machine has changed the archive meanwhile");
            assert!(end.status.success() || clear, "{said}");
        }
        one.done(&["analyze", "--days", "3"]);
    }
    assert!(overtaken > 0);
    one.done(&collect);
    assert_eq!(storage.differences(dir.path(), "w", &["raw"]), "");
    // One that is known to be at work elsewhere is waited for, but not for ever.
    elsewhere(&storage, dir.path(), 10);
    let refused = one.run(&collect);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("far-away has been changing"), "{said}");
    elsewhere(&storage, dir.path(), 300);
    one.done(&collect);
}
