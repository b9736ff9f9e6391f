//! The same facts in the words of other exporters, so that dashboards in circulation keep working.
//! The names and labels are theirs (with `cluster` beside them), the arithmetic is ours. Both have
//! `slurm_cpus_alloc` and others with different labels: only one vocabulary is exported at a time.

use super::{Kind, MetricDef, Set, Unit};

catalogue! {
    /// What vpenso's prometheus-slurm-exporter and its forks export. In alphabetical order of the constants.
    VPENSO;
    V_ACCOUNT_CPUS_RUNNING: Gauge Vpenso Count "slurm_account_cpus_running" ["cluster", "account"],
        "CPUs of running jobs of the account";
    V_ACCOUNT_FAIRSHARE: Gauge Vpenso Count "slurm_account_fairshare" ["cluster", "account"],
        "Fair-share factor of the account, where Slurm gives accounts one";
    V_ACCOUNT_JOBS_PENDING: Gauge Vpenso Count "slurm_account_jobs_pending" ["cluster", "account"],
        "Jobs of the account that wait";
    V_ACCOUNT_JOBS_RUNNING: Gauge Vpenso Count "slurm_account_jobs_running" ["cluster", "account"],
        "Jobs of the account that run";
    V_ACCOUNT_JOBS_SUSPENDED: Gauge Vpenso Count "slurm_account_jobs_suspended" ["cluster", "account"],
        "Jobs of the account that are suspended";
    V_CPUS_ALLOC: Gauge Vpenso Count "slurm_cpus_alloc" ["cluster"],
        "CPUs that jobs hold";
    V_CPUS_IDLE: Gauge Vpenso Count "slurm_cpus_idle" ["cluster"],
        "CPUs that sinfo calls idle";
    V_CPUS_OTHER: Gauge Vpenso Count "slurm_cpus_other" ["cluster"],
        "CPUs that are neither, as sinfo counts them";
    V_CPUS_TOTAL: Gauge Vpenso Count "slurm_cpus_total" ["cluster"],
        "All CPUs";
    V_GPUS_ALLOC: Gauge Vpenso Count "slurm_gpus_alloc" ["cluster"],
        "GPUs that jobs hold";
    V_GPUS_IDLE: Gauge Vpenso Count "slurm_gpus_idle" ["cluster"],
        "GPUs that no job holds, unless their node is drained or down";
    V_GPUS_OTHER: Gauge Vpenso Count "slurm_gpus_other" ["cluster"],
        "GPUs that are neither";
    V_GPUS_TOTAL: Gauge Vpenso Count "slurm_gpus_total" ["cluster"],
        "All GPUs";
    V_GPUS_UTILIZATION: Gauge Vpenso Count "slurm_gpus_utilization" ["cluster"],
        "Part of all GPUs that jobs hold";
    V_NODES_ALLOC: Gauge Vpenso Count "slurm_nodes_alloc" ["cluster"],
        "Nodes that are allocated; each node counts once";
    V_NODES_COMP: Gauge Vpenso Count "slurm_nodes_comp" ["cluster"],
        "Nodes that are completing; each node counts once";
    V_NODES_DOWN: Gauge Vpenso Count "slurm_nodes_down" ["cluster"],
        "Nodes that are down or unknown; each node counts once";
    V_NODES_DRAIN: Gauge Vpenso Count "slurm_nodes_drain" ["cluster"],
        "Nodes that are drained or draining; each node counts once";
    V_NODES_ERR: Gauge Vpenso Count "slurm_nodes_err" ["cluster"],
        "Nodes that are in error, or registered with too little; each node counts once";
    V_NODES_FAIL: Gauge Vpenso Count "slurm_nodes_fail" ["cluster"],
        "Nodes that are failed or failing; each node counts once";
    V_NODES_IDLE: Gauge Vpenso Count "slurm_nodes_idle" ["cluster"],
        "Nodes that are idle; planned nodes and those that are powered down count here; each node counts once";
    V_NODES_MAINT: Gauge Vpenso Count "slurm_nodes_maint" ["cluster"],
        "Nodes that are in maintenance or rebooting; each node counts once";
    V_NODES_MIX: Gauge Vpenso Count "slurm_nodes_mix" ["cluster"],
        "Nodes that are mixed; each node counts once";
    V_NODES_RESV: Gauge Vpenso Count "slurm_nodes_resv" ["cluster"],
        "Nodes that are reserved or blocked; each node counts once";
    V_PARTITION_CPUS_ALLOCATED: Gauge Vpenso Count "slurm_partition_cpus_allocated" ["cluster", "partition"],
        "CPUs of the partition that jobs hold";
    V_PARTITION_CPUS_IDLE: Gauge Vpenso Count "slurm_partition_cpus_idle" ["cluster", "partition"],
        "CPUs of the partition that sinfo calls idle";
    V_PARTITION_CPUS_OTHER: Gauge Vpenso Count "slurm_partition_cpus_other" ["cluster", "partition"],
        "CPUs of the partition that are neither";
    V_PARTITION_CPUS_TOTAL: Gauge Vpenso Count "slurm_partition_cpus_total" ["cluster", "partition"],
        "CPUs of the partition";
    V_PARTITION_JOBS_PENDING: Gauge Vpenso Count "slurm_partition_jobs_pending" ["cluster", "partition"],
        "Jobs that wait for the partition";
    V_QUEUE_CANCELLED: Gauge Vpenso Count "slurm_queue_cancelled" ["cluster"],
        "Jobs that were cancelled";
    V_QUEUE_COMPLETED: Gauge Vpenso Count "slurm_queue_completed" ["cluster"],
        "Jobs that completed";
    V_QUEUE_COMPLETING: Gauge Vpenso Count "slurm_queue_completing" ["cluster"],
        "Jobs that are being cleaned up";
    V_QUEUE_CONFIGURING: Gauge Vpenso Count "slurm_queue_configuring" ["cluster"],
        "Jobs whose nodes are being prepared";
    V_QUEUE_FAILED: Gauge Vpenso Count "slurm_queue_failed" ["cluster"],
        "Jobs that failed";
    V_QUEUE_NODE_FAIL: Gauge Vpenso Count "slurm_queue_node_fail" ["cluster"],
        "Jobs whose node failed";
    V_QUEUE_PENDING: Gauge Vpenso Count "slurm_queue_pending" ["cluster"],
        "Jobs that wait, those for another job among them";
    V_QUEUE_PENDING_DEPENDENCY: Gauge Vpenso Count "slurm_queue_pending_dependency" ["cluster"],
        "Jobs that wait for another job";
    V_QUEUE_PREEMPTED: Gauge Vpenso Count "slurm_queue_preempted" ["cluster"],
        "Jobs that were preempted";
    V_QUEUE_RUNNING: Gauge Vpenso Count "slurm_queue_running" ["cluster"],
        "Jobs that run";
    V_QUEUE_SUSPENDED: Gauge Vpenso Count "slurm_queue_suspended" ["cluster"],
        "Jobs that are suspended";
    V_QUEUE_TIMEOUT: Gauge Vpenso Count "slurm_queue_timeout" ["cluster"],
        "Jobs that ran into their limit";
    V_SCHEDULER_BACKFILLED_HETEROGENEOUS_TOTAL: Gauge Vpenso Count "slurm_scheduler_backfilled_heterogeneous_total" ["cluster"],
        "Parts of heterogeneous jobs that backfilling started";
    V_SCHEDULER_BACKFILLED_JOBS_SINCE_CYCLE_TOTAL: Gauge Vpenso Count "slurm_scheduler_backfilled_jobs_since_cycle_total" ["cluster"],
        "Jobs that backfilling started since slurmctld counts";
    V_SCHEDULER_BACKFILLED_JOBS_SINCE_START_TOTAL: Gauge Vpenso Count "slurm_scheduler_backfilled_jobs_since_start_total" ["cluster"],
        "Jobs that backfilling started since slurmctld did";
    V_SCHEDULER_BACKFILL_DEPTH_MEAN: Gauge Vpenso Count "slurm_scheduler_backfill_depth_mean" ["cluster"],
        "Jobs that a backfill cycle looked at, on average";
    V_SCHEDULER_BACKFILL_LAST_CYCLE: Gauge Vpenso Count "slurm_scheduler_backfill_last_cycle" ["cluster"],
        "Last backfill cycle in microseconds";
    V_SCHEDULER_BACKFILL_MEAN_CYCLE: Gauge Vpenso Count "slurm_scheduler_backfill_mean_cycle" ["cluster"],
        "Mean backfill cycle in microseconds";
    V_SCHEDULER_CYCLE_PER_MINUTE: Gauge Vpenso Count "slurm_scheduler_cycle_per_minute" ["cluster"],
        "Cycles of the main scheduler a minute";
    V_SCHEDULER_DBD_QUEUE_SIZE: Gauge Vpenso Count "slurm_scheduler_dbd_queue_size" ["cluster"],
        "Messages that wait for slurmdbd";
    V_SCHEDULER_LAST_CYCLE: Gauge Vpenso Count "slurm_scheduler_last_cycle" ["cluster"],
        "Last cycle of the main scheduler in microseconds";
    V_SCHEDULER_MEAN_CYCLE: Gauge Vpenso Count "slurm_scheduler_mean_cycle" ["cluster"],
        "Mean cycle of the main scheduler in microseconds";
    V_SCHEDULER_QUEUE_SIZE: Gauge Vpenso Count "slurm_scheduler_queue_size" ["cluster"],
        "Messages that wait to be sent";
    V_SCHEDULER_THREADS: Gauge Vpenso Count "slurm_scheduler_threads" ["cluster"],
        "Threads of slurmctld";
    V_USER_CPUS_RUNNING: Gauge Vpenso Count "slurm_user_cpus_running" ["cluster", "user"],
        "CPUs of running jobs of the user";
    V_USER_JOBS_PENDING: Gauge Vpenso Count "slurm_user_jobs_pending" ["cluster", "user"],
        "Jobs of the user that wait";
    V_USER_JOBS_RUNNING: Gauge Vpenso Count "slurm_user_jobs_running" ["cluster", "user"],
        "Jobs of the user that run";
    V_USER_JOBS_SUSPENDED: Gauge Vpenso Count "slurm_user_jobs_suspended" ["cluster", "user"],
        "Jobs of the user that are suspended";
}

