//! sacct's answer, read as a stream: bytes become rows, rows become the jobs they belong to.
//!
//! A name, a comment or a command line may hold line ends and delimiters, so a line is not a row: a
//! row begins where a line has a submission with this call's [`Seal`] on it, which no user can
//! know, and goes up to the next. It is whole when its number of fields is right and it ends with
//! the id it begins with ([`Layout`]). What is not whole is handed on as it came, without seals.
//! Text that is of no row is handed on too, wherever it stands.

use std::borrow::Cow;
use std::io::{self, Read};
use std::ops::Range;

use steward_common::alike::behind;
use steward_common::slurm::sacct::{DELIMITER, Field, Layout, Row};

use super::marks::Marks;
use super::seal::{self, Seal};

mod bound;
mod stray;

use stray::Stray;

/// How much is read at a time. A job with very many steps makes the buffer grow beyond it.
const BLOCK: usize = if cfg!(test) { 50 } else { 256 << 10 };

/// One job of the answer.
pub enum Piece<'a> {
    /// All its rows are whole: its own first, then those of its steps.
    Whole(Job<'a>),
    /// A row of it is not whole.
    Broken {
        /// The job's number, if the text begins with one.
        id: Option<&'a str>,
        /// When it was submitted, if the text begins with the job's own row.
        submit: Option<&'a str>,
        /// All its lines as they came, without those that are no row.
        bytes: Cow<'a, [u8]>,
        /// Parts of them that are no row either, unless a text of the job has them: it would have to
        /// look like the end of its row.
        doubt: Vec<&'a [u8]>,
    },
    /// Text that is no row.
    Stray {
        /// The job's number, if it is a row that was cut short.
        id: Option<&'a str>,
        /// The text as it came.
        bytes: &'a [u8],
    },
}

/// The rows of a job.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    layout: &'a Layout,
    text: &'a str,
    bytes: &'a [u8],
    marks: &'a [u32],
    mended: &'a [u32],
    rows: &'a [Span],
    has_separators: bool,
    /// Whether there is other text between its rows.
    is_apart: bool,
}

impl<'a> Job<'a> {
    /// The rows, the job's own first.
    pub fn rows(self) -> impl Iterator<Item = Row<'a>> + Clone {
        let Job { layout, text, marks, mended, .. } = self;
        self.rows.iter().filter_map(move |span| {
            Some(Row::again(layout, text, span.start, span.ends(marks, mended)?))
        })
    }

    /// Whether a row may hold one of the control characters from 0x18 to 0x1e.
    #[must_use]
    pub fn may_have_separators(self) -> bool {
        self.has_separators
    }

    /// The bytes of the answer in which its rows stand at their places.
    #[must_use]
    pub fn answer(self) -> &'a [u8] {
        self.bytes
    }

    /// The bytes of all its rows, each with its line end.
    #[must_use]
    pub fn bytes(self) -> Cow<'a, [u8]> {
        if self.is_apart {
            let row = |row: Row<'_>| self.bytes.get(row.span()).unwrap_or_default();
            let rows: Vec<&[u8]> = self.rows().flat_map(|one| [row(one), b"\n"]).collect();
            return rows.concat().into();
        }
        let start = self.rows.first().map_or(0, |span| span.start);
        self.bytes.get(start..).unwrap_or_default().into()
    }
}

/// Where a row is: its first byte, and where in the list of marks its fields end.
#[derive(Clone, Debug)]
struct Span {
    start: usize,
    marks: Range<usize>,
    mended: bool,
}

impl Span {
    /// Where its fields end.
    #[inline]
    fn ends<'a>(&self, marks: &'a [u32], mended: &'a [u32]) -> Option<&'a [u32]> {
        let list = if self.mended { mended } else { marks };
        list.get(self.marks.clone())
    }
}

/// Reads an answer.
pub struct Lines<'l> {
    layout: &'l Layout,
    seal: &'l Seal,
    /// The buffer, of which the first `filled` bytes were read.
    bytes: Vec<u8>,
    filled: usize,
    /// So many bytes are text without seals; in what follows a seal may begin.
    clean: usize,
    /// Where seals were.
    seals: Vec<u32>,
    marks: Marks,
    mended: Vec<u32>,
    rows: Vec<Span>,
}

