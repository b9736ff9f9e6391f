//! The words of a language: sentences by rule, heads of columns, how numbers are written.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::sentence::{self, Figures};
use crate::output::number;
use crate::output::plain::visible;
use crate::output::sheet::Cell;

/// The words of a language.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Words {
    /// What stands before the fraction.
    pub decimal: String,
    /// What stands between thousands.
    pub thousands: String,
    /// What stands where nothing was measured.
    pub missing: String,
    /// What stands for empty text.
    pub nothing: String,
    /// Whether what is less than two takes the singular.
    pub singular_below_two: bool,
    /// Sentences around what was found.
    pub phrases: BTreeMap<String, String>,
    /// Stages of cancelling.
    pub stages: BTreeMap<String, String>,
    /// Heads of columns, by the column's key.
    pub heads: BTreeMap<String, String>,
    /// What is said of each rule.
    pub rules: BTreeMap<String, RuleWords>,
}

/// What is said of a rule.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct RuleWords {
    /// Its title.
    pub title: String,
    /// What was found, with figures.
    pub what: String,
    /// Why that matters.
    pub why: String,
    /// What to do about it.
    pub advice: String,
}

impl Words {
    /// Reads them; what a language lacks is taken from `base`.
    ///
    /// # Errors
    /// With the place in the text, if it has one, and what is wrong.
    pub fn read(text: &str, base: Option<&toml::Table>) -> Result<(Words, toml::Table), Fault> {
        let fault = |error: &toml::de::Error| Fault {
            at: error.span().map(|span| span.start),
            message: error.message().to_owned(),
        };
        let own: toml::Table = text.parse().map_err(|error| fault(&error))?;
        let mut table = base.cloned().unwrap_or_default();
        merge(&mut table, own);
        let words = table.clone().try_into().map_err(|error| fault(&error))?;
        Ok((words, table))
    }

    /// A phrase with its figures; empty if there is none of that name or a figure is not known.
    #[must_use]
    pub fn phrase(&self, name: &str, figures: &Figures) -> String {
        self.phrases.get(name).and_then(|text| self.filled(text, figures)).unwrap_or_default()
    }

    /// A sentence with its figures.
    #[must_use]
    pub fn filled(&self, pattern: &str, figures: &Figures) -> Option<String> {
        sentence::filled(pattern, figures, self.singular_below_two)
    }

    /// A figure as the language writes it.
    #[must_use]
    pub fn figure(&self, value: f64, decimals: usize) -> String {
        self.localized(&number::figure(value, decimals))
    }

    /// A cell as people read it; text is made harmless. `key` is the column's.
    #[must_use]
    pub fn cell(&self, key: &str, cell: &Cell, decimals: usize) -> String {
        match cell {
            Cell::Text(text) if text.is_empty() => self.nothing.clone(),
            Cell::Text(text) if key == "stage" => {
                self.stages.get(text).cloned().unwrap_or_else(|| visible(text))
            }
            Cell::Text(text) => visible(text),
            Cell::Missing => self.missing.clone(),
            cell => self.localized(&number::cell(cell, decimals)),
        }
    }

    fn localized(&self, text: &str) -> String {
        let mut out = String::new();
        for c in text.chars() {
            match c {
                ',' => out += &self.thousands,
                '.' => out += &self.decimal,
                c => out.push(c),
            }
        }
        out
    }
}

/// What is wrong with words.
#[derive(Debug)]
pub struct Fault {
    /// Where, in bytes.
    pub at: Option<usize>,
    /// What.
    pub message: String,
}

/// Puts what `more` has into `table`, tables into tables.
fn merge(table: &mut toml::Table, more: toml::Table) {
    for (key, value) in more {
        match (table.get_mut(&key), value) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(value)) => merge(inner, value),
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
