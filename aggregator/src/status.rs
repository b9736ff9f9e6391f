//! `steward status`: what the archive holds, what it lacks, and what can still change.

use std::time::Duration;

use steward_common::time::Timestamp;
use steward_common::window::Window;

use crate::archive::files::Look;
use crate::archive::manifest::{Cluster, Last};
use crate::archive::{Archive, ArchiveError, Day};

/// How many of the last days are told one by one.
const RECENT: usize = 5;

/// How many lost files are named.
const NAMED: usize = 5;

/// What the archive holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Holding {
    /// The version of its columns.
    pub schema: u32,
    /// How often it was changed.
    pub generation: u64,
    /// By cluster.
    pub clusters: Vec<Held>,
    /// Files that the manifest names and that are missing, or are not as large as they should be.
    pub lost: Vec<String>,
}

/// What it holds of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// The cluster.
    pub cluster: String,
    /// From when it has everything that ended,
    pub from: Option<Timestamp>,
    /// and up to when.
    pub until: Option<Timestamp>,
    /// Runs that ended.
    pub runs: u64,
    /// Runs that have not.
    pub open: u64,
    /// Since when the oldest of them runs.
    pub open_since: Option<Timestamp>,
    /// Files of `processed`, and their bytes.
    pub processed: (u64, u64),
    /// Files of `raw`, and their bytes.
    pub raw: (u64, u64),
    /// The last UTC days with runs, and how many ended then, newest first.
    pub recent: Vec<(Day, u64)>,
    /// Times between `from` and `until` that were never collected.
    pub gaps: Vec<Window>,
    /// Days that can still change, oldest first.
    pub changing: Vec<Changing>,
    /// The last collection.
    pub last: Option<Last>,
    /// Jobs that could not be read, over all collections.
    pub malformed: u64,
}

/// UTC days in a row that can still change for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changing {
    /// The first,
    pub from: Day,
    /// and the last.
    pub to: Day,
    /// Why.
    pub why: Why,
}

/// Why a day is not final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is not over.
    Today,
    /// It is over, but news of it may still be on their way until then.
    Grace(Timestamp),
    /// A part of it was never collected.
    Gap,
    /// It is asked for once more at the next collection.
    AskedAgain,
    /// A job that has not ended held resources on it, since then.
    Open(Timestamp),
}

/// Looks into the archive; `None` if there is none.
///
/// # Errors
/// If it cannot be read.
pub fn look(
    archive: &Archive,
    now: Timestamp,
    grace: Duration,
) -> Result<Option<Holding>, ArchiveError> {
    let manifest = archive.manifest()?;
    if manifest.generation == 0 {
        archive.must_match(&manifest)?;
        return Ok(None);
    }
    let mut clusters = Vec::new();
    for (name, cluster) in &manifest.clusters {
        let files = archive.raw_files(name, manifest.generation)?;
        let raw = (files.len() as u64, files.iter().map(|file| file.item.bytes).sum());
        clusters.push(held(name, cluster, raw, now, grace));
    }
    let lost = archive.named(Look::Listing)?.lost;
    Ok(Some(Holding { schema: manifest.schema, generation: manifest.generation, clusters, lost }))
}

/// Which files are lost, in words; the first few by name.
#[must_use]
pub fn lost_in_words(lost: &[String]) -> String {
    let some: Vec<&str> = lost.iter().take(NAMED).map(String::as_str).collect();
    let more = if lost.len() > some.len() { ", …" } else { "" };
    let what = match lost.len() {
        1 => "1 file is missing or not the one that the manifest names".to_owned(),
        many => format!("{many} files are missing or not those that the manifest names"),
    };
    format!("{what}: {}{more}", some.join(", "))
}

fn held(name: &str, cluster: &Cluster, raw: (u64, u64), now: Timestamp, grace: Duration) -> Held {
    let (from, until) = (cluster.covered.first(), cluster.covered.last());
    let files = || cluster.days.values().chain(&cluster.open);
    let recent = cluster.days.iter().rev().filter(|(_, entry)| entry.rows > 0);
    let covered = from.zip(until).and_then(|(from, until)| Window::new(from, until));
    Held {
        cluster: name.to_owned(),
        from,
        until,
        runs: cluster.days.values().map(|entry| entry.rows).sum(),
        open: cluster.open.map_or(0, |entry| entry.rows),
        open_since: cluster.open_since.map(Timestamp::new),
        processed: (files().count() as u64, files().map(|entry| entry.bytes).sum()),
        raw,
        recent: recent.take(RECENT).map(|(day, entry)| (*day, entry.rows)).collect(),
        gaps: covered
            .map(|all| cluster.covered.missing(all).windows().to_vec())
            .unwrap_or_default(),
        changing: changing(cluster, now, grace),
        last: cluster.last,
        malformed: cluster.malformed,
    }
}

