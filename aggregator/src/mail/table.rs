//! Tables of a mail: the few columns that a reader needs, as HTML cells and as aligned text.

use serde::Serialize;

use super::words::Words;
use crate::output::number;
use crate::output::plain::{cut, padded, visible, width};
use crate::output::sheet::{Cell, Column, Place, Sheet};

/// How many rows a table of a mail has.
const ROWS: usize = 10;
/// How many columns it has where there is room.
const COLUMNS: usize = 7;
/// How many columns stay on a telephone.
const NARROW: usize = 4;
/// How wide a line of text is at most.
pub const WIDTH: usize = 78;

/// A table as templates see it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// Its columns.
    pub columns: Vec<Head>,
    /// Its cells, each row as long as there are columns.
    pub rows: Vec<Vec<String>>,
    /// The same as aligned text.
    pub text: String,
    /// How many rows were left out.
    pub left_out: usize,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Head {
    /// Its head.
    pub head: String,
    /// Whether it holds numbers, which stand at the right.
    pub right: bool,
    /// Whether its texts are long enough to be broken into lines.
    pub long: bool,
    /// Whether a narrow screen leaves it out.
    pub minor: bool,
}

/// A column that may be shown.
struct Candidate {
    head: String,
    right: bool,
    /// The higher, the earlier it is left out; `None` never.
    rank: Option<u8>,
    cells: Vec<String>,
}

/// The table of a sheet. Columns that say the same of every row, because the mail is about one user or
/// one cluster, are named in `without`.
#[must_use]
pub fn table(sheet: &Sheet, words: &Words, without: &[&str]) -> Table {
    let (sheet, left_out) = sheet.for_people(Some(ROWS));
    let all: Vec<Candidate> = (sheet.columns.iter().enumerate())
        .filter(|(_, column)| !without.contains(&&*column.key))
        .map(|(at, column)| candidate(&sheet, at, column, words))
        .collect();
    let few = fewer(&all, |kept| kept.len() <= COLUMNS);
    let narrow = fewer(&all, |kept| kept.len() <= NARROW);
    let text = fewer(&all, |kept| text_width(&all, kept) <= WIDTH);
    let get = |at: &usize| all.get(*at);
    Table {
        columns: few
            .iter()
            .filter_map(|at| get(at).map(|one| (at, one)))
            .map(|(at, one)| Head {
                head: one.head.clone(),
                right: one.right,
                long: one.cells.iter().any(|cell| width(cell) > 18),
                minor: !narrow.contains(at),
            })
            .collect(),
        rows: rows(&few.iter().filter_map(get).collect::<Vec<_>>(), sheet.rows.len(), 40),
        text: aligned(&text.iter().filter_map(get).collect::<Vec<_>>(), sheet.rows.len()),
        left_out,
    }
}

fn candidate(sheet: &Sheet, at: usize, column: &Column, words: &Words) -> Candidate {
    let cells = || sheet.rows.iter().filter_map(move |row| row.get(at));
    let decimals = number::decimals(cells());
    let right = cells().any(|cell| !matches!(cell, Cell::Text(_) | Cell::Missing));
    Candidate {
        head: visible(words.heads.get(&*column.key).map_or(&*column.head, String::as_str)),
        right,
        rank: rank(column),
        cells: cells().map(|cell| words.cell(&column.key, cell, decimals)).collect(),
    }
}

/// Figures say more to a reader than the partition does, and a job is known by its name.
fn rank(column: &Column) -> Option<u8> {
    match (&*column.key, column.place) {
        (_, Place::Always) => None,
        ("name", _) => Some(1),
        ("partition", _) => Some(200),
        ("state", _) => Some(201),
        (_, Place::Drop(rank)) => Some(rank.clamp(2, 199)),
        (_, Place::Program) => Some(255),
    }
}

/// The places of the columns that stay until it is `enough`.
fn fewer(all: &[Candidate], enough: impl Fn(&[usize]) -> bool) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..all.len()).collect();
    while !enough(&kept) {
        let rank_of = |at: &usize| all.get(*at).and_then(|one| one.rank);
        let Some(worst) =
            kept.iter().copied().filter(|at| rank_of(at).is_some()).max_by_key(rank_of)
        else {
            break;
        };
        kept.retain(|at| *at != worst);
    }
    kept
}

fn rows(columns: &[&Candidate], count: usize, most: usize) -> Vec<Vec<String>> {
    let cell = |at: usize, one: &&Candidate| one.cells.get(at).map(|cell| cut(cell, most));
    (0..count).map(|at| columns.iter().filter_map(|one| cell(at, one)).collect()).collect()
}

/// How much of a text a line of text shows.
const SHOWN: usize = 24;

/// The head in lines that are no wider than the cells, or than its longest word.
fn head_lines(one: &Candidate) -> (Vec<String>, usize) {
    let cells = one.cells.iter().map(|cell| width(cell).min(SHOWN)).max().unwrap_or(0);
    let word = one.head.split(' ').map(width).max().unwrap_or(0);
    let most = cells.max(word);
    let lines = wrapped(&one.head, most);
    let wide = lines.iter().map(|line| width(line)).max().unwrap_or(0).max(cells);
    (lines, wide)
}

fn text_width(all: &[Candidate], kept: &[usize]) -> usize {
    let wide = kept.iter().filter_map(|at| all.get(*at)).map(|one| head_lines(one).1);
    wide.map(|wide| wide + 2).sum::<usize>().saturating_sub(2)
}

fn aligned(columns: &[&Candidate], count: usize) -> String {
    let heads: Vec<(Vec<String>, usize)> = columns.iter().map(|one| head_lines(one)).collect();
    let high = heads.iter().map(|(lines, _)| lines.len()).max().unwrap_or(0);
    let line = |cells: Vec<String>| cells.join("  ").trim_end().to_owned() + "\n";
    let mut out = String::new();
    for level in 0..high {
        let cells = columns.iter().zip(&heads).map(|(one, (lines, wide))| {
            // Heads stand on the line, so that short ones are next to their figures.
            let skip = high - lines.len();
            let text = level.checked_sub(skip).and_then(|at| lines.get(at));
            padded(text.map_or("", String::as_str), *wide, one.right)
        });
        out += &line(cells.collect());
    }
    out += &line(heads.iter().map(|(_, wide)| "-".repeat(*wide)).collect());
    for row in rows(columns, count, SHOWN) {
        let cells = row.iter().zip(columns.iter().zip(&heads));
        out +=
            &line(cells.map(|(cell, (one, (_, wide)))| padded(cell, *wide, one.right)).collect());
    }
    out
}

/// Words in lines of at most so many columns; a longer word has a line of its own.
#[must_use]
pub fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    // Spaces that must not break do not.
    for word in text.split([' ', '\n']).filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests;
