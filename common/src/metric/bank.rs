//! What the central service says about the bank after each check.

use super::{Kind, MetricDef, Set, Unit};

catalogue! {
    /// What it says, in alphabetical order of the constants.
    BANK;
    BANK_ACCOUNTS: Gauge Cluster Count "steward_bank_accounts" [],
        "Accounts in the bank";
    BANK_CHARGED: Gauge Cluster Count "steward_bank_charged_units" ["account"],
        "Service units that jobs used since the proposal began, by the archive, up to yesterday";
    BANK_END: Gauge Cluster Seconds "steward_bank_end_timestamp_seconds" ["account"],
        "The last day of the proposal";
    BANK_EXHAUSTED: Gauge Cluster Seconds "steward_bank_exhausted_timestamp_seconds" ["account"],
        "The day on which nothing will be left if use goes on as it did; absent if nothing is used";
    BANK_HELD: Gauge Cluster Flag "steward_bank_held" ["account", "cluster"],
        "1 if the bank holds the account on the cluster";
    BANK_LEFT: Gauge Cluster Count "steward_bank_left_units" ["account"],
        "Service units that are left, by slurmctld's figure; below 0 if more was used; absent without a limit and while a cluster does not say what was used";
    BANK_LIMIT: Gauge Cluster Count "steward_bank_limit_units" ["account"],
        "Service units that the account may use; absent without a limit";
    BANK_TOLD: Gauge Cluster Flag "steward_bank_level_told" ["account", "level"],
        "1 if that was told, or recorded, in this proposal, by level: lower, upper, over or end";
    BANK_TROUBLES: Gauge Cluster Count "steward_bank_troubles" [],
        "Clusters, commands and settings that were wrong in the last check";
    BANK_UNBANKED: Gauge Cluster Count "steward_bank_unbanked_accounts" [],
        "Accounts of Slurm that are looked at and not in the bank";
    BANK_USED: Gauge Cluster Count "steward_bank_used_units" ["account", "cluster"],
        "Service units that were used, as slurmctld counts them; absent while it does not say";
}
