//! One JSON object: facts, then each table as a list of objects. What is missing is null.

use serde_json::{Map, Value, json};

use super::number::exact;
use super::plain::is_hidden;
use super::sheet::{Cell, Document, Sheet};

/// Everything, as one object. With `only`, the rows of that table.
#[must_use]
pub fn document(document: &Document, top: Option<usize>) -> String {
    let mut all = Map::new();
    all.insert("headline".to_owned(), json!(document.headline));
    for (key, fact) in &document.facts {
        all.insert((*key).to_owned(), cell(fact));
    }
    for sheet in &document.sheets {
        all.insert(sheet.name.to_string(), rows(sheet, top));
    }
    text(&Value::Object(all))
}

/// The rows of one table.
#[must_use]
pub fn sheet(sheet: &Sheet, top: Option<usize>) -> String {
    text(&rows(sheet, top))
}

/// The rows of one table, as a value.
#[must_use]
pub fn rows(sheet: &Sheet, top: Option<usize>) -> Value {
    let object = |row: &Vec<Cell>| {
        let cells = sheet.columns.iter().zip(row);
        Value::Object(cells.map(|(column, one)| (column.key.to_string(), cell(one))).collect())
    };
    if sheet.upright {
        return sheet.rows.first().map_or(Value::Null, object);
    }
    let top = top.filter(|top| *top > 0).unwrap_or(usize::MAX);
    let skip = if sheet.last { sheet.rows.len().saturating_sub(top) } else { 0 };
    Value::Array(sheet.rows.iter().skip(skip).take(top).map(object).collect())
}

fn cell(cell: &Cell) -> Value {
    match cell {
        Cell::Text(text) => json!(text),
        Cell::Count(count) => json!(count),
        Cell::Missing => Value::Null,
        other => other.figure().map_or(Value::Null, |figure| json!(exact(figure))),
    }
}

/// JSON lets characters through that act on a terminal; in JSON they stand in strings only, where
/// an escape means the same.
#[must_use]
pub fn text(value: &Value) -> String {
    let mut out = String::new();
    for c in format!("{value:#}").chars() {
        if c != '\n' && is_hidden(c) {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| out += &format!("\\u{unit:04x}"));
        } else {
            out.push(c);
        }
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_escaped_and_means_the_same() {
        let name = "\u{1b}[2J\u{9b}\u{202e}\u{e0001}\u{7f}\n";
        let written = text(&json!({ "name": name }));
        assert!(written.chars().all(|c| c == '\n' || !is_hidden(c)), "{written:?}");
        let read: Value = serde_json::from_str(&written).unwrap();
        assert_eq!(read["name"], name);
    }
}
