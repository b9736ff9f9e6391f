//! `manifest.json`: what the archive holds. It is written last, so that what it does not name does
//! not count.

use std::collections::{BTreeMap, BTreeSet};

use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};
use steward_common::stretches::Stretches;
use steward_common::time::Timestamp;
use steward_common::window::Window;
use twox_hash::XxHash3_64;

use super::day::Day;

/// Its name.
pub const NAME: &str = "manifest.json";

/// The version of the columns of both layers. A reader refuses a newer one; an older one is
/// brought up by `steward archive rebuild`.
pub const SCHEMA: u32 = 1;

/// What the archive holds.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Manifest {
    /// The version of the columns.
    pub schema: u32,
    /// Raised by one with every change.
    pub generation: u64,
    /// The mark of its writer, where two may write the same generation; else 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub mark: u32,
    /// By cluster.
    pub clusters: BTreeMap<String, Cluster>,
    /// Users whose jobs must not come back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forgotten: Vec<Forgotten>,
    /// Archives of other programs that were taken over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<Import>,
    /// Who is changing the archive, where machines cannot see each other's locks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer: Option<Writer>,
}

/// Somebody who is changing the archive.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Writer {
    /// The machine.
    pub host: String,
    /// The process on it.
    pub process: u32,
    /// When it began, in nanoseconds since 1970: no two begin alike.
    pub since: i64,
}

impl Writer {
    /// What tells its files from those of another; never 0.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "any 32 bits of a digest will do")]
    pub fn mark(&self) -> u32 {
        let text = format!("{} {} {}", self.host, self.process, self.since);
        (XxHash3_64::oneshot(text.as_bytes()) as u32).max(1)
    }
}

impl Default for Manifest {
    fn default() -> Self {
        Self {
            schema: SCHEMA,
            generation: 0,
            mark: 0,
            clusters: BTreeMap::new(),
            forgotten: Vec::new(),
            imports: Vec::new(),
            writer: None,
        }
    }
}

/// What it holds of a cluster.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct Cluster {
    /// Times of which every run that ended then is here, as seconds since 1970.
    #[serde(with = "stretches")]
    pub covered: Stretches,
    /// Those of them that were asked for late enough that nothing of them was still on its way.
    #[serde(with = "stretches")]
    pub settled: Stretches,
    /// The files of `processed`, by UTC day of the end.
    #[serde(with = "days")]
    pub days: BTreeMap<Day, Entry>,
    /// The runs that have not ended.
    pub open: Option<Entry>,
    /// The earliest start of a run that has not ended.
    pub open_since: Option<i64>,
    /// The last collection.
    pub last: Option<Last>,
    /// Rows that are kept but could not be read, over all collections.
    #[serde(default)]
    pub malformed: u64,
    /// Runs that could not be read and could not be asked for by number: job and submission, the
    /// latter absent where it is not known. The next collection asks for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<(u32, Option<i64>)>,
    /// Digests of texts that could not be read, the one that was seen last at the end. What is asked
    /// for again gives them again, and they are counted and kept once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
}

/// How many texts that could not be read are known again.
const UNREAD: usize = 1000;

/// A file of `processed`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq)]
pub struct Entry {
    /// The generation in which it was written.
    pub generation: u64,
    /// The mark of its writer, where two may write the same generation; else 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub mark: u32,
    /// Its rows.
    pub rows: u64,
    /// Its size.
    pub bytes: u64,
    /// The least and the greatest number of a job in it; `None` if nobody looked, or it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<(u32, u32)>,
}

impl Entry {
    /// Whether it may hold a run of one of these jobs.
    #[must_use]
    pub fn may_hold(&self, jobs: &RoaringBitmap) -> bool {
        self.rows > 0
            && self.jobs.is_none_or(|(least, most)| jobs.range_cardinality(least..=most) > 0)
    }
}

