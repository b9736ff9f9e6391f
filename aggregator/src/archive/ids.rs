//! Which numbers jobs have that people know by another id.

use std::collections::BTreeSet;

use super::cells::{texts, whole};
use super::manifest::Manifest;
use super::read::{NEVER, Wanted};
use super::{Archive, ArchiveError, Part};

/// A job as people and as Slurm's database know it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobIds {
    /// The cluster.
    pub cluster: String,
    /// As tables show it: `17_3`.
    pub shown: String,
    /// Its own number.
    pub number: u32,
}

/// Which jobs are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known<'a> {
    /// The one that tables show by this id.
    As(&'a str),
    /// The tasks of this array.
    TasksOf(u32),
}

impl Known<'_> {
    fn wanted(self) -> Vec<Wanted> {
        let of_array = |array: u32| Wanted::Whole("array_job_id", array.into());
        match self {
            Known::TasksOf(array) => vec![of_array(array)],
            Known::As(id) => {
                // Files and row groups without the array are passed over.
                let array = id.split_once('_').and_then(|(array, _)| array.parse().ok());
                let id = id.to_owned();
                let is_it = Wanted::Text("job_id", Box::new(move |text| text == id));
                array.map(of_array).into_iter().chain([is_it]).collect()
            }
        }
    }
}

impl Archive {
    /// The jobs that are meant, as far as the archive has runs of them.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn ids(
        &self,
        cluster: Option<&str>,
        known: Known<'_>,
    ) -> Result<BTreeSet<JobIds>, ArchiveError> {
        self.consistently(|manifest| self.ids_of(manifest, cluster, known))
    }

    /// The same of what this manifest names; `None` if a writer was quicker.
    fn ids_of(
        &self,
        manifest: &Manifest,
        only: Option<&str>,
        known: Known<'_>,
    ) -> Result<Option<BTreeSet<JobIds>>, ArchiveError> {
        let mut found = BTreeSet::new();
        for (cluster, entry) in &manifest.clusters {
            if only.is_some_and(|only| only != cluster) {
                continue;
            }
            let days = entry.days.iter().map(|(day, entry)| (Part::Day(*day), *entry));
            for (part, file) in days.chain(entry.open.map(|file| (Part::Open, file))) {
                let Some(table) = self.open(cluster, part, file)? else { return Ok(None) };
                let columns = ["job_id", "job_id_raw"];
                for batch in table.matching(&columns, known.wanted(), "submit_time", NEVER)? {
                    let batch = batch?;
                    let jobs = texts(&batch, "job_id").zip(whole(&batch, "job_id_raw"));
                    found.extend(jobs.filter_map(|(shown, number)| {
                        let number = u32::try_from(number?).ok()?;
                        Some(JobIds { cluster: cluster.clone(), shown: shown?.to_owned(), number })
                    }));
                }
            }
        }
        Ok(Some(found))
    }
}
