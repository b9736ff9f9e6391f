//! Rows without what they say twice.
//!
//! The rows of a run repeat each other: cluster, account, times, state. And a row repeats itself:
//! what was given is what was asked for, what all tasks used is what the greediest used. A field
//! that is the same as the one above it, in the row before of the same run, is written as
//! [`ABOVE`]; one that is the same as the one to its left as [`LEFT`]; one that a key column says
//! as [`KEY`]; the id with which a row ends is left out. Two thirds of the text are left to
//! compress.

use std::ops::Range;

use steward_common::slurm::sacct::{DELIMITER, Field, Layout, Row};
use steward_common::time::Timestamp;

use super::raw::Key;

/// Stands for a field that says the same as the row above: the record separator.
pub const ABOVE: u8 = 0x1e;

/// Stands for a field that says the same as the field to its left: the group separator.
pub const LEFT: u8 = 0x1d;

/// Stands for the id, or in a job's own row the time of submission or end, as the key columns
/// have it: the file separator.
pub const KEY: u8 = 0x1c;

/// The fields that often repeat what stands above them or to their left. In others a mark is
/// understood but not looked for: that would cost more than it saves.
const REPEATING: &[Field] = &[
    Field::JobId,
    Field::Cluster,
    Field::Account,
    Field::State,
    Field::ExitCode,
    Field::Submit,
    Field::Eligible,
    Field::Start,
    Field::End,
    Field::Elapsed,
    Field::Suspended,
    Field::NodeList,
    Field::AllocTres,
    Field::TresUsageInMax,
];

/// Where the fields stand that are looked at.
#[derive(Clone, Debug)]
pub struct Places {
    id: Option<usize>,
    submit: Option<usize>,
    end: Option<usize>,
    /// All that may be marked, in order.
    marked: Vec<usize>,
}

impl Places {
    /// Those of a layout.
    #[must_use]
    pub fn of(layout: &Layout) -> Places {
        let mut marked: Vec<usize> =
            REPEATING.iter().filter_map(|field| layout.place(*field)).collect();
        marked.extend(layout.place(Field::JobIdRaw));
        marked.sort_unstable();
        Places {
            id: layout.place(Field::JobIdRaw),
            submit: layout.place(Field::Submit),
            end: layout.place(Field::End),
            marked,
        }
    }

    /// What the key says of the field at a place.
    fn said<'a>(&self, key: &Key<'a>, place: usize) -> Said<'a> {
        let own = key.step.is_none();
        let moment = |moment: Option<Timestamp>| moment.filter(|_| own).map(Timestamp::get);
        if Some(place) == self.id {
            key.job.map_or(Said::Nothing, |job| Said::Id(job, key.step))
        } else if Some(place) == self.submit {
            moment(key.submit).map_or(Said::Nothing, Said::Moment)
        } else if Some(place) == self.end {
            moment(key.end).map_or(Said::Nothing, Said::Moment)
        } else {
            Said::Nothing
        }
    }
}

/// What a key says of a field.
enum Said<'a> {
    Nothing,
    Id(u32, Option<&'a str>),
    Moment(i64),
}

impl Said<'_> {
    /// Whether this is the very text that the key says.
    fn is(&self, field: &[u8]) -> bool {
        match self {
            Said::Nothing => false,
            Said::Moment(moment) => number(field) == Some(*moment),
            Said::Id(job, None) => number(field) == Some(i64::from(*job)),
            Said::Id(job, Some(step)) => {
                let Some(dot) = field.iter().position(|byte| *byte == b'.') else { return false };
                number(field.get(..dot).unwrap_or_default()) == Some(i64::from(*job))
                    && field.get(dot + 1..) == Some(step.as_bytes())
            }
        }
    }

    fn write(&self, out: &mut Vec<u8>) -> Option<()> {
        let text = match self {
            Said::Nothing => return None,
            Said::Moment(moment) => moment.to_string(),
            Said::Id(job, None) => job.to_string(),
            Said::Id(job, Some(step)) => format!("{job}.{step}"),
        };
        out.extend(text.as_bytes());
        Some(())
    }
}

/// The number that is written so and not otherwise.
fn number(text: &[u8]) -> Option<i64> {
    if !matches!(text, [b'1'..=b'9', ..]) || text.len() > 18 {
        return None;
    }
    text.iter()
        .try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
}

