//! A user is forgotten: all runs go from both layers, and do not come back.

use std::collections::HashSet;

use steward_common::slurm::sacct::{Layout, Row, owner, row};
use steward_common::time::Timestamp;

use super::{KeepError, import};
use crate::archive::lock::Lock;
use crate::archive::manifest::{Forgotten, words};
use crate::archive::processed::ProcessedWriter;
use crate::archive::raw::Form;
use crate::archive::raw_read::{RawRow, RawTable};
use crate::archive::read::RunKey;
use crate::archive::short::Places;
use crate::archive::store::RawFile;
use crate::archive::{Archive, ArchiveError, Change, Part, carry, raw_filter};
use crate::collect::mend::Mended;
use crate::source::slurm::lines::text_of;

/// Who is forgotten, where.
pub struct Order<'a> {
    /// The user's name as the archive has it.
    pub user: &'a str,
    /// Only on this cluster.
    pub cluster: Option<&'a str>,
    /// Now.
    pub now: Timestamp,
    /// Says whether to stop.
    pub stop: &'a dyn Fn() -> bool,
}

/// What went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gone {
    /// Runs.
    pub runs: usize,
    /// Raw rows.
    pub rows: u64,
    /// Files that were written anew.
    pub files: usize,
}

/// How many runs of the user there are.
///
/// # Errors
/// If the archive cannot be read.
pub fn count(archive: &Archive, order: &Order<'_>) -> Result<usize, ArchiveError> {
    archive.consistently(|manifest| {
        let mut runs = 0;
        for (cluster, entry) in &manifest.clusters {
            if order.cluster.is_some_and(|only| only != cluster) {
                continue;
            }
            let days = entry.days.iter().map(|(day, entry)| (Part::Day(*day), *entry));
            for (part, file) in days.chain(entry.open.map(|file| (Part::Open, file))) {
                let Some(table) = archive.open(cluster, part, file)? else { return Ok(None) };
                carry::owners(&table, |_, user| runs += usize::from(user == order.user))?;
            }
        }
        Ok(Some(runs))
    })
}

/// Forgets the user. The lock comes back.
///
/// # Errors
/// If anything fails; then the archive is as it was.
pub fn run(archive: &Archive, lock: Lock, order: &Order<'_>) -> Result<(Gone, Lock), KeepError> {
    let mut change = archive.change(lock)?;
    let (mut gone, mut before, mut empty) = (Gone::default(), order.now, Vec::new());
    for cluster in archive.clusters(&change.manifest)? {
        if order.cluster.is_some_and(|only| only != cluster) {
            continue;
        }
        let mut forget = Forget {
            archive,
            order,
            cluster: &cluster,
            files: archive.raw_files(&cluster, change.generation())?,
            runs: HashSet::new(),
            named: HashSet::new(),
            gone: &mut gone,
            empty: &mut empty,
        };
        forget.run(&mut change)?;
        // Clocks differ: what is here was submitted, whatever our own says.
        let last = forget.runs.iter().map(|(_, submit)| submit.get().saturating_add(1)).max();
        before = before.max(Timestamp::new(last.unwrap_or(0)));
        gone.runs += forget.runs.len();
    }
    enter(&mut change.manifest.forgotten, order, before);
    let lock = change.commit()?;
    for name in empty {
        archive.shelf().delete(&name).map_err(ArchiveError::after_change)?;
    }
    Ok((gone, lock))
}

/// Sees to it that the user's runs are not collected again.
fn enter(list: &mut Vec<Forgotten>, order: &Order<'_>, before: Timestamp) {
    let (digest, before) = (Forgotten::digest(order.user), before.get());
    let cluster = order.cluster.map(str::to_owned);
    match list.iter_mut().find(|one| one.digest == digest && one.cluster == cluster) {
        Some(one) => one.before = one.before.max(before),
        None => list.push(Forgotten { digest, length: order.user.len(), cluster, before }),
    }
}

/// A cluster on which the user is being forgotten.
struct Forget<'a> {
    archive: &'a Archive,
    order: &'a Order<'a>,
    cluster: &'a str,
    files: Vec<RawFile>,
    /// The user's runs.
    runs: HashSet<RunKey>,
    /// Raw files with a text that is no row and names the user.
    named: HashSet<String>,
    gone: &'a mut Gone,
    /// Raw files of which nothing is left.
    empty: &'a mut Vec<String>,
}

