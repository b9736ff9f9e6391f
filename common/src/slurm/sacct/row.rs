//! One row of sacct: a line, or several if a name in it holds line ends.

use super::field::{Field, Layout};
use crate::alike::same;
use crate::slurm::ParseError;
use crate::time::Timestamp;

/// A whole row, cut into fields.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    layout: &'a Layout,
    /// A text that holds this row among others.
    text: &'a str,
    start: usize,
    /// Where each field ends in the text; the next begins one byte later.
    ends: &'a [u32],
}

impl<'a> Row<'a> {
    /// The row that begins at `start` in the text and whose fields end at `ends`. `None` if their
    /// number is not the layout's, or the row does not end with the id it begins with.
    #[must_use]
    #[inline]
    pub fn new(layout: &'a Layout, text: &'a str, start: usize, ends: &'a [u32]) -> Option<Self> {
        if ends.len() != layout.width() {
            return None;
        }
        let row = Row { layout, text, start, ends };
        let bytes = |place| text.as_bytes().get(row.place(place)?);
        let (id, last) = (bytes(layout.near(Field::JobIdRaw))?, bytes(ends.len().checked_sub(1)?)?);
        (!id.is_empty() && same(id, last)).then_some(row)
    }

    /// The row for which [`Row::new`] was asked before.
    #[must_use]
    #[inline]
    pub fn again(layout: &'a Layout, text: &'a str, start: usize, ends: &'a [u32]) -> Self {
        Row { layout, text, start, ends }
    }

    /// The text of a field; empty if this sacct does not know the field.
    #[must_use]
    #[inline]
    pub fn get(&self, field: Field) -> &'a str {
        self.at(self.layout.near(field)).unwrap_or("")
    }

    /// The same as bytes, for what is not kept as text: where a character begins is not looked at.
    #[must_use]
    #[inline]
    pub fn bytes(&self, field: Field) -> &'a [u8] {
        let place = self.place(self.layout.near(field));
        place.and_then(|place| self.text.as_bytes().get(place)).unwrap_or_default()
    }

    /// The time of a field; `None` if the field says that there is none.
    ///
    /// # Errors
    /// If it says neither.
    #[inline]
    pub fn time(&self, field: Field) -> Result<Option<Timestamp>, ParseError> {
        match Timestamp::usual(self.bytes(field)) {
            Some(time) => Ok(Some(time)),
            None => self.any_time(field),
        }
    }

    #[inline(never)]
    fn any_time(&self, field: Field) -> Result<Option<Timestamp>, ParseError> {
        Timestamp::from_slurm(self.get(field))
    }

    #[inline]
    fn at(&self, place: usize) -> Option<&'a str> {
        self.text.get(self.place(place)?)
    }

    /// Where in that text the field at a place of the layout stands.
    #[must_use]
    #[inline]
    pub fn place(&self, place: usize) -> Option<std::ops::Range<usize>> {
        let end = *self.ends.get(place)? as usize;
        // Before the first there is none, as there is none behind the last: one comparison for both.
        let start = match self.ends.get(place.wrapping_sub(1)) {
            Some(before) => *before as usize + 1,
            None => self.start,
        };
        Some(start..end)
    }

    /// Where the row begins and ends in the text that holds it.
    #[must_use]
    #[inline]
    pub fn span(&self) -> std::ops::Range<usize> {
        self.start..self.ends.last().map_or(self.start, |end| *end as usize)
    }

    /// Where each field ends in that text, the closing id last; the next begins one byte later.
    #[must_use]
    #[inline]
    pub fn ends(&self) -> &'a [u32] {
        self.ends
    }

    /// The job's number and, if the row is a step's, the step: `100`, `batch`.
    #[must_use]
    #[inline]
    pub fn id(&self) -> (&'a str, Option<&'a str>) {
        let id = self.get(Field::JobIdRaw);
        match id.bytes().position(|byte| byte == b'.') {
            Some(dot) => (id.get(..dot).unwrap_or(""), id.get(dot + 1..)),
            None => (id, None),
        }
    }
}

/// Where the fields of `text` end, found one byte at a time: for tests and repaired rows.
#[must_use]
pub fn ends(text: &str) -> Vec<u32> {
    let delimiters = text.bytes().enumerate().filter(|(_, byte)| *byte == super::DELIMITER);
    delimiters.map(|(at, _)| at).chain([text.len()]).map(|at| at as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_begins_and_ends_with_its_id() {
        let layout = Layout::new(|field| matches!(field, Field::JobIdRaw | Field::JobName));
        let whole = "7.batch\x1fa name\nof two lines\x1f7.batch";
        let row = ends(whole);
        let row = Row::new(&layout, whole, 0, &row).unwrap();
        assert_eq!(row.get(Field::JobName), "a name\nof two lines");
        assert_eq!(row.bytes(Field::JobName), b"a name\nof two lines");
        assert_eq!((row.get(Field::State), row.bytes(Field::State)), ("", &b""[..]));
        assert_eq!(row.id(), ("7", Some("batch")));
        for text in ["7\x1fname\x1f8", "7\x1fname", "7\x1fa\x1fb\x1f7", "\x1f\x1f", ""] {
            assert!(Row::new(&layout, text, 0, &ends(text)).is_none(), "{text:?}");
        }
    }
}