/// Whether two fields are the same. Most that are of one length differ in their last byte, which
/// is had for less than a comparison.
#[inline]
fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.last() == other.last() && one == other
}

/// Appends a row with this key, of which `bytes` holds the text at the row's places, as does that
/// of `above`. Whether it can be said so: a row that holds one of the marks cannot.
#[must_use]
pub fn write(
    out: &mut Vec<u8>,
    bytes: &[u8],
    row: &Row<'_>,
    above: Option<&Row<'_>>,
    key: &Key<'_>,
    places: &Places,
) -> bool {
    let span = row.span();
    let holds_mark = |any: bool, byte: &u8| any | (byte.wrapping_sub(KEY) <= ABOVE - KEY);
    if bytes.get(span.clone()).is_none_or(|text| text.iter().fold(false, holds_mark)) {
        return false;
    }
    let field = |row: &Row<'_>, place: usize| bytes.get(row.place(place)?);
    let mut pending = span.start;
    for place in places.marked.iter().copied() {
        let Some(range) = row.place(place).filter(|range| range.len() > 1) else { continue };
        let Some(text) = bytes.get(range.clone()) else { return false };
        let is = |other: Option<&[u8]>| other.is_some_and(|other| same(text, other));
        let mark = if is(above.and_then(|above| field(above, place))) {
            ABOVE
        } else if is(place.checked_sub(1).and_then(|left| field(row, left))) {
            LEFT
        } else if places.said(key, place).is(text) {
            KEY
        } else {
            continue;
        };
        out.extend_from_slice(bytes.get(pending..range.start).unwrap_or_default());
        out.push(mark);
        pending = range.end;
    }
    // The closing id is not needed, nor the delimiter before it.
    let last = row.ends().len().checked_sub(2).and_then(|last| row.place(last));
    let Some(last) = last else { return false };
    out.extend_from_slice(bytes.get(pending..last.end).unwrap_or_default());
    true
}

/// Appends the row as sacct gave it. `above` is where in `out` the row before of the same run
/// stands. `None`, and nothing appended, if a mark points to nothing.
pub fn read(
    out: &mut Vec<u8>,
    text: &[u8],
    above: Option<Range<usize>>,
    key: &Key<'_>,
    places: &Places,
) -> Option<()> {
    let begin = out.len();
    let done = expand(out, text, above, key, places);
    if done.is_none() {
        out.truncate(begin);
    }
    done
}

fn expand(
    out: &mut Vec<u8>,
    text: &[u8],
    above: Option<Range<usize>>,
    key: &Key<'_>,
    places: &Places,
) -> Option<()> {
    let (begin, last) = (out.len(), above.as_ref().map_or(0, |above| above.end));
    let mut above_start = above.map(|above| above.start);
    let mut left = begin..begin;
    for (place, field) in text.split(|byte| *byte == DELIMITER).enumerate() {
        if place > 0 {
            out.push(DELIMITER);
        }
        let over = above_start.map(|start| {
            let rest = out.get(start..last).unwrap_or_default();
            let length = rest.iter().position(|byte| *byte == DELIMITER).unwrap_or(rest.len());
            start..start + length
        });
        above_start = over.as_ref().map(|over| over.end + 1);
        let start = out.len();
        match field {
            [ABOVE] => out.extend_from_within(over?),
            [LEFT] => out.extend_from_within(left),
            [KEY] => places.said(key, place).write(out)?,
            _ => out.extend(field),
        }
        left = start..out.len();
    }
    out.push(DELIMITER);
    let first = out.get(begin..)?.iter().position(|byte| *byte == DELIMITER)?;
    out.extend_from_within(begin..begin + first);
    Some(())
}

#[cfg(test)]
mod tests {
    use steward_common::slurm::sacct::row;

    use super::*;

    /// Six fields and the closing id.
    fn layout() -> Layout {
        use Field::{Account, AllocTres, JobId, JobIdRaw, ReqTres, Submit};
        Layout::new(|field| [JobIdRaw, JobId, Account, Submit, ReqTres, AllocTres].contains(&field))
    }

