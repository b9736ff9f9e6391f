//! What a report comes to: rows of typed values under keys. How they look is the business of
//! outputs.

use std::borrow::Cow;

/// One value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Text, which may be a user's own.
    Text(String),
    /// A number of things.
    Count(u64),
    /// A figure in the unit that its key names.
    Number(f64),
    /// A part of a whole; 0.5 is half.
    Share(f64),
    /// Nobody knows.
    Missing,
}

impl Value {
    /// A text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Value {
        Value::Text(text.into())
    }

    /// A share, if it is known.
    #[must_use]
    pub fn share(share: Option<f64>) -> Value {
        share.map_or(Value::Missing, Value::Share)
    }

    /// A figure, if it is known.
    #[must_use]
    pub fn number(number: Option<f64>) -> Value {
        number.map_or(Value::Missing, Value::Number)
    }

    /// A count, if it is known.
    #[must_use]
    pub fn count(count: Option<impl Into<u64>>) -> Value {
        count.map_or(Value::Missing, |count| Value::Count(count.into()))
    }
}

/// How much a column matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// It is always shown.
    Always,
    /// Left out where there is little room; the higher the number, the earlier.
    Drop(u8),
    /// The same, and not shown to people where every value is 0 or missing.
    Hide(u8),
    /// For programs alone.
    Program,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name for programs, with the unit. Shares are in per cent for them.
    pub key: &'static str,
    /// Its head for people.
    pub head: Cow<'static, str>,
    /// How much it matters.
    pub weight: Weight,
}

/// A column and where its values come from.
pub type Field<T> = (Column, fn(&T) -> Value);

/// A column with such a head.
#[must_use]
pub const fn column(key: &'static str, head: &'static str, weight: Weight) -> Column {
    Column { key, head: Cow::Borrowed(head), weight }
}

/// Bars of one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bars {
    /// What is drawn.
    pub title: &'static str,
    /// The key of the column.
    pub key: &'static str,
    /// Whether a long bar is bad.
    pub waste: bool,
}

/// One table of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its name for programs.
    pub name: &'static str,
    /// Its title for people.
    pub title: &'static str,
    /// Its columns; the first one names the row.
    pub columns: Vec<Column>,
    /// Its rows, each as long as there are columns.
    pub rows: Vec<Vec<Value>>,
    /// How many rows people see unless they ask for more; 0 is all.
    pub top: usize,
    /// What is drawn of it.
    pub bars: Vec<Bars>,
    /// What one should know to read it.
    pub notes: Vec<String>,
}

impl Table {
    /// A table of these rows.
    #[must_use]
    pub fn new<'a, T: 'a>(
        name: &'static str,
        title: &'static str,
        fields: &[Field<T>],
        rows: impl IntoIterator<Item = &'a T>,
    ) -> Table {
        let row = |from: &'a T| fields.iter().map(|(_, value)| value(from)).collect();
        Table {
            name,
            title,
            columns: fields.iter().map(|(column, _)| column.clone()).collect(),
            rows: rows.into_iter().map(row).collect(),
            top: 0,
            bars: Vec::new(),
            notes: Vec::new(),
        }
    }
}
