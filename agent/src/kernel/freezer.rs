//! Whether the processes of a cgroup are frozen: how Slurm suspends a job.
//!
//! v1 has a word for it in `freezer.state`, v2 has `frozen` in `cgroup.events`.

use std::path::Path;

use steward_common::slurm::cgroup_path::Version;

use super::error::{Errors, ReadError};
use super::file;

/// Whether the processes in `dir` are frozen; `None` if the kernel does not say.
pub fn is_frozen(layout: Version, dir: &Path, errors: &mut Errors) -> Option<bool> {
    match layout {
        Version::V1 => errors.take_optional(read(&dir.join("freezer.state"))),
        Version::V2 => {
            let path = dir.join("cgroup.events");
            let text = errors.take_optional(file::optional_text(&path))?;
            errors.take_optional(file::keyed(&path, &text, "frozen")).map(|frozen| frozen != 0)
        }
    }
}

/// Reads a `freezer.state`; `None` if it is not there, as in the root of the hierarchy.
fn read(path: &Path) -> Result<Option<bool>, ReadError> {
    file::optional_text(path)?.map(|text| parse(path, &text)).transpose()
}

/// Whether every task is frozen; one that is still freezing is not. `path` is for messages.
fn parse(path: &Path, text: &str) -> Result<bool, ReadError> {
    match text.trim_end() {
        "FROZEN" => Ok(true),
        "FREEZING" | "THAWED" => Ok(false),
        _ => Err(ReadError::malformed(path, "THAWED, FREEZING or FROZEN", text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PATH: &str = "/sys/fs/cgroup/freezer/job_1/freezer.state";

    #[test]
    fn only_a_job_at_rest_is_frozen() {
        for (text, frozen) in
            [("FROZEN\n", true), ("FROZEN", true), ("FREEZING\n", false), ("THAWED\n", false)]
        {
            assert_eq!(parse(Path::new(PATH), text).unwrap(), frozen, "{text:?}");
        }
        for bad in ["", "\n", "frozen\n", "FROZEN THAWED\n", "1\n", " FROZEN"] {
            let message = parse(Path::new(PATH), bad).unwrap_err().to_string();
            assert!(message.starts_with(PATH), "{bad:?}: {message}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_absent() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("freezer.state");
        assert_eq!(read(&path).unwrap(), None);
        std::fs::write(&path, "FROZEN\n").unwrap();
        assert_eq!(read(&path).unwrap(), Some(true));
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC*|(FROZEN|FREEZING|THAWED|[ \n]){0,4}") {
            if let Ok(frozen) = parse(Path::new(PATH), &text) {
                prop_assert_eq!(frozen, text.contains("FROZEN"));
            }
        }
    }
}