    fn key(step: Option<&str>) -> Key<'_> {
        Key { job: Some(70), submit: Some(Timestamp::new(1_792_195_205)), end: None, step }
    }

    /// The rows written and read again; what was written of each, `None` if it cannot be said.
    fn there_and_back(rows: &[&str]) -> Vec<Option<String>> {
        let layout = layout();
        let places = &Places::of(&layout);
        let text = rows.join("\n");
        let (mut at, mut start) = (Vec::new(), 0);
        for one in rows {
            let ends = row::ends(one).into_iter().map(|end| end + u32::try_from(start).unwrap());
            at.push((start, ends.collect::<Vec<u32>>()));
            start += one.len() + 1;
        }
        let all: Vec<Row<'_>> = at
            .iter()
            .map(|(start, ends)| Row::new(&layout, &text, *start, ends).unwrap())
            .collect();
        let (mut back, mut above, mut over) = (Vec::new(), None, None);
        let mut written = Vec::new();
        for (one, row) in rows.iter().zip(&all) {
            let key = key(row.id().1);
            let mut out = Vec::new();
            let said = write(&mut out, text.as_bytes(), row, over, &key, places);
            let begin = back.len();
            if said {
                read(&mut back, &out, above, &key, places).unwrap();
            } else {
                back.extend(one.as_bytes());
            }
            assert_eq!(std::str::from_utf8(&back[begin..]), Ok(*one));
            written.push(said.then(|| String::from_utf8(out).unwrap()));
            (above, over) = (Some(begin..back.len()), Some(row));
        }
        written
    }

    #[test]
    fn what_is_above_or_to_the_left_or_in_the_key_is_not_said_again() {
        let rows = [
            "70\x1f70\x1flab\x1f1792195205\x1fcpu=1\x1fcpu=1\x1f70",
            "70.0\x1f70.0\x1flab\x1f1792195206\x1f\x1fcpu=1\x1f70.0",
        ];
        let expected = [
            "\x1c\x1f\x1d\x1flab\x1f\x1c\x1fcpu=1\x1f\x1d",
            "\x1c\x1f\x1d\x1f\x1e\x1f1792195206\x1f\x1f\x1e",
        ];
        assert_eq!(there_and_back(&rows), expected.map(|text| Some(text.to_owned())));
    }

    #[test]
    fn a_number_that_is_written_otherwise_than_the_key_is_kept_as_it_is() {
        let rows = ["070\x1f70\x1flab\x1f01792195205\x1f\x1f\x1f070"];
        assert_eq!(there_and_back(&rows), [Some(rows[0].trim_end_matches("\x1f070").to_owned())]);
    }

    #[test]
    fn a_row_that_holds_a_mark_is_not_shortened() {
        let rows = [
            "70\x1f70\x1fa\x1f1\x1fb\x1fc\x1f70",
            "70.0\x1f70.0\x1f\x1e\x1f1\x1f\x1d\x1fc\x1f70.0",
            "70.1\x1f70.1\x1f\x1e\x1e\x1f\x1c\x1c\x1fb\nb\x1f\x1f70.1",
        ];
        let written = there_and_back(&rows);
        assert!(written[0].is_some() && written[1].is_none() && written[2].is_none());
    }

    #[test]
    fn a_mark_that_points_to_nothing_is_damage() {
        let places = &Places::of(&layout());
        for text in [b"70\x1f\x1e", b"70\x1f\x1c"] {
            let mut out = b"before".to_vec();
            assert_eq!(read(&mut out, text, None, &key(None), places), None);
            assert_eq!(out, b"before");
        }
    }

    /// A small generator of its own: which rows come does not matter, that they are many does.
    #[test]
    fn any_rows_come_back_as_they_were() {
        let mut seed = 7_u64;
        let mut next = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        let words = ["", "a", "lab", "1792195205", "\x1e", "\x1d", "\x1c", "\x1e\x1e", "é", "\n"];
        for _ in 0..2000 {
            let rows: Vec<String> = (0..=next(4))
                .map(|step| {
                    let mut word = || words[usize::try_from(next(10)).unwrap()];
                    let id = if step == 0 { "70".to_owned() } else { format!("70.{step}") };
                    [&id, word(), word(), word(), word(), word(), &id].join("\x1f")
                })
                .collect();
            let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
            there_and_back(&rows);
        }
    }
}
