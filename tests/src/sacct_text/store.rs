//! Where the text lies: a file for every UTC day on which jobs ended, one for those that have not,
//! and beside each where every run stands in it.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use steward_common::slurm::sacct::Layout;

/// Name of the file of those that have not ended.
const OPEN: &str = "open";
/// A run that goes on.
const NEVER: u64 = u64::MAX;
const DAY: u64 = 86_400;
/// Pieces that are longer go from file to pipe without a way through this process.
const LARGE: u64 = 64 << 10;

/// Where a run stands, and when it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    /// Its place in sacct's order.
    order: u64,
    eligible: u64,
    end: u64,
    offset: u64,
    length: u64,
}

impl Entry {
    const SIZE: usize = 40;

    fn bytes(self) -> [u8; Entry::SIZE] {
        let mut bytes = [0; Entry::SIZE];
        let words = [self.order, self.eligible, self.end, self.offset, self.length];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn read(bytes: &[u8]) -> Entry {
        let word = |at: usize| {
            u64::from_le_bytes(bytes[at * 8..at * 8 + 8].try_into().expect("eight bytes"))
        };
        let (order, eligible, end) = (word(0), word(1), word(2));
        Entry { order, eligible, end, offset: word(3), length: word(4) }
    }

    /// Whether sacct counts it to the time from `from` until before `until`.
    fn is_in(&self, from: u64, until: u64) -> bool {
        self.eligible < until && self.end >= from
    }
}

/// The file of a day while it is written.
struct Day {
    text: BufWriter<File>,
    index: BufWriter<File>,
    length: u64,
}

/// Writes a store.
pub(super) struct Writer {
    directory: PathBuf,
    /// By number of the day since 1970; the last is that of the open ones.
    days: std::collections::BTreeMap<u64, Day>,
    order: u64,
}

impl Writer {
    pub(super) fn new(directory: &Path) -> io::Result<Writer> {
        fs::create_dir_all(directory)?;
        let days = std::collections::BTreeMap::new();
        Ok(Writer { directory: directory.to_owned(), days, order: 0 })
    }

    /// Adds a run's rows.
    pub(super) fn add(&mut self, eligible: u64, end: Option<u64>, text: &[u8]) -> io::Result<()> {
        let number = end.map_or(NEVER, |end| end / DAY);
        let day = match self.days.entry(number) {
            std::collections::btree_map::Entry::Occupied(day) => day.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                let file = |kind| {
                    let file = File::create(path(&self.directory, number, kind))?;
                    Ok::<_, io::Error>(BufWriter::with_capacity(1 << 18, file))
                };
                place.insert(Day { text: file("txt")?, index: file("index")?, length: 0 })
            }
        };
        let entry = Entry {
            order: self.order,
            eligible,
            end: end.unwrap_or(NEVER),
            offset: day.length,
            length: text.len() as u64,
        };
        day.index.write_all(&entry.bytes())?;
        day.text.write_all(text)?;
        day.length += entry.length;
        self.order += 1;
        Ok(())
    }

    pub(super) fn finish(self) -> io::Result<()> {
        for mut day in self.days.into_values() {
            day.text.flush()?;
            day.index.flush()?;
        }
        Ok(())
    }
}

/// The file of a day: `20410.txt`, `open.index`.
fn path(directory: &Path, day: u64, kind: &str) -> PathBuf {
    let name = if day == NEVER { OPEN.to_owned() } else { format!("{day:06}") };
    directory.join(name).with_extension(kind)
}

/// The days of which there are files, in order.
fn days(directory: &Path) -> io::Result<Vec<u64>> {
    let mut days = Vec::new();
    for file in fs::read_dir(directory)? {
        let path = file?.path();
        if path.extension().is_some_and(|kind| kind == "txt") {
            let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            days.extend(if name == OPEN { Some(NEVER) } else { name.parse().ok() });
        }
    }
    days.sort_unstable();
    Ok(days)
}

/// Text on disk, that can be asked as sacct can.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
}

impl Store {
    /// The store in this directory.
    #[must_use]
    pub fn new(directory: &Path) -> Store {
        Store { directory: directory.to_owned() }
    }

    /// The files of text, in the order of the days.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn files(&self) -> io::Result<Vec<PathBuf>> {
        let days = days(&self.directory)?;
        Ok(days.into_iter().map(|day| path(&self.directory, day, "txt")).collect())
    }

    /// Writes what sacct prints for the time from `from` until before `until`, and says how many
    /// bytes that was: every run that was eligible before the end and had not ended before the
    /// beginning, in the order of submission.
    ///
    /// # Errors
    /// If a file cannot be read, or nobody reads any longer.
    pub fn serve(&self, from: u64, until: u64, out: &mut (impl Write + ?Sized)) -> io::Result<u64> {
        let mut files = Vec::new();
        let mut pieces: Vec<(usize, Entry)> = Vec::new();
        for day in days(&self.directory)? {
            if day != NEVER && (day + 1) * DAY <= from {
                continue;
            }
            let index = fs::read(path(&self.directory, day, "index"))?;
            let entries = index.chunks_exact(Entry::SIZE).map(Entry::read);
            let number = files.len();
            pieces.extend(
                entries.filter(|entry| entry.is_in(from, until)).map(|entry| (number, entry)),
            );
            files.push(File::open(path(&self.directory, day, "txt"))?);
        }
        pieces.sort_unstable_by_key(|(_, entry)| entry.order);
        let joins = |(file, one): &(usize, Entry), (other, next): &(usize, Entry)| {
            file == other && one.offset + one.length == next.offset
        };
        let mut sent = 0;
        let mut buffer = Vec::new();
        for piece in pieces.chunk_by(joins) {
            let (Some((number, first)), Some((_, last))) = (piece.first(), piece.last()) else {
                continue;
            };
            let file = &mut files[*number];
            file.seek(SeekFrom::Start(first.offset))?;
            let length = last.offset + last.length - first.offset;
            let mut part = file.take(length);
            sent += length;
            if length >= LARGE {
                out.write_all(&buffer)?;
                buffer.clear();
                io::copy(&mut part, out)?;
            } else {
                part.read_to_end(&mut buffer)?;
                if buffer.len() as u64 >= LARGE {
                    out.write_all(&buffer)?;
                    buffer.clear();
                }
            }
        }
        out.write_all(&buffer)?;
        out.flush()?;
        Ok(sent)
    }

    /// The layout of the rows; `None` if the store is not whole.
    #[must_use]
    pub fn layout(&self) -> Option<Layout> {
        let names = fs::read_to_string(self.directory.join("fields")).ok()?;
        Layout::of_names(names.trim())
    }

    /// Says that all is written: rows of this layout.
    pub(super) fn seal(&self, layout: &Layout) -> io::Result<()> {
        fs::write(self.directory.join("fields"), layout.names())
    }
}
