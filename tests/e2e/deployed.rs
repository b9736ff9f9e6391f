//! What deploy/ has for systemd and cron: lines that `steward` and they take.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::json;
use steward_tests::scripted::{Scripted, now};
use steward_tests::service::{self, program};

/// Where the units have the program.
const INSTALLED: &str = "/usr/local/bin/steward";

fn deploy(path: &str) -> PathBuf {
    steward_tests::directory().join("../deploy").join(path)
}

/// The command lines of the units.
fn units() -> Vec<String> {
    let services = fs::read_dir(deploy("systemd")).unwrap().map(|entry| entry.unwrap().path());
    let services = services.filter(|path| path.extension().is_some_and(|kind| kind == "service"));
    let texts = services.map(|path| fs::read_to_string(path).unwrap());
    let lines = texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>());
    lines.filter_map(|line| Some(line.strip_prefix("ExecStart=")?.to_owned())).collect()
}

/// The lines for cron: the five times, the user and what a shell is given; also what is to be
/// switched on.
fn crontab() -> Vec<(Vec<String>, String)> {
    let text = fs::read_to_string(deploy("cron/steward")).unwrap();
    let is_time = |line: &&str| line.starts_with(|c: char| c.is_ascii_digit() || c == '*');
    let lines = text.lines().map(|line| line.trim_start_matches("# ")).filter(is_time);
    let cut = |line: &str| {
        let words: Vec<&str> = line.splitn(7, ' ').collect();
        (words[..6].iter().map(|word| (*word).to_owned()).collect(), words[6].to_owned())
    };
    lines.map(cut).collect()
}

/// The words after the program's name, up to where a shell sends what is said.
fn arguments(line: &str) -> Vec<&str> {
    let words = line.split(' ').skip(1);
    words.take_while(|word| !word.starts_with('>')).collect()
}

#[test]
fn every_command_in_deploy_is_one() {
    let crontab = crontab();
    let units = units();
    let lines: Vec<&str> =
        units.iter().map(String::as_str).chain(crontab.iter().map(|(_, line)| &**line)).collect();
    assert_eq!((units.len(), crontab.len()), (2, 2), "{lines:?}");
    for line in &lines {
        let name = line.split(' ').next().unwrap();
        assert!(name == INSTALLED || name == "steward", "{line}");
        // What comes before --help is looked at before it.
        let output = service::steward(&[&arguments(line)[..], &["--help"]].concat());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{line}: {told}");
    }
    let wrong = service::steward(&["collect", "--no-sumary", "--help"]);
    assert_eq!(wrong.status.code(), Some(2), "a wrong one would be seen");
}

/// Runs a line in a shell that finds the built program under its name.
fn in_shell(site: &Scripted, line: &str) -> Output {
    let bin = tempfile::tempdir().unwrap();
    symlink(program(), bin.path().join("steward")).unwrap();
    let ours = site.command(&[]);
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", line]).env("PATH", format!("{}:/usr/bin:/bin", bin.path().display()));
    for (name, value) in ours.get_envs() {
        if name != "STEWARD_LOG" {
            shell.env(name, value.unwrap());
        }
    }
    shell.env("STEWARD_CONFIG", site.data().with_file_name("steward.toml")).output().unwrap()
}

#[test]
fn cron_and_systemd_collect_and_cron_has_nothing_to_mail() {
    let mut lines: Vec<String> = crontab().into_iter().map(|(_, line)| line).collect();
    lines.extend(units().iter().map(|line| line.replace(INSTALLED, "steward")));
    lines.retain(|line| line.contains(" collect"));
    assert_eq!(lines.len(), 2, "{lines:?}");
    for line in lines {
        let site = Scripted::new("");
        let end = now() - 60;
        site.answer(&json!([{
            "JobIDRaw": 1, "JobID": 1, "User": "ann", "State": "COMPLETED", "Submit": end - 30,
            "Start": end - 20, "End": end, "ElapsedRaw": 20, "AllocCPUS": 1,
        }]));
        let output = in_shell(&site, &line);
        assert_eq!(output.status.code(), Some(0), "{line}: {output:?}");
        assert_eq!(site.runs().len(), 1, "{line}");
        if line.contains('>') {
            assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{line}: {output:?}");
            // What fails is mailed.
            site.configure("clusters = [\"away\"]\n", "");
            let output = in_shell(&site, &line);
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!output.status.success() && told.contains("Connection refused"), "{told}");
        }
    }
}

/// Whether a field of a crontab is one.
fn is_field(text: &str, least: u32, most: u32) -> bool {
    let (range, step) = text.split_once('/').unwrap_or((text, "1"));
    let within = |text: &str| text.parse().is_ok_and(|at: u32| (least..=most).contains(&at));
    step.parse::<u32>().is_ok_and(|step| step > 0) && (range == "*" || within(range))
}

#[test]
fn cron_knows_when_and_as_whom() {
    for (words, line) in crontab() {
        let limits = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)];
        for (word, (least, most)) in words.iter().zip(limits) {
            assert!(is_field(word, least, most), "{word} of {words:?}");
        }
        assert!(["steward", "slurm"].contains(&&*words[5]), "{words:?}");
        // A percent sign would be the end of the line.
        assert!(!line.contains('%'), "{line}");
    }
}

#[test]
fn systemd_finds_nothing_wrong_with_the_units() {
    let dir = tempfile::tempdir().unwrap();
    let here = program().display().to_string();
    let mut command = Command::new("systemd-analyze");
    command.args(["verify", "--man=no"]);
    for entry in fs::read_dir(deploy("systemd")).unwrap() {
        let path = entry.unwrap().path();
        let copy: PathBuf = dir.path().join(Path::new(path.file_name().unwrap()));
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&copy, text.replace(INSTALLED, &here)).unwrap();
        command.arg(copy);
    }
    let output = match command.output() {
        // Nobody can be asked in a container without it.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
        output => output.unwrap(),
    };
    // It passes over keys that it does not know, and says so.
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let ours: Vec<&str> = told.lines().filter(|line| line.contains("steward")).collect();
    assert!(output.status.success() && ours.is_empty(), "{told}");
}