catalogue! {
    /// What Mila's exporter exports. In alphabetical order of the constants.
    MILA;
    M_CPUS_ALLOC: Gauge Mila Count "slurm_cpus_alloc" ["cluster", "reservation"],
        "CPUs that jobs hold";
    M_CPUS_DRAIN: Gauge Mila Count "slurm_cpus_drain" ["cluster", "reservation"],
        "CPUs that are unusable, for whatever cause";
    M_CPUS_IDLE: Gauge Mila Count "slurm_cpus_idle" ["cluster", "reservation"],
        "CPUs that can be given to jobs";
    M_CPUS_TOTAL: Gauge Mila Count "slurm_cpus_total" ["cluster", "reservation"],
        "CPUs in all";
    M_GPUS_ALLOC: Gauge Mila Count "slurm_gpus_alloc" ["cluster", "type", "reservation"],
        "GPUs that jobs hold";
    M_GPUS_DRAIN: Gauge Mila Count "slurm_gpus_drain" ["cluster", "type", "reservation"],
        "GPUs that are unusable, for whatever cause";
    M_GPUS_IDLE: Gauge Mila Count "slurm_gpus_idle" ["cluster", "type", "reservation"],
        "GPUs that can be given to jobs";
    M_GPUS_TOTAL: Gauge Mila Count "slurm_gpus_total" ["cluster", "type", "reservation"],
        "GPUs in all";
    M_JOB_STATES: Gauge Mila Count "slurm_job_states" ["cluster", "name"],
        "Jobs by state";
    M_LOGIN_NODES: Gauge Mila Count "slurm_login_nodes" ["cluster", "name"],
        "Jobs by the host that they were submitted from, where Slurm says so";
    M_NODE_STATES: Gauge Mila Flag "slurm_node_states" ["cluster", "name", "slurm_node_states"],
        "1 for the state that the node is in, 0 for the others";
    M_PARTITIONS: Gauge Mila Count "slurm_partitions" ["cluster", "name"],
        "Jobs that run or wait, by partition";
}
