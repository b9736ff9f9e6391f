//! Accounts with their limits: `sacctmgr show assoc`.

use steward_common::bank::Mechanism;
use steward_common::bank::hold::{MECHANISMS, Value};
use steward_common::slurm::ParseError;

/// The columns that are asked for.
pub const COLUMNS: &str =
    "Cluster,Account,User,ParentName,GrpTRESMins,GrpTRESRunMins,MaxSubmitJobs";

/// An account on a cluster, with the limits by which it may be held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Association {
    /// The cluster.
    pub cluster: String,
    /// The account.
    pub account: String,
    /// The account above it; empty for the root.
    pub parent: String,
    /// The limit of each mechanism.
    limits: [Value; 4],
}

impl Association {
    /// The limit that this mechanism sets; `None` if there is none.
    #[must_use]
    pub fn limit(&self, mechanism: Mechanism) -> Value {
        let at = MECHANISMS.iter().position(|one| *one == mechanism);
        at.and_then(|at| self.limits.get(at).copied()).flatten()
    }
}

/// Reads an association a line, of `sacctmgr -n -P show assoc`; those of users are passed over.
///
/// # Errors
/// If a line is no such row.
pub fn parse(text: &str) -> Result<Vec<Association>, ParseError> {
    let mut found = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let wrong = || ParseError::new("association", line, "a row of sacctmgr with seven columns");
        let columns: Vec<&str> = line.split('|').collect();
        let [cluster, account, user, parent, minutes, running, submit] =
            columns.try_into().map_err(|_| wrong())?;
        if !user.is_empty() {
            continue;
        }
        let limit = |mechanism: Mechanism| {
            mechanism.read(match mechanism {
                Mechanism::CpuMinutes | Mechanism::Billing => minutes,
                Mechanism::RunningMinutes => running,
                Mechanism::Submission => submit,
            })
        };
        let [first, second, third, fourth] = MECHANISMS;
        found.push(Association {
            cluster: cluster.to_owned(),
            account: account.to_owned(),
            parent: parent.to_owned(),
            limits: [limit(first)?, limit(second)?, limit(third)?, limit(fourth)?],
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_read_with_the_limits_that_they_have() {
        let text = "steward|root||||||\n".replace("||||||", "|||||")
            + "steward|root|root||||\n"
            + "steward|physics||root|cpu=100,billing=60|cpu=0|\n"
            + "steward|physics|ada||cpu=5||3\n";
        let found = parse(&text).unwrap();
        assert_eq!(found.len(), 2, "users are passed over");
        let physics = &found[1];
        assert_eq!((physics.account.as_str(), physics.parent.as_str()), ("physics", "root"));
        let limits = MECHANISMS.map(|mechanism| physics.limit(mechanism));
        assert_eq!(limits, [Some(100), Some(0), None, Some(60)]);
        assert!(parse("steward|physics|").is_err());
        assert!(parse("steward|physics||root|cpu=x||").is_err());
    }
}
