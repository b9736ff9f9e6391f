//! Writing rows short.

use std::ops::Range;

use steward_common::alike::{behind, same};
use steward_common::slurm::number::digits;
use steward_common::slurm::sacct::{DELIMITER, Row};
use steward_common::slurm::tres::comma;

use super::figures::pack;
use super::places::{Known, Places, Way};
use super::{ABOVE, FIRST, KEY, LEFT, NONE, OWN, PHRASES, Phrases, ROW, WROTE};
use crate::archive::raw::Key;

/// Whether a row holds one of the marks: then the rows cannot be said short.
pub fn has_marks<'r>(bytes: &[u8], mut rows: impl Iterator<Item = Row<'r>>) -> bool {
    let is_mark = |byte: &u8| (FIRST..=ABOVE).contains(byte);
    rows.any(|row| bytes.get(row.span()).is_none_or(|text| text.iter().any(is_mark)))
}

/// What a run says short but for its text; its memory serves for the next.
#[derive(Default)]
pub struct Scratch {
    phrases: [Vec<u8>; PHRASES],
    /// As text.
    figures: Vec<u8>,
    packed: Vec<u8>,
    is_packed: bool,
}

impl Scratch {
    /// What it has in common with others.
    pub fn phrases(&self) -> Phrases<'_> {
        self.phrases.each_ref().map(Vec::as_slice)
    }

    /// Its own figures, packed; `None` if they stand in its text.
    pub fn figures(&self) -> Option<&[u8]> {
        self.is_packed.then_some(&self.packed)
    }
}

/// Appends the run's own text, of rows that `bytes` holds at their places and that have no
/// [marks](has_marks), and puts the rest in place of what is there. Whether there are rows.
#[must_use]
pub fn write<'r>(
    own: &mut Vec<u8>,
    scratch: &mut Scratch,
    bytes: &'r [u8],
    rows: impl Iterator<Item = Row<'r>> + Clone,
    key: &Key<'_>,
    places: &Places,
) -> bool {
    let Scratch { phrases, figures, packed, is_packed } = scratch;
    let before = own.len();
    figures.clear();
    if !rows_into(own, Some(figures), phrases, bytes, rows.clone(), key, places) {
        return false;
    }
    *is_packed = pack(figures, packed);
    if !*is_packed {
        own.truncate(before);
        return rows_into(own, None, phrases, bytes, rows, key, places);
    }
    true
}

/// Writes the rows, their figures apart if there is a place for them.
fn rows_into<'r>(
    own: &mut Vec<u8>,
    figures: Option<&mut Vec<u8>>,
    phrases: &mut [Vec<u8>; PHRASES],
    bytes: &'r [u8],
    mut rows: impl Iterator<Item = Row<'r>>,
    key: &Key<'_>,
    places: &Places,
) -> bool {
    phrases.iter_mut().for_each(Vec::clear);
    let Some(first) = rows.next() else { return false };
    let mut writing = Writing { own, figures, bytes, key, places, first };
    writing.first(phrases);
    let [.., steps] = phrases;
    // Steps have the job's number in their ids, if it is the one that the key has.
    let id = writing.at(&first, places.id);
    let id = (key.job.is_some() && number(id) == key.job.map(i64::from)).then_some(id);
    let mut above = first;
    for row in rows {
        let step = id.and_then(|id| behind(writing.at(&row, places.id), id));
        let step = step.and_then(|step| step.strip_prefix(b"."));
        writing.step(&row, &above, step.filter(|step| !step.is_empty()), steps);
        above = row;
    }
    true
}

/// A run while it is written.
struct Writing<'w> {
    own: &'w mut Vec<u8>,
    /// Where figures go; with the rest if there is none.
    figures: Option<&'w mut Vec<u8>>,
    bytes: &'w [u8],
    key: &'w Key<'w>,
    places: &'w Places,
    /// The job's own row.
    first: Row<'w>,
}

