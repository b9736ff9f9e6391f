//! A table of typed cells that every format can write: terminal, JSON, CSV, Markdown, HTML.

use std::borrow::Cow;

use super::number::grouped;

/// One figure or text.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Text from outside: whoever writes it escapes it.
    Text(String),
    /// A number of things.
    Count(u64),
    /// A figure in the unit of its column.
    Number(f64),
    /// A share of 1; programs and people get it in percent.
    Share(f64),
    /// Nobody measured it, or it does not exist.
    Missing,
}

impl Cell {
    /// A figure, or none.
    #[must_use]
    pub fn number(figure: Option<f64>) -> Cell {
        figure.filter(|figure| figure.is_finite()).map_or(Cell::Missing, Cell::Number)
    }

    /// A share, or none.
    #[must_use]
    pub fn share(share: Option<f64>) -> Cell {
        share.filter(|share| share.is_finite()).map_or(Cell::Missing, Cell::Share)
    }

    /// Text, or none.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Cell {
        Cell::Text(text.into())
    }

    /// Its figure, in percent if it is a share.
    #[must_use]
    pub fn figure(&self) -> Option<f64> {
        match self {
            Cell::Count(count) => Some(*count as f64),
            Cell::Number(number) => Some(*number),
            Cell::Share(share) => Some(share * 100.0),
            Cell::Text(_) | Cell::Missing => None,
        }
    }

    fn is_nothing(&self) -> bool {
        match self {
            Cell::Text(text) => text.is_empty(),
            Cell::Missing => true,
            // A share of 0 % is a statement.
            Cell::Share(_) => false,
            _ => self.figure() == Some(0.0),
        }
    }
}

/// For whom a column is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Always shown.
    Always,
    /// Left out of a narrow terminal; the higher the number, the earlier.
    Drop(u8),
    /// Only for programs.
    Program,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name for programs, with the unit.
    pub key: Cow<'static, str>,
    /// Its head for people.
    pub head: Cow<'static, str>,
    /// For whom it is.
    pub place: Place,
    /// Whether people do not miss it where every cell is 0 or missing.
    pub may_hide: bool,
}

impl Column {
    /// Whether its name ends with a unit: then it has figures, also where none was measured.
    #[must_use]
    pub fn has_unit(&self) -> bool {
        let units = ["_bytes", "_gib", "_hours", "_percent", "_seconds", "_sus"];
        units.iter().any(|unit| self.key.ends_with(unit))
    }
}

/// A column and where its cells come from.
pub type Field<T> = (Column, fn(&T) -> Cell);

/// A column that is always shown.
#[must_use]
pub const fn always(key: &'static str, head: &'static str) -> Column {
    Column {
        key: Cow::Borrowed(key),
        head: Cow::Borrowed(head),
        place: Place::Always,
        may_hide: false,
    }
}

/// A column that a narrow terminal leaves out; the higher the number, the earlier.
#[must_use]
pub const fn drop(rank: u8, key: &'static str, head: &'static str) -> Column {
    Column {
        key: Cow::Borrowed(key),
        head: Cow::Borrowed(head),
        place: Place::Drop(rank),
        may_hide: false,
    }
}

/// The same, and it is not shown where it would be empty.
#[must_use]
pub const fn hide(rank: u8, key: &'static str, head: &'static str) -> Column {
    Column {
        key: Cow::Borrowed(key),
        head: Cow::Borrowed(head),
        place: Place::Drop(rank),
        may_hide: true,
    }
}

/// A column that is shown where it is not empty, as the others do not add up without it.
#[must_use]
pub const fn sometimes(key: &'static str, head: &'static str) -> Column {
    Column {
        key: Cow::Borrowed(key),
        head: Cow::Borrowed(head),
        place: Place::Always,
        may_hide: true,
    }
}

/// A column for programs.
#[must_use]
pub const fn program(key: &'static str) -> Column {
    Column {
        key: Cow::Borrowed(key),
        head: Cow::Borrowed(key),
        place: Place::Program,
        may_hide: true,
    }
}

/// What a long bar of a chart means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Neither good nor bad.
    Plain,
    /// Good: short bars are bad. The figures are percent, and a full bar is 100.
    Good,
    /// Bad.
    Waste,
    /// Bad, and the figures are percent, a full bar 100.
    Lost,
}

impl Tone {
    /// Whether its figures are percent of something, and no parts of a sum.
    #[must_use]
    pub const fn is_percent(self) -> bool {
        matches!(self, Tone::Good | Tone::Lost)
    }
}

/// Bars of one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chart {
    /// What is drawn.
    pub title: &'static str,
    /// The key of the column.
    pub key: &'static str,
    /// What a long bar means.
    pub tone: Tone,
}

