//! Where the text lies: a file for every UTC day on which jobs ended, one for those that have not,
//! and beside each where every run stands in it.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use steward_common::slurm::sacct::Layout;

use super::job::{Job, State};
use super::seal;

/// Name of the file of those that have not ended.
const OPEN: &str = "open";
/// Name of the file that is written last.
const LAYOUT: &str = "layout";
/// A run that goes on.
const NEVER: u64 = u64::MAX;
const DAY: u64 = 86_400;
/// How much is sent at a time.
const LARGE: u64 = 256 << 10;

/// Where a run stands, and when it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    job: u64,
    /// Its place in sacct's order.
    order: u64,
    eligible: u64,
    end: u64,
    offset: u64,
    length: u64,
    /// 1 if it was cancelled.
    cancelled: u64,
}

impl Entry {
    const SIZE: usize = 56;

    fn bytes(self) -> [u8; Entry::SIZE] {
        let mut bytes = [0; Entry::SIZE];
        let Entry { job, order, eligible, end, offset, length, cancelled } = self;
        let words = [job, order, eligible, end, offset, length, cancelled];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn read(bytes: &[u8]) -> Entry {
        let word = |at: usize| {
            u64::from_le_bytes(bytes[at * 8..at * 8 + 8].try_into().expect("eight bytes"))
        };
        let (job, order, eligible, end) = (word(0), word(1), word(2), word(3));
        Entry { job, order, eligible, end, offset: word(4), length: word(5), cancelled: word(6) }
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
    pub(super) fn add(&mut self, run: &Job, text: &[u8]) -> io::Result<()> {
        let end = run.end;
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
            job: run.id,
            order: self.order,
            eligible: run.eligible(),
            end: end.unwrap_or(NEVER),
            offset: day.length,
            length: text.len() as u64,
            cancelled: u64::from(run.state == State::Cancelled),
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

/// The entries of an index of which a job may lie from `low` to `high`. Numbers of jobs grow with the
/// order of their submission, so its first and last entry say whether there are any.
fn entries(index: &Path, low: u64, high: u64) -> io::Result<Vec<Entry>> {
    let mut file = File::open(index)?;
    let mut at = |place| {
        let mut bytes = [0; Entry::SIZE];
        file.seek(place)?;
        file.read_exact(&mut bytes)?;
        Ok::<_, io::Error>(Entry::read(&bytes).job)
    };
    if fs::metadata(index)?.len() == 0 {
        return Ok(Vec::new());
    }
    let (first, last) = (at(SeekFrom::Start(0))?, at(SeekFrom::End(-(Entry::SIZE as i64)))?);
    if high < first || last < low {
        return Ok(Vec::new());
    }
    Ok(fs::read(index)?.chunks_exact(Entry::SIZE).map(Entry::read).collect())
}

/// Text on disk, that can be asked as sacct can.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    seal: Vec<u8>,
}

impl Store {
    /// The store in this directory.
    #[must_use]
    pub fn new(directory: &Path) -> Store {
        Store { directory: directory.to_owned(), seal: Vec::new() }
    }

    /// The same with a seal behind every time.
    #[must_use]
    pub fn sealed(self, seal: &str) -> Store {
        Store { seal: seal.as_bytes().to_vec(), ..self }
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
        self.pieces(from, |entry| entry.is_in(from, until), out)
    }

    /// The same for runs that were cancelled, and ended in that time.
    ///
    /// # Errors
    /// If a file cannot be read, or nobody reads any longer.
    pub fn cancelled(
        &self,
        from: u64,
        until: u64,
        out: &mut (impl Write + ?Sized),
    ) -> io::Result<u64> {
        let wanted = |entry: &Entry| entry.cancelled == 1 && (from..until).contains(&entry.end);
        self.pieces(from, wanted, out)
    }

    /// The same for all runs that ended in that time, or in the second after it, as sacct does.
    ///
    /// # Errors
    /// If a file cannot be read, or nobody reads any longer.
    pub fn ended(&self, from: u64, until: u64, out: &mut (impl Write + ?Sized)) -> io::Result<u64> {
        self.pieces(from, |entry| (from..=until).contains(&entry.end), out)
    }

    /// The text of every run of these jobs, in the order of submission.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn runs_of(&self, jobs: &[u64]) -> io::Result<Vec<Vec<u8>>> {
        let (Some(low), Some(high)) = (jobs.iter().min(), jobs.iter().max()) else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for day in days(&self.directory)? {
            let entries = entries(&path(&self.directory, day, "index"), *low, *high)?;
            let mut text = File::open(path(&self.directory, day, "txt"))?;
            for job in jobs {
                let first = entries.partition_point(|entry| entry.job < *job);
                for entry in entries[first..].iter().take_while(|entry| entry.job == *job) {
                    text.seek(SeekFrom::Start(entry.offset))?;
                    let mut bytes = Vec::new();
                    (&mut text).take(entry.length).read_to_end(&mut bytes)?;
                    found.push((entry.order, seal::put(bytes, &self.seal)));
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(found.into_iter().map(|(_, text)| text).collect())
    }

    fn pieces(
        &self,
        from: u64,
        wanted: impl Fn(&Entry) -> bool,
        out: &mut (impl Write + ?Sized),
    ) -> io::Result<u64> {
        let mut files = Vec::new();
        let mut pieces: Vec<(usize, Entry)> = Vec::new();
        for day in days(&self.directory)? {
            if day != NEVER && (day + 1) * DAY <= from {
                continue;
            }
            let index = fs::read(path(&self.directory, day, "index"))?;
            let entries = index.chunks_exact(Entry::SIZE).map(Entry::read);
            let number = files.len();
            pieces.extend(entries.filter(|entry| wanted(entry)).map(|entry| (number, entry)));
            files.push(File::open(path(&self.directory, day, "txt"))?);
        }
        pieces.sort_unstable_by_key(|(_, entry)| entry.order);
        let joins = |(file, one): &(usize, Entry), (other, next): &(usize, Entry)| {
            file == other && one.offset + one.length == next.offset
        };
        let mut sent = 0;
        let mut buffer = Vec::new();
        let mut send = |buffer: Vec<u8>| {
            let text = seal::put(buffer, &self.seal);
            sent += text.len() as u64;
            out.write_all(&text)
        };
        for piece in pieces.chunk_by(joins) {
            let (Some((number, first)), Some((_, last))) = (piece.first(), piece.last()) else {
                continue;
            };
            let file = &mut files[*number];
            file.seek(SeekFrom::Start(first.offset))?;
            let length = last.offset + last.length - first.offset;
            let mut left = length;
            while left > 0 {
                let part = left.min(LARGE);
                file.take(part).read_to_end(&mut buffer)?;
                left -= part;
                if buffer.len() as u64 >= LARGE {
                    // A seal has no line end in it, so none is cut in two.
                    let end = memchr::memrchr(b'\n', &buffer).map_or(0, |at| at + 1);
                    let rest = buffer.split_off(end);
                    send(std::mem::replace(&mut buffer, rest))?;
                }
            }
        }
        send(buffer)?;
        out.flush()?;
        Ok(sent)
    }

    /// The layout of the rows; `None` if the store is not whole.
    #[must_use]
    pub fn layout(&self) -> Option<Layout> {
        let names = fs::read_to_string(self.directory.join(LAYOUT)).ok()?;
        Layout::of_names(names.trim())
    }

    /// Says that all is written: rows of this layout.
    pub(super) fn close(&self, layout: &Layout) -> io::Result<()> {
        fs::write(self.directory.join(LAYOUT), layout.names())
    }
}
