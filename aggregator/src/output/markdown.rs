//! Tables for pages that are written in Markdown.

use super::number;
use super::plain::visible;
use super::sheet::{Cell, Document, Sheet};

/// Everything, with a heading for each table.
#[must_use]
pub fn document(document: &Document, top: Option<usize>) -> String {
    let mut out = format!("# {}\n", escaped(&document.title));
    for line in document.under_title() {
        out += &format!("\n{}\n", escaped(line));
    }
    for sheet in document.for_people() {
        let (shown, left_out) = sheet.for_people(top);
        out += &format!("\n## {}\n\n", escaped(&sheet.title));
        out += &if sheet.upright { table(&shown.stood_up()) } else { table(&shown) };
        if left_out > 0 {
            out += &format!("\n{}.\n", sheet.left_out(left_out));
        }
        for note in &sheet.notes {
            out += &format!("\n{}\n", escaped(note));
        }
    }
    out
}

fn table(sheet: &Sheet) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let cells = |at: usize| sheet.rows.iter().filter_map(move |row| row.get(at));
    let all = 0..sheet.columns.len();
    let decimals: Vec<usize> = all.clone().map(|at| number::decimals(cells(at))).collect();
    let rule = |at: usize| {
        let figures = cells(at).any(|cell| !matches!(cell, Cell::Text(_) | Cell::Missing));
        if figures { "---:".to_owned() } else { "---".to_owned() }
    };
    let mut out = line(sheet.columns.iter().map(|column| escaped(&column.head)).collect());
    out += &line(all.map(rule).collect());
    for row in &sheet.rows {
        let upright = |cell: &Cell| number::decimals(std::iter::once(cell));
        let cells = row.iter().zip(&decimals);
        let cells = cells.map(|(cell, of)| (cell, if sheet.upright { upright(cell) } else { *of }));
        out +=
            &line(cells.map(|(cell, decimals)| escaped(&number::cell(cell, decimals))).collect());
    }
    out
}

/// Text that Markdown takes as text: no bar ends a cell, nothing becomes a link or a tag.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in visible(text).chars() {
        if matches!(c, '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '&' | '~') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_breaks_the_table() {
        assert_eq!(escaped("a|b\n<b>[x](y)"), "a\\|b\\\\n\\<b\\>\\[x\\](y)");
    }
}
