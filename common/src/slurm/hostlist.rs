//! Hostlists: `r[1-2]n[01-03],login1` and back.

use std::collections::{BTreeMap, BTreeSet};

use super::ParseError;
use super::number::digits;
use crate::id::{NAME_MAX, NodeName};

/// Most names that one list may stand for. The largest Slurm clusters have some ten thousand
/// nodes; `n[1-4000000000]` is a mistake that must not take all memory.
pub const MAX_NODES: usize = 4 * 65_536;

const LIST: &str = "a list of nodes such as n1 or r[1-2]n[01-03],login1";
const SIZE: &str = "a list of at most 262144 nodes";

/// The names that a list stands for, in its order. `None assigned`, `(null)` and empty text are
/// lists of no node.
///
/// # Errors
/// If the text is no list, or one of more than [`MAX_NODES`] nodes.
pub fn expand(text: &str) -> Result<Vec<NodeName>, ParseError> {
    if matches!(text, "" | "(null)" | "None assigned") {
        return Ok(Vec::new());
    }
    let wrong = |expected| ParseError::new("node list", text, expected);
    let mut names = Vec::new();
    for item in split(text).ok_or_else(|| wrong(LIST))? {
        let parts = parts(item)
            .filter(|parts| least_length(parts) <= NAME_MAX)
            .ok_or_else(|| wrong(LIST))?;
        let room = MAX_NODES - names.len();
        if count(&parts).is_none_or(|count| count > room) {
            return Err(wrong(SIZE));
        }
        for name in product(&parts) {
            names.push(NodeName::new(&name)?);
        }
    }
    Ok(names)
}

/// Splits at the commas that are outside brackets; `None` if brackets nest or do not match.
fn split(text: &str) -> Option<Vec<&str>> {
    let mut items = Vec::new();
    let (mut start, mut inside) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            '[' if inside => return None,
            ']' if !inside => return None,
            '[' => inside = true,
            ']' => inside = false,
            ',' if !inside => {
                items.push(text.get(start..at)?);
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(text.get(start..)?);
    (!inside).then_some(items)
}

/// A piece of one item: fixed text, or the numbers of a bracket.
enum Part<'a> {
    Text(&'a str),
    Ranges(Vec<Range>),
}

struct Range {
    first: u64,
    last: u64,
    width: usize,
}

fn parts(item: &str) -> Option<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    let mut rest = item;
    while let Some((text, after)) = rest.split_once('[') {
        let (inside, after) = after.split_once(']')?;
        parts.push(Part::Text(text));
        let ranges = inside.split(',').map(range);
        parts.push(Part::Ranges(ranges.collect::<Option<_>>()?));
        rest = after;
    }
    parts.push(Part::Text(rest));
    Some(parts)
}

/// `7`, `1-3`, `01-03`. Padding is that of the first number, and must hold for the last too.
fn range(text: &str) -> Option<Range> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let padded = |number: &str| number.len() > 1 && number.starts_with('0');
    if padded(last) && first.len() != last.len() {
        return None;
    }
    let range = Range {
        first: digits(first)?,
        last: digits(last)?,
        width: if padded(first) { first.len() } else { 1 },
    };
    (range.first <= range.last).then_some(range)
}

/// Length of the shortest name, at least: a long text or padding times many names would take as
/// much memory as too many names.
fn least_length(parts: &[Part]) -> usize {
    let length = |part: &Part| match part {
        Part::Text(text) => text.len(),
        Part::Ranges(ranges) => ranges.iter().map(|range| range.width).max().unwrap_or(0),
    };
    parts.iter().map(length).sum()
}

fn count(parts: &[Part]) -> Option<usize> {
    let mut count = 1usize;
    for part in parts {
        if let Part::Ranges(ranges) = part {
            let mut sum = 0usize;
            for range in ranges {
                let size = (range.last - range.first).checked_add(1)?;
                sum = sum.checked_add(size.try_into().ok()?)?;
            }
            count = count.checked_mul(sum)?;
        }
    }
    Some(count)
}

