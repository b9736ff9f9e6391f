//! Tables and bars in plain text that fit the width.

use super::number;
use super::plain::{cut, padded, visible, width};
use super::screen::{Screen, Style};
use super::sheet::{Cell, Chart, Column, Document, Place, Sheet, Tone};

/// Space between columns.
const GAP: usize = 2;
/// Names are not cut below this to keep a column, and not below the other for anything.
const NAME: usize = 16;
const LEAST: usize = 6;

/// Everything, as people read it. `top` is how many rows of each table; 0 is all.
#[must_use]
pub fn document(document: &Document, screen: Screen, top: Option<usize>) -> String {
    let mut out = String::new();
    for line in &document.headline {
        out += &wrapped(&visible(line), screen.width);
    }
    for one in document.for_people() {
        if !out.is_empty() {
            out.push('\n');
        }
        out += &sheet(one, screen, top);
    }
    out
}

/// A table with its title, charts and notes.
#[must_use]
pub fn sheet(sheet: &Sheet, screen: Screen, top: Option<usize>) -> String {
    let (shown, left_out) = sheet.for_people(top);
    let mut out = String::new();
    if !sheet.title.is_empty() {
        out += &screen.paint(Style::Bold, &cut(&sheet.title, screen.width));
        out.push('\n');
    }
    let (table, hidden) =
        if sheet.upright { table(&shown.stood_up(), screen) } else { table(&shown, screen) };
    out += &table;
    let mut notes = Vec::new();
    if left_out > 0 {
        notes.push(format!("… {} (--top 0 shows all)", sheet.left_out(left_out)));
    }
    if !hidden.is_empty() {
        // Every command that shows tables has this option; few have --format.
        notes.push(format!("Too narrow for: {} (--json has all)", hidden.join(", ")));
    }
    notes.extend(sheet.notes.iter().map(|note| visible(note)));
    for note in notes {
        for line in wrapped(&note, screen.width).lines() {
            out += &screen.paint(Style::Dim, line);
            out.push('\n');
        }
    }
    for one in &sheet.charts {
        out += &chart(&shown, one, screen);
    }
    out
}

/// The lines of a table, and the heads of the columns that did not fit.
fn table(sheet: &Sheet, screen: Screen) -> (String, Vec<String>) {
    let mut columns: Vec<Shown> = (sheet.columns.iter().enumerate())
        .map(|(at, column)| Shown::new(sheet, at, column))
        .collect();
    let hidden = fit(&mut columns, screen.width);
    let line = |style: Option<Style>, text: &dyn Fn(&Shown) -> String| {
        let cells: Vec<String> = columns
            .iter()
            .map(|column| padded(&cut(&text(column), column.width), column.width, column.right))
            .collect();
        let line = cells.join(&" ".repeat(GAP));
        let line = line.trim_end();
        style.map_or(line.to_owned(), |style| screen.paint(style, line)) + "\n"
    };
    let mut out = line(Some(Style::Bold), &|column| column.head.clone());
    out += &line(Some(Style::Dim), &|column| "─".repeat(column.width));
    for row in 0..sheet.rows.len() {
        out += &line(None, &|column| column.cells.get(row).cloned().unwrap_or_default());
    }
    (out, hidden)
}

/// A column as it is shown.
struct Shown {
    head: String,
    place: Place,
    cells: Vec<String>,
    width: usize,
    right: bool,
}

impl Shown {
    fn new(sheet: &Sheet, at: usize, column: &Column) -> Shown {
        let cells = || sheet.rows.iter().filter_map(|row| row.get(at));
        let decimals = number::decimals(cells());
        // Figures of an upright table have nothing in common.
        let decimals = |cell: &Cell| {
            if sheet.upright { number::decimals(std::iter::once(cell)) } else { decimals }
        };
        let texts: Vec<String> =
            cells().map(|cell| visible(&number::cell(cell, decimals(cell)))).collect();
        let longest = texts.iter().map(|text| width(text)).max().unwrap_or(0);
        Shown {
            head: column.head.to_string(),
            place: column.place,
            width: longest.max(width(&column.head)),
            // Upright tables mix texts and figures; figures decide.
            right: cells().any(|cell| !matches!(cell, Cell::Text(_) | Cell::Missing))
                || (column.has_unit() && cells().all(|cell| *cell == Cell::Missing)),
            cells: texts,
        }
    }

    /// Cuts names, not figures, by at most so much.
    fn shrink(&mut self, too_much: usize, least: usize) {
        if !self.right {
            self.width = self.width.saturating_sub(too_much).max(least.min(self.width));
        }
    }
}

/// Makes the columns fit: long names are cut a little, then columns are left out, then names are
/// cut for good.
fn fit(columns: &mut Vec<Shown>, width: usize) -> Vec<String> {
    let mut hidden = Vec::new();
    let too_much = |columns: &[Shown]| {
        let all: usize = columns.iter().map(|column| column.width + GAP).sum();
        all.saturating_sub(GAP).saturating_sub(width)
    };
    let shrink = |columns: &mut [Shown], least: usize| {
        for at in 0..columns.len() {
            let excess = too_much(columns);
            if let Some(column) = columns.get_mut(at) {
                column.shrink(excess, least);
            }
        }
    };
    shrink(columns, NAME);
    while too_much(columns) > 0 {
        let last = columns.iter().enumerate().filter(|(_, c)| c.place != Place::Always);
        let Some((at, _)) = last.max_by_key(|(at, column)| (column.place, *at)) else { break };
        hidden.push(columns.remove(at).head);
    }
    shrink(columns, LEAST);
    hidden.reverse();
    hidden
}

