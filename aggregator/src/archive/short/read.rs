//! Reading rows that were written short.

use std::ops::Range;

use steward_common::slurm::sacct::DELIMITER;

use super::figures::unpack;
use super::places::{Known, Places};
use super::write::without_billing;
use super::{ABOVE, FIRST, KEY, LEFT, NONE, OWN, PHRASES, Phrases, ROW, Short, WROTE};
use crate::archive::raw::Key;

/// Appends the rows of a run as sacct gave them, each with a line end, and where each ends. `None`,
/// and nothing appended, if a mark points to nothing.
pub fn read(
    out: &mut Vec<u8>,
    ends: &mut Vec<usize>,
    short: Short<'_>,
    key: &Key<'_>,
    places: &Places,
) -> Option<()> {
    let before = (out.len(), ends.len());
    let figures = short.figures.map(unpack);
    let figures = figures.as_deref();
    let done = Reading::of(out, short.text, figures, key, places).rows(ends, short.phrases);
    if done.is_none() {
        out.truncate(before.0);
        ends.truncate(before.1);
    }
    done
}

/// Appends the job's own row. `None`, and nothing appended, if a mark points to nothing.
pub fn own(out: &mut Vec<u8>, short: Short<'_>, key: &Key<'_>, places: &Places) -> Option<()> {
    let before = out.len();
    let figures = short.figures.map(unpack);
    let figures = figures.as_deref();
    let done = Reading::of(out, short.text, figures, key, places).first(short.phrases);
    if done.is_none() {
        out.truncate(before);
    }
    done
}

/// Fields that are taken one after the other.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == DELIMITER)?;
        let (field, rest) = self.0.split_at_checked(end)?;
        self.0 = rest.get(1..)?;
        Some(field)
    }
}

/// A run while it is read.
struct Reading<'r> {
    out: &'r mut Vec<u8>,
    own: Fields<'r>,
    /// Figures, if they stand apart.
    figures: Option<Fields<'r>>,
    key: &'r Key<'r>,
    places: &'r Places,
    /// Where the fields of the row stand that were read so far.
    said: Vec<Range<usize>>,
}

