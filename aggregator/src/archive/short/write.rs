//! Writing rows short.

use steward_common::alike::{behind, same};
use steward_common::slurm::number::digits;
use steward_common::slurm::sacct::{DELIMITER, Row};

use super::figures::pack;
use super::line::{FIGURE, Line, put};
use super::places::{Known, Places, Stretch, Way};
use super::usage::{Figure, comma_in, usage};
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
    let written = rows_into(own, Some(figures), phrases, bytes, rows.clone(), key, places);
    let Some(are_apart) = written else { return false };
    *is_packed = are_apart && pack(figures, packed);
    if are_apart && !*is_packed {
        own.truncate(before);
        return rows_into(own, None, phrases, bytes, rows, key, places).is_some();
    }
    true
}

/// Writes the rows, their figures apart if there is a place for them and they may be packed. Whether
/// they stand apart; `None` if there are no rows.
fn rows_into<'r>(
    own: &mut Vec<u8>,
    figures: Option<&mut Vec<u8>>,
    phrases: &mut [Vec<u8>; PHRASES],
    bytes: &'r [u8],
    mut rows: impl Iterator<Item = Row<'r>>,
    key: &Key<'_>,
    places: &Places,
) -> Option<bool> {
    phrases.iter_mut().for_each(Vec::clear);
    let mut above = rows.next()?;
    let first = Line::of(bytes, &above);
    let job = Job {
        start: first.start,
        shown: first.at(places.shown),
        start_time: first.at(places.start),
        given: first.at(places.given),
    };
    // A job that did not start, or still runs, has a word in the place of a time, which cannot be
    // packed: so its figures need not be written to find that out.
    let is_word = |time: &[u8]| time.first().is_some_and(u8::is_ascii_alphabetic);
    let figures = figures.filter(|_| !is_word(job.start_time) && !is_word(first.at(places.end)));
    let are_apart = figures.is_some();
    let mut writing = Writing { own, figures, bytes, key, places, job };
    writing.first(&first, phrases);
    let [.., steps] = phrases;
    // Steps have the job's number in their ids, if it is the one that the key has.
    let id = first.at(places.id);
    let id = (key.job.is_some() && number(id) == key.job.map(i64::from)).then_some(id);
    for row in rows {
        let step = id.and_then(|id| behind(Line::of(bytes, &row).at(places.id), id));
        let step = step.and_then(|step| step.strip_prefix(b"."));
        writing.step(&row, &above, step.filter(|step| !step.is_empty()), steps);
        above = row;
    }
    Some(are_apart)
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
    fn first(&mut self, row: &Line<'w>, phrases: &mut [Vec<u8>; PHRASES]) {
        let mut line = *row;
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
        let place = stretch.last;
        let says = |said| number(line.text(end)) == Some(said);
        if end == line.next {
            phrase.push(DELIMITER);
        } else if self.places.repeats(place) && line.is_left(end, place) {
            mark(phrase, LEFT, 1);
        } else if self.places.said(self.key, place).is_some_and(says) {
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
            Known::Wrote => self.wrote(line, end).then_some(KEY),
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
        let list = line.beyond(end);
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

    /// Writes the figure of a list, if it is the usual one of what a step wrote.
    fn wrote(&mut self, line: &Line<'w>, end: usize) -> bool {
        let list = line.beyond(end);
        let Some(text) = list.strip_prefix(WROTE) else { return false };
        let Some(length) = (end - line.next).checked_sub(WROTE.len()) else { return false };
        let figure = Figure { text, length };
        let is_usual = !figure.has_comma();
        if is_usual {
            figure.put(self.own(true));
        }
        is_usual
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
    rest.get(comma_in(rest)? + 1..)
}
