//! What sacct told of a job, each time that it told something new.

use std::collections::BTreeMap;

use steward_common::slurm::sacct::{DELIMITER, Layout};
use steward_common::time::Timestamp;

use crate::archive::manifest::Manifest;
use crate::archive::raw::Form;
use crate::archive::raw_read::{RawTable, Version};
use crate::archive::{Archive, ArchiveError};
use crate::source::slurm::lines::text_of;

/// The rows of a run as they came together.
#[derive(Debug, PartialEq, Eq)]
pub struct Told {
    /// The cluster.
    pub cluster: String,
    /// When sacct was asked.
    pub collected: Timestamp,
    /// How they are kept.
    pub form: &'static str,
    /// The fields of each row that are not empty, in sacct's order; one field `text` where the
    /// row is none of sacct's.
    pub rows: Vec<Vec<(String, String)>>,
}

/// All versions of all runs of a job, the oldest first.
///
/// # Errors
/// If the archive cannot be read.
pub fn told(archive: &Archive, cluster: Option<&str>, job: u32) -> Result<Vec<Told>, ArchiveError> {
    archive.consistently(|manifest| named(archive, manifest, cluster, job))
}

/// The same of what this manifest names; `None` if a writer was quicker.
fn named(
    archive: &Archive,
    manifest: &Manifest,
    cluster: Option<&str>,
    job: u32,
) -> Result<Option<Vec<Told>>, ArchiveError> {
    let mut all = Vec::new();
    for name in archive.clusters(manifest)? {
        if cluster.is_some_and(|cluster| cluster != name) {
            continue;
        }
        for file in archive.raw_files_of(&name, manifest)? {
            let Some(table) = RawTable::find(archive, &file)? else { return Ok(None) };
            let mut places = Vec::new();
            table.versions(|place, row| {
                if row.key.job == Some(job) && row.begins_version() {
                    places.push(place);
                }
            })?;
            if places.is_empty() {
                continue;
            }
            table.read(&places, |version| {
                all.push(Told {
                    cluster: name.clone(),
                    collected: version.collected,
                    form: version.form.name(),
                    rows: rows(version, table.layout()),
                });
                Ok::<(), ArchiveError>(())
            })?;
        }
    }
    all.sort_by(|a, b| (&a.cluster, a.collected).cmp(&(&b.cluster, b.collected)));
    Ok(Some(all))
}

fn rows(version: &Version, layout: Option<&Layout>) -> Vec<Vec<(String, String)>> {
    let names: Vec<&str> =
        layout.map_or(Vec::new(), |layout| layout.fields().iter().map(|f| f.name()).collect());
    let texts = version.rows().filter_map(|place| version.text().get(place));
    texts
        .map(|text| {
            let fields: Option<Vec<String>> = match version.form {
                Form::Plain => Some(
                    text.split(|byte| *byte == DELIMITER)
                        .map(|field| text_of(field).into_owned())
                        .collect(),
                ),
                Form::Mended => serde_json::from_slice(text).ok(),
                _ => None,
            };
            match fields.filter(|fields| fields.len() > names.len() && !names.is_empty()) {
                Some(fields) => names
                    .iter()
                    .map(|name| (*name).to_owned())
                    .zip(fields)
                    .filter(|(_, value)| !value.is_empty())
                    .collect(),
                None => vec![("text".to_owned(), text_of(text).into_owned())],
            }
        })
        .collect()
}

/// As JSON: a list of versions, each row an object.
#[must_use]
pub fn json(all: &[Told]) -> serde_json::Value {
    let row =
        |row: &Vec<(String, String)>| row.iter().cloned().collect::<BTreeMap<String, String>>();
    let version = |told: &Told| {
        serde_json::json!({
            "cluster": told.cluster,
            "collected_at": told.collected.get(),
            "form": told.form,
            "rows": told.rows.iter().map(row).collect::<Vec<_>>(),
        })
    };
    all.iter().map(version).collect()
}
