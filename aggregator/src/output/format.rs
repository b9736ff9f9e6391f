//! The formats in which a document can be written.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::screen::Screen;
use super::sheet::{Document, Sheet};
use super::{csv, html, json, markdown, terminal};

/// How output is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Tables and bars that fit the terminal.
    #[default]
    Table,
    /// One JSON object; shares are in percent, what nobody measured is null.
    Json,
    /// Comma-separated values with a line of keys.
    Csv,
    /// Markdown.
    Markdown,
    /// One page with everything in it.
    Html,
}

/// The document in a format. `top` is how many rows of each table; without it people see the top
/// of each and programs get all; 0 is all.
#[must_use]
pub fn write(document: &Document, format: Format, screen: Screen, top: Option<usize>) -> String {
    match format {
        Format::Table => terminal::document(document, screen, top),
        Format::Json => json::document(document, top),
        Format::Csv => csv::document(document, top),
        Format::Markdown => markdown::document(document, top),
        Format::Html => html::document(document, top),
    }
}

/// One table of it alone.
#[must_use]
pub fn write_sheet(
    document: &Document,
    sheet: &Sheet,
    format: Format,
    screen: Screen,
    top: Option<usize>,
) -> String {
    let alone = || Document { sheets: vec![sheet.clone()], ..document.clone() };
    match format {
        Format::Table => terminal::sheet(sheet, screen, top),
        Format::Json => json::sheet(sheet, top),
        Format::Csv => csv::sheet(sheet, top),
        Format::Markdown => markdown::document(&alone(), top),
        Format::Html => html::document(&alone(), top),
    }
}
