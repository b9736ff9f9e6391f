//! Which files count: for readers that do not know the manifest.

use std::collections::HashMap;

use serde::Serialize;

use super::manifest::Manifest;
use super::read::Table;
use super::shelf::Item;
use super::store::{RawFile, staged};
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

    /// All raw files of a cluster as this manifest means them, for those who read without the lock: one
    /// that was written anew may still be in staging, and what stands in its place does not count.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub fn raw_files_of(
        &self,
        cluster: &str,
        manifest: &Manifest,
    ) -> Result<Vec<RawFile>, ArchiveError> {
        let staged = |name: &str| staged(manifest.generation, manifest.mark, name);
        let waiting = self.shelf().list(staged("").trim_end_matches('/'))?.into_iter();
        let mut waiting: HashMap<String, Item> =
            waiting.map(|item| (item.name.clone(), item)).collect();
        let mut files = self.raw_files(cluster, manifest.generation)?;
        for file in &mut files {
            if let Some(new) = waiting.remove(&staged(&file.item.name)) {
                file.item = new;
            }
        }
        Ok(files)
    }

    fn raw(
        &self,
        manifest: &Manifest,
        cluster: &str,
        files: &mut Vec<Listed>,
    ) -> Result<(), ArchiveError> {
        for file in self.raw_files_of(cluster, manifest)? {
            let Item { name, bytes, .. } = file.item;
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
