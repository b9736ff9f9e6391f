//! sacct's answer, read as a stream: bytes become rows, rows become the jobs they belong to.
//!
//! A name, a comment or a command line may hold line ends and delimiters, so a line is not a row.
//! Every row ends with the id it begins with ([`Layout`]); a row is whole when its number of
//! fields is right and that holds. What is not whole is handed on as it came.

use std::io::{self, Read};
use std::ops::Range;

use steward_common::slurm::sacct::{DELIMITER, Layout, Row};

use super::marks;

/// How much is read at a time. A job with very many steps makes the buffer grow beyond it.
const BLOCK: usize = 1 << 20;

/// A job with more text than this is no job: the answer is not sacct's.
const LARGEST: usize = 1 << 30;

/// One job of the answer.
pub enum Piece<'a> {
    /// All its rows are whole: its own first, then those of its steps.
    Whole(Job<'a>),
    /// A row of it is not whole.
    Broken {
        /// The job's number, if the text begins with one.
        id: Option<&'a str>,
        /// All its lines as they came.
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
}

impl<'a> Job<'a> {
    /// The rows, the job's own first.
    pub fn rows(self) -> impl Iterator<Item = Row<'a>> {
        self.rows
            .iter()
            .filter_map(move |span| span.row(self.layout, self.text, self.marks, self.mended))
    }

    /// The bytes of the answer in which its rows stand at their places.
    #[must_use]
    pub fn answer(self) -> &'a [u8] {
        self.bytes
    }

    /// All its bytes.
    #[must_use]
    pub fn bytes(self) -> &'a [u8] {
        let start = self.rows.first().map_or(0, |span| span.start);
        self.bytes.get(start..).unwrap_or_default()
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
    fn row<'a>(
        &self,
        layout: &'a Layout,
        text: &'a str,
        marks: &'a [u32],
        mended: &'a [u32],
    ) -> Option<Row<'a>> {
        let list = if self.mended { mended } else { marks };
        Row::new(layout, text, self.start, list.get(self.marks.clone())?)
    }
}

/// Reads an answer.
pub struct Lines<'l> {
    layout: &'l Layout,
    /// The buffer, of which the first `filled` bytes are text.
    bytes: Vec<u8>,
    filled: usize,
    marks: Vec<u32>,
    mended: Vec<u32>,
    rows: Vec<Span>,
}

/// What stands at a place of the text.
enum Found {
    Whole(Span),
    /// Not a whole row; the next begins behind it.
    Broken,
    /// Cannot be told before more is read.
    Unfinished,
}

