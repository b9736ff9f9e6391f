//! Licences: `scontrol -o show licenses`.

use std::sync::Arc;

use super::record;
use crate::slurm::ParseError;

/// A licence that jobs can hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Licence {
    /// Its name, with its server if Slurm's database knows it (`matlab@flex`).
    pub name: Arc<str>,
    /// How many there are.
    pub total: u64,
    /// How many jobs hold.
    pub used: u64,
    /// How many reservations hold.
    pub reserved: u64,
}

impl Licence {
    /// How many can be given to jobs.
    #[must_use]
    pub fn free(&self) -> u64 {
        self.total.saturating_sub(self.used).saturating_sub(self.reserved)
    }
}

/// Reads a licence a line; that there is none is said in words.
///
/// # Errors
/// If a line is not about a licence.
pub fn parse(text: &str) -> Result<Vec<Licence>, ParseError> {
    text.lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with("No licenses"))
        .map(parse_line)
        .collect()
}

fn parse_line(line: &str) -> Result<Licence, ParseError> {
    let fields = record::fields(line);
    let wrong =
        || ParseError::new("licence", line, "a licence such as LicenseName=a Total=5 Used=0");
    let number = |key: &str| fields.get(key).and_then(|text| text.parse().ok());
    Ok(Licence {
        name: Arc::from(*fields.get("LicenseName").ok_or_else(wrong)?),
        total: number("Total").ok_or_else(wrong)?,
        used: number("Used").ok_or_else(wrong)?,
        reserved: number("Reserved").unwrap_or(0),
    })
}