fn product(parts: &[Part]) -> Vec<String> {
    let mut names = vec![String::new()];
    for part in parts {
        match part {
            Part::Text(text) => names.iter_mut().for_each(|name| name.push_str(text)),
            Part::Ranges(ranges) => {
                let numbers = |name: &String| {
                    let mut longer = Vec::new();
                    for &Range { first, last, width } in ranges {
                        longer.extend((first..=last).map(|n| format!("{name}{n:0width$}")));
                    }
                    longer
                };
                names = names.iter().flat_map(numbers).collect();
            }
        }
    }
    names
}

/// The shortest list this program can find for these names: sorted, each once.
#[must_use]
pub fn fold(names: &[NodeName]) -> String {
    let mut by_shape: BTreeMap<Vec<String>, BTreeSet<Vec<Vec<Number>>>> = BTreeMap::new();
    for name in names {
        let (shape, numbers) = dissect(name.as_str());
        let box_of_one = numbers.into_iter().map(|number| vec![number]).collect();
        by_shape.entry(shape).or_default().insert(box_of_one);
    }
    let mut items = Vec::new();
    for (shape, mut boxes) in by_shape {
        for dimension in (0..shape.len().saturating_sub(1)).rev() {
            boxes = merge(boxes, dimension);
        }
        items.extend(boxes.iter().map(|dimensions| item(&shape, dimensions)));
    }
    items.join(",")
}

/// A number in a name; sorts by value, then by padding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Number {
    value: u64,
    text: String,
}

/// Cuts a name at its numbers: `r1n01-ib` is `r`, `n`, `-ib` and 1, 01.
fn dissect(name: &str) -> (Vec<String>, Vec<Number>) {
    let (mut shape, mut numbers) = (Vec::new(), Vec::new());
    let mut fixed = String::new();
    let mut rest = name;
    while !rest.is_empty() {
        let (text, after) = split_before(rest, |c| c.is_ascii_digit());
        let (run, after) = split_before(after, |c| !c.is_ascii_digit());
        fixed.push_str(text);
        match digits(run) {
            Some(value) => {
                shape.push(std::mem::take(&mut fixed));
                let text = run.to_owned();
                numbers.push(Number { value, text });
            }
            // A run too long for a number stays text.
            None => fixed.push_str(run),
        }
        rest = after;
    }
    shape.push(fixed);
    (shape, numbers)
}

fn split_before(text: &str, stop: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(stop).unwrap_or(text.len()))
}

/// Joins the boxes that differ in one dimension only.
fn merge(boxes: BTreeSet<Vec<Vec<Number>>>, dimension: usize) -> BTreeSet<Vec<Vec<Number>>> {
    let mut joined: BTreeMap<Vec<Vec<Number>>, Vec<Number>> = BTreeMap::new();
    for mut others in boxes {
        let Some(slot) = others.get_mut(dimension) else {
            continue;
        };
        let numbers = std::mem::take(slot);
        joined.entry(others).or_default().extend(numbers);
    }
    let back = |(mut others, mut numbers): (Vec<Vec<Number>>, Vec<Number>)| {
        numbers.sort();
        if let Some(slot) = others.get_mut(dimension) {
            *slot = numbers;
        }
        others
    };
    joined.into_iter().map(back).collect()
}

fn item(shape: &[String], dimensions: &[Vec<Number>]) -> String {
    let mut text = String::new();
    let brackets = dimensions.iter().map(|numbers| bracket(numbers));
    for (fixed, bracket) in shape.iter().zip(brackets.chain([String::new()])) {
        text.push_str(fixed);
        text.push_str(&bracket);
    }
    text
}

fn bracket(numbers: &[Number]) -> String {
    if let [number] = numbers {
        return number.text.clone();
    }
    let mut runs: Vec<(&Number, &Number)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((first, last)) if follows(first, last, number) => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let run = |(first, last): &(&Number, &Number)| {
        if first == last { first.text.clone() } else { format!("{}-{}", first.text, last.text) }
    };
    let runs: Vec<String> = runs.iter().map(run).collect();
    format!("[{}]", runs.join(","))
}

/// Whether a range from `first` to `last` may go on with `next`: the next number, written with
/// the padding that the range prescribes.
fn follows(first: &Number, last: &Number, next: &Number) -> bool {
    let width = if first.text.starts_with('0') { first.text.len() } else { 1 };
    last.value.checked_add(1) == Some(next.value) && next.text == format!("{:0width$}", next.value)
}

#[cfg(test)]
mod tests;
