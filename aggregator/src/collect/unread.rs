//! Texts that could not be read. Several parts of a collection may come upon the same one, so they
//! are held until all are done, and written once.

use std::collections::{BTreeMap, BTreeSet};

use tempfile::NamedTempFile;
use twox_hash::XxHash3_64;

use super::Context;
use crate::archive::ArchiveError;
use crate::archive::manifest::Cluster;
use crate::archive::raw::{Form, Key, RawWriter};

/// How much text a part of a collection holds. An answer that is not sacct's must not fill the
/// memory; what goes beyond is written at once, by each part that comes upon it.
const MOST_HELD: usize = if cfg!(test) { 4096 } else { 1 << 20 };

/// Texts that could not be read, by their digests.
#[derive(Default)]
pub struct Unread {
    digests: BTreeSet<u64>,
    held: BTreeMap<u64, (Option<u32>, Vec<u8>)>,
    size: usize,
}

/// What became of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It was there already.
    Known,
    /// It is written with the others.
    Held,
    /// There are too many: whoever adds it must write it.
    Full,
}

impl Unread {
    /// Adds a text, of this job if that is known, unless an earlier collection has entered it.
    pub fn add(&mut self, entry: &Cluster, job: Option<u32>, text: &[u8]) -> Added {
        let digest = XxHash3_64::oneshot(text);
        if !self.digests.insert(digest) || entry.has_unread(digest) {
            return Added::Known;
        }
        if self.size + text.len() > MOST_HELD {
            return Added::Full;
        }
        self.size += text.len();
        self.held.insert(digest, (job, text.to_vec()));
        Added::Held
    }

    /// Adds those of another part. What either has written is not held any more.
    pub fn merge(&mut self, other: Unread) {
        let written = |one: &Unread| -> BTreeSet<u64> {
            one.digests.iter().filter(|digest| !one.held.contains_key(digest)).copied().collect()
        };
        let written: BTreeSet<u64> = written(self).union(&written(&other)).copied().collect();
        self.digests.extend(other.digests);
        self.held.extend(other.held);
        self.held.retain(|digest, _| !written.contains(digest));
    }

    /// The digests of all.
    pub fn digests(&self) -> &BTreeSet<u64> {
        &self.digests
    }

    /// A raw file of those that are held, if there are any and rows are kept.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn write(
        &self,
        context: &Context,
        fields: &str,
    ) -> Result<Option<NamedTempFile>, ArchiveError> {
        if self.held.is_empty() || !context.keeps_raw {
            return Ok(None);
        }
        let file = context.archive.shelf().scratch()?;
        let mut raw = RawWriter::new(file, context.generation, fields, context.now)?;
        for (job, text) in self.held.values() {
            let key = Key { job: *job, submit: None, end: None, step: None };
            raw.push(key, Form::Malformed, text)?;
        }
        raw.finish().map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_held_once_and_not_again_once_it_is_written() {
        let entry = Cluster::default();
        let (mut one, mut other) = (Unread::default(), Unread::default());
        assert_eq!(one.add(&entry, None, b"a"), Added::Held);
        assert_eq!(one.add(&entry, Some(7), b"a"), Added::Known);
        let long = vec![b'x'; MOST_HELD];
        assert_eq!(one.add(&entry, None, &long), Added::Full);
        assert_eq!(one.add(&entry, None, b"b"), Added::Held);
        assert_eq!(other.add(&entry, None, &long), Added::Held);
        assert_eq!(other.add(&entry, None, b"b"), Added::Full);
        one.merge(other);
        assert_eq!(one.digests().len(), 3);
        assert_eq!(one.held.values().map(|(_, text)| text.as_slice()).collect::<Vec<_>>(), [b"a"]);
    }

    #[test]
    fn what_an_earlier_collection_has_entered_is_known() {
        let mut entry = Cluster::default();
        let mut one = Unread::default();
        one.add(&entry, None, b"a");
        assert_eq!(entry.enter_unread(one.digests()), 1);
        assert_eq!(Unread::default().add(&entry, None, b"a"), Added::Known);
    }
}
