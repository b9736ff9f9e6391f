//! What the central service says about clusters. `cluster` is a label of everything; classes of a
//! resource sum to all of it.

use super::{Kind, MetricDef, Set, Unit};

catalogue! {
    /// What it says, in alphabetical order of the constants.
    CLUSTER;
    ACCOUNT_CPUS: Gauge Cluster Count "steward_account_cpus" ["cluster", "account", "state"],
        "CPUs that jobs of the account hold (running, suspended) or ask for (pending)";
    ACCOUNT_GPUS: Gauge Cluster Count "steward_account_gpus" ["cluster", "account", "state"],
        "GPUs that jobs of the account hold (running, suspended) or ask for (pending)";
    ACCOUNT_JOBS: Gauge Cluster Count "steward_account_jobs" ["cluster", "account", "state"],
        "Jobs of the account, array tasks counted each, by state: pending, running or suspended";
    ACCOUNT_LIMIT_CPUS: Gauge Cluster Count "steward_account_limit_cpus" ["cluster", "account"],
        "CPUs that running jobs of the account may hold together; absent without a limit";
    ACCOUNT_LIMIT_MEMORY: Gauge Cluster Bytes "steward_account_limit_memory_bytes" ["cluster", "account"],
        "Memory that running jobs of the account may hold together; absent without a limit";
    ACCOUNT_LIMIT_RUNNING: Gauge Cluster Count "steward_account_limit_running_jobs" ["cluster", "account"],
        "Jobs of the account that may run at a time; absent without a limit";
    ACCOUNT_LIMIT_SUBMITTED: Gauge Cluster Count "steward_account_limit_submitted_jobs" ["cluster", "account"],
        "Jobs of the account that may run or wait at a time; absent without a limit";
    ACCOUNT_MEMORY: Gauge Cluster Bytes "steward_account_memory_bytes" ["cluster", "account", "state"],
        "Memory that jobs of the account hold (running, suspended) or ask for (pending)";
    CONSTANT: Gauge Cluster Count "steward_constant" ["name"],
        "A value of exporter.constants, with the labels that stand there";
    CPUS: Gauge Cluster Count "steward_cluster_cpus" ["cluster", "class", "cause"],
        "CPUs of the cluster by class: allocated, idle, or unusable for a cause; nodes that partitions share count once";
    FAIRSHARE: Gauge Cluster Count "steward_fairshare" ["cluster", "account", "user"],
        "Slurm's fair-share factor, from 0 (used too much) to 1; the user is empty for an account";
    FAIRSHARE_EFFECTIVE_USAGE: Gauge Cluster Count "steward_fairshare_effective_usage" ["cluster", "account", "user"],
        "Part of its parent's use, from 0 to 1";
    FAIRSHARE_LEVEL: Gauge Cluster Count "steward_fairshare_level" ["cluster", "account", "user"],
        "Share over use among its siblings: above 1 it used less than its share; infinite if it used nothing";
    FAIRSHARE_SHARES: Gauge Cluster Count "steward_fairshare_shares" ["cluster", "account", "user"],
        "Shares given";
    FAIRSHARE_USAGE: Gauge Cluster Seconds "steward_fairshare_usage_seconds" ["cluster", "account", "user"],
        "Use as Slurm counts it for fair share, decayed, in seconds of what is billed";
    GPUS: Gauge Cluster Count "steward_cluster_gpus" ["cluster", "type", "class", "cause"],
        "GPUs of the cluster by type and class; MIG slices are a type of their own, and the type is empty where Slurm states none";
    GPU_YEARS: Gauge Cluster Count "steward_gpu_years_used" ["cluster", "year"],
        "GPU-years that jobs of the archive held in the calendar year so far, a year counted as 365 days";
    GRES: Gauge Cluster Count "steward_cluster_gres" ["cluster", "gres", "type", "class", "cause"],
        "Generic resources of the cluster other than GPUs, such as shards, by kind, type and class";
    JOBS: Gauge Cluster Count "steward_jobs" ["cluster", "state"],
        "Jobs that slurmctld knows, array tasks counted each, by Slurm's state; those that ended stay for MinJobAge";
    JOBS_PENDING: Gauge Cluster Count "steward_jobs_pending" ["cluster", "reason"],
        "Jobs that wait, by Slurm's reason without its lists of nodes";
    LICENCES: Gauge Cluster Count "steward_licences" ["cluster", "licence", "class"],
        "Licences by class: free, reserved or used";
    MEMORY: Gauge Cluster Bytes "steward_cluster_memory_bytes" ["cluster", "class", "cause"],
        "Memory of the cluster that jobs can have, by class: allocated, idle, or unusable for a cause";
    NODES: Gauge Cluster Count "steward_cluster_nodes" ["cluster", "state"],
        "Nodes of the cluster by base state";
    NODES_FLAGGED: Gauge Cluster Count "steward_cluster_nodes_flagged" ["cluster", "flag"],
        "Nodes of the cluster that have the flag; a node may have several, whatever its base state";
    NODE_FLAG: Gauge Cluster Flag "steward_node_flag" ["cluster", "node", "flag"],
        "1 for each flag that the node has; absent for those that it has not";
    NODE_REASON: Gauge Cluster Flag "steward_node_reason_info" ["cluster", "node", "reason", "author"],
        "Always 1; why the node is out and who said so";
    NODE_REASON_SINCE: Gauge Cluster Seconds "steward_node_reason_since_timestamp_seconds" ["cluster", "node"],
        "Unix time at which the node's reason was set";
    NODE_STATE: Gauge Cluster Flag "steward_node_state" ["cluster", "node", "state"],
        "1 for the base state that the node is in; absent for others";
    PARTITION_CPUS: Gauge Cluster Count "steward_partition_cpus" ["cluster", "partition", "class", "cause"],
        "CPUs of the partition's nodes by class; a node counts in each of its partitions";
    PARTITION_GPUS: Gauge Cluster Count "steward_partition_gpus" ["cluster", "partition", "type", "class", "cause"],
        "GPUs of the partition's nodes by type and class";
    PARTITION_GRES: Gauge Cluster Count "steward_partition_gres" ["cluster", "partition", "gres", "type", "class", "cause"],
        "Other generic resources of the partition's nodes by kind, type and class";
    PARTITION_JOBS: Gauge Cluster Count "steward_partition_jobs" ["cluster", "partition", "state"],
        "Jobs of the partition, array tasks counted each, by state: pending, running or suspended; one that waits for several counts in each";
    PARTITION_JOB_CPUS: Gauge Cluster Count "steward_partition_job_cpus" ["cluster", "partition", "state"],
        "CPUs that jobs of the partition hold or ask for";
    PARTITION_JOB_GPUS: Gauge Cluster Count "steward_partition_job_gpus" ["cluster", "partition", "state"],
        "GPUs that jobs of the partition hold or ask for";
    PARTITION_MEMORY: Gauge Cluster Bytes "steward_partition_memory_bytes" ["cluster", "partition", "class", "cause"],
        "Memory of the partition's nodes by class";
    PARTITION_NODES: Gauge Cluster Count "steward_partition_nodes" ["cluster", "partition"],
        "Nodes of the partition";
    PARTITION_UP: Gauge Cluster Flag "steward_partition_up" ["cluster", "partition"],
        "1 if the partition takes jobs and runs them, else 0";
    RESERVATION_ACTIVE: Gauge Cluster Flag "steward_reservation_active" ["cluster", "reservation"],
        "1 if the reservation held its nodes at the time of the snapshot, else 0";
    RESERVATION_CORES: Gauge Cluster Count "steward_reservation_cores" ["cluster", "reservation"],
        "Cores of the reservation";
    RESERVATION_END: Gauge Cluster Seconds "steward_reservation_end_timestamp_seconds" ["cluster", "reservation"],
        "Unix time at which the reservation ends";
    RESERVATION_NODES: Gauge Cluster Count "steward_reservation_nodes" ["cluster", "reservation"],
        "Nodes of the reservation";
    RESERVATION_START: Gauge Cluster Seconds "steward_reservation_start_timestamp_seconds" ["cluster", "reservation"],
        "Unix time at which the reservation begins";
    SCHEDULER_AGENT_QUEUE: Gauge Cluster Count "steward_scheduler_agent_queue" ["cluster"],
        "Messages of slurmctld that wait to be sent";
    SCHEDULER_BACKFILLED: Gauge Cluster Count "steward_scheduler_backfilled_jobs" ["cluster"],
        "Jobs that backfilling started since slurmctld counts";
    SCHEDULER_BACKFILL_CYCLES: Gauge Cluster Count "steward_scheduler_backfill_cycles" ["cluster"],
        "Cycles of the backfill scheduler since slurmctld counts";
    SCHEDULER_BACKFILL_DEPTH: Gauge Cluster Count "steward_scheduler_backfill_mean_depth" ["cluster"],
        "Jobs that a backfill cycle looked at, on average";
    SCHEDULER_BACKFILL_LAST: Gauge Cluster Seconds "steward_scheduler_backfill_last_cycle_seconds" ["cluster"],
        "How long the last backfill cycle took";
    SCHEDULER_BACKFILL_MEAN: Gauge Cluster Seconds "steward_scheduler_backfill_mean_cycle_seconds" ["cluster"],
        "How long backfill cycles took, on average";
    SCHEDULER_CALLS: Gauge Cluster Count "steward_scheduler_calls" ["cluster", "message"],
        "Calls that slurmctld answered since it counts, by message";
    SCHEDULER_CALLS_BY_USER: Gauge Cluster Count "steward_scheduler_user_calls" ["cluster", "user"],
        "Calls that slurmctld answered since it counts, by user";
    SCHEDULER_CALL_TIME: Gauge Cluster Seconds "steward_scheduler_call_seconds" ["cluster", "message"],
        "Time that slurmctld took for these calls";
    SCHEDULER_CALL_TIME_BY_USER: Gauge Cluster Seconds "steward_scheduler_user_call_seconds" ["cluster", "user"],
        "Time that slurmctld took for the calls of the user";
    SCHEDULER_CYCLES: Gauge Cluster Count "steward_scheduler_cycles" ["cluster"],
        "Cycles of the main scheduler since slurmctld counts";
    SCHEDULER_CYCLES_A_MINUTE: Gauge Cluster Count "steward_scheduler_cycles_per_minute" ["cluster"],
        "Cycles of the main scheduler a minute";
    SCHEDULER_DBD_QUEUE: Gauge Cluster Count "steward_scheduler_dbd_queue" ["cluster"],
        "Messages of slurmctld that wait for slurmdbd: growth means that accounting is behind";
    SCHEDULER_JOBS: Gauge Cluster Count "steward_scheduler_jobs" ["cluster", "event"],
        "Jobs since slurmctld counts, by what happened to them: submitted, started, completed, cancelled or failed";
    SCHEDULER_LAST_CYCLE: Gauge Cluster Seconds "steward_scheduler_last_cycle_seconds" ["cluster"],
        "How long the last cycle of the main scheduler took";
    SCHEDULER_LONGEST_CYCLE: Gauge Cluster Seconds "steward_scheduler_longest_cycle_seconds" ["cluster"],
        "How long the longest cycle of the main scheduler took since slurmctld counts";
    SCHEDULER_MEAN_CYCLE: Gauge Cluster Seconds "steward_scheduler_mean_cycle_seconds" ["cluster"],
        "How long cycles of the main scheduler took, on average";
    SCHEDULER_QUEUE: Gauge Cluster Count "steward_scheduler_queue_length" ["cluster"],
        "Jobs that waited when the main scheduler last looked";
    SCHEDULER_SINCE: Gauge Cluster Seconds "steward_scheduler_since_timestamp_seconds" ["cluster"],
        "Unix time from which slurmctld counts: it started, or was told to count anew";
    SCHEDULER_THREADS: Gauge Cluster Count "steward_scheduler_threads" ["cluster"],
        "Threads of slurmctld that answer calls";
    SERIES_CUT: Gauge Cluster Count "steward_series_cut" ["cluster", "label"],
        "Names beyond exporter.limits that the last snapshot folded into 'other', by label";
    SNAPSHOT_AGE: Gauge Cluster Seconds "steward_snapshot_age_seconds" ["cluster", "question"],
        "Age of the last good answer to a question of the snapshot; absent if there was none since the start";
    SNAPSHOT_DURATION: Gauge Cluster Seconds "steward_snapshot_duration_seconds" ["cluster", "question"],
        "How long the question last took";
    SNAPSHOT_INTERVAL: Gauge Cluster Seconds "steward_snapshot_interval_seconds" ["cluster"],
        "Time from the last snapshot to the next: longer than configured while slurmctld is slow";
    SNAPSHOT_SUCCESS: Gauge Cluster Flag "steward_snapshot_success" ["cluster", "question"],
        "1 if the question was answered when it was last asked, else 0; what was known before stays";
    USER_CPUS: Gauge Cluster Count "steward_user_cpus" ["cluster", "user", "state"],
        "CPUs that jobs of the user hold (running, suspended) or ask for (pending)";
    USER_GPUS: Gauge Cluster Count "steward_user_gpus" ["cluster", "user", "state"],
        "GPUs that jobs of the user hold (running, suspended) or ask for (pending)";
    USER_JOBS: Gauge Cluster Count "steward_user_jobs" ["cluster", "user", "state"],
        "Jobs of the user, array tasks counted each, by state: pending, running or suspended";
    USER_MEMORY: Gauge Cluster Bytes "steward_user_memory_bytes" ["cluster", "user", "state"],
        "Memory that jobs of the user hold (running, suspended) or ask for (pending)";
}
