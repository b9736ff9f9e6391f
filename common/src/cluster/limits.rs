//! What accounts may hold at a time: `sacctmgr -nP show assoc
//! format=User,Account,GrpCPUs,GrpMem,GrpJobs,GrpSubmit`.

use std::sync::Arc;

use crate::slurm::ParseError;
use crate::slurm::memory::{self, Bare};
use crate::unit::Bytes;

/// The limits of an account; `None` is no limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountLimits {
    /// The account.
    pub account: Arc<str>,
    /// CPUs of its running jobs.
    pub cpus: Option<u64>,
    /// Memory of its running jobs.
    pub memory: Option<Bytes>,
    /// Running jobs.
    pub running: Option<u64>,
    /// Jobs that run or wait.
    pub submitted: Option<u64>,
}

/// Reads an association a line; those of users are passed over, and so are accounts without any
/// limit.
///
/// # Errors
/// If a line is no such row.
pub fn parse(text: &str) -> Result<Vec<AccountLimits>, ParseError> {
    let mut limits = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let wrong = || ParseError::new("limits", line, "a row such as |account|64|256000|10|100");
        let [user, account, cpus, memory, running, submitted] =
            line.split('|').collect::<Vec<_>>().try_into().map_err(|_| wrong())?;
        if !user.is_empty() {
            continue;
        }
        let number = |text: &str| match text {
            "" => Ok(None),
            digits => digits.parse().map(Some).map_err(|_| wrong()),
        };
        let one = AccountLimits {
            account: Arc::from(account),
            cpus: number(cpus)?,
            memory: memory::size(memory, Bare::Mib)?,
            running: number(running)?,
            submitted: number(submitted)?,
        };
        if (one.cpus, one.memory, one.running, one.submitted) != (None, None, None, None) {
            limits.push(one);
        }
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n25_limits_are_those_of_accounts_and_memory_is_binary() {
        let text = "|account4|7948|95505000|8000|60000\nalice|account4|1|2|3|4\n|root||||\n";
        let limits = parse(text).unwrap();
        assert_eq!(
            limits,
            [AccountLimits {
                account: "account4".into(),
                cpus: Some(7948),
                // 95,505,000 MiB; read as 10^6 it would be 9.5505e13.
                memory: Some(Bytes::new(100_144_250_880_000)),
                running: Some(8000),
                submitted: Some(60_000),
            }]
        );
        assert!(parse("sacctmgr: error\n").is_err());
    }

    #[test]
    fn n24_memory_is_counted_in_powers_of_1024() {
        for (text, bytes) in
            [("128G", 137_438_953_472), ("62.50G", 67_108_864_000), ("40000M", 41_943_040_000)]
        {
            assert_eq!(memory::size(text, Bare::Mib), Ok(Some(Bytes::new(bytes))), "{text}");
        }
    }
}
