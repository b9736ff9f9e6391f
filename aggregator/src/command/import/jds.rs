//! `steward import jds`.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use anyhow::Context;

use super::super::{BadInput, End, Outcome};
use crate::jds::{self, Converted};
use crate::output::jds as shown;
use crate::output::screen::Screen;
use crate::source::yaml;

/// More than any settings are.
const MOST: u64 = 4 << 20;

/// Reads the settings of Job Defense Shield, and writes ours.
pub(super) fn run(from: &Path, output: Option<&Path>, json: bool) -> anyhow::Result<Outcome> {
    let done = read(from)?;
    if let Some(path) = output {
        write(path, &done.toml)?;
    }
    let text = match (json, output) {
        (true, _) => shown::json(&done),
        (false, Some(path)) => {
            let path = path.display();
            let written = format!("{} instances were written to {path}\n\n", done.instances);
            written + &shown::text(&done, Screen::of_stdout())
        }
        (false, None) => {
            // Standard output is the settings alone, so that it can go into a file.
            let _if_anyone_reads =
                std::io::stderr().write_all(shown::text(&done, Screen::file()).as_bytes());
            done.toml.clone()
        }
    };
    let end = if done.is_in_part() { End::InPart } else { End::Done };
    Ok(Outcome { text, end })
}

fn read(from: &Path) -> anyhow::Result<Converted> {
    let refuse = |what: String| BadInput(format!("{}{what}", from.display()));
    let size = std::fs::metadata(from).map_err(|error| refuse(format!(": {error}")))?.len();
    if size > MOST {
        return Err(refuse(": is too large for settings".to_owned()).into());
    }
    let text = std::fs::read_to_string(from).map_err(|error| refuse(format!(": {error}")))?;
    let root = yaml::parse(&text).map_err(|error| refuse(format!(":{error}")))?;
    let file = from.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let none = || {
        let (line, column) = (root.place.line, root.place.column);
        refuse(format!(":{line}:{column}: expected keys with values, such as low-cpu-efficiency:"))
    };
    Ok(jds::convert(&file, &root).ok_or_else(none)?)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = file.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => anyhow::anyhow!(
            "{} is there already and is left as it is; name another file with --output",
            path.display()
        ),
        _ => anyhow::anyhow!("{}: {error}", path.display()),
    })?;
    file.write_all(text.as_bytes()).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> String {
        include_str!("../../jds/example.yaml").to_owned()
    }

    #[test]
    fn a_file_is_written_once_and_what_is_left_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("a.yaml"), directory.path().join("b.toml"));
        std::fs::write(&from, example()).unwrap();
        let done = run(&from, Some(&to), false).unwrap();
        assert_eq!(done.end, End::InPart);
        assert!(done.text.starts_with("7 instances were written to"), "{}", done.text);
        let written = std::fs::read_to_string(&to).unwrap();
        assert!(written.contains("[rules.cancel-zero-gpu-jobs-a]\n"));
        let again = run(&from, Some(&to), false).unwrap_err();
        assert!(again.to_string().contains("is left as it is"), "{again}");
        assert_eq!(crate::command::code(&again), 1);
        assert_eq!(std::fs::read_to_string(&to).unwrap(), written);
        let json = run(&from, None, true).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json.text).unwrap();
        assert_eq!(json["toml"], written);
        let left = json["left"].as_array().unwrap();
        let slip = left.iter().find(|one| one["key"] == "verbos").unwrap();
        assert_eq!((&slip["line"], &slip["reason"]), (&10.into(), &"unknown".into()));
    }

    #[test]
    fn nothing_is_left_of_a_file_without_mails_and_hardware() {
        let directory = tempfile::tempdir().unwrap();
        let from = directory.path().join("a.yaml");
        let text = "zero-util-gpu-hours:\n  cluster: c\n  partitions: [gpu]\n  min_run_time: 30\n  \
                    gpu_hours_threshold_user: 100\n  gpu_hours_threshold_admin: 24\n";
        std::fs::write(&from, text).unwrap();
        let done = run(&from, None, false).unwrap();
        assert_eq!(done.end, End::Done);
        assert!(done.text.contains("gpu_hours_user = 100\n"), "{}", done.text);
    }

    #[test]
    fn what_is_no_yaml_ends_with_2_and_the_place() {
        let directory = tempfile::tempdir().unwrap();
        let from = directory.path().join("a.yaml");
        for (text, said) in [
            ("a: [1\nb: 2", "a.yaml:2:"),
            ("low-cpu-efficiency:\n  a: 1\nlow-cpu-efficiency:\n  a: 2", "a.yaml:3:1: the key"),
            ("- 1", "a.yaml:1:1: expected keys with values"),
        ] {
            std::fs::write(&from, text).unwrap();
            let error = run(&from, None, false).unwrap_err();
            assert_eq!(crate::command::code(&error), 2, "{error}");
            assert!(error.to_string().contains(said), "{error}");
        }
        std::fs::remove_file(&from).unwrap();
        assert_eq!(crate::command::code(&run(&from, None, false).unwrap_err()), 2);
    }
}