impl<'l> Lines<'l> {
    /// A reader of rows of this layout.
    #[must_use]
    pub fn new(layout: &'l Layout) -> Lines<'l> {
        Lines {
            layout,
            bytes: Vec::new(),
            filled: 0,
            marks: Vec::new(),
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
        self.filled = 0;
        let mut block = BLOCK;
        loop {
            let ended = self.fill(&mut answer, block)?;
            let done = self.jobs(ended, &mut visit)?;
            if ended {
                return Ok(());
            }
            self.bytes.copy_within(done..self.filled, 0);
            self.filled -= done;
            // Nothing was whole: the job is larger than the block.
            block = if done == 0 { block * 2 } else { BLOCK.max(self.filled * 2) };
            if block > LARGEST {
                let why = "one job of sacct's answer is more than a gigabyte of text";
                return Err(io::Error::new(io::ErrorKind::InvalidData, why).into());
            }
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

    /// Shows all jobs that are complete in the buffer; how many bytes that were.
    fn jobs<E>(
        &mut self,
        ended: bool,
        visit: &mut impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<usize, E> {
        self.marks.clear();
        self.mended.clear();
        self.rows.clear();
        let bytes = self.bytes.get(..self.filled).unwrap_or_default();
        marks::find(bytes, 0, &mut self.marks);
        let text = text_of(bytes);
        let mut view = View {
            layout: self.layout,
            bytes,
            text: &text,
            marks: &self.marks,
            mended: &mut self.mended,
            rows: &mut self.rows,
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
    mended: &'b mut Vec<u32>,
    rows: &'b mut Vec<Span>,
}

impl<'b> View<'b> {
    fn jobs<E>(
        &mut self,
        ended: bool,
        visit: &mut impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<usize, E> {
        let (mut mark, mut start) = (0, 0);
        // The job that is being gathered: where it begins, and whether a row of it is broken.
        let (mut job_start, mut broken) = (0, false);
        while mark < self.marks.len() {
            let found = self.row_at(start, mark, ended);
            let next_mark = match &found {
                Found::Unfinished => break,
                Found::Whole(span) => self.mark_after(span),
                Found::Broken => self.broken_until(mark),
            };
            let id = job_id(self.from(start));
            let is_own = !self.from(start + id.len()).starts_with('.');
            if start > job_start && (is_own || id != job_id(self.from(job_start))) {
                self.show(job_start..start, broken, visit)?;
                self.rows.clear();
                (job_start, broken) = (start, false);
            }
            match found {
                Found::Whole(span) => {
                    // A step without its job: the job's own row is missing.
                    broken |= self.rows.is_empty() && !is_own;
                    self.rows.push(span);
                }
                _ => broken = true,
            }
            let end = next_mark.checked_sub(1).and_then(|last| self.marks.get(last));
            start = end.map_or(start, |at| *at as usize + 1);
            mark = next_mark;
        }
        if ended && start > job_start {
            self.show(job_start..start, broken, visit)?;
            job_start = start;
        }
        Ok(job_start)
    }

    /// The text from a place on.
    fn from(&self, start: usize) -> &'b str {
        self.text.get(start..).unwrap_or("")
    }

    fn show<E>(
        &self,
        place: Range<usize>,
        broken: bool,
        visit: &mut impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let bytes = self.bytes.get(..place.end).unwrap_or_default();
        if broken {
            let id = job_id(self.from(place.start));
            let id = (!id.is_empty()).then_some(id);
            return visit(Piece::Broken {
                id,
                bytes: bytes.get(place.start..).unwrap_or_default(),
            });
        }
        let View { layout, text, marks, .. } = *self;
        visit(Piece::Whole(Job {
            layout,
            text,
            bytes,
            marks,
            mended: self.mended,
            rows: self.rows,
        }))
    }

    /// The row that begins at `start`, whose first mark is `mark`.
    fn row_at(&mut self, start: usize, mark: usize, ended: bool) -> Found {
        let width = self.layout.width();
        // The usual row: its last field ends with the line, and nothing before it does.
        let usual = Span { start, marks: mark..mark + width, mended: false };
        if self.ends_line(mark + width - 1)
            && !(mark..mark + width - 1).any(|mark| self.ends_line(mark))
            && usual.row(self.layout, self.text, self.marks, self.mended).is_some()
        {
            return Found::Whole(usual);
        }
        let id = first_field(self.from(start));
        let mut ends: Vec<u32> = Vec::new();
        let mut line = start;
        for at in mark..self.marks.len() {
            let place = self.marks.get(at).map_or(0, |place| *place as usize);
            if !self.ends_line(at) {
                ends.push(place as u32);
                continue;
            }
            // The line ends here. If it ends with our id, so does the row.
            let field = ends.last().map_or(start, |end| *end as usize + 1);
            if self.text.get(field..place) == Some(id) && ends.len() + 1 >= width {
                ends.push(place as u32);
                let first = self.mended.len();
                self.mended.extend(&ends);
                let span = Span { start, marks: first..self.mended.len(), mended: true };
                let whole = span.row(self.layout, self.text, self.marks, self.mended).is_some();
                return if whole { Found::Whole(span) } else { Found::Broken };
            }
            // Another row begins behind it, so this one never ended.
            line = place + 1;
            if self.is_usual(line, at + 1) {
                return Found::Broken;
            }
        }
        if ended || self.bytes.len().saturating_sub(line) > LARGEST {
            Found::Broken
        } else {
            Found::Unfinished
        }
    }

    fn is_usual(&self, start: usize, mark: usize) -> bool {
        let span = Span { start, marks: mark..mark + self.layout.width(), mended: false };
        self.ends_line(mark + self.layout.width() - 1)
            && span.row(self.layout, self.text, self.marks, self.mended).is_some()
    }

    /// The first mark behind what began at `mark` and is no whole row: behind the line that ends
    /// with the id, or before the next usual row.
    fn broken_until(&self, mark: usize) -> usize {
        let start = mark.checked_sub(1).and_then(|before| self.marks.get(before));
        let start = start.map_or(0, |at| *at as usize + 1);
        let id = first_field(self.from(start));
        let mut field = start;
        for at in mark..self.marks.len() {
            let place = self.marks.get(at).map_or(0, |place| *place as usize);
            if self.ends_line(at) {
                let closed = field > start && self.text.get(field..place) == Some(id);
                if closed || self.is_usual(place + 1, at + 1) {
                    return at + 1;
                }
            }
            field = place + 1;
        }
        self.marks.len()
    }

    fn ends_line(&self, mark: usize) -> bool {
        let at = self.marks.get(mark).map(|at| *at as usize);
        at.and_then(|at| self.bytes.get(at)) == Some(&b'\n')
    }

    fn mark_after(&self, span: &Span) -> usize {
        if !span.mended {
            return span.marks.end;
        }
        let end = span.marks.end.checked_sub(1).and_then(|last| self.mended.get(last));
        let end = end.copied().unwrap_or(0);
        self.marks.partition_point(|at| *at <= end)
    }
}

/// The text of the bytes, place for place: a byte that is not UTF-8 is shown as `?`.
#[must_use]
pub fn text_of(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
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

fn first_field(text: &str) -> &str {
    let end = text.bytes().position(|byte| byte == DELIMITER || byte == b'\n');
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

/// The number that the text begins with.
fn job_id(text: &str) -> &str {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use steward_common::slurm::sacct::Field;

    use super::*;

    fn layout() -> Layout {
        Layout::new(|field| matches!(field, Field::JobIdRaw | Field::State | Field::JobName))
    }

    /// What a reader sees that gets `step` bytes at a time: each job as its names, or as broken.
    fn seen(text: &[u8], step: usize) -> Vec<String> {
        struct Slow<'a>(&'a [u8], usize);
        impl Read for Slow<'_> {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                let size = self.0.len().min(self.1).min(into.len());
                into[..size].copy_from_slice(&self.0[..size]);
                self.0 = &self.0[size..];
                Ok(size)
            }
        }
        let (layout, mut seen) = (layout(), Vec::new());
        Lines::new(&layout)
            .read(Slow(text, step), |piece| {
                seen.push(match piece {
                    Piece::Whole(job) => {
                        let names: Vec<String> =
                            job.rows().map(|row| row.get(Field::JobName).to_owned()).collect();
                        names.join("/")
                    }
                    Piece::Broken { id, bytes } => {
                        format!("!{}:{}", id.unwrap_or("?"), bytes.len())
                    }
                });
                Ok::<(), io::Error>(())
            })
            .unwrap();
        seen
    }

    fn check(text: &str, expected: &[&str]) {
        let text = text.replace('~', "\x1f");
        for step in [1, 7, 1000] {
            assert_eq!(seen(text.as_bytes(), step), expected, "{text:?} by {step}");
        }
    }

    #[test]
    fn steps_belong_to_the_job_before_them() {
        check("1~R~a~1\n1.batch~R~b~1.batch\n1.0~R~c~1.0\n2~R~d~2\n", &["a/b/c", "d"]);
        // Two runs of one job are two jobs here.
        check("1~R~a~1\n1.0~R~b~1.0\n1~R~a~1\n1.0~R~c~1.0\n", &["a/b", "a/c"]);
        check("", &[]);
    }

    #[test]
    fn a_name_of_several_lines_is_one_row() {
        check("1~R~a\nb\n\nc~1\n2~R~d~2\n", &["a\nb\n\nc", "d"]);
        check("1~R~a~1\n1.0~R~x\ny~1.0\n2~R~d\n~2\n", &["a/x\ny", "d\n"]);
        // The last line may lack its end.
        check("1~R~a\nb~1", &["a\nb"]);
    }

    #[test]
    fn a_name_with_a_delimiter_breaks_its_job_only() {
        check("1~R~a~1\n2~R~x~y~2\n2.0~R~s~2.0\n3~R~c~3\n", &["a", "!2:22", "c"]);
        check("1~R~a~1\n1.0~R~x~y\nz~1.0\n3~R~c~3\n", &["!1:24", "c"]);
    }

    #[test]
    fn text_that_is_no_row_is_kept_and_the_next_row_is_found() {
        check("sacct: warning\n1~R~a~1\n", &["!?:15", "a"]);
        check("1~R\n2~R~b~2\n", &["!1:4", "b"]);
        check("1~R~a~1\n2.batch~R~b~2.batch\n3~R~c~3\n", &["a", "!2:20", "c"]);
        check("1~R~a~1\n2~R~b", &["a", "!2:6"]);
    }

    #[test]
    fn a_name_that_looks_like_a_row_does_not_become_one_of_another_job() {
        // The user named the job `x<delimiter>1<line end>9<delimiter>R<delimiter>forged`.
        check("1~R~x~1\n9~R~forged~1\n2~R~b~2\n", &["x", "!9:13", "b"]);
    }

    #[test]
    fn bytes_that_are_no_text_stay_in_their_place() {
        assert_eq!(seen(b"1\x1fR\x1fa\xff\xfeb\x1f1\n", 1000), ["a??b"]);
    }
}
