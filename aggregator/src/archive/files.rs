//! Which files count: for readers that do not know the manifest.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::manifest::{Entry, Manifest};
use super::read::Table;
use super::shelf::Item;
use super::store::{RawFile, staged};
use super::{Archive, ArchiveError, Part, STAGING};

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

/// What to do about a file of `processed` that is lost.
const REMEDY: &str = "`steward archive rebuild` makes it anew";

/// How files are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Each is opened and says itself of which generation it is.
    Reading,
    /// They are only listed with their sizes: cheap, and in object storage to open one is to fetch it.
    Listing,
}

/// The files that the manifest names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Of which generation the manifest is.
    pub generation: u64,
    /// How many it names.
    pub count: usize,
    /// Those that are missing, or not the ones that it names.
    pub lost: Vec<String>,
}

impl Archive {
    /// Whether the files that the manifest names are there.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub fn named(&self, look: Look) -> Result<Named, ArchiveError> {
        let mut last = None;
        let seen = self.consistently(|manifest| {
            last = None;
            let named = self.look(manifest, look)?;
            last = Some(named.clone());
            Ok(named.lost.is_empty().then_some(named))
        });
        // What is missing each time is lost, and no writer was quicker.
        last.map_or(seen, Ok)
    }

    fn look(&self, manifest: &Manifest, look: Look) -> Result<Named, ArchiveError> {
        let listed = if look == Look::Listing { self.listed()? } else { HashSet::new() };
        let mut named = Named { generation: manifest.generation, ..Named::default() };
        for (cluster, part, entry) in parts(manifest) {
            let name = part.name(cluster);
            let is_there = match look {
                Look::Listing => listed.contains(&(name.clone(), entry.bytes)),
                Look::Reading => {
                    self.open(cluster, part, entry)?.is_some_and(|table| table.rows() == entry.rows)
                }
            };
            named.count += 1;
            if !is_there {
                named.lost.push(name);
            }
        }
        Ok(named)
    }

    /// The names and sizes of the files of `processed`; those in staging under the names of their
    /// places.
    fn listed(&self) -> Result<HashSet<(String, u64)>, ArchiveError> {
        // What is moved meanwhile is in the second list.
        let staging = self.shelf().list(STAGING)?;
        let waiting = staging.into_iter().filter_map(|item| {
            let name = item.name.splitn(3, '/').nth(2)?.to_owned();
            Some((name, item.bytes))
        });
        let mut listed: HashSet<(String, u64)> = waiting.collect();
        let items = self.shelf().list("processed")?.into_iter();
        listed.extend(items.map(|item| (item.name, item.bytes)));
        Ok(listed)
    }

    /// The error of a file that the manifest names and that is not there.
    #[must_use]
    pub fn missing(&self, cluster: &str, part: Part) -> ArchiveError {
        self.lost(&[part.name(cluster)])
    }

    /// The error of a reader to whom files were missing each time, with their names.
    pub(super) fn incomplete(&self) -> ArchiveError {
        let look = if self.shelf().is_shared() { Look::Listing } else { Look::Reading };
        match self.manifest().and_then(|manifest| self.look(&manifest, look)) {
            Ok(named) => self.lost(&named.lost),
            Err(error) => error,
        }
    }

    fn lost(&self, names: &[String]) -> ArchiveError {
        let (path, why) = match names {
            [] => (
                self.shelf().address(""),
                format!(
                    "a file that the manifest names is missing or of another generation; {REMEDY}"
                ),
            ),
            [name, more @ ..] => {
                let more = match more.len() {
                    0 => String::new(),
                    more => format!(", and so are {more} more"),
                };
                let path = self.shelf().address(name);
                (
                    path,
                    format!("is missing or not the file that the manifest names{more}; {REMEDY}"),
                )
            }
        };
        ArchiveError::Manifest { path, why }
    }

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

/// The parts that a manifest names, with their clusters.
fn parts(manifest: &Manifest) -> impl Iterator<Item = (&str, Part, Entry)> {
    manifest.clusters.iter().flat_map(|(name, cluster)| {
        let days = cluster.days.iter().map(|(day, entry)| (Part::Day(*day), *entry));
        let parts = days.chain(cluster.open.map(|entry| (Part::Open, entry)));
        parts.map(move |(part, entry)| (name.as_str(), part, entry))
    })
}
