//! Which files count: for readers that do not know the manifest.

use std::collections::HashMap;

use serde::Serialize;

use super::manifest::Manifest;
use super::read::Table;
use super::store::staged;
use super::{Archive, ArchiveError, Part};

/// A file that counts.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct Listed {
    /// Where it is.
    pub path: String,
    /// `processed` or `raw`.
    pub layer: &'static str,
    /// The cluster.
    pub cluster: String,
    /// Its rows.
    pub rows: u64,
    /// Its size.
    pub bytes: u64,
    /// The generation in which it was written.
    pub generation: u64,
}

impl Archive {
    /// The files that count, and the generation of which that holds.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub fn files(&self, cluster: Option<&str>) -> Result<(u64, Vec<Listed>), ArchiveError> {
        self.consistently(|manifest| {
            let mut files = Vec::new();
            for name in self.clusters(manifest)? {
                if cluster.is_some_and(|only| only != name) {
                    continue;
                }
                if !self.processed(manifest, &name, &mut files)? {
                    return Ok(None);
                }
                self.raw(manifest, &name, &mut files)?;
            }
            Ok(Some((manifest.generation, files)))
        })
    }

    /// Those of `processed`; whether all are there.
    fn processed(
        &self,
        manifest: &Manifest,
        cluster: &str,
        files: &mut Vec<Listed>,
    ) -> Result<bool, ArchiveError> {
        let Some(entry) = manifest.clusters.get(cluster) else { return Ok(true) };
        let days = entry.days.iter().map(|(day, entry)| (Part::Day(*day), *entry));
        for (part, entry) in days.chain(entry.open.map(|entry| (Part::Open, entry))) {
            let Some((name, _)) = self.find(cluster, part, entry)? else { return Ok(false) };
            files.push(Listed {
                path: self.shelf().address(&name).display().to_string(),
                layer: "processed",
                cluster: cluster.to_owned(),
                rows: entry.rows,
                bytes: entry.bytes,
                generation: entry.generation,
            });
        }
        Ok(true)
    }

    fn raw(
        &self,
        manifest: &Manifest,
        cluster: &str,
        files: &mut Vec<Listed>,
    ) -> Result<(), ArchiveError> {
        // Files that were written anew and are not in their places yet.
        let staging = staged(manifest.generation, manifest.mark, "");
        let waiting: HashMap<String, u64> = self
            .shelf()
            .list(staging.trim_end_matches('/'))?
            .into_iter()
            .map(|item| (item.name, item.bytes))
            .collect();
        for file in self.raw_files(cluster, manifest.generation)? {
            let new = staged(manifest.generation, manifest.mark, &file.item.name);
            let (name, bytes) = match waiting.get(&new) {
                Some(bytes) => (new, *bytes),
                None => (file.item.name, file.item.bytes),
            };
            let path = self.shelf().address(&name);
            // It may have been let go meanwhile.
            let Some(open) = self.shelf().open(&name)? else { continue };
            files.push(Listed {
                rows: Table::new(open, &path)?.rows(),
                path: path.display().to_string(),
                layer: "raw",
                cluster: cluster.to_owned(),
                bytes,
                generation: file.generation,
            });
        }
        Ok(())
    }
}