impl<'l> Lines<'l> {
    /// A reader of rows of this layout, whose times have this seal on them.
    #[must_use]
    pub fn new(layout: &'l Layout, seal: &'l Seal) -> Lines<'l> {
        Lines {
            layout,
            seal,
            bytes: Vec::new(),
            filled: 0,
            clean: 0,
            seals: Vec::new(),
            marks: Marks::default(),
            mended: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Reads to the end, and shows every job to `visit`.
    ///
    /// # Errors
    /// If the answer cannot be read, or `visit` fails.
    pub fn read<E: From<io::Error>>(
        &mut self,
        mut answer: impl Read,
        mut visit: impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        (self.filled, self.clean) = (0, 0);
        self.seals.clear();
        let mut block = BLOCK;
        let (mut is_sealed, mut has_fields) = (false, false);
        loop {
            let ended = self.fill(&mut answer, block)?;
            self.unseal(ended);
            is_sealed |= !self.seals.is_empty();
            // Text without fields may be a greeting before an answer without jobs.
            has_fields |= !is_sealed && self.bytes.get(..self.filled).is_some_and(is_of_fields);
            if ended && has_fields && !is_sealed {
                let why = "its times are not as SLURM_TIME_FORMAT says; \
                           slurm.sacct must pass its environment on to sacct";
                return Err(io::Error::new(io::ErrorKind::InvalidData, why).into());
            }
            let done = self.jobs(ended, &mut visit)?;
            if ended {
                return Ok(());
            }
            self.bytes.copy_within(done..self.filled, 0);
            self.filled -= done;
            self.clean -= done;
            self.seals.drain(..self.seals.partition_point(|at| (*at as usize) < done));
            for at in &mut self.seals {
                *at -= done as u32;
            }
            // Nothing was whole: the job is larger than the block.
            block = if done == 0 { block * 2 } else { BLOCK.max(self.filled * 2) };
            // In what is left, only that behind the last seal may be without a row.
            let row = self.filled - self.seals.last().map_or(0, |at| *at as usize);
            bound::check(self.bytes.get(..self.filled).unwrap_or_default(), row, block)?;
        }
    }

    /// Reads until there are `block` bytes; whether that was the end.
    fn fill(&mut self, answer: &mut impl Read, block: usize) -> io::Result<bool> {
        // One byte more, for the end of a last line that has none.
        if self.bytes.len() <= block {
            self.bytes.resize(block + 1, 0);
        }
        while self.filled < block {
            match answer.read(self.bytes.get_mut(self.filled..block).unwrap_or_default()) {
                Ok(0) => {
                    let last = self.filled.checked_sub(1).and_then(|last| self.bytes.get(last));
                    if last.is_some_and(|last| *last != b'\n')
                        && let Some(end) = self.bytes.get_mut(self.filled)
                    {
                        *end = b'\n';
                        self.filled += 1;
                    }
                    return Ok(true);
                }
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Takes the seals out of what was read, and keeps in mind where they were.
    fn unseal(&mut self, ended: bool) {
        let (mut from, mut to) = (self.clean, self.clean);
        while let Some(at) = self.seal.find(&self.bytes, from..self.filled) {
            if to < from {
                self.bytes.copy_within(from..at, to);
            }
            to += at - from;
            self.seals.push(to as u32);
            from = at + seal::LENGTH;
            // Most often other times follow.
            let behind = self.bytes.get(from..self.filled).and_then(<[u8]>::first_chunk);
            let times = behind.and_then(|behind| self.seal.times(behind));
            let place = self.bytes.get_mut(to..).and_then(<[u8]>::first_chunk_mut);
            if let (Some(times), Some(place)) = (times, place) {
                *place = times;
                let ends = [1, 2, 3].map(|count| (to + count * seal::STRIDE) as u32);
                self.seals.extend_from_slice(&ends);
                to += times.len();
                from += seal::TOGETHER;
            }
        }
        if from > to {
            self.bytes.copy_within(from..self.filled, to);
            self.filled -= from - to;
        }
        // A seal may have come in part; whoever comes back to it finds it whole.
        let held = if ended { 0 } else { (self.filled - to).min(seal::LENGTH - 1) };
        self.clean = self.filled - held;
    }

    /// Shows all jobs that are complete in the buffer; how many bytes that were.
    fn jobs<E>(
        &mut self,
        ended: bool,
        visit: &mut impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<usize, E> {
        self.mended.clear();
        self.rows.clear();
        let bytes = self.bytes.get(..self.clean).unwrap_or_default();
        let has_separators = self.marks.find(bytes);
        let text = text_of(bytes);
        let mut view = View {
            layout: self.layout,
            bytes,
            text: &text,
            marks: self.marks.places(),
            submit: self.layout.place(Field::Submit).unwrap_or(usize::MAX >> 1),
            seals: &self.seals,
            mended: &mut self.mended,
            rows: &mut self.rows,
            has_separators,
            strays: Vec::new(),
            is_text: false,
        };
        view.jobs(ended, visit)
    }
}

/// The buffer while it is cut up.
struct View<'b> {
    layout: &'b Layout,
    bytes: &'b [u8],
    text: &'b str,
    marks: &'b [u32],
    /// The place of the submission in a row.
    submit: usize,
    /// Where seals were, from the row on that is looked at.
    seals: &'b [u32],
    mended: &'b mut Vec<u32>,
    rows: &'b mut Vec<Span>,
    has_separators: bool,
    /// Text that is no row and was not shown yet. Nearly always there is none.
    strays: Vec<Stray>,
    /// Whether what is shown next comes before the first row.
    is_text: bool,
}

impl<'b> View<'b> {
    fn jobs<E>(
        &mut self,
        ended: bool,
        visit: &mut impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<usize, E> {
        let (mut mark, mut start) = (0, 0);
        // Only what comes before the first row of all is none.
        let Some(mut is_row) = self.begins_row(0, ended) else { return Ok(0) };
        self.is_text = !is_row;
        // The job that is being gathered: where it begins, its number, the first mark of its own
        // row, and whether a row of it is broken.
        let (mut job_start, mut job, mut broken) = (0, job_id(self.from(0)), false);
        let mut own = None;
        while mark < self.marks.len() {
            let Some((row, next_mark)) = self.row_at(start, mark, ended) else { break };
            let row = row.filter(|_| is_row);
            let (id, is_own) = self.id_at(start, job);
            if start > job_start && (is_own || id != job) {
                self.show(job_start..start, broken.then_some(own), visit)?;
                self.rows.clear();
                (job_start, job, broken) = (start, id, false);
            }
            if start == job_start {
                own = (is_own && is_row).then_some(mark);
            }
            match row {
                Some(span) => {
                    // A step without its job: the job's own row is missing.
                    broken |= self.rows.is_empty() && !is_own;
                    self.rows.push(span);
                }
                None => broken = true,
            }
            is_row = true;
            let end = next_mark.checked_sub(1).and_then(|last| self.marks.get(last));
            start = end.map_or(start, |at| *at as usize + 1);
            mark = next_mark;
        }
        if ended && start > job_start {
            self.show(job_start..start, broken.then_some(own), visit)?;
            job_start = start;
        }
        Ok(job_start)
    }

    /// The number of the job that the row at a place is of, and whether it is the job's own row. Most are
    /// of steps of the job before.
    #[inline]
    fn id_at(&self, start: usize, job: &'b str) -> (&'b str, bool) {
        let row = self.bytes.get(start..).unwrap_or_default();
        if behind(row, job.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'.')) {
            return (job, false);
        }
        let id = job_id(self.from(start));
        (id, row.get(id.len()) != Some(&b'.'))
    }

    /// The text from a place on.
    fn from(&self, start: usize) -> &'b str {
        self.text.get(start..).unwrap_or("")
    }

    fn show<E>(
        &mut self,
        place: Range<usize>,
        broken: Option<Option<usize>>,
        visit: &mut impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let rest = match self.strays.is_empty() && !self.is_text {
            true => None,
            false => Some(self.show_strays(&place, visit)?),
        };
        let end = rest.as_ref().map_or(place.end, |rest| rest.end);
        let bytes = self.bytes.get(..end).unwrap_or_default();
        if let Some(own) = broken {
            let id = job_id(self.from(place.start));
            let (bytes, doubt) = match rest {
                Some(rest) if rest.is_text => return Ok(()),
                Some(rest) => (rest.bytes.into(), rest.doubt),
                None => (bytes.get(place.start..).unwrap_or_default().into(), Vec::new()),
            };
            return visit(Piece::Broken {
                id: (!id.is_empty()).then_some(id),
                submit: own.and_then(|mark| self.submit_at(mark)),
                bytes,
                doubt,
            });
        }
        let View { layout, text, marks, has_separators, .. } = *self;
        visit(Piece::Whole(Job {
            layout,
            text,
            bytes,
            marks,
            mended: self.mended,
            rows: self.rows,
            has_separators,
            is_apart: rest.is_some(),
        }))
    }

    /// The row that begins at `start` and whose first mark is `mark`, if it is whole, and the mark
    /// behind it. `None` if that cannot be told before more is read.
    fn row_at(&mut self, start: usize, mark: usize, ended: bool) -> Option<(Option<Span>, usize)> {
        // The usual row: it ends with a line, and so many fields, and the next begins there.
        let behind = mark + self.layout.width();
        let seals = self.seals;
        if self.ends_line(behind - 1) && self.begins_row(behind, ended)? {
            let span = Span { start, marks: mark..behind, mended: false };
            let row = self.whole(span);
            return Some((row.or_else(|| self.without_stray(start, mark..behind - 1)), behind));
        }
        self.seals = seals;
        for at in mark..self.marks.len() {
            if self.ends_line(at) && self.begins_row(at + 1, ended)? {
                let row = self.mend(start, mark..at);
                return Some((row.or_else(|| self.without_stray(start, mark..at)), at + 1));
            }
        }
        None
    }

    /// Whether a row begins where this is the first mark, or the answer ends. `None` if that cannot
    /// be told before more is read. Is asked from the front to the back.
    fn begins_row(&mut self, mark: usize, ended: bool) -> Option<bool> {
        if mark >= self.marks.len() {
            return ended.then_some(true);
        }
        match self.marks.get(mark + self.submit) {
            Some(at) => {
                while let Some((_, later)) = self.seals.split_first().filter(|(seal, _)| *seal < at)
                {
                    self.seals = later;
                }
                Some(self.seals.first() == Some(at))
            }
            None => ended.then_some(false),
        }
    }

    /// The submission of the row with this first mark: no user's text comes before it.
    fn submit_at(&self, mark: usize) -> Option<&'b str> {
        let end = mark + self.submit;
        let before = end.checked_sub(1).and_then(|before| self.marks.get(before))?;
        self.text.get(*before as usize + 1..*self.marks.get(end)? as usize)
    }

    fn whole(&self, span: Span) -> Option<Span> {
        let ends = span.ends(self.marks, self.mended)?;
        Row::new(self.layout, self.text, span.start, ends).is_some().then_some(span)
    }

    /// The row with these marks and the one behind them, if it is whole: its texts have line ends.
    fn mend(&mut self, start: usize, marks: Range<usize>) -> Option<Span> {
        let first = self.mended.len();
        for at in marks.start..=marks.end {
            if at == marks.end || !self.ends_line(at) {
                self.mended.extend(self.marks.get(at));
            }
        }
        let span = Span { start, marks: first..self.mended.len(), mended: true };
        self.whole(span)
    }

    fn ends_line(&self, mark: usize) -> bool {
        let at = self.marks.get(mark).map(|at| *at as usize);
        at.and_then(|at| self.bytes.get(at)) == Some(&b'\n')
    }
}

/// The text of the bytes, place for place: a byte that is not UTF-8 is shown as `?`.
#[must_use]
pub fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => {
            let mut text = String::with_capacity(bytes.len());
            for chunk in bytes.utf8_chunks() {
                text.push_str(chunk.valid());
                text.extend(chunk.invalid().iter().map(|_| '?'));
            }
            text.into()
        }
    }
}

/// Whether there is a delimiter in it.
fn is_of_fields(bytes: &[u8]) -> bool {
    memchr::memchr(DELIMITER, bytes).is_some()
}

/// The number that the text begins with.
fn job_id(text: &str) -> &str {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end).unwrap_or("")
}

#[cfg(test)]
mod tests;
