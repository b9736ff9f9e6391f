//! The least that can be done with the text: cut it into fields, sixteen bytes at a time, read the
//! figures of each job, and sum them by user.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use steward_common::slurm::sacct::{DELIMITER, Field, Layout};
use wide::u8x16;

/// Text that is looked at in one go; it fits into the second cache.
const CHUNK: usize = 256 << 10;
/// More fields than a row has.
const FIELDS: usize = 64;

/// What a user's jobs held and used.
#[derive(Debug, Default, Clone, Copy)]
pub struct Sums {
    /// How many ran or waited.
    pub jobs: u64,
    /// CPU hours, held and used.
    pub cpu: (f64, f64),
    /// KiB hours, held and used.
    pub memory: (f64, f64),
    /// GPU hours held.
    pub gpu: f64,
    /// Seconds waited.
    pub wait: i64,
}

/// Sums by user, and what was seen.
#[derive(Debug, Default)]
pub struct Totals {
    /// Bytes of text.
    pub bytes: u64,
    /// Lines that are rows.
    pub rows: u64,
    /// Lines that are not: their names hold line ends or delimiters.
    pub odd: u64,
    /// By user.
    pub users: HashMap<Vec<u8>, Sums>,
}

/// The job whose steps come next; at first one without an id.
#[derive(Debug, Default)]
struct Job {
    id: Vec<u8>,
    user: Vec<u8>,
    elapsed: u64,
    cpus: u64,
    held: f64,
    gpus: u64,
    cpu: f64,
    peak: f64,
    wait: i64,
}

/// Where the fields stand that are read.
#[derive(Clone, Copy)]
struct Places {
    width: usize,
    id: usize,
    user: usize,
    submit: usize,
    start: usize,
    end: usize,
    elapsed: usize,
    cpus: usize,
    held: usize,
    tres: usize,
    cpu: usize,
    peak: usize,
}

impl Places {
    fn of(layout: &Layout) -> Places {
        let place = |field| layout.place(field).expect("a field that every sacct has");
        Places {
            width: layout.width(),
            id: place(Field::JobIdRaw),
            user: place(Field::User),
            submit: place(Field::Submit),
            start: place(Field::Start),
            end: place(Field::End),
            elapsed: place(Field::Elapsed),
            cpus: place(Field::AllocCpus),
            held: place(Field::ReqMem),
            tres: place(Field::AllocTres),
            cpu: place(Field::TotalCpu),
            peak: place(Field::MaxRss),
        }
    }
}

/// Reads the files and sums.
///
/// # Errors
/// If one cannot be read.
pub fn sum(files: &[impl AsRef<Path>], layout: &Layout) -> io::Result<Totals> {
    let mut reader =
        Reader { places: Places::of(layout), job: Job::default(), totals: Totals::default() };
    let mut buffer = vec![0; CHUNK];
    for path in files {
        let mut file = File::open(path)?;
        let mut filled = 0;
        loop {
            let read = file.read(&mut buffer[filled..])?;
            if read == 0 {
                break;
            }
            reader.totals.bytes += read as u64;
            filled += read;
            let rest = reader.lines(&buffer[..filled]);
            buffer.copy_within(rest..filled, 0);
            filled -= rest;
            if filled == buffer.len() {
                buffer.resize(buffer.len() * 2, 0);
            }
        }
    }
    reader.finish();
    Ok(reader.totals)
}

struct Reader {
    places: Places,
    job: Job,
    totals: Totals,
}

impl Reader {
    /// Reads the whole lines of the text, and says where the last, unfinished one begins.
    fn lines(&mut self, text: &[u8]) -> usize {
        let mut begin = 0;
        let mut ends = [0u32; FIELDS + 1];
        let mut count = 0;
        delimiters(text, |at| {
            if count < FIELDS {
                count += 1;
                ends[count] = (at - begin) as u32 + 1;
            }
            if text[at] == b'\n' {
                if count == self.places.width {
                    self.totals.rows += 1;
                    self.row(&text[begin..], &ends);
                } else {
                    self.totals.odd += 1;
                }
                count = 0;
                begin = at + 1;
            }
        });
        begin
    }