/// Bars, one a line, the longest as long as there is room.
#[must_use]
pub fn chart(sheet: &Sheet, chart: &Chart, screen: Screen) -> String {
    let bars = sheet.bars(chart);
    if bars.len() < 2 {
        return String::new();
    }
    let sum = sheet.sum(chart);
    let most = if chart.tone.is_percent() {
        100.0
    } else {
        bars.iter().map(|(_, figure)| *figure).fold(0.0, f64::max)
    };
    let decimals = usize::from(most < 1000.0);
    let figures: Vec<String> = bars
        .iter()
        .map(|(_, figure)| match chart.tone.is_percent() {
            true => format!("{} %", number::figure(*figure, 1)),
            false => format!(
                "{}  {:>4}",
                number::figure(*figure, decimals),
                number::percent(figure / sum)
            ),
        })
        .collect();
    let longest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0);
    let labels: Vec<String> =
        bars.iter().map(|(label, _)| visible(&number::cell(&Cell::text(label), 0))).collect();
    let figure_width = longest(&mut figures.iter().map(|text| width(text)));
    let label_width =
        longest(&mut labels.iter().map(|text| width(text))).min(20).min(screen.width / 3);
    let room = screen.width.saturating_sub(label_width + figure_width + 3).clamp(5, 60);
    let mut out = format!("\n{}\n", screen.paint(Style::Bold, &cut(chart.title, screen.width)));
    for (((_, figure), label), text) in bars.iter().zip(&labels).zip(&figures) {
        let style = match chart.tone {
            Tone::Plain => Style::Plain,
            Tone::Waste | Tone::Lost => Style::Bad,
            Tone::Good if *figure >= 66.0 => Style::Good,
            Tone::Good if *figure >= 33.0 => Style::Fair,
            Tone::Good => Style::Bad,
        };
        let bar = bar(figure / most, room);
        let space = " ".repeat(room - width(&bar));
        let label = padded(&cut(label, label_width), label_width, false);
        let text = padded(text, figure_width, true);
        out += &format!("{label} {}{space} {text}\n", screen.paint(style, &bar));
    }
    out
}

/// A bar of a share of so many columns, to an eighth of a column. What is not nothing is seen.
fn bar(share: f64, columns: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped before")]
    let eighths = (share.clamp(0.0, 1.0) * columns as f64 * 8.0).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { eighths };
    let rest = EIGHTHS.get(eighths % 8).copied().unwrap_or("");
    "█".repeat(eighths / 8) + rest
}

/// The text broken at spaces, and within lists that are longer than a line at their commas.
#[must_use]
pub fn wrapped(text: &str, columns: usize) -> String {
    let (mut out, mut line) = (String::new(), String::new());
    for word in text.split(' ') {
        let is_long = width(word) > columns;
        let parts = word.split_inclusive(|c| is_long && c == ',');
        // Two spaces in a row have an empty word between them.
        let parts = if word.is_empty() { vec![""] } else { parts.collect() };
        for (place, part) in parts.into_iter().enumerate() {
            let space = usize::from(place == 0);
            if !line.is_empty() && width(&line) + space + width(part) > columns {
                out += &line;
                out.push('\n');
                line.clear();
            }
            if !line.is_empty() && place == 0 {
                line.push(' ');
            }
            line += part;
        }
    }
    out + &line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_grow_by_eighths_and_little_is_seen() {
        assert_eq!(bar(0.5, 10), "█████");
        assert_eq!(
            (bar(0.0, 10), bar(0.0001, 10), bar(2.0, 3)),
            (String::new(), "▏".into(), "███".into())
        );
        assert_eq!(bar(0.55, 10), "█████▌");
    }

    #[test]
    fn figures_that_nobody_measured_stand_where_figures_stand() {
        let columns = vec![super::super::sheet::always("cpu_percent", "CPU %")];
        let fields: [super::super::sheet::Field<()>; 0] = [];
        let mut table = Sheet::new("t", "", &fields, &[]);
        (table.columns, table.rows) = (columns, vec![vec![Cell::Missing]]);
        assert_eq!(sheet(&table, Screen::file(), None), "CPU %\n─────\n    -\n");
    }

    #[test]
    fn sentences_are_broken_at_spaces() {
        assert_eq!(wrapped("one two three", 7), "one two\nthree\n");
        assert_eq!(wrapped("unbreakable", 4), "unbreakable\n");
        assert_eq!(wrapped("a,b c", 4), "a,b\nc\n");
        assert_eq!(wrapped("TRES cpu,mem,gres/gpu at", 9), "TRES cpu,\nmem,\ngres/gpu\nat\n");
    }
}
