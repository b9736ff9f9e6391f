//! What `steward analyze` can be asked.

use clap::Args;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use steward_common::id::ClusterName;
use steward_common::summary::scope::{Detail, Filter};

use crate::output::format::Format;
use crate::output::report::TABLES;

/// Sum up who used what, and how well, over days of the archive.
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Today and this many days before.
    #[arg(long, short, value_name = "N", default_value_t = 7, conflicts_with = "from")]
    pub days: u16,
    /// The first day, YYYY-MM-DD in the site's time zone.
    #[arg(long, value_name = "DAY")]
    pub from: Option<Date>,
    /// The last day, which is in it; today if not given.
    #[arg(long, value_name = "DAY")]
    pub to: Option<Date>,
    /// Only jobs of this cluster; may be given several times, as those below.
    #[arg(long, value_name = "NAME")]
    pub cluster: Vec<String>,
    /// Only jobs of this user.
    #[arg(long, short, value_name = "NAME")]
    pub user: Vec<String>,
    /// Only jobs charged to this account.
    #[arg(long, value_name = "NAME")]
    pub account: Vec<String>,
    /// Only jobs of this group; `ungrouped` is everyone in none.
    #[arg(long, value_name = "NAME")]
    pub group: Vec<String>,
    /// Only jobs in this partition.
    #[arg(long, value_name = "NAME")]
    pub partition: Vec<String>,
    /// How to write it.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// The same as --format json.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Only this table. Without it, csv has all of them, each after a line `# name`.
    #[arg(long, value_name = "NAME", value_parser = TABLES)]
    pub table: Option<String>,
    /// How many lines of each table; 0 is all. Without it people see the top of each, and json and
    /// csv have all.
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
}

impl Options {
    /// Today and this many days before, for people.
    #[must_use]
    pub fn of_days(days: u32, cluster: Option<&ClusterName>) -> Options {
        Options {
            days: u16::try_from(days).unwrap_or(u16::MAX),
            from: None,
            to: None,
            cluster: cluster.iter().map(ToString::to_string).collect(),
            user: Vec::new(),
            account: Vec::new(),
            group: Vec::new(),
            partition: Vec::new(),
            format: Format::default(),
            json: false,
            table: None,
            top: None,
        }
    }

    /// The format asked for.
    #[must_use]
    pub fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }

    /// Whose runs were asked for.
    #[must_use]
    pub fn filter(&self) -> Filter {
        Filter {
            clusters: self.cluster.clone(),
            users: self.user.clone(),
            accounts: self.account.clone(),
            groups: self.group.clone(),
            partitions: self.partition.clone(),
        }
    }

    /// Whether nodes are shown.
    #[must_use]
    pub fn shows_nodes(&self) -> bool {
        self.table.as_deref().is_none_or(|table| table == "nodes")
    }

    /// What must be summed up for what was asked for.
    #[must_use]
    pub fn detail(&self) -> Detail {
        let by_others =
            !(self.account.is_empty() && self.group.is_empty() && self.partition.is_empty());
        match self.table.as_deref() {
            Some("users") if !by_others => Detail::Users,
            _ => Detail::All,
        }
    }

    /// The same in words; `None` if all runs are meant.
    #[must_use]
    pub fn only(&self) -> Option<String> {
        let lists = [
            ("cluster", &self.cluster),
            ("user", &self.user),
            ("account", &self.account),
            ("group", &self.group),
            ("partition", &self.partition),
        ];
        let said: Vec<String> = lists
            .into_iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(kind, names)| format!("{kind} {}", names.join(" or ")))
            .collect();
        (!said.is_empty()).then(|| said.join(", "))
    }
}