/// A collection.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq)]
pub struct Last {
    /// When it asked.
    pub at: i64,
    /// Runs that were new or had changed.
    pub runs: u64,
    /// Rows that could not be read.
    pub malformed: u64,
}

/// A user who was forgotten. The name itself is forgotten too.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Forgotten {
    /// A digest of the name.
    pub digest: String,
    /// How many bytes the name has, to find it in a text.
    #[serde(default)]
    pub length: usize,
    /// The cluster on which; on all if it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Runs submitted before this are not kept.
    pub before: i64,
}

/// An archive that was taken over.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Import {
    /// Where it was.
    pub from: String,
    /// When.
    pub at: i64,
    /// How many runs.
    pub runs: u64,
}

impl Forgotten {
    /// The digest of a user's name.
    #[must_use]
    pub fn digest(user: &str) -> String {
        Forgotten::digest_of(user.as_bytes())
    }

    fn digest_of(name: &[u8]) -> String {
        format!("{:016x}", XxHash3_64::oneshot(name))
    }

    /// Whether a text names one of them as a word, whenever it was written.
    #[must_use]
    pub fn is_named(list: &[Forgotten], cluster: &str, text: &[u8]) -> bool {
        let is_of = |one: &&Forgotten| one.cluster.as_deref().is_none_or(|name| name == cluster);
        list.iter()
            .filter(is_of)
            .any(|one| words(text, one.length).any(|word| Forgotten::digest_of(word) == one.digest))
    }

    /// Whether a user's run on this cluster that was submitted then is to be forgotten.
    #[must_use]
    pub fn holds(list: &[Forgotten], cluster: &str, user: &str, submit: Timestamp) -> bool {
        !list.is_empty() && {
            let digest = Forgotten::digest(user);
            list.iter().any(|one| {
                one.digest == digest
                    && submit.get() < one.before
                    && one.cluster.as_deref().is_none_or(|name| name == cluster)
            })
        }
    }
}

/// The parts of a text that have so many bytes and are no parts of longer words. They may hold what
/// words do not: names do too.
pub fn words(text: &[u8], length: usize) -> impl Iterator<Item = &[u8]> {
    let in_word = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(byte))
    };
    let all = text.windows(length.max(1)).enumerate();
    all.filter(move |(at, _)| {
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        length > 0 && !in_word(before) && !in_word(text.get(at + length))
    })
    .map(|(_, word)| word)
}

impl Cluster {
    /// Whether a text with this digest could not be read before.
    #[must_use]
    pub fn has_unread(&self, digest: u64) -> bool {
        let digest = format!("{digest:016x}");
        self.unread.contains(&digest)
    }

    /// Enters texts that could not be read; how many are new.
    pub fn enter_unread(&mut self, digests: &BTreeSet<u64>) -> u64 {
        let before = self.unread.len();
        let digests: BTreeSet<String> = digests.iter().map(|d| format!("{d:016x}")).collect();
        self.unread.retain(|known| !digests.contains(known));
        let known = before - self.unread.len();
        let new = digests.len() - known;
        self.unread.extend(digests);
        self.unread.drain(..self.unread.len().saturating_sub(UNREAD));
        new as u64
    }

