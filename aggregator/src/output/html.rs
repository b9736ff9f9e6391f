//! One page that needs nothing else: styles and bars are in it, there is no script, and it prints.

use super::number;
use super::plain::visible;
use super::sheet::{Cell, Chart, Document, Sheet, Tone};

const STYLE: &str = include_str!("page.css");
/// Height of a bar with its space, and where bars begin and end, in the units of the drawing.
const STEP: usize = 22;
const LEFT: f64 = 130.0;
const RIGHT: f64 = 430.0;

/// The page.
#[must_use]
pub fn document(document: &Document, top: Option<usize>) -> String {
    let title = escaped(&document.title);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n"
    );
    for line in document.under_title() {
        out += &format!("<p>{}</p>\n", escaped(line));
    }
    out += "</header>\n<nav>";
    for sheet in document.for_people() {
        out += &format!("<a href=\"#{}\">{}</a> ", sheet.name, escaped(&sheet.title));
    }
    out += "</nav>\n<main>\n";
    // The figures of the whole come first: a page is looked at from the top.
    let (first, rest): (Vec<&Sheet>, Vec<&Sheet>) =
        document.for_people().partition(|sheet| sheet.upright);
    for sheet in first.into_iter().chain(rest) {
        let (shown, left_out) = sheet.for_people(top);
        out += &format!("<section id=\"{}\">\n<h2>{}</h2>\n", sheet.name, escaped(&sheet.title));
        out += &if sheet.upright { cards(&shown) } else { table(&shown) };
        if left_out > 0 {
            out += &format!("<p class=\"note\">{}.</p>\n", sheet.left_out(left_out));
        }
        for note in &sheet.notes {
            out += &format!("<p class=\"note\">{}</p>\n", escaped(note));
        }
        let charts: String = sheet.charts.iter().map(|one| chart(&shown, one)).collect();
        if !charts.is_empty() {
            out += &format!("<div class=\"charts\">\n{charts}</div>\n");
        }
        out += "</section>\n";
    }
    out + "</main>\n</body>\n</html>\n"
}

/// Figures that stand for themselves.
fn cards(sheet: &Sheet) -> String {
    let mut out = "<dl class=\"cards\">\n".to_owned();
    let row = sheet.rows.first().map(Vec::as_slice).unwrap_or_default();
    for (column, cell) in sheet.columns.iter().zip(row) {
        let decimals = number::decimals(std::iter::once(cell));
        let figure = escaped(&number::cell(cell, decimals));
        out += &format!("<div><dt>{}</dt><dd>{figure}</dd></div>\n", escaped(&column.head));
    }
    out + "</dl>\n"
}

fn table(sheet: &Sheet) -> String {
    let cells = |at: usize| sheet.rows.iter().filter_map(move |row| row.get(at));
    let figures: Vec<bool> = (0..sheet.columns.len())
        .map(|at| cells(at).any(|cell| !matches!(cell, Cell::Text(_) | Cell::Missing)))
        .collect();
    let decimals: Vec<usize> =
        (0..sheet.columns.len()).map(|at| number::decimals(cells(at))).collect();
    let class = |figure: &bool| if *figure { " class=\"n\"" } else { "" };
    let mut out = "<div class=\"wide\"><table>\n<thead><tr>".to_owned();
    for (column, figure) in sheet.columns.iter().zip(&figures) {
        out += &format!("<th scope=\"col\"{}>{}</th>", class(figure), escaped(&column.head));
    }
    out += "</tr></thead>\n<tbody>\n";
    for row in &sheet.rows {
        out += "<tr>";
        for ((cell, figure), decimals) in row.iter().zip(&figures).zip(&decimals) {
            let text = escaped(&number::cell(cell, *decimals));
            out += &format!("<td{}>{text}</td>", class(figure));
        }
        out += "</tr>\n";
    }
    out + "</tbody>\n</table></div>\n"
}

fn chart(sheet: &Sheet, chart: &Chart) -> String {
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
    let title = escaped(chart.title);
    let mut out = format!(
        "<figure><figcaption>{title}</figcaption>\n\
         <svg viewBox=\"0 0 560 {}\" role=\"img\" aria-label=\"{title}\">\n",
        bars.len() * STEP
    );
    for (at, (label, figure)) in bars.iter().enumerate() {
        let top = at * STEP;
        let long = (figure / most).clamp(0.0, 1.0) * (RIGHT - LEFT);
        let long = if *figure > 0.0 { long.max(1.0) } else { 0.0 };
        let (class, text) = match chart.tone {
            Tone::Plain => ("plain", None),
            Tone::Waste => ("bad", None),
            Tone::Good if *figure >= 66.0 => ("good", Some(())),
            Tone::Good if *figure >= 33.0 => ("fair", Some(())),
            Tone::Good | Tone::Lost => ("bad", Some(())),
        };
        let text = text.map_or_else(
            || format!("{} ({})", number::hours(*figure), number::percent(figure / sum)),
            |()| format!("{} %", number::figure(*figure, 1)),
        );
        let label = number::cell(&Cell::text(label), 0);
        let short = super::plain::cut(&visible(&label), 17);
        out += &format!(
            "<g><title>{}: {text}</title><text x=\"{}\" y=\"{}\" class=\"l\">{}</text>\
             <rect x=\"{LEFT}\" y=\"{}\" width=\"{long:.1}\" height=\"{}\" rx=\"2\" class=\"{class}\"/>\
             <text x=\"{:.1}\" y=\"{}\">{text}</text></g>\n",
            escaped(&label),
            LEFT - 8.0,
            top + 15,
            escaped(&short),
            top + 3,
            STEP - 6,
            LEFT + long + 6.0,
            top + 15,
        );
    }
    out + "</svg></figure>\n"
}

/// Text that HTML takes as text, in attributes too.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in visible(text).chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_never_markup() {
        assert_eq!(
            escaped("<script>alert('x')</script>\u{202e}\"&"),
            "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;\\u{202e}&quot;&amp;"
        );
    }
}