    #[inline]
    fn row(&mut self, line: &[u8], ends: &[u32; FIELDS + 1]) {
        let field = |place: usize| &line[ends[place] as usize..ends[place + 1] as usize - 1];
        let places = self.places;
        let id = field(places.id);
        match id.iter().position(|byte| *byte == b'.') {
            None => {
                self.finish();
                let job = &mut self.job;
                job.id.clear();
                job.id.extend_from_slice(id);
                job.user.clear();
                job.user.extend_from_slice(field(places.user));
                job.elapsed = number(field(places.elapsed));
                job.cpus = number(field(places.cpus));
                job.held = kibibytes(field(places.held));
                job.gpus = gpus(field(places.tres));
                job.cpu = seconds(field(places.cpu));
                job.peak = 0.0;
                let (submit, start) = (number(field(places.submit)), number(field(places.start)));
                let over = number(field(places.end)) > 0;
                job.wait = if over && start > 0 { start as i64 - submit as i64 } else { 0 };
            }
            Some(dot) => {
                if self.job.id == id[..dot] {
                    self.job.peak = self.job.peak.max(kibibytes(field(places.peak)));
                }
            }
        }
    }

    fn finish(&mut self) {
        let job = &self.job;
        if job.id.is_empty() {
            return;
        }
        let hours = job.elapsed as f64 / 3600.0;
        let sums = match self.totals.users.get_mut(&job.user) {
            Some(sums) => sums,
            None => self.totals.users.entry(job.user.clone()).or_default(),
        };
        sums.jobs += 1;
        sums.cpu.0 += job.cpus as f64 * hours;
        sums.cpu.1 += job.cpu / 3600.0;
        sums.memory.0 += job.held * hours;
        sums.memory.1 += job.peak * hours;
        sums.gpu += job.gpus as f64 * hours;
        sums.wait += job.wait;
    }
}

/// Calls `see` with the place of each delimiter and line end.
#[inline]
fn delimiters(text: &[u8], mut see: impl FnMut(usize)) {
    let (field, line) = (u8x16::splat(DELIMITER), u8x16::splat(b'\n'));
    let (blocks, rest) = text.as_chunks::<64>();
    let mut begin = 0;
    for block in blocks {
        let mut mask = 0u64;
        for (place, bytes) in block.as_chunks::<16>().0.iter().enumerate() {
            let bytes = u8x16::new(*bytes);
            let found = bytes.simd_eq(field) | bytes.simd_eq(line);
            mask |= u64::from(found.to_bitmask()) << (place * 16);
        }
        while mask != 0 {
            see(begin + mask.trailing_zeros() as usize);
            mask &= mask - 1;
        }
        begin += 64;
    }
    for (place, byte) in rest.iter().enumerate() {
        if *byte == DELIMITER || *byte == b'\n' {
            see(begin + place);
        }
    }
}

/// The number that the text begins with; 0 if it is a word.
#[inline]
fn number(text: &[u8]) -> u64 {
    let mut number = 0u64;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
    }
    number
}

/// Memory, in bytes if there is no letter.
fn kibibytes(text: &[u8]) -> f64 {
    let factor = match text.last() {
        Some(b'K') => 1.0,
        Some(b'M') => 1024.0,
        Some(b'G') => 1_048_576.0,
        Some(b'T') => 1_073_741_824.0,
        _ => 1.0 / 1024.0,
    };
    let whole = number(text) as f64;
    match text.iter().position(|byte| *byte == b'.') {
        Some(point) => {
            let fraction = text[point + 1..].split_last().map_or(&[][..], |(_, digits)| digits);
            (whole + number(fraction) as f64 / 10f64.powi(fraction.len() as i32)) * factor
        }
        None => whole * factor,
    }
}

/// `1-02:03:04`, `02:03:04` or `03:04.567`.
fn seconds(text: &[u8]) -> f64 {
    let (mut days, mut sum, mut part) = (0u64, 0u64, 0u64);
    for (place, byte) in text.iter().enumerate() {
        match byte {
            b'-' => (days, part) = (part, 0),
            b':' => (sum, part) = ((sum + part) * 60, 0),
            b'.' => {
                let fraction = number(&text[place + 1..]) as f64 / 1000.0;
                return (days * 86_400 + sum + part) as f64 + fraction;
            }
            digit => part = part * 10 + u64::from(digit.wrapping_sub(b'0')),
        }
    }
    (days * 86_400 + sum + part) as f64
}

/// The untyped figure.
fn gpus(text: &[u8]) -> u64 {
    let mut parts = text.split(|byte| *byte == b',');
    parts.find_map(|part| part.strip_prefix(b"gres/gpu=")).map_or(0, number)
}
