//! A manifest that is lost is made anew from the files that are there.
//!
//! It then lacks which times are covered, so that they are asked for again. Who was forgotten is
//! written down a second time (`forgotten.rs`).

use super::lock::Lock;
use super::manifest::{self, Entry, Manifest};
use super::read::Table;
use super::shelf::Before;
use super::{Archive, ArchiveError, Change, Part};

impl Archive {
    /// Begins a change, even if the manifest is lost.
    ///
    /// # Errors
    /// If the archive cannot be read or tidied.
    pub fn change_or_recover(&self, lock: Lock) -> Result<Change, ArchiveError> {
        // Rows of the first generation alone are what is left of a first collection that died.
        let is_lost = self.shelf().open(manifest::NAME)?.is_none()
            && (self.latest()? > 1 || !self.shelf().list("processed")?.is_empty());
        if !is_lost {
            return self.change(lock);
        }
        let path = self.shelf().address(manifest::NAME);
        tracing::warn!(path = %path.display(), "it is lost, and is made anew from the files");
        self.change_from(lock, self.found()?, Before::Nothing)
    }

    /// What the files say.
    fn found(&self) -> Result<Manifest, ArchiveError> {
        let mut manifest = Manifest { generation: self.latest()?, ..self.manifest()? };
        for item in self.shelf().list("processed")? {
            let place = || {
                let (cluster, file) =
                    item.name.strip_prefix("processed/cluster=")?.split_once('/')?;
                let part = match file.strip_suffix(".parquet")? {
                    "open" => Part::Open,
                    day => Part::Day(day.parse().ok()?),
                };
                Some((cluster, part))
            };
            let Some((cluster, part)) = place() else { continue };
            let path = self.shelf().address(&item.name);
            let Some(file) = self.shelf().open(&item.name)? else { continue };
            let table = Table::new(file, &path)?;
            let Some(generation) = table.generation() else { continue };
            manifest.generation = manifest.generation.max(generation);
            let entry = Entry {
                generation,
                mark: 0,
                rows: table.rows(),
                bytes: item.bytes,
                jobs: table.job_range(),
            };
            let cluster = manifest.clusters.entry(cluster.to_owned()).or_default();
            match part {
                Part::Day(day) => {
                    cluster.days.insert(day, entry);
                }
                Part::Open => cluster.open = Some(entry),
            }
        }
        Ok(manifest)
    }
}
