//! Who used how much of his share: `sshare -a -P -o Account,User,Partition,RawShares,NormShares,
//! RawUsage,NormUsage,EffectvUsage,FairShare,LevelFS`.

use std::sync::Arc;

use crate::slurm::ParseError;

/// The columns that are asked for.
pub const COLUMNS: &str = "Account,User,Partition,RawShares,NormShares,RawUsage,NormUsage,\
                           EffectvUsage,FairShare,LevelFS";

/// The share of an account, or of a user in it. A figure that Slurm leaves out is `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// The account.
    pub account: Arc<str>,
    /// The user; `None` for the account itself.
    pub user: Option<Arc<str>>,
    /// The partition, of associations that are for one.
    pub partition: Option<Arc<str>>,
    /// How deep in the tree of accounts; the root is 0.
    pub depth: u64,
    /// Shares given; `None` also where a user takes the account's (`parent`).
    pub raw_shares: Option<u64>,
    /// Part of the parent's shares.
    pub norm_shares: Option<f64>,
    /// Use, in CPU-seconds or what else is billed, as it has decayed.
    pub raw_usage: Option<f64>,
    /// Part of all use.
    pub norm_usage: Option<f64>,
    /// Part of the parent's use.
    pub effective_usage: Option<f64>,
    /// From 0 (used too much) to 1; of users only, unless the old fair-share algorithm runs.
    pub fairshare: Option<f64>,
    /// Share over use among its siblings; infinite if it used nothing.
    pub level: Option<f64>,
}

/// Reads a share a line. The heading, and the line with the cluster that `-M` brings, are passed
/// over.
///
/// # Errors
/// If a line is no such row.
pub fn parse(text: &str) -> Result<Vec<Share>, ParseError> {
    let mut shares = Vec::new();
    for line in text.lines() {
        if line.trim().is_empty() || line.starts_with("CLUSTER:") || line.starts_with("Account|") {
            continue;
        }
        let wrong = || ParseError::new("share", line, "a row of sshare with ten columns");
        let [account, user, partition, raw, norm, usage, norm_usage, effective, fair, level] =
            line.split('|').collect::<Vec<_>>().try_into().map_err(|_| wrong())?;
        let number = |text: &str| match text {
            "" | "parent" => Ok(None),
            text => text.parse::<f64>().map(Some).map_err(|_| wrong()),
        };
        let name = |text: &str| (!text.is_empty()).then(|| Arc::from(text));
        let depth = account.len() - account.trim_start().len();
        shares.push(Share {
            account: Arc::from(account.trim()),
            user: name(user),
            partition: name(partition),
            depth: u64::try_from(depth).map_err(|_| wrong())?,
            raw_shares: raw.parse().ok(),
            norm_shares: number(norm)?,
            raw_usage: number(usage)?,
            norm_usage: number(norm_usage)?,
            effective_usage: number(effective)?,
            fairshare: number(fair)?,
            level: number(level)?,
        });
    }
    Ok(shares)
}
