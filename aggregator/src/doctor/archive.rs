//! The archive: its place, its rights, its files.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, access};
use steward_common::unit::Bytes;

use super::{Finding, Patient, good, note, trouble};
use crate::archive::files::{Look, Named};
use crate::archive::manifest::Manifest;
use crate::archive::{self, Archive, ArchiveError};
use crate::config::Location;
use crate::status::lost_in_words;

/// Below this much room somebody should know, and below that much there is trouble.
const LITTLE: u64 = 5 << 30;
const HARDLY_ANY: u64 = 200 << 20;

/// What to do about files that are lost.
const REBUILD: &str = "`steward archive rebuild` makes missing files anew from raw";

/// Looks at all of it.
pub async fn check(patient: Arc<Patient>) -> Vec<Finding> {
    let work = tokio::task::spawn_blocking(move || look(&patient));
    work.await.unwrap_or_else(|error| vec![trouble(error.to_string(), "report this")])
}

fn look(patient: &Patient) -> Vec<Finding> {
    let archive = match archive::open(&patient.place, &patient.config) {
        Ok(archive) => archive,
        Err(error) => return vec![trouble(error.to_string(), "set archive.directory")],
    };
    let mut found = Vec::new();
    if let Location::Directory(path) = &patient.place {
        if !is_there(path, &mut found) {
            return found;
        }
        // Made by us, its lock might be closed to the one who collects.
        if path.join(archive::LOCK).exists() {
            lock(&archive, &mut found);
        }
        found.extend(open_to_all(path));
    }
    match &patient.place {
        Location::Directory(_) => found.push(files(&archive, Look::Reading)),
        Location::S3 { .. } => {
            found.push(files(&archive, Look::Listing));
            found.extend(apart(&archive));
        }
    }
    found
}

/// Whether the directory is there and can be written.
fn is_there(path: &Path, found: &mut Vec<Finding>) -> bool {
    let shown = path.display();
    // What is missing is made, in the nearest directory that is there.
    let nearest = path.ancestors().find(|one| one.exists()).unwrap_or(Path::new("/"));
    let may = |flags: AccessFlags| access(nearest, flags).is_ok();
    let who = nix::unistd::geteuid();
    if nearest != path {
        found.push(if may(AccessFlags::W_OK | AccessFlags::X_OK) {
            note(
                format!("{shown} is not there yet"),
                "`steward collect --days 30` makes and fills it",
            )
        } else {
            trouble(
                format!("{shown} is not there, and user id {who} may not make it"),
                format!("install -d -o steward -g steward -m 750 {shown}"),
            )
        });
        return false;
    }
    if !may(AccessFlags::R_OK | AccessFlags::X_OK) {
        found.push(trouble(
            format!("{shown}: user id {who} may not read it"),
            "run this as the user of the service; others ask the service (`steward jobs`)",
        ));
        return false;
    }
    if !may(AccessFlags::W_OK) {
        found.push(note(
            format!("{shown}: user id {who} may read it but not write"),
            "enough for `steward analyze`; collect as the user who owns it",
        ));
    }
    match statvfs(path).map(|disk| disk.blocks_available().saturating_mul(disk.fragment_size())) {
        Ok(free) if free < HARDLY_ANY => found.push(trouble(
            format!("only {} are free at {shown}", Bytes::new(free)),
            "make room, or set archive.retention_raw: a collection that finds none keeps nothing",
        )),
        Ok(free) if free < LITTLE => found.push(note(
            format!("{} are free at {shown}", Bytes::new(free)),
            "a million jobs take about 280 MB; see that it lasts",
        )),
        Ok(free) => found.push(good(format!("{shown}, {} free", Bytes::new(free)))),
        Err(error) => found.push(note(format!("{shown}: {error}"), "see that its disk answers")),
    }
    true
}

/// What every user of the machine may do with the archive, if that is anything: it has the names,
/// comments and command lines of everybody's jobs.
fn open_to_all(path: &Path) -> Option<Finding> {
    // Of directories that cannot be looked at nobody can say that they keep others out.
    let may = |path: &Path, wanted: u32| {
        path.metadata().map_or(true, |data| data.permissions().mode() & wanted != 0)
    };
    let real = path.canonicalize().ok()?;
    let is_reached = real.ancestors().skip(1).all(|above| may(above, 0o001));
    (is_reached && may(&real, 0o005)).then(|| {
        let shown = real.display();
        note(
            format!("{shown} is open to every user of this machine: it has the jobs of all users"),
            format!(
                "chmod -R o= {shown} and, for those who may, chgrp -R GROUP {shown}; others ask the \
                 service (`steward jobs`)"
            ),
        )
    })
}

fn lock(archive: &Archive, found: &mut Vec<Finding>) {
    match archive.lock(Duration::ZERO, || {}) {
        Ok(_) => {}
        Err(error @ ArchiveError::Busy { .. }) => {
            found.push(note(
                error.to_string(),
                "fine if a collection runs now; else find who holds it",
            ));
        }
        // Said above: not ours to write.
        Err(_) => {}
    }
}

/// Whether two machines that write at once are kept apart, if they are not.
fn apart(archive: &Archive) -> Option<Finding> {
    match archive.shelf().keeps_apart() {
        Ok(true) => None,
        Ok(false) => Some(note(
            "the object storage ignores conditions (If-Match): two machines that change the \
             archive at once would not notice each other"
                .to_owned(),
            "see to it that one machine collects",
        )),
        // Who may only read does not write.
        Err(_) => None,
    }
}

/// Whether every file that the manifest names is there.
fn files(archive: &Archive, look: Look) -> Finding {
    match archive.named(look) {
        Ok(Named { generation: 0, .. }) => match archive.must_match(&Manifest::default()) {
            Ok(()) => note("nothing was collected yet", "`steward collect --days 30` begins"),
            Err(error) => trouble(error.to_string(), REBUILD),
        },
        Ok(Named { generation, count, lost }) if lost.is_empty() => good(match count {
            1 => format!("generation {generation}: the file that its manifest names is there"),
            _ => format!(
                "generation {generation}: all {count} files that its manifest names are there"
            ),
        }),
        Ok(Named { lost, .. }) => trouble(lost_in_words(&lost), REBUILD),
        Err(error) => trouble(error.to_string(), REBUILD),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};

    use super::*;

    #[test]
    fn an_archive_that_everybody_may_read_is_told_with_what_to_do() {
        let site = tempfile::tempdir().unwrap();
        let archive = site.path().join("archive");
        fs::create_dir(&archive).unwrap();
        let set =
            |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        // Who cannot get to it cannot read it.
        for (above, mode, is_open) in [
            (0o700, 0o755, false),
            (0o711, 0o755, true),
            (0o755, 0o751, true),
            (0o755, 0o750, false),
            (0o755, 0o770, false),
        ] {
            set(site.path(), above);
            set(&archive, mode);
            let found = open_to_all(&archive);
            assert_eq!(found.is_some(), is_open, "{above:o} {mode:o}");
            let advice = found.and_then(|one| one.advice).unwrap_or_default();
            assert_eq!(advice.contains("chmod -R o= "), is_open, "{advice}");
        }
    }
}
