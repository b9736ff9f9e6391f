//! Writing rows short.

use std::ops::Range;

use steward_common::alike::{behind, same};
use steward_common::slurm::number::digits;
use steward_common::slurm::sacct::{DELIMITER, Row};
use steward_common::slurm::tres::comma;
use wide::u8x16;

use super::figures::pack;
use super::places::{Known, Places, Stretch, Way};
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
    if lacks_times(bytes, rows.clone(), places) {
        *is_packed = false;
        return rows_into(own, None, phrases, bytes, rows, key, places);
    }
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

/// Whether the job's own row has a word for the time when it began or ended, as one has that did not
/// start or still runs. Then its figures cannot be packed, and need not be written to find that out.
fn lacks_times<'r>(bytes: &[u8], mut rows: impl Iterator<Item = Row<'r>>, places: &Places) -> bool {
    let Some(first) = rows.next() else { return false };
    let line = Line::of(bytes, &first);
    [places.start, places.end]
        .into_iter()
        .any(|place| line.at(place).first().is_some_and(u8::is_ascii_alphabetic))
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
    let own_row = Line::of(bytes, &first);
    let job = Job {
        start: first.span().start,
        shown: own_row.at(places.shown),
        start_time: own_row.at(places.start),
        given: own_row.at(places.given),
    };
    let mut writing = Writing { own, figures, bytes, key, places, job };
    writing.first(own_row, phrases);
    let [.., steps] = phrases;
    // Steps have the job's number in their ids, if it is the one that the key has.
    let id = own_row.at(places.id);
    let id = (key.job.is_some() && number(id) == key.job.map(i64::from)).then_some(id);
    let mut above = first;
    for row in rows {
        let step = id.and_then(|id| behind(Line::of(bytes, &row).at(places.id), id));
        let step = step.and_then(|step| step.strip_prefix(b"."));
        writing.step(&row, &above, step.filter(|step| !step.is_empty()), steps);
        above = row;
    }
    true
}

/// What the job's own row says of what rows of steps repeat.
struct Job<'w> {
    /// Where the row begins.
    start: usize,
    shown: &'w [u8],
    start_time: &'w [u8],
    given: &'w [u8],
}

/// A run while it is written.
struct Writing<'w> {
    own: &'w mut Vec<u8>,
    /// Where figures go; with the rest if there is none.
    figures: Option<&'w mut Vec<u8>>,
    bytes: &'w [u8],
    key: &'w Key<'w>,
    places: &'w Places,
    job: Job<'w>,
}

impl<'w> Writing<'w> {
    /// Writes the job's own row.
    fn first(&mut self, mut line: Line<'w>, phrases: &mut [Vec<u8>; PHRASES]) {
        for stretch in &self.places.job {
            let end = line.end_of(stretch.last);
            let Some(phrase) = phrases.get_mut(stretch.phrase as usize) else { continue };
            match stretch.way {
                Way::Phrase => line.put(end, phrase),
                Way::Own => {
                    mark(phrase, OWN, stretch.count());
                    line.put(end, self.own(stretch.are_figures));
                }
                Way::Look => self.look(&line, end, stretch, phrase),
            }
            line.next = end + 1;
        }
    }