/// The days from the first that was collected up to today that can still change.
fn changing(cluster: &Cluster, now: Timestamp, grace: Duration) -> Vec<Changing> {
    let mut found: Vec<Changing> = Vec::new();
    let until = now.after(Duration::from_secs(1));
    let all = cluster.covered.first().and_then(|first| Window::new(first, until));
    for day in all.into_iter().flat_map(Day::touched) {
        let Some(why) = why(cluster, day, now, grace) else { continue };
        match found.last_mut() {
            Some(last) if last.why == why && last.to.next() == day => last.to = day,
            _ => found.push(Changing { from: day, to: day, why }),
        }
    }
    found
}

/// Why a day can still change; `None` if it cannot.
fn why(cluster: &Cluster, day: Day, now: Timestamp, grace: Duration) -> Option<Why> {
    if cluster.is_final(day) {
        return None;
    }
    // The first day may be wanted from its middle on only.
    let first = cluster.covered.first().unwrap_or(day.start());
    let wanted = Window::new(day.start().max(first), day.end())?;
    let settled = cluster.settled.holds(wanted);
    let open = cluster.open_since.filter(|since| *since < day.end().get()).map(Timestamp::new);
    if day.end() > now {
        Some(Why::Today)
    } else if !cluster.covered.holds(wanted) && cluster.covered.last() >= Some(day.end()) {
        Some(Why::Gap)
    } else if day.end().after(grace) > now {
        Some(Why::Grace(day.end().after(grace)))
    } else if !settled {
        Some(Why::AskedAgain)
    } else {
        open.map(Why::Open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::manifest::Entry;

    const DAY: i64 = 86_400;
    const GRACE: Duration = Duration::from_secs(6 * 3600);

    fn window(from: i64, to: i64) -> Window {
        Window::new(Timestamp::new(from), Timestamp::new(to)).unwrap()
    }

    fn day(number: i64) -> Day {
        Day::of(Timestamp::new(number * DAY))
    }

    fn of(cluster: &Cluster, now: i64) -> Held {
        held("c", cluster, (0, 0), Timestamp::new(now), GRACE)
    }

    #[test]
    fn days_are_final_or_say_why_not() {
        let now = 105 * DAY + 3600;
        let mut cluster = Cluster::default();
        cluster.covered.add(window(100 * DAY, now));
        cluster.settled.add(window(100 * DAY, 103 * DAY));
        let expected = |open: Option<i64>| {
            let mut list = vec![
                Changing { from: day(103), to: day(103), why: Why::AskedAgain },
                Changing {
                    from: day(104),
                    to: day(104),
                    why: Why::Grace(Timestamp::new(105 * DAY + 6 * 3600)),
                },
                Changing { from: day(105), to: day(105), why: Why::Today },
            ];
            if let Some(since) = open {
                let why = Why::Open(Timestamp::new(since));
                list.insert(0, Changing { from: day(101), to: day(102), why });
            }
            list
        };
        assert_eq!(of(&cluster, now).changing, expected(None));
        cluster.open_since = Some(101 * DAY + 7);
        assert_eq!(of(&cluster, now).changing, expected(Some(101 * DAY + 7)));
    }

    #[test]
    fn a_gap_is_seen() {
        let now = 105 * DAY;
        let mut cluster = Cluster::default();
        for (from, to) in [(100 * DAY, 102 * DAY - 60), (103 * DAY, now)] {
            cluster.covered.add(window(from, to));
            cluster.settled.add(window(from, to));
        }
        let held = of(&cluster, now);
        assert_eq!(held.gaps, [window(102 * DAY - 60, 103 * DAY)]);
        let gap = held.changing.first().unwrap();
        assert_eq!((gap.from, gap.to, gap.why), (day(101), day(102), Why::Gap));
    }

    #[test]
    fn the_last_days_and_sizes_are_told() {
        let mut cluster = Cluster::default();
        for number in 0..9i64 {
            let entry = Entry {
                generation: 1,
                mark: 0,
                rows: (number % 7).unsigned_abs(),
                bytes: 100,
                jobs: None,
            };
            cluster.days.insert(day(100 + number), entry);
        }
        cluster.open = Some(Entry { generation: 1, mark: 0, rows: 2, bytes: 11, jobs: None });
        let held = of(&cluster, 110 * DAY);
        assert_eq!((held.runs, held.open, held.processed), (22, 2, (10, 911)));
        // A day on which nothing ended is none of the last with runs.
        let recent: Vec<u64> = held.recent.iter().map(|(_, rows)| *rows).collect();
        assert_eq!((held.recent[0].0, recent), (day(108), vec![1, 6, 5, 4, 3]));
    }
}
