//! What one user is told in one mail: all findings of a run.

use steward_common::rule::RuleId;

use crate::output::sheet::Sheet;

/// All that a user is told at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Digest {
    /// Who.
    pub user: String,
    /// The first day that was looked at, `YYYY-MM-DD` in the site's zone,
    pub from: String,
    /// and the last.
    pub to: String,
    /// What was found, the most waste first.
    pub items: Vec<Item>,
}

/// One finding of a digest.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The name of the rule's instance.
    pub instance: String,
    /// The rule.
    pub rule: RuleId,
    /// The cluster.
    pub cluster: String,
    /// Which jobs of the user, where the rule says it of a part of them.
    pub part: Option<String>,
    /// Its figures over all jobs: a sheet of one row, with the columns of the rule.
    pub totals: Sheet,
    /// The user's jobs, the worst first, with the columns of the rule.
    pub jobs: Sheet,
    /// Billing hours of no use, where that is known.
    pub billing_hours: Option<f64>,
    /// How often the user has heard of this before.
    pub before: u32,
}
