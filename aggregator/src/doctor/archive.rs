//! The archive: its place, its rights, its files.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, access};
use steward_common::unit::Bytes;

use super::{Finding, Patient, good, note, trouble};
use crate::archive::{self, Archive, ArchiveError, Part};
use crate::config::Location;

/// Below this much room somebody should know, and below that much there is trouble.
const LITTLE: u64 = 5 << 30;
const HARDLY_ANY: u64 = 200 << 20;

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
    }
    found.push(files(&archive));
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

/// Whether every file that the manifest names is there, in the right generation.
fn files(archive: &Archive) -> Finding {
    let rebuild = "`steward archive rebuild` makes missing files anew from raw";
    let mut missing: Vec<String> = Vec::new();
    let seen = archive.consistently(|manifest| {
        missing.clear();
        let mut count = 0;
        for (name, cluster) in &manifest.clusters {
            let days = cluster.days.iter().map(|(day, entry)| (Part::Day(*day), *entry));
            for (part, entry) in days.chain(cluster.open.map(|entry| (Part::Open, entry))) {
                count += 1;
                let table = archive.open(name, part, entry)?;
                if table.is_none_or(|table| table.rows() != entry.rows) {
                    missing.push(match part {
                        Part::Day(day) => format!("{name} {day}"),
                        Part::Open => format!("{name} open"),
                    });
                }
            }
        }
        Ok(missing.is_empty().then_some((count, manifest.generation)))
    });
    match seen {
        Ok((_, 0)) => note("nothing was collected yet", "`steward collect --days 30` begins"),
        Ok((count, generation)) => good(format!(
            "generation {generation}: all {count} files that its manifest names are there"
        )),
        Err(_) if !missing.is_empty() => {
            let some: Vec<&str> = missing.iter().take(5).map(String::as_str).collect();
            let text = format!(
                "{} files are missing or not those that the manifest names: {}{}",
                missing.len(),
                some.join(", "),
                if missing.len() > some.len() { ", …" } else { "" }
            );
            trouble(text, rebuild)
        }
        Err(error) => trouble(error.to_string(), rebuild),
    }
}
