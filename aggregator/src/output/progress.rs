//! How far long work is: a bar, on a terminal only.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::collect::Watch;

/// A bar on standard error, or nothing.
pub struct Progress {
    bar: ProgressBar,
    parts: &'static str,
}

impl Progress {
    /// Nothing done yet; it is counted in days.
    #[must_use]
    pub fn new(what: &'static str) -> Progress {
        Progress::counting(what, "days")
    }

    /// The same, counted in something else.
    #[must_use]
    pub fn counting(what: &'static str, parts: &'static str) -> Progress {
        let bar = if std::io::stderr().is_terminal() {
            ProgressBar::new(0)
        } else {
            ProgressBar::hidden()
        };
        bar.set_prefix(what);
        // How much there is to do is not known yet, and a bar of nothing would be full.
        let progress = Progress { bar, parts };
        progress.look_like("{prefix} {elapsed}");
        progress.bar.enable_steady_tick(Duration::from_millis(200));
        progress
    }

    fn look_like(&self, template: &str) {
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style);
        }
    }

    /// Says something above the bar; on a pipe, plainly.
    pub fn say(&self, text: &str) {
        if self.bar.is_hidden() {
            tracing::info!("{text}");
        } else {
            self.bar.println(text);
        }
    }

    /// Takes the bar away.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

impl Watch for Progress {
    fn begin(&self, parts: usize) {
        self.bar.set_length(parts as u64);
        self.bar.set_position(0);
        let counted = self.parts;
        self.look_like(&format!(
            "{{prefix}} {{bar:30}} {{pos}} of {{len}} {counted}, {{msg}} {{elapsed}}"
        ));
    }

    fn part_done(&self, rows: u64) {
        self.bar.inc(1);
        self.bar.set_message(format!("{rows} rows"));
    }
}
