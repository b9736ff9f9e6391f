//! `steward analyze`: from rows of the archive to text.
//!
//! Whoever has the rows asks an [`Analysis`] which time it wants, gives it the rows batch by batch
//! and takes the text. Rows outside the window or of others do no harm.

pub mod ask;
pub mod days;
pub mod groups;
pub mod nodes;
pub mod options;

use std::collections::HashMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use steward_common::intern::Names;
use steward_common::summary::Summary;
use steward_common::summary::report::Report;
use steward_common::summary::row::Row;
use steward_common::summary::scope::{Detail, Filter, NodeSize, Scope};
use steward_common::window::Window;

use crate::output::format;
use crate::output::report::{self, Period};
use crate::output::screen::Screen;
use days::DaysError;
use groups::GroupSource;
use options::Options;

/// What the site and the moment are.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The time zone in which days are meant.
    pub zone: TimeZone,
    /// Now.
    pub now: Timestamp,
    /// Who belongs together.
    pub groups: GroupSource,
    /// What the nodes have, by cluster and node, as far as it is known.
    pub nodes: HashMap<String, HashMap<String, NodeSize>>,
    /// Where the text is shown.
    pub screen: Screen,
}

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub enum AnalyzeError {
    /// The days asked for cannot be.
    #[error(transparent)]
    Days(#[from] DaysError),
    /// No run was found.
    #[error("No data found from {from} to {to}; `steward collect` brings jobs into the archive")]
    NoData {
        /// The first day.
        from: String,
        /// The last day.
        to: String,
    },
    /// No run was found of those that were asked for.
    #[error(
        "No data found from {from} to {to} that matches {only}; look for a slip in the name, or ask \
         for other days"
    )]
    NoMatch {
        /// The first day.
        from: String,
        /// The last day.
        to: String,
        /// Whose runs were asked for.
        only: String,
    },
}

/// A summary that is being made.
#[derive(Debug)]
pub struct Analysis {
    options: Options,
    screen: Screen,
    period: Period,
    window: Window,
    summary: Summary,
}

impl Analysis {
    /// Nothing counted yet.
    ///
    /// # Errors
    /// If the days asked for cannot be.
    pub fn new(options: Options, setting: Setting) -> Result<Analysis, AnalyzeError> {
        let Setting { zone, now, groups, nodes, screen } = setting;
        let days = days::days(options.from, options.to, options.days, now, &zone)?;
        let period = Period {
            from: days.from.to_string(),
            to: days.to.to_string(),
            zone: zone.iana_name().unwrap_or("UTC offset").to_owned(),
            only: options.only(),
        };
        let scope = Scope {
            window: days.window,
            days: days.days,
            filter: options.filter(),
            grouping: groups.grouping(),
            nodes,
            detail: options.detail(),
        };
        Ok(Analysis { options, screen, period, window: days.window, summary: Summary::new(scope) })
    }

    /// The time that rows are wanted of: all runs that held resources in it, ended, started or
    /// were submitted in it.
    #[must_use]
    pub fn window(&self) -> Window {
        self.window
    }

    /// Whose runs are wanted; a reader that can leave out the others may.
    #[must_use]
    pub fn filter(&self) -> Filter {
        self.options.filter()
    }

    /// What of the rows is looked at; a reader may leave out the rest.
    #[must_use]
    pub fn detail(&self) -> Detail {
        self.options.detail()
    }

    /// Counts these rows. `names` is the table that their names are of: one table for all calls,
    /// which may grow from call to call.
    pub fn add(&mut self, rows: &[Row], names: &Names) {
        self.summary.add(rows, names);
    }

    /// The numbers.
    ///
    /// # Errors
    /// If no run was counted.
    pub fn report(self, names: &Names) -> Result<Report, AnalyzeError> {
        self.finish(names).map(|(report, ..)| report)
    }

    /// The text.
    ///
    /// # Errors
    /// If no run was counted.
    pub fn text(self, names: &Names) -> Result<String, AnalyzeError> {
        let (report, options, screen, period) = self.finish(names)?;
        let document = report::document(&report, &period);
        let chosen = options.table.as_deref();
        let sheet = document.sheets.iter().find(|sheet| Some(&*sheet.name) == chosen);
        Ok(match sheet {
            Some(sheet) => {
                format::write_sheet(&document, sheet, options.format(), screen, options.top)
            }
            None => format::write(&document, options.format(), screen, options.top),
        })
    }

    fn finish(self, names: &Names) -> Result<(Report, Options, Screen, Period), AnalyzeError> {
        let report = self.summary.finish(names);
        if report.is_empty() {
            let Period { from, to, only, .. } = self.period;
            return Err(match only {
                Some(only) => AnalyzeError::NoMatch { from, to, only },
                None => AnalyzeError::NoData { from, to },
            });
        }
        Ok((report, self.options, self.screen, self.period))
    }
}

#[cfg(test)]
mod tests;