    #[inline]
    fn look(&mut self, line: &Line<'w>, end: usize, stretch: &Stretch, phrase: &mut Vec<u8>) {
        let (text, place) = (line.text(end), stretch.last);
        if text.is_empty() {
            phrase.push(DELIMITER);
        } else if self.places.repeats(place) && line.is_left(end, place) {
            mark(phrase, LEFT, 1);
        } else if self.places.said(self.key, place).is_some_and(|said| number(text) == Some(said)) {
            mark(phrase, KEY, 1);
        } else if stretch.is_own {
            mark(phrase, OWN, 1);
            line.put(end, self.own(stretch.are_figures));
        } else {
            line.put(end, phrase);
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
    fn step(&mut self, row: &Row<'w>, above: &Row<'w>, step: Option<&[u8]>, steps: &mut Vec<u8>) {
        let places = self.places;
        let is_below_job = above.span().start == self.job.start;
        let bundles = if is_below_job { &places.below_job } else { &places.below_step };
        // Of one length, so that a place that is in the one is in the other, too.
        let width = row.ends().len().min(above.ends().len());
        let mut line = Line::of(self.bytes, row).of_width(width);
        let mut above = Line::of(self.bytes, above).of_width(width);
        let mut rest = bundles.as_slice();
        while let Some((bundle, others)) = rest.split_first() {
            rest = others;
            if bundle.stretches > 1 {
                let (end, end_above) = line.ends_of(&above, bundle.last);
                // As many fields, and the same bytes: each is the same.
                if line.is_alike(end, &above, end_above) {
                    mark(steps, ABOVE, bundle.count);
                    line.next = end + 1;
                    above.next = end_above + 1;
                    rest = rest.get(bundle.stretches - 1..).unwrap_or_default();
                    continue;
                }
            }
            let stretch = &bundle.stretch;
            let (end, end_above) = line.ends_of(&above, stretch.last);
            if stretch.way == Way::Look {
                if end == line.next {
                    steps.push(DELIMITER);
                } else if line.is_alike(end, &above, end_above) {
                    mark(steps, ABOVE, 1);
                } else {
                    self.field(&line, end, stretch, step, steps);
                }
            } else if stretch.way == Way::Phrase {
                line.put(end, steps);
            } else {
                mark(steps, OWN, stretch.count());
                line.put(end, self.own(stretch.are_figures));
            }
            line.next = end + 1;
            above.next = end_above + 1;
        }
        steps.push(ROW);
    }

    /// Writes the next field of a step, which says something, and not what the one above says.
    #[inline]
    fn field(
        &mut self,
        line: &Line<'w>,
        end: usize,
        stretch: &Stretch,
        step: Option<&[u8]>,
        steps: &mut Vec<u8>,
    ) {
        let text = || line.text(end);
        let is_left = || line.is_left(end, stretch.last);
        let found = match stretch.known {
            Known::Nothing => None,
            Known::Id => match step {
                Some(step) => {
                    steps.push(KEY);
                    return put::<FIGURE>(self.bytes, end - step.len()..end + 1, steps);
                }
                None => None,
            },
            Known::Left => is_left().then_some(LEFT),
            Known::Shown if is_left() => Some(LEFT),
            Known::Shown => {
                let rest = behind(text(), self.job.shown);
                let rest = rest.and_then(|rest| rest.strip_prefix(b"."));
                rest.zip(step).filter(|(rest, step)| same(rest, step)).map(|_| KEY)
            }
            Known::Submit => same(text(), self.job.start_time).then_some(KEY),
            Known::Given if same(text(), self.job.given) => Some(FIRST),
            Known::Given => {
                let is_rest = |rest: &&[u8]| same(rest, text());
                without_billing(self.job.given).filter(is_rest).map(|_| KEY)
            }
            Known::Name => step.filter(|step| same(step, text())).map(|_| KEY),
            Known::Used if is_left() => Some(LEFT),
            Known::Used => self.used(line, end).then_some(KEY),
            Known::Wrote => {
                let figure = text().strip_prefix(WROTE).filter(|figure| comma(figure).is_none());
                figure.map(|figure| {
                    put::<FIGURE>(self.bytes, end - figure.len()..end + 1, self.own(true));
                    KEY
                })
            }
        };
        if let Some(found) = found {
            mark(steps, found, 1);
        } else if stretch.is_own {
            mark(steps, OWN, 1);
            line.put(end, self.own(stretch.are_figures));
        } else {
            line.put(end, steps);
        }
    }

    /// Writes the figures of a list, if it is the usual one of what a step used, that other fields of
    /// the row do not say. Its own memory is said only if it is another; virtual memory is empty if it
    /// is as much.
    fn used(&mut self, line: &Line<'w>, end: usize) -> bool {
        let list = self.bytes.get(line.next..).unwrap_or_default();
        let Some([used, disk, peak, pages, virtual_memory]) = usage(list, end - line.next) else {
            return false;
        };
        let cpu = line.at(self.places.cpu);
        let memory = line.at(self.places.memory);
        let own = self.own(true);
        if same(used.said(), cpu) {
            own.push(b',')
        } else {
            used.put(own)
        }
        disk.put(own);
        if !same(peak.said(), memory) {
            peak.put(own);
        }
        pages.put(own);
        let is_as_much = same(virtual_memory.said(), peak.said());
        if is_as_much {
            own.push(DELIMITER)
        } else {
            virtual_memory.put(own)
        }
        true
    }
}

/// Bytes of fields that are copied together.
const TOGETHER: usize = 48;

/// Bytes of fields that are compared together.
const COMPARED: usize = 32;

/// Bytes of a figure that are copied together.
const FIGURE: usize = 16;

/// A part of a text. Asked for in two steps, of which each is but one comparison.
#[inline]
fn part(bytes: &[u8], at: Range<usize>) -> &[u8] {
    let length = at.end.wrapping_sub(at.start);
    let part = bytes.get(at.start..).and_then(|rest| rest.get(..length));
    // A branch, where `unwrap_or_default` would have both outcomes worked out and one chosen.
    part.unwrap_or_else(nothing)
}

/// What stands where there is nothing: no row has such places.
#[cold]
#[inline(never)]
fn nothing<'b>() -> &'b [u8] {
    &[]
}

/// Appends a part of a text. For as few bytes as most parts have, to copy more than are needed takes
/// less time than to copy so many.
#[inline]
fn put<const FEW: usize>(bytes: &[u8], at: Range<usize>, out: &mut Vec<u8>) {
    let length = at.end.wrapping_sub(at.start);
    match bytes.get(at.start..).and_then(<[u8]>::first_chunk::<FEW>) {
        Some(bytes) if length <= FEW => {
            let behind = out.len() + length;
            out.extend_from_slice(bytes);
            out.truncate(behind);
        }
        _ => out.extend_from_slice(part(bytes, at)),
    }
}

/// Whether so many bytes are the same from two places on.
#[inline]
fn is_same(bytes: &[u8], one: usize, other: usize, length: usize) -> bool {
    let few = |start: usize| bytes.get(start..).and_then(<[u8]>::first_chunk::<COMPARED>);
    if length <= COMPARED
        && let (Some(one), Some(other)) = (few(one), few(other))
    {
        let ([one, one_more], _) = one.as_chunks() else { return false };
        let ([other, other_more], _) = other.as_chunks() else { return false };
        let are_same = |one: &[u8; 16], other: &[u8; 16]| {
            u8x16::new(*one).simd_eq(u8x16::new(*other)).to_bitmask()
        };
        let same = are_same(one, other) | are_same(one_more, other_more) << 16;
        return same.trailing_ones() as usize >= length;
    }
    is_long_same(part(bytes, one..one + length), part(bytes, other..other + length))
}

/// Not written out for each caller.
#[inline(never)]
fn is_long_same(one: &[u8], other: &[u8]) -> bool {
    same(one, other)
}

/// A row that is gone through from the front.
#[derive(Clone, Copy)]
struct Line<'b> {
    bytes: &'b [u8],
    ends: &'b [u32],
    /// Where the row begins.
    start: usize,
    /// Where the next field begins.
    next: usize,
}

impl<'b> Line<'b> {
    #[inline]
    fn of(bytes: &'b [u8], row: &Row<'b>) -> Line<'b> {
        let start = row.span().start;
        Line { bytes, ends: row.ends(), start, next: start }
    }