    /// Whether nothing of the day can still change.
    #[must_use]
    pub fn is_final(&self, day: Day) -> bool {
        let open_later = self.open_since.is_none_or(|since| since >= day.end().get());
        // Of the first day only the part from which on anything was wanted.
        let from = self.covered.first().map_or(day.start(), |first| first.max(day.start()));
        let wanted = Window::new(from, day.end());
        wanted.is_some_and(|window| self.settled.holds(window)) && open_later
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(mark: &u32) -> bool {
    *mark == 0
}

mod stretches {
    use super::{Deserialize, Serialize, Stretches, Timestamp, Window};

    pub fn serialize<S: serde::Serializer>(set: &Stretches, to: S) -> Result<S::Ok, S::Error> {
        let pairs: Vec<(i64, i64)> =
            set.windows().iter().map(|window| (window.from().get(), window.to().get())).collect();
        pairs.serialize(to)
    }

    pub fn deserialize<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Stretches, D::Error> {
        let pairs = Vec::<(i64, i64)>::deserialize(from)?;
        pairs
            .into_iter()
            .map(|(from, to)| {
                Window::new(Timestamp::new(from), Timestamp::new(to))
                    .ok_or_else(|| serde::de::Error::custom(format!("{from} is not before {to}")))
            })
            .collect()
    }
}

mod days {
    use super::{BTreeMap, Day, Deserialize, Entry, Serialize};

    pub fn serialize<S: serde::Serializer>(
        days: &BTreeMap<Day, Entry>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let named: BTreeMap<String, &Entry> =
            days.iter().map(|(day, entry)| (day.to_string(), entry)).collect();
        named.serialize(to)
    }

    pub fn deserialize<'de, D: serde::Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<Day, Entry>, D::Error> {
        BTreeMap::<String, Entry>::deserialize(from)?
            .into_iter()
            .map(|(name, entry)| {
                name.parse().map(|day| (day, entry)).map_err(serde::de::Error::custom)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Day {
        text.parse().unwrap()
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written() {
        let mut manifest = Manifest { generation: 7, ..Manifest::default() };
        let cluster = manifest.clusters.entry("c1".to_owned()).or_default();
        cluster.covered.extend_to(day("2026-11-15"));
        let entry = Entry { generation: 6, mark: 0, rows: 3, bytes: 99, jobs: Some((7, 9)) };
        cluster.days.insert(day("2026-11-15"), entry);
        // One of an earlier version has no numbers of jobs.
        let older = Entry { jobs: None, ..entry };
        cluster.open = Some(older);
        let text = serde_json::to_string(&manifest).unwrap();
        assert!(text.contains("\"2026-11-15\":{\"generation\":6"), "{text}");
        assert_eq!(serde_json::from_str::<Manifest>(&text).unwrap(), manifest);
        let wrong = text.replace("[1794700800,1794787200]", "[5,5]");
        assert!(serde_json::from_str::<Manifest>(&wrong).is_err());
    }

    #[test]
    fn who_is_forgotten_is_known_in_a_text_whatever_the_name_is() {
        for name in ["carol", "eve@corp", "CORP\\dave", "jürgen", "a b", "_x.y-z"] {
            let digest = Forgotten::digest(name);
            let list = [Forgotten { digest, length: name.len(), cluster: None, before: 5 }];
            let is_named = |text: &str| Forgotten::is_named(&list, "c1", text.as_bytes());
            for text in ["{}", "of {}!", "7\x1f{}\x1f8", "xx {}\n"] {
                assert!(is_named(&text.replace("{}", name)), "{name} {text}");
            }
            for text in ["", "of {}x", "x{} is not", "{}.1", "somebody"] {
                assert!(!is_named(&text.replace("{}", name)), "{name} {text}");
            }
        }
        assert!(!Forgotten::is_named(&[], "c1", b"carol"));
    }

    #[test]
    fn a_day_is_final_when_it_was_asked_for_late_and_no_open_job_ran_in_it() {
        let mut cluster = Cluster::default();
        assert!(!cluster.is_final(day("2026-11-15")));
        cluster.settled.extend_to(day("2026-11-15"));
        assert!(cluster.is_final(day("2026-11-15")));
        assert!(!cluster.is_final(day("2026-11-16")));
        cluster.open_since = Some(day("2026-11-15").end().get() - 1);
        assert!(!cluster.is_final(day("2026-11-15")));
        cluster.open_since = Some(day("2026-11-15").end().get());
        assert!(cluster.is_final(day("2026-11-15")));
    }

    trait ExtendTo {
        fn extend_to(&mut self, day: Day);
    }

    impl ExtendTo for Stretches {
        fn extend_to(&mut self, day: Day) {
            self.add(day.window().unwrap());
        }
    }
}