impl<'w> Writing<'w> {
    #[inline]
    fn text(&self, part: Range<usize>) -> &'w [u8] {
        self.bytes.get(part).unwrap_or_default()
    }

    /// What a row says at a place.
    fn at(&self, row: &Row<'_>, place: Option<usize>) -> &'w [u8] {
        place.and_then(|place| row.place(place)).map_or(&[], |part| self.text(part))
    }

    /// What fields say, with the delimiter behind each: that before the closing id comes last.
    #[inline]
    fn with_delimiter(&self, part: Range<usize>) -> &'w [u8] {
        self.bytes.get(part.start..part.end + 1).unwrap_or_default()
    }

    /// Writes the job's own row.
    fn first(&mut self, phrases: &mut [Vec<u8>; PHRASES]) {
        let row = self.first;
        let mut line = Line::of(self.bytes, &row);
        for stretch in &self.places.job {
            let end = line.end_of(stretch.last);
            let Some(phrase) = phrases.get_mut(stretch.phrase as usize) else { continue };
            match stretch.way {
                Way::Phrase => line.put(end, phrase),
                Way::Own => {
                    mark(phrase, OWN, stretch.count());
                    line.put(end, self.own(stretch.are_figures));
                }
                Way::Look => self.look(&row, stretch.first, line.next..end, phrase),
            }
            line.next = end + 1;
        }
    }

    fn look(&mut self, row: &Row<'_>, place: usize, field: Range<usize>, phrase: &mut Vec<u8>) {
        let text = self.text(field.clone());
        if text.is_empty() {
            phrase.push(DELIMITER);
        } else if self.places.repeats(place) && same(self.at(row, place.checked_sub(1)), text) {
            mark(phrase, LEFT, 1);
        } else if self.places.said(self.key, place).is_some_and(|said| number(text) == Some(said)) {
            mark(phrase, KEY, 1);
        } else if self.places.is_own(place) {
            mark(phrase, OWN, 1);
            let (text, is_figure) = (self.with_delimiter(field), self.places.is_figure(place));
            self.own(is_figure).extend_from_slice(text);
        } else {
            phrase.extend_from_slice(self.with_delimiter(field));
        }
    }

    /// Where figures, or words, of the run's own go.
    #[inline]
    fn own(&mut self, are_figures: bool) -> &mut Vec<u8> {
        match &mut self.figures {
            Some(figures) if are_figures => figures,
            _ => self.own,
        }
    }

    /// Writes the row of a step, of which this is the name, below another one.
    fn step(&mut self, row: &Row<'_>, above: &Row<'_>, step: Option<&[u8]>, steps: &mut Vec<u8>) {
        let places = self.places;
        let is_below_job = above.span().start == self.first.span().start;
        let bundles = if is_below_job { &places.below_job } else { &places.below_step };
        let mut line = Line::of(self.bytes, row);
        let mut above = Line::of(self.bytes, above);
        let mut rest = bundles.as_slice();
        while let Some((bundle, others)) = rest.split_first() {
            rest = others;
            if bundle.stretches > 1 {
                let (end, end_above) = (line.end_of(bundle.last), above.end_of(bundle.last));
                // As many fields, and the same bytes: each is the same.
                if line.is_alike(end, &above, end_above) {
                    mark(steps, ABOVE, bundle.count);
                    line.next = end + 1;
                    above.next = end_above + 1;
                    rest = rest.get(bundle.stretches - 1..).unwrap_or_default();
                    continue;
                }
            }
            let stretch = bundle.stretch;
            let (end, end_above) = (line.end_of(stretch.last), above.end_of(stretch.last));
            match stretch.way {
                Way::Phrase => line.put(end, steps),
                Way::Own => {
                    mark(steps, OWN, stretch.count());
                    line.put(end, self.own(stretch.are_figures));
                }
                Way::Look if end == line.next => steps.push(DELIMITER),
                Way::Look if line.is_alike(end, &above, end_above) => mark(steps, ABOVE, 1),
                Way::Look => self.field(row, stretch.last, line.text(end), step, steps),
            }
            line.next = end + 1;
            above.next = end_above + 1;
        }
        steps.push(ROW);
    }

    /// Writes a field of a step that says something, and not what the one above says. The delimiter
    /// stands behind it.
    #[inline]
    fn field(
        &mut self,
        row: &Row<'_>,
        place: usize,
        field: &[u8],
        step: Option<&[u8]>,
        steps: &mut Vec<u8>,
    ) {
        let text = field.strip_suffix(&[DELIMITER]).unwrap_or(field);
        let first = |place: Option<usize>| self.at(&self.first, place);
        let is_left = || same(text, self.at(row, place.checked_sub(1)));
        let known = self.places.known(place);
        let found = match known {
            Known::Nothing => None,
            Known::Id => match step {
                Some(step) => {
                    steps.push(KEY);
                    steps.extend_from_slice(step);
                    return steps.push(DELIMITER);
                }
                None => None,
            },
            Known::Left => is_left().then_some(LEFT),
            Known::Shown if is_left() => Some(LEFT),
            Known::Shown => {
                let rest = behind(text, first(self.places.shown));
                let rest = rest.and_then(|rest| rest.strip_prefix(b"."));
                rest.zip(step).filter(|(rest, step)| same(rest, step)).map(|_| KEY)
            }
            Known::Submit => same(text, first(self.places.start)).then_some(KEY),
            Known::Given => {
                let given = first(self.places.given);
                let billed = same(text, given).then_some(FIRST);
                let is_rest = |rest: &&[u8]| same(rest, text);
                billed.or_else(|| without_billing(given).filter(is_rest).map(|_| KEY))
            }
            Known::Name => step.filter(|step| same(step, text)).map(|_| KEY),
            Known::Used if is_left() => Some(LEFT),
            Known::Used => {
                let cpu = self.at(row, self.places.cpu);
                let memory = self.at(row, self.places.memory);
                usage(text).map(|figures| {
                    put_usage(self.own(true), figures, cpu, memory);
                    KEY
                })
            }
            Known::Wrote => {
                let figure = field.strip_prefix(WROTE).filter(|figure| comma(figure).is_none());
                figure.map(|figure| {
                    self.own(true).extend_from_slice(figure);
                    KEY
                })
            }
        };
        if let Some(found) = found {
            mark(steps, found, 1);
        } else if self.places.is_own(place) || known == Known::Given {
            mark(steps, OWN, 1);
            let is_figure = self.places.is_figure(place);
            self.own(is_figure).extend_from_slice(field);
        } else {
            steps.extend_from_slice(field);
        }
    }
}