impl Forget<'_> {
    fn run(&mut self, change: &mut Change) -> Result<(), KeepError> {
        self.look_at_raw()?;
        self.processed(change)?;
        self.raw(change)
    }

    fn may_go_on(&self) -> Result<(), KeepError> {
        if (self.order.stop)() { Err(KeepError::Stopped) } else { Ok(()) }
    }

    /// Finds the user's runs in `raw`.
    fn look_at_raw(&mut self) -> Result<(), KeepError> {
        for file in &self.files {
            self.may_go_on()?;
            let table = RawTable::open(self.archive, file)?;
            table.rows::<KeepError>(|row| {
                if row.begins_version() {
                    if is_of(self.order.user, row, table.layout()) {
                        self.runs.extend(row.run());
                    }
                } else if row.form == Form::Malformed && names(row.text, self.order.user) {
                    self.named.insert(file.item.name.clone());
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Writes parts of `processed` anew without the user's runs, of which it finds more here.
    fn processed(&mut self, change: &mut Change) -> Result<(), KeepError> {
        let entry = change.manifest.clusters.get(self.cluster).cloned().unwrap_or_default();
        let days = entry.days.iter().map(|(day, entry)| (Part::Day(*day), *entry));
        for (part, file) in days.chain(entry.open.map(|file| (Part::Open, file))) {
            self.may_go_on()?;
            let Some(table) = self.archive.open(self.cluster, part, file)? else {
                return Err(self.archive.missing(self.cluster, part).into());
            };
            let mut found = false;
            carry::owners(&table, |run, user| {
                if user == self.order.user {
                    self.runs.insert(run);
                }
                found |= self.runs.contains(&run);
            })?;
            if !found {
                continue;
            }
            let scratch = self.archive.shelf().scratch()?;
            let mut writer = ProcessedWriter::new(scratch, change.generation())?;
            carry::carry(&table, &mut writer, |run, _| !self.runs.contains(&run))?;
            let rows = writer.rows();
            self.gone.files += 1;
            match part {
                Part::Day(day) if rows == 0 => {
                    let entry = change.manifest.clusters.get_mut(self.cluster);
                    entry.map(|entry| entry.days.remove(&day));
                }
                _ => change.stage_part(self.cluster, part, writer.finish()?, rows)?,
            }
        }
        Ok(())
    }

    /// Writes raw files anew without the user's rows.
    fn raw(&mut self, change: &mut Change) -> Result<(), KeepError> {
        for file in &self.files {
            self.may_go_on()?;
            let table = RawTable::open(self.archive, file)?;
            let name = &file.item.name;
            let mut found = self.named.contains(name);
            table.versions(|_, row| {
                found |= row.run().is_some_and(|run| self.runs.contains(&run))
            })?;
            if !found {
                continue;
            }
            let (new, rows) = raw_filter::filter(&table, self.archive.shelf(), |row| {
                let own = row.run().is_some_and(|run| self.runs.contains(&run));
                let named = || row.form == Form::Malformed && names(row.text, self.order.user);
                !own && !named()
            })?;
            change.stage(new, name)?;
            self.gone.rows += table.table().rows() - rows;
            self.gone.files += 1;
            if rows == 0 {
                self.empty.push(name.clone());
            }
        }
        Ok(())
    }
}

/// Whether the first row of a version is of a run of the user.
fn is_of(user: &str, row: &RawRow<'_>, layout: Option<&Layout>) -> bool {
    let of = |row: Option<Row<'_>>| row.map(|row| owner(&row) == user);
    let plain = |text: &[u8]| {
        let text = text_of(text);
        of(Row::new(layout?, &text, 0, &row::ends(&text)))
    };
    let known = match row.form {
        Form::Plain => plain(row.text),
        Form::Short => {
            let mut text = Vec::new();
            row.expand_first(layout.map(Places::of).as_ref(), &mut text).and_then(|()| plain(&text))
        }
        Form::Mended => layout.and_then(|layout| of(Mended::read(row.text)?.row(layout))),
        Form::Import => import::user(row.text).map(|one| one == user),
        Form::Agent | Form::Malformed => None,
    };
    // What cannot be read may name the user all the same.
    known.unwrap_or_else(|| row.texts().any(|text| names(text, user)))
}

/// Whether the text holds the name as a word.
fn names(text: &[u8], user: &str) -> bool {
    words(text, user.len()).any(|word| word == user.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_as_a_word_and_not_within_another() {
        for (text, found) in [
            ("7\x1falice\x1f8", true),
            ("{\"user\":\"alice\"}", true),
            ("/home/alice/x", true),
            ("alice", true),
            ("malice", false),
            ("alice2 alice-b al.alice", false),
            ("alice2 alice", true),
            ("", false),
        ] {
            assert_eq!(names(text.as_bytes(), "alice"), found, "{text:?}");
        }
        assert!(!names(b"anything", ""));
    }

    #[test]
    fn a_user_who_is_forgotten_again_is_forgotten_until_later() {
        let mut list = Vec::new();
        let order =
            |cluster| Order { user: "alice", cluster, now: Timestamp::new(0), stop: &|| false };
        enter(&mut list, &order(None), Timestamp::new(5));
        enter(&mut list, &order(None), Timestamp::new(9));
        enter(&mut list, &order(None), Timestamp::new(7));
        enter(&mut list, &order(Some("c1")), Timestamp::new(20));
        assert_eq!(list.len(), 2);
        let holds =
            |cluster, user, submit| Forgotten::holds(&list, cluster, user, Timestamp::new(submit));
        assert!(holds("c2", "alice", 8) && !holds("c2", "alice", 9) && !holds("c2", "bob", 8));
        assert!(holds("c1", "alice", 19) && !holds("c1", "alice", 20));
    }
}