/// A table with its charts.
#[derive(Debug, Clone, PartialEq)]
pub struct Sheet {
    /// Its name for programs and for `--table`.
    pub name: Cow<'static, str>,
    /// Its title for people.
    pub title: Cow<'static, str>,
    /// Its columns; the first one names the row.
    pub columns: Vec<Column>,
    /// Its rows, each as long as there are columns.
    pub rows: Vec<Vec<Cell>>,
    /// How many rows people see unless they ask for more.
    pub top: usize,
    /// Whether these are the last rows and not the first.
    pub last: bool,
    /// One row, shown upright: a figure a line.
    pub upright: bool,
    /// Whether it says anything to people; programs get it always.
    pub people: bool,
    /// Its charts.
    pub charts: Vec<Chart>,
    /// What one should know to read it.
    pub notes: Vec<String>,
    /// Of a sheet that was cut for people: the sums of all rows, for the shares of its charts.
    pub sums: Vec<(&'static str, f64)>,
}

impl Sheet {
    /// A table of these rows.
    #[must_use]
    pub fn new<'a, T: 'a>(
        name: impl Into<Cow<'static, str>>,
        title: impl Into<Cow<'static, str>>,
        fields: &[Field<T>],
        rows: impl IntoIterator<Item = &'a T>,
    ) -> Sheet {
        let row = |from: &'a T| fields.iter().map(|(_, cell)| cell(from)).collect();
        Sheet {
            name: name.into(),
            title: title.into(),
            columns: fields.iter().map(|(column, _)| column.clone()).collect(),
            rows: rows.into_iter().map(row).collect(),
            top: 15,
            last: false,
            upright: false,
            people: true,
            charts: Vec::new(),
            notes: Vec::new(),
            sums: Vec::new(),
        }
    }

    /// The same with charts.
    #[must_use]
    pub fn charts(mut self, charts: &[Chart]) -> Sheet {
        self.charts = charts.to_vec();
        self
    }

    /// As people see it: the columns that are for them and say something, the rows at the top, and
    /// how many rows that leaves out. `top` 0 is all.
    #[must_use]
    pub fn for_people(&self, top: Option<usize>) -> (Sheet, usize) {
        let says = |at: usize| {
            self.rows.iter().any(|row| row.get(at).is_some_and(|cell| !cell.is_nothing()))
        };
        let keep: Vec<bool> = (self.columns.iter().enumerate())
            .map(|(at, column)| column.place != Place::Program && (!column.may_hide || says(at)))
            .collect();
        let kept = |row: &Vec<Cell>| -> Vec<Cell> {
            row.iter().zip(&keep).filter(|(_, keep)| **keep).map(|(cell, _)| cell.clone()).collect()
        };
        let top = match top.unwrap_or(self.top) {
            0 => self.rows.len(),
            top => top,
        };
        let left_out = self.rows.len().saturating_sub(top);
        let skip = if self.last { left_out } else { 0 };
        let mut sheet = self.clone();
        let sum = |chart: &Chart| (chart.key, self.bars(chart).iter().map(|(_, f)| f).sum());
        sheet.sums = self.charts.iter().map(sum).collect();
        let columns = self.columns.iter().zip(&keep).filter(|(_, keep)| **keep);
        sheet.columns = columns.map(|(column, _)| column.clone()).collect();
        sheet.rows = self.rows.iter().skip(skip).take(top).map(kept).collect();
        (sheet, left_out)
    }

    /// How many rows are not shown, in words.
    #[must_use]
    pub fn left_out(&self, rows: usize) -> String {
        let which = if self.last { "earlier" } else { "more" };
        format!("{} {which}", grouped(&rows.to_string()))
    }

    /// The upright form of a single row: two columns.
    #[must_use]
    pub fn stood_up(&self) -> Sheet {
        let mut sheet = self.clone();
        sheet.columns = vec![always("figure", "Figure"), always("value", "Value")];
        let row = self.rows.first().map(Vec::as_slice).unwrap_or_default();
        sheet.rows = (self.columns.iter().zip(row))
            .map(|(column, cell)| vec![Cell::text(&*column.head), cell.clone()])
            .collect();
        sheet
    }

    /// What all bars of a chart come to, those that are not shown among them.
    #[must_use]
    pub fn sum(&self, chart: &Chart) -> f64 {
        let known = self.sums.iter().find(|(key, _)| *key == chart.key);
        known.map_or_else(
            || self.bars(chart).iter().map(|(_, figure)| figure).sum(),
            |(_, sum)| *sum,
        )
    }

    /// The labels and figures of a chart.
    #[must_use]
    pub fn bars(&self, chart: &Chart) -> Vec<(String, f64)> {
        let Some(at) = self.columns.iter().position(|column| column.key == chart.key) else {
            return Vec::new();
        };
        let bar = |row: &Vec<Cell>| {
            let figure = row.get(at)?.figure()?;
            let label = match row.first()? {
                Cell::Text(text) => text.clone(),
                other => other.figure()?.to_string(),
            };
            Some((label, figure))
        };
        // A chart of hours has no bar for none; one of efficiency has: 0 % is a statement.
        let drawn = |(_, figure): &(String, f64)| chart.tone == Tone::Good || *figure > 0.0;
        self.rows.iter().filter_map(bar).filter(drawn).collect()
    }
}

/// Everything that is to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Its title.
    pub title: String,
    /// What it comes to, in sentences.
    pub headline: Vec<String>,
    /// Facts for programs that stand in no table.
    pub facts: Vec<(&'static str, Cell)>,
    /// Its tables.
    pub sheets: Vec<Sheet>,
}

impl Document {
    /// The headline where the title stands above it: a line that only repeats it is left out.
    pub fn under_title(&self) -> impl Iterator<Item = &String> {
        self.headline.iter().filter(|line| line.trim_end_matches('.') != self.title)
    }

    /// The tables that say something to people.
    pub fn for_people(&self) -> impl Iterator<Item = &Sheet> {
        self.sheets.iter().filter(|sheet| sheet.people && !sheet.rows.is_empty())
    }
}
