//! Figures for people.

use super::sheet::Cell;

/// What stands where nothing was measured.
pub const MISSING: &str = "-";

/// `1,234,567`.
#[must_use]
pub fn grouped(digits: &str) -> String {
    let mut out = String::new();
    for (at, c) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && c.is_ascii_digit() {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A figure with thousands apart. One too small to show is `<0.1` or `>-0.1`, not 0.
#[must_use]
pub fn figure(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    if value != 0.0 && text.chars().all(|c| matches!(c, '0' | '.')) {
        let sign = if value < 0.0 { ">-" } else { "<" };
        return if decimals == 0 {
            format!("{sign}1")
        } else {
            format!("{sign}0.{:0>decimals$}", 1)
        };
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let point = if fraction.is_empty() { "" } else { "." };
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}{point}{fraction}", grouped(whole))
}

/// Hours in a sentence: whole ones once they are many.
#[must_use]
pub fn hours(value: f64) -> String {
    figure(value, usize::from(value.abs() < 1000.0))
}

/// `61 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{} %", figure(share * 100.0, 0))
}

/// A noun with its number: `1 job`, `1,234 jobs`.
#[must_use]
pub fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(&count.to_string()), ending(count))
}

/// The same for lines in which scripts look for the number: `1 job`, `1234 jobs`.
#[must_use]
pub fn so_many(count: impl TryInto<u64>, noun: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {noun}{}", ending(count))
}

const fn ending(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// How many decimals the figures of a column get, so that they stand one below the other.
#[must_use]
pub fn decimals<'a>(cells: impl Iterator<Item = &'a Cell>) -> usize {
    let large = cells.filter_map(|cell| match cell {
        Cell::Number(number) => Some(number.abs()),
        _ => None,
    });
    usize::from(large.fold(0.0, f64::max) < 1000.0)
}

/// A cell as people read it; text as it is.
#[must_use]
pub fn cell(cell: &Cell, decimals: usize) -> String {
    match cell {
        Cell::Text(text) if text.is_empty() => "(none)".to_owned(),
        Cell::Text(text) => text.clone(),
        Cell::Count(count) => grouped(&count.to_string()),
        Cell::Number(number) => figure(*number, decimals),
        Cell::Share(share) => figure(share * 100.0, 1),
        Cell::Missing => MISSING.to_owned(),
    }
}

/// A figure for programs: as it is, without the noise of the last digits.
#[must_use]
pub fn exact(value: f64) -> f64 {
    let rounded = (value * 1e6).round() / 1e6;
    if rounded.is_finite() { rounded } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_apart_and_little_is_not_nothing() {
        for (value, decimals, text) in [
            (0.0, 1, "0.0"),
            (0.04, 1, "<0.1"),
            (0.3, 0, "<1"),
            (-0.04, 1, ">-0.1"),
            (999.96, 1, "1,000.0"),
            (1_234_567.8, 0, "1,234,568"),
            (-1234.5, 1, "-1,234.5"),
            (0.004, 2, "<0.01"),
        ] {
            assert_eq!(figure(value, decimals), text, "{value}");
        }
        assert_eq!((grouped("123"), grouped("1234")), ("123".to_owned(), "1,234".to_owned()));
        assert_eq!(
            (counted(1, "job"), counted(1200, "job")),
            ("1 job".to_owned(), "1,200 jobs".to_owned())
        );
        assert_eq!((so_many(1, "job"), so_many(0, "job")), ("1 job".into(), "0 jobs".into()));
        assert_eq!(so_many(1200usize, "job"), "1200 jobs");
    }

    #[test]
    fn programs_get_figures_without_noise() {
        assert_eq!(exact(0.1 + 0.2).to_string(), "0.3");
    }
}