    /// Where the field at a place ends.
    #[inline]
    fn end_of(&self, place: usize) -> usize {
        self.ends.get(place).map_or(0, |end| *end as usize)
    }

    #[inline]
    fn of_width(self, width: usize) -> Line<'b> {
        Line { ends: self.ends.get(..width).unwrap_or_default(), ..self }
    }

    /// Where the fields at a place end, here and in another row.
    #[inline]
    fn ends_of(&self, other: &Line<'_>, place: usize) -> (usize, usize) {
        match (self.ends.get(place), other.ends.get(place)) {
            (Some(end), Some(other)) => (*end as usize, *other as usize),
            _ => (0, 0),
        }
    }

    /// What the row says at a place.
    #[inline]
    fn at(&self, place: Option<usize>) -> &'b [u8] {
        let Some(place) = place else { return &[] };
        let start = place.checked_sub(1).map_or(self.start, |before| self.end_of(before) + 1);
        part(self.bytes, start..self.end_of(place))
    }

    /// Whether the next field, which is at this place, says the same as the one to its left.
    #[inline]
    fn is_left(&self, end: usize, place: usize) -> bool {
        let start = place.checked_sub(2).map_or(self.start, |before| self.end_of(before) + 1);
        let length = end.wrapping_sub(self.next);
        start + length + 1 == self.next && is_same(self.bytes, start, self.next, length)
    }

    /// What the next fields say up to that end.
    #[inline]
    fn text(&self, end: usize) -> &'b [u8] {
        part(self.bytes, self.next..end)
    }

    /// Whether the next fields, up to their ends, are the same in two rows. Most are not as long.
    #[inline]
    fn is_alike(&self, end: usize, other: &Line<'_>, end_of_other: usize) -> bool {
        let length = end.wrapping_sub(self.next);
        length == end_of_other.wrapping_sub(other.next)
            && is_same(self.bytes, self.next, other.next, length)
    }

    /// Appends what the next fields say up to that end, with the delimiter behind them.
    #[inline]
    fn put(&self, end: usize, out: &mut Vec<u8>) {
        put::<TOGETHER>(self.bytes, self.next..end + 1, out);
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
    rest.get(comma(rest)? + 1..)
}

