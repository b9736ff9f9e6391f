//! Text of an answer that is of no row: where it begins, and what is shown of the job around it.
//!
//! A row ends with its id and a line end. What stands behind the last place where it can have ended,
//! and before the next row, is none of it. A user's text may look like such an end, so that what
//! stands between the first and the last is in doubt until the text itself is known.

use std::ops::Range;

use super::{Piece, Span, View, job_id};

/// Text that is not known to be of a row.
#[derive(Clone, Debug)]
pub(super) struct Stray {
    place: Range<usize>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// It is of no row.
    Text,
    /// A row begins with it that never ends.
    Cut,
    /// It may be a part of a user's text.
    Doubt,
}

impl<'b> View<'b> {
    /// The row with these marks, the last of which stands before the next row, if it is whole but
    /// for text behind it. Such text is kept in mind.
    pub(super) fn without_stray(&mut self, start: usize, marks: Range<usize>) -> Option<Span> {
        let behind = |mark: usize| self.marks.get(mark).map(|at| *at as usize + 1);
        let id = self.text.get(start..behind(marks.start)?.checked_sub(1)?)?;
        let (mut fields, mut field) = (1, start);
        // Where the row ends if no text has a delimiter, and where at the latest.
        let (mut first, mut last) = (None, None);
        for mark in marks.start..=marks.end {
            let next = behind(mark)?;
            if !self.ends_line(mark) {
                (fields, field) = (fields + 1, next);
            } else if fields >= self.layout.width() && self.text.get(field..next - 1) == Some(id) {
                last = Some(mark);
                first = first.or(last.filter(|_| fields == self.layout.width()));
            }
        }
        let end = behind(marks.end)?;
        let (row_end, latest) = (first.and_then(behind), last.and_then(behind));
        let mut add = |place: Range<usize>, kind| {
            if !place.is_empty() {
                self.strays.push(Stray { place, kind });
            }
        };
        let Some(latest) = latest else {
            add(start..end, Kind::Cut);
            return None;
        };
        add(row_end.unwrap_or(latest)..latest, Kind::Doubt);
        add(latest..end, Kind::Text);
        let row = first.filter(|_| first == last)?;
        self.mend(start, marks.start..row)
    }

    /// Shows text that is no row and stands at this place of the answer; what is left of it.
    pub(super) fn show_strays<E>(
        &mut self,
        place: &Range<usize>,
        visit: &mut impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<Rest<'b>, E> {
        let later = self.strays.partition_point(|stray| stray.place.start < place.end);
        let mut strays: Vec<Stray> = self.strays.drain(..later).collect();
        let is_text = std::mem::take(&mut self.is_text);
        if is_text {
            strays = vec![Stray { place: place.clone(), kind: Kind::Text }];
        }
        let bytes_at = |place| self.bytes.get(place).unwrap_or_default();
        let mut rest = Rest { is_text, end: place.end, bytes: Vec::new(), doubt: Vec::new() };
        let mut from = place.start;
        for Stray { place: at, kind } in strays {
            let bytes = bytes_at(at.clone());
            if kind == Kind::Doubt {
                rest.doubt.push(bytes);
                continue;
            }
            let id = job_id(self.from(at.start));
            let id = (kind == Kind::Cut && !id.is_empty()).then_some(id);
            visit(Piece::Stray { id, bytes })?;
            rest.bytes.extend_from_slice(bytes_at(from..at.start));
            from = at.end;
            if at.end == place.end {
                rest.end = at.start;
            }
        }
        rest.bytes.extend_from_slice(bytes_at(from..place.end));
        Ok(rest)
    }
}

/// What is left of a job's text.
pub(super) struct Rest<'b> {
    /// Whether it was no job: nothing is left.
    pub(super) is_text: bool,
    /// Where its last row ends.
    pub(super) end: usize,
    /// Its rows.
    pub(super) bytes: Vec<u8>,
    /// Parts of them that may be a user's text.
    pub(super) doubt: Vec<&'b [u8]>,
}