/// Bytes that are copied together.
const TOGETHER: usize = 48;

/// A row that is gone through from the front.
struct Line<'b> {
    bytes: &'b [u8],
    ends: &'b [u32],
    /// Where the next field begins.
    next: usize,
}

impl<'b> Line<'b> {
    #[inline]
    fn of(bytes: &'b [u8], row: &Row<'b>) -> Line<'b> {
        Line { bytes, ends: row.ends(), next: row.span().start }
    }

    /// Where the field at a place ends.
    #[inline]
    fn end_of(&self, place: usize) -> usize {
        self.ends.get(place).map_or(0, |end| *end as usize)
    }

    /// What the next fields say up to that end, with the delimiter behind them.
    #[inline]
    fn text(&self, end: usize) -> &'b [u8] {
        self.bytes.get(self.next..end + 1).unwrap_or_default()
    }

    /// Whether the next fields, up to their ends, are the same in two rows. Most are not as long.
    #[inline]
    fn is_alike(&self, end: usize, other: &Line<'_>, end_of_other: usize) -> bool {
        end.wrapping_sub(self.next) == end_of_other.wrapping_sub(other.next)
            && same(self.text(end), other.text(end_of_other))
    }

    /// Appends what the next fields say up to that end, with the delimiter behind them. For as few
    /// bytes as most have, to copy more than are needed takes less time than to copy so many.
    #[inline]
    fn put(&self, end: usize, out: &mut Vec<u8>) {
        let length = (end + 1).wrapping_sub(self.next);
        match self.bytes.get(self.next..).and_then(<[u8]>::first_chunk::<TOGETHER>) {
            Some(bytes) if length <= TOGETHER => {
                let behind = out.len() + length;
                out.extend_from_slice(bytes);
                out.truncate(behind);
            }
            _ => out.extend_from_slice(self.text(end)),
        }
    }
}

/// Writes a mark that stands for so many fields.
#[inline]
fn mark(out: &mut Vec<u8>, mark: u8, count: usize) {
    if count == 1 {
        out.extend_from_slice(&[mark, DELIMITER]);
    } else {
        out.extend_from_slice(&[mark, NONE + count as u8, DELIMITER]);
    }
}

/// The number that is written so and not otherwise.
#[inline]
fn number(text: &[u8]) -> Option<i64> {
    if !matches!(text, [b'1'..=b'9', ..]) || text.len() > 18 {
        return None;
    }
    digits(text).map(u64::cast_signed)
}

/// What a job was given without what it is billed: that is what its batch step was given.
pub(super) fn without_billing(given: &[u8]) -> Option<&[u8]> {
    let rest = given.strip_prefix(b"billing=")?;
    let comma = rest.iter().position(|byte| *byte == b',')?;
    rest.get(comma + 1..)
}

/// Writes the figures of a usual list that `cpu` and `memory`, of the same row, do not say. Its own
/// memory is said only if it is another; virtual memory is empty if it is as much.
fn put_usage(own: &mut Vec<u8>, figures: [&[u8]; 5], cpu: &[u8], memory: &[u8]) {
    let [used, disk, peak, pages, virtual_memory] = figures;
    let mut put = |figure: &[u8], end: u8| {
        own.extend_from_slice(figure);
        own.push(end);
    };
    put(if same(used, cpu) { b"" } else { used }, b',');
    put(disk, b',');
    if !same(peak, memory) {
        put(peak, b',');
    }
    put(pages, b',');
    put(if same(virtual_memory, peak) { b"" } else { virtual_memory }, DELIMITER);
}

/// The figures of a list of what a step used that is `cpu=…,energy=0,fs/disk=…,mem=…,pages=…,vmem=…`;
/// `None` if it is another.
fn usage(list: &[u8]) -> Option<[&[u8]; 5]> {
    fn figure(text: &[u8]) -> Option<(&[u8], &[u8])> {
        text.split_at_checked(comma(text)?).filter(|(figure, _)| !figure.is_empty())
    }
    let (cpu, rest) = figure(list.strip_prefix(b"cpu=")?)?;
    let (disk, rest) = figure(rest.strip_prefix(b",energy=0,fs/disk=")?)?;
    let (memory, rest) = figure(rest.strip_prefix(b",mem=")?)?;
    let (pages, rest) = figure(rest.strip_prefix(b",pages=")?)?;
    let virtual_memory = rest.strip_prefix(b",vmem=")?;
    let is_usual = !virtual_memory.is_empty() && comma(virtual_memory).is_none();
    is_usual.then_some([cpu, disk, memory, pages, virtual_memory])
}
