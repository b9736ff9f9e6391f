//! Tables for spreadsheets (RFC 4180). Figures are plain; what is missing is empty.

use super::number::exact;
use super::plain::visible;
use super::sheet::{Cell, Document, Sheet};

/// One table: a line with its keys, then its rows.
#[must_use]
pub fn sheet(sheet: &Sheet, top: Option<usize>) -> String {
    let line = |cells: Vec<String>| cells.join(",") + "\r\n";
    let mut out = line(sheet.columns.iter().map(|column| column.key.to_string()).collect());
    let top = top.filter(|top| *top > 0).unwrap_or(usize::MAX);
    let skip = if sheet.last { sheet.rows.len().saturating_sub(top) } else { 0 };
    for row in sheet.rows.iter().skip(skip).take(top) {
        out += &line(row.iter().map(cell).collect());
    }
    out
}

/// All tables one after the other, each after a line `# name`, with an empty line between them.
#[must_use]
pub fn document(document: &Document, top: Option<usize>) -> String {
    let part = |one: &Sheet| format!("# {}\r\n{}", one.name, sheet(one, top));
    document.sheets.iter().map(part).collect::<Vec<_>>().join("\r\n")
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => quoted(&visible(text)),
        Cell::Count(count) => count.to_string(),
        Cell::Missing => String::new(),
        other => other.figure().map_or(String::new(), |figure| exact(figure).to_string()),
    }
}

fn quoted(text: &str) -> String {
    // Spreadsheets take text that begins so for a formula and run it. An apostrophe says that it
    // is text.
    let formula = text.starts_with(['=', '+', '-', '@']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    if text.contains(['"', ',', '\n', '\r']) || formula {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_no_formula_gets_through() {
        for (text, written) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("=HYPERLINK(1)", "\"'=HYPERLINK(1)\""),
            ("two\nlines", "two\\nlines"),
        ] {
            assert_eq!(cell(&Cell::text(text)), written);
        }
        assert_eq!(
            (cell(&Cell::Missing), cell(&Cell::Share(0.125))),
            (String::new(), "12.5".into())
        );
    }
}