impl<'r> Reading<'r> {
    fn of(
        out: &'r mut Vec<u8>,
        text: &'r [u8],
        figures: Option<&'r [u8]>,
        key: &'r Key<'r>,
        places: &'r Places,
    ) -> Reading<'r> {
        let (own, figures) = (Fields(text), figures.map(Fields));
        Reading { out, own, figures, key, places, said: Vec::new() }
    }

    /// All rows.
    fn rows(mut self, ends: &mut Vec<usize>, phrases: Phrases<'_>) -> Option<()> {
        self.first(phrases)?;
        let first = self.said.clone();
        self.end_row(ends);
        let [.., steps] = phrases;
        for step in steps.split_inclusive(|byte| *byte == ROW) {
            self.step(step.strip_suffix(&[ROW])?, &first)?;
            self.end_row(ends);
        }
        // Behind an odd number of characters there is a delimiter more.
        let is_over = |figures: Fields<'_>| matches!(figures.0, [] | [DELIMITER]);
        (self.own.0.is_empty() && self.figures.is_none_or(is_over)).then_some(())
    }

    /// The job's own row.
    fn first(&mut self, phrases: Phrases<'_>) -> Option<()> {
        let mut phrases: [Fields<'_>; PHRASES] = phrases.map(Fields);
        while let Some(phrase) = self.places.phrases.get(self.said.len()) {
            match phrases.get_mut(*phrase as usize)?.next()? {
                [OWN] => self.own_fields(1)?,
                [OWN, count] => self.own_fields(several(*count)?)?,
                [LEFT] => self.repeat(self.said.last()?.clone()),
                [KEY] => {
                    let said = self.places.said(self.key, self.said.len())?;
                    self.put(said.to_string().as_bytes());
                }
                text => self.put(text),
            }
        }
        let [who, how, asked, _] = phrases;
        let is_over = [who, how, asked].iter().all(|phrase| phrase.0.is_empty());
        is_over.then(|| self.close()).flatten()
    }

    /// The row of a step.
    fn step(&mut self, text: &[u8], first: &[Range<usize>]) -> Option<()> {
        let above = std::mem::take(&mut self.said);
        let mut fields = Fields(text);
        while self.said.len() < self.places.width() {
            let place = self.said.len();
            match fields.next()? {
                [OWN] => self.own_fields(1)?,
                [OWN, count] => self.own_fields(several(*count)?)?,
                [ABOVE] => self.repeat(above.get(place)?.clone()),
                [ABOVE, count] => {
                    for place in place..place + several(*count)? {
                        self.repeat(above.get(place)?.clone());
                    }
                }
                [FIRST] => self.repeat(first.get(place)?.clone()),
                [LEFT] => self.repeat(self.said.last()?.clone()),
                [KEY, rest @ ..] => self.known(place, rest, first)?,
                text => self.put(text),
            }
        }
        fields.0.is_empty().then(|| self.close()).flatten()
    }

    /// A field of a step that follows from others.
    fn known(&mut self, place: usize, rest: &[u8], first: &[Range<usize>]) -> Option<()> {
        let of_first = |place: Option<usize>| Some(first.get(place?)?.clone());
        match self.places.known(place) {
            Known::Nothing | Known::Left => return None,
            Known::Id => {
                let text = [self.key.job?.to_string().as_bytes(), b".", rest].concat();
                self.put(&text);
            }
            Known::Shown => {
                let shown = self.out.get(of_first(self.places.shown)?)?;
                let text = [shown, b".", self.out.get(self.step_of_row()?)?].concat();
                self.put(&text);
            }
            Known::Submit => self.repeat(of_first(self.places.start)?),
            Known::Given => {
                let given = self.out.get(of_first(self.places.given)?)?;
                let text = without_billing(given)?.to_vec();
                self.put(&text);
            }
            Known::Name => self.repeat(self.step_of_row()?),
            Known::Used => {
                // Where a layout lacks the field, nothing can be the same as it.
                let at = |place: Option<usize>| {
                    let said = place.and_then(|place| self.said.get(place)).cloned();
                    said.and_then(|said| self.out.get(said)).unwrap_or_default().to_vec()
                };
                let (cpu, memory) = (at(self.places.cpu), at(self.places.memory));
                let text = used(self.own(true)?, &cpu, &memory)?;
                self.put(&text);
            }
            Known::Wrote => {
                let text = [WROTE, self.own(true)?].concat();
                self.put(&text);
            }
        }
        Some(())
    }

    /// Where the step stands in the id of the row.
    fn step_of_row(&self) -> Option<Range<usize>> {
        let id = self.said.get(self.places.id?)?.clone();
        let dot = self.out.get(id.clone())?.iter().position(|byte| *byte == b'.')?;
        Some(id.start + dot + 1..id.end)
    }

    /// The next figure, or word, of the run's own.
    fn own(&mut self, is_figure: bool) -> Option<&'r [u8]> {
        match &mut self.figures {
            Some(figures) if is_figure => figures.next(),
            _ => self.own.next(),
        }
    }

    fn own_fields(&mut self, count: usize) -> Option<()> {
        for _ in 0..count {
            let text = self.own(self.places.is_figure(self.said.len()))?;
            self.put(text);
        }
        Some(())
    }

    fn put(&mut self, text: &[u8]) {
        let start = self.out.len();
        self.out.extend_from_slice(text);
        self.end_field(start);
    }

    fn repeat(&mut self, field: Range<usize>) {
        let start = self.out.len();
        self.out.extend_from_within(field);
        self.end_field(start);
    }

    fn end_field(&mut self, start: usize) {
        self.said.push(start..self.out.len());
        self.out.push(DELIMITER);
    }

    /// Adds the closing id.
    fn close(&mut self) -> Option<()> {
        self.out.extend_from_within(self.said.first()?.clone());
        (self.said.len() == self.places.width()).then_some(())
    }

    fn end_row(&mut self, ends: &mut Vec<usize>) {
        ends.push(self.out.len());
        self.out.push(b'\n');
    }
}

/// The number of fields that the character behind a mark says.
fn several(count: u8) -> Option<usize> {
    count.checked_sub(NONE).map(usize::from)
}

/// The usual list of what a step used with these figures. Its memory is among them if it is another than
/// the `memory` of the row.
fn used(figures: &[u8], cpu: &[u8], memory: &[u8]) -> Option<Vec<u8>> {
    let figures: Vec<&[u8]> = figures.split(|byte| *byte == b',').collect();
    let (used, disk, peak, pages, virtual_memory) = match figures[..] {
        [used, disk, pages, virtual_memory] => (used, disk, memory, pages, virtual_memory),
        [used, disk, peak, pages, virtual_memory] => (used, disk, peak, pages, virtual_memory),
        _ => return None,
    };
    let used = if used.is_empty() { cpu } else { used };
    let virtual_memory = if virtual_memory.is_empty() { peak } else { virtual_memory };
    let parts: [&[u8]; 10] = [
        b"cpu=",
        used,
        b",energy=0,fs/disk=",
        disk,
        b",mem=",
        peak,
        b",pages=",
        pages,
        b",vmem=",
        virtual_memory,
    ];
    Some(parts.concat())
}