/// A figure of a list, and what follows in the text.
#[derive(Clone, Copy)]
struct Figure<'b> {
    text: &'b [u8],
    length: usize,
}

impl<'b> Figure<'b> {
    /// The figure that begins behind this word, and what follows behind it: it ends at a comma.
    #[inline]
    fn behind<const N: usize>(
        text: &'b [u8],
        word: &'static [u8; N],
    ) -> Option<(Figure<'b>, &'b [u8])> {
        let (head, text) = text.split_first_chunk::<N>()?;
        let length = if head == word { comma_in(text)? } else { 0 };
        let rest = text.get(length..)?;
        (length > 0).then_some((Figure { text, length }, rest))
    }

    #[inline]
    fn said(&self) -> &'b [u8] {
        part(self.text, 0..self.length)
    }

    #[inline]
    fn has_comma(&self) -> bool {
        match commas(self.text) {
            Some(commas) if self.length <= FIGURE => {
                (commas.trailing_zeros() as usize) < self.length
            }
            _ => far_comma(self.said()).is_some(),
        }
    }

    /// Appends it with the comma or the delimiter behind it.
    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        put::<FIGURE>(self.text, 0..self.length + 1, out);
    }
}

/// The figures of a list of what a step used, which is so long and is
/// `cpu=…,energy=0,fs/disk=…,mem=…,pages=…,vmem=…`; `None` if it is another.
#[inline]
fn usage(list: &[u8], length: usize) -> Option<[Figure<'_>; 5]> {
    let (cpu, rest) = Figure::behind(list, b"cpu=")?;
    let (disk, rest) = Figure::behind(rest, b",energy=0,fs/disk=")?;
    let (memory, rest) = Figure::behind(rest, b",mem=")?;
    let (pages, rest) = Figure::behind(rest, b",pages=")?;
    let (word, text) = rest.split_first_chunk()?;
    // If one of them stood behind the end of the list, nothing is left of it here.
    let length = length.checked_sub(list.len() - text.len())?;
    let virtual_memory = Figure { text, length };
    let is_usual = word == b",vmem=" && length > 0 && !virtual_memory.has_comma();
    is_usual.then_some([cpu, disk, memory, pages, virtual_memory])
}

/// Where the first comma is. It mostly is near.
#[inline]
fn comma_in(text: &[u8]) -> Option<usize> {
    match commas(text) {
        Some(commas) if commas != 0 => Some(commas.trailing_zeros() as usize),
        _ => far_comma(text),
    }
}

/// Where commas are in as many bytes as most figures have, the first byte's bit lowest.
#[inline]
fn commas(text: &[u8]) -> Option<u32> {
    let few = text.first_chunk::<FIGURE>()?;
    Some(u8x16::new(*few).simd_eq(u8x16::splat(b',')).to_bitmask())
}

/// Not written out for each caller.
#[cold]
#[inline(never)]
fn far_comma(text: &[u8]) -> Option<usize> {
    comma(text)
}
