//! THE CATALOGUE: every metric that Steward exports, agreed once: [`CATALOGUE`] is what agents
//! export, [`CENTRE`] what the central service says about itself, [`cluster::CLUSTER`] what it says
//! about clusters, [`rules::RULES`] about what rules find, [`bank::BANK`] about the bank, [`compatible`] the same about clusters in
//! the words of other exporters.
//!
//! The agent's collectors, the dashboards, PromQL in the centre and the documentation obey these
//! tables; a name that is not here does not exist. To add one: add its entry to `catalogue!`.

/// How a metric's value moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows within a run of a job.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// What one step of a metric's value means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes (1).
    Bytes,
    /// A plain number of things.
    Count,
    /// 0 or 1.
    Flag,
    /// 1,048,576 bytes; only the inherited names use it.
    Mebibytes,
    /// Hundredths; 100 is one core.
    Percent,
    /// Seconds.
    Seconds,
}

impl Unit {
    /// The word for tables and documentation.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Count => "count",
            Self::Flag => "0 or 1",
            Self::Mebibytes => "MiB",
            Self::Percent => "percent",
            Self::Seconds => "seconds",
        }
    }
}

/// Which switch a metric hangs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// The sixteen inherited names, units and all.
    Original,
    /// Base units, counters typed as counters.
    Modern,
    /// Descriptive labels of a job; always on.
    Info,
    /// The agent about itself; always on.
    Agent,
    /// The central service about itself.
    Centre,
    /// The central service about clusters.
    Cluster,
    /// The same in the words of vpenso's exporter.
    Vpenso,
    /// The same in the words of Mila's exporter.
    Mila,
}

/// One metric: its name, meaning and labels.
#[derive(Debug, PartialEq, Eq)]
pub struct MetricDef {
    /// The exported name, suffixes included.
    pub name: &'static str,
    /// What it is, for people; the `# HELP` line.
    pub help: &'static str,
    /// Counter or gauge.
    pub kind: Kind,
    /// What the number counts.
    pub unit: Unit,
    /// The switch it hangs on.
    pub set: Set,
    /// Labels beside [`NODE_LABELS`] (and [`JOB_LABEL`] unless `set` is [`Set::Agent`]); all of
    /// them if the central service exports it.
    pub labels: &'static [&'static str],
    /// The release that brought it.
    pub since: &'static str,
    /// The name that takes over, once this one is on its way out.
    pub replaced_by: Option<&'static str>,
}

impl MetricDef {
    /// All label names of this metric, in the order in which they are written.
    pub fn all_labels(&self) -> impl Iterator<Item = &'static str> {
        let of_agent = matches!(self.set, Set::Agent | Set::Info | Set::Modern | Set::Original);
        let node = NODE_LABELS.into_iter().filter(move |_| of_agent);
        let job = (of_agent && self.set != Set::Agent).then_some(JOB_LABEL);
        node.chain(job).chain(self.labels.iter().copied())
    }
}

/// Labels that every metric of an agent carries: Slurm's cluster name and node name.
pub const NODE_LABELS: [&str; 2] = ["cluster", "instance"];

/// The label of everything about a job: Slurm's raw job id.
pub const JOB_LABEL: &str = "slurm_job";

/// The Pushgateway's `job` labels of what agents push: a node's jobs, and the agent itself.
pub const PUSH_GROUPS: [&str; 2] = ["jobs_exporter", "steward_agent"];

macro_rules! catalogue {
    ($(#[$doc:meta])* $table:ident; $($ident:ident: $kind:ident $set:ident $unit:ident $name:literal $labels:expr, $help:literal;)*) => {
        $(
            #[doc = $help]
            pub static $ident: MetricDef = MetricDef {
                name: $name,
                help: $help,
                kind: Kind::$kind,
                unit: Unit::$unit,
                set: Set::$set,
                labels: &$labels,
                since: "0.1.0",
                replaced_by: None,
            };
        )*
        $(#[$doc])*
        pub static $table: &[&MetricDef] = &[$(&$ident),*];
    };
}

pub mod bank;
pub mod cluster;
pub mod compatible;
pub mod rules;

catalogue! {
    /// What agents export, in alphabetical order of the constants.
    CATALOGUE;
    AGENT_BUILD_INFO: Gauge Agent Flag "steward_agent_build_info" ["version"],
        "Always 1; the version of steward-agent stands in the label";
    AGENT_ERRORS: Counter Agent Count "steward_agent_errors_total" ["reason"],
        "Reads and pushes that failed since the agent started, by reason; 'vanished' is ordinary: the process or job ended while it was read";
    AGENT_INTERVAL: Gauge Agent Seconds "steward_agent_interval_seconds" [],
        "Time from one scan to the next as it is now: longer than the configured interval while scans take more than their share";
    AGENT_JOBS: Gauge Agent Count "steward_agent_jobs" [],
        "Jobs seen on this node by the last scan, lingering ones not included";
    AGENT_LAST_SCAN_DURATION: Gauge Agent Seconds "steward_agent_last_scan_duration_seconds" [],
        "Wall time that the last scan took";
    AGENT_LAST_SCAN_TIMESTAMP: Gauge Agent Seconds "steward_agent_last_scan_timestamp_seconds" [],
        "Unix time at which the last scan began; a reader that finds it old must not trust the rest";
    AGENT_LEFTOVERS: Gauge Agent Count "steward_agent_leftover_directories" [],
        "Job cgroup directories without a process and without a slurmstepd; they are not reported as jobs";
    AGENT_LOOKS: Counter Agent Count "steward_agent_looks_total" [],
        "Looks at new and changed jobs between scans since the agent started";
    AGENT_PROCESSES: Gauge Agent Count "steward_agent_processes" [],
        "Processes of jobs seen on this node by the last scan";
    AGENT_PUSHES: Counter Agent Count "steward_agent_pushes_total" ["outcome"],
        "Requests to the Pushgateway since the agent started, by outcome: ok or failed";
    AGENT_SCANS: Counter Agent Count "steward_agent_scans_total" [],
        "Scans since the agent started";
    AGENT_SERIES: Gauge Agent Count "steward_agent_series" [],
        "Series about jobs of this node in the last scan";
    AGENT_SERIES_DROPPED: Counter Agent Count "steward_agent_series_dropped_total" [],
        "Series left out since the agent started because a job or the node had more than [limits] allows, counted anew in every scan";
    AGENT_SKIPPED_JOBS: Gauge Agent Count "steward_agent_skipped_jobs" [],
        "Jobs that the last scan did not get to before its deadline; they are exported as they were";
    AGENT_START_TIME: Gauge Agent Seconds "steward_agent_start_time_seconds" [],
        "Unix time at which the agent started";
    AGENT_STUCK_READERS: Gauge Agent Count "steward_agent_stuck_readers" [],
        "Readers that hang in the kernel, most often on a dead file server; what they read is not exported and has no second reader";
    JOBS_BLOCK_IO_BYTES: Counter Modern Bytes "jobs_block_io_bytes_total" ["direction"],
        "Bytes that the job moved to and from block devices (v2 io.stat, where the io controller is on); stacked devices may count twice, network file systems do not count";
    JOBS_BLOCK_IO_REQUESTS: Counter Modern Count "jobs_block_io_requests_total" ["direction"],
        "Requests of the job to block devices (v2 io.stat, where the io controller is on)";
    JOBS_COVERED_FROM: Gauge Modern Seconds "jobs_covered_from_timestamp_seconds" [],
        "Unix time from which the agent has watched this run of the job; it changes when counters start afresh";
    JOBS_COVERED_UNTIL: Gauge Modern Seconds "jobs_covered_until_timestamp_seconds" [],
        "Unix time at which the figures of the job were read; it stands still once the job has ended";
    JOBS_CPUS: Gauge Modern Count "jobs_cpus" [],
        "CPUs that the job holds on this node";
    JOBS_CPUS_REACHABLE: Gauge Modern Count "jobs_cpus_reachable" [],
        "CPUs that at least one thread of the job may use by its affinity; fewer than jobs_cpus means that CPUs lie idle for want of a thread that may use them";
    JOBS_CPU_CORES_BUSY: Gauge Modern Count "jobs_cpu_cores_busy" [],
        "Cores that the job kept busy, on average, between the last two scans";
    JOBS_CPU_CORE_SECONDS: Counter Modern Seconds "jobs_cpu_core_seconds_total" ["core"],
        "CPU time of the job by core; only cgroup v1 counts it, on v2 it is absent";
    JOBS_CPU_PERCENT: Gauge Original Percent "jobs_cpu_percent" [],
        "CPU use of the job between the last two scans; 100 is one busy core";
    JOBS_CPU_PERCENT_PER_CORE: Gauge Original Percent "jobs_cpu_percent_per_core" [],
        "jobs_cpu_percent divided by the CPUs that the job holds on this node";
    JOBS_CPU_PERIODS: Counter Modern Count "jobs_cpu_periods_total" [],
        "Periods of CPU bandwidth in which the job had something to run (nr_periods); stays 0 without a quota";
    JOBS_CPU_SECONDS: Counter Modern Seconds "jobs_cpu_seconds_total" ["mode"],
        "CPU time of all steps and processes of the job by mode, user or system, as the kernel splits it";
    JOBS_CPU_THROTTLED_PERIODS: Counter Modern Count "jobs_cpu_throttled_periods_total" [],
        "Periods in which the job had used up its CPU bandwidth and was held back (nr_throttled)";
    JOBS_CPU_THROTTLED_SECONDS: Counter Modern Seconds "jobs_cpu_throttled_seconds_total" [],
        "Time for which the job was held back because its CPU bandwidth was used up, added up over CPUs";
    JOBS_CPU_TIME_CORE: Gauge Original Seconds "jobs_cpu_time_core" ["core"],
        "CPU time of the job by core; only cgroup v1 counts it, on v2 it is absent";
    JOBS_CPU_TIME_TOTAL: Gauge Original Seconds "jobs_cpu_time_total" [],
        "CPU time of all steps and processes of the job";
    JOBS_CPU_USAGE_SECONDS: Counter Modern Seconds "jobs_cpu_usage_seconds_total" [],
        "CPU time of all steps and processes of the job, the kernel's exact total; on cgroup v2 the little that slurmstepd uses is in it";
    JOBS_FROZEN: Gauge Modern Flag "jobs_frozen" [],
        "1 while every process of the job is frozen, as Slurm does with a suspended job, else 0; absent while it has no process: a suspended job is not idle";
    JOBS_GPUS_USED: Gauge Original Flag "jobs_gpus_used" ["gpuid"],
        "1 for each GPU that Slurm gave to the job on this node, by Slurm's index";
    JOBS_GPU_ASSIGNED: Gauge Modern Flag "jobs_gpu_assigned" ["gpu"],
        "1 for each GPU that Slurm gave to the job on this node, by Slurm's index";
    JOBS_IDLE_SINCE: Gauge Modern Seconds "jobs_idle_since_timestamp_seconds" [],
        "Unix time since which the job has held its resources without a single process; absent while it has one";
    JOBS_INFO: Gauge Info Flag "jobs_info" ["user", "uid", "account", "partition", "array_job", "array_task", "sluid"],
        "Always 1; describes the job in its labels, an unknown one is empty";
    JOBS_INVOLUNTARY_SWITCHES: Counter Modern Count "jobs_involuntary_switches_total" [],
        "How often a thread of the job was taken off its CPU while it had work, ended threads included up to when they were last seen; read at threads.interval";
    JOBS_IO_BYTES: Counter Modern Bytes "jobs_io_bytes_total" ["direction"],
        "Bytes that the job's processes caused to be read from or written to storage (read_bytes, write_bytes of /proc/PID/io), ended processes included";
    JOBS_IO_CALLS: Counter Modern Count "jobs_io_calls_total" ["direction"],
        "Read and write system calls of the job's processes (syscr, syscw), ended processes included";
    JOBS_IO_REQUESTED_BYTES: Counter Modern Bytes "jobs_io_requested_bytes_total" ["direction"],
        "Bytes that the job's processes passed to read and write calls (rchar, wchar): page cache, pipes and network file systems included";
    JOBS_MEMORY_ANON: Gauge Modern Bytes "jobs_memory_anon_bytes" [],
        "Anonymous memory of the job: heap and stack, not backed by a file (v1 total_rss, v2 anon)";
    JOBS_MEMORY_FILE: Gauge Modern Bytes "jobs_memory_file_bytes" [],
        "Page cache charged to the job, shmem included (v1 total_cache, v2 file)";
    JOBS_MEMORY_KERNEL: Gauge Modern Bytes "jobs_memory_kernel_bytes" [],
        "Kernel memory charged to the job (v1 memory.kmem.usage_in_bytes, v2 kernel)";
    JOBS_MEMORY_LIMIT: Gauge Modern Bytes "jobs_memory_limit_bytes" [],
        "Memory limit of the job's cgroup; absent when there is none";
    JOBS_MEMORY_LIMIT_HITS: Counter Modern Count "jobs_memory_limit_hits_total" [],
        "How often the job reached its memory limit and the kernel had to make room (v1 memory.failcnt, v2 max in memory.events), ended steps included; reaching it is harmless while page cache can go";
    JOBS_MEMORY_OOM_KILLS: Counter Modern Count "jobs_memory_oom_kills_total" [],
        "Processes of the job that the kernel killed because memory ran out (oom_kill of memory.events, on v1 of memory.oom_control), ended steps included as far as they were seen";
    JOBS_MEMORY_PEAK: Gauge Modern Bytes "jobs_memory_peak_bytes" [],
        "Highest jobs_memory_usage_bytes that the kernel has seen, page cache included";
    JOBS_MEMORY_RSS: Gauge Modern Bytes "jobs_memory_rss_bytes" [],
        "Sum of the resident sets of the job's processes; a shared page counts once for each of them";
    JOBS_MEMORY_SHMEM: Gauge Modern Bytes "jobs_memory_shmem_bytes" [],
        "Shared memory and tmpfs pages charged to the job";
    JOBS_MEMORY_SLURM: Gauge Modern Bytes "jobs_memory_slurm_bytes" [],
        "What Slurm's jobacct_gather/cgroup takes as the job's memory now, the largest of which sacct shows as MaxRSS (v1 total_rss; v2 memory.current, page cache included)";
    JOBS_MEMORY_SWAP: Gauge Modern Bytes "jobs_memory_swap_bytes" [],
        "Swap used by the job";
    JOBS_MEMORY_USAGE: Gauge Modern Bytes "jobs_memory_usage_bytes" [],
        "Memory charged to the job, page cache included; what the limit is compared with";
    JOBS_OPENED_FILES: Gauge Original Count "jobs_opened_files" [],
        "Distinct files that the job's processes have open; devices, pipes, sockets and directories do not count";
    JOBS_OPEN_FDS: Gauge Modern Count "jobs_open_fds" [],
        "File descriptors that the job's processes have open, of every sort";
    JOBS_OPEN_FILES: Gauge Modern Count "jobs_open_files" [],
        "Distinct files that the job's processes have open; devices, pipes, sockets and directories do not count";
    JOBS_OPEN_FILES_BY_CLASS: Gauge Modern Count "jobs_open_files_by_class" ["class"],
        "Distinct files that the job's processes have open, by class of file system (file_classes of the configuration)";
    JOBS_PROCESSES: Gauge Modern Count "jobs_processes" [],
        "Processes of the job on this node, slurmstepd not included";
    JOBS_READ_COUNT: Gauge Original Count "jobs_read_count" [],
        "Read system calls of the job's processes, ended processes included";
    JOBS_READ_MB: Gauge Original Mebibytes "jobs_read_mb" [],
        "MiB that the job's processes caused to be read from storage, ended processes included";
    JOBS_RSS: Gauge Original Mebibytes "jobs_rss" [],
        "Sum of the resident sets of the job's processes in MiB; a shared page counts once for each of them";
    JOBS_SCRATCH_OPEN_FILES: Gauge Modern Count "jobs_scratch_open_files" [],
        "Distinct files on scratch file systems that the job's processes have open";
    JOBS_SLUID_CLUSTER: Gauge Modern Count "jobs_sluid_cluster_id" [],
        "Number of the cluster that the job was submitted to, as its SLUID says; Slurm 26.05 and later";
    JOBS_SPAWNED_PROCESSES: Gauge Original Count "jobs_spawned_processes" [],
        "Processes of the job on this node, slurmstepd not included";
    JOBS_STALL: Counter Modern Seconds "jobs_stall_seconds_total" ["resource", "tasks"],
        "Time in which some or all (full) runnable tasks of the job waited for cpu, memory or io (pressure stall information); cgroup v2 only";
    JOBS_SUBMITTED: Gauge Modern Seconds "jobs_submit_timestamp_seconds" [],
        "Unix time at which this run of the job was submitted, as its SLUID says (up to 37 s ahead if the controller's clock knows leap seconds); Slurm 26.05 and later";
    JOBS_SYSTEM_TIME: Gauge Original Seconds "jobs_system_time" [],
        "CPU time of the job in the kernel, in seconds";
    JOBS_TASKS: Gauge Modern Count "jobs_tasks" [],
        "Tasks of the job, processes and threads, as the pids controller counts them, slurmstepd's included; v2 where that controller is on";
    JOBS_THREADS: Gauge Modern Count "jobs_threads" [],
        "Threads of the job's processes";
    JOBS_THREADS_CONFINED: Gauge Modern Count "jobs_threads_confined" [],
        "Threads of the job that may use only a part of the job's CPUs by their affinity; read at threads.interval";
    JOBS_THREADS_PER_CPU: Gauge Modern Count "jobs_threads_per_cpu" [],
        "jobs_threads divided by the CPUs that the job holds on this node";
    JOBS_THREADS_RUNNABLE: Gauge Modern Count "jobs_threads_runnable" [],
        "Threads of the job that ran or waited for a CPU at the moment of the look (state R), sampled at threads.interval";
    JOBS_THREADS_UNINTERRUPTIBLE: Gauge Modern Count "jobs_threads_uninterruptible" [],
        "Threads of the job in uninterruptible sleep at the moment of the look (state D), most often waiting for a file system, sampled at threads.interval";
    JOBS_THREAD_COUNT: Gauge Original Count "jobs_thread_count" ["proc_name"],
        "Threads of the job's processes of that name";
    JOBS_USER_TIME: Gauge Original Seconds "jobs_user_time" [],
        "CPU time of the job outside the kernel, in seconds";
    JOBS_USES_SCRATCH: Gauge Original Flag "jobs_uses_scratch" [],
        "1 if a process of the job has a file on a scratch file system open, else 0";
    JOBS_WRITE_COUNT: Gauge Original Count "jobs_write_count" [],
        "Write system calls of the job's processes, ended processes included";
    JOBS_WRITE_MB: Gauge Original Mebibytes "jobs_write_mb" [],
        "MiB that the job's processes caused to be written to storage, ended processes included";
}

catalogue! {
    /// What the central service says about itself, in alphabetical order of the constants.
    CENTRE;
    CENTRE_ARCHIVE_BYTES: Gauge Centre Bytes "steward_archive_bytes" ["layer"],
        "Size of the archive after the last collection of this service, or when it began to lead, by layer: raw or processed";
    CENTRE_ARCHIVE_COVERED_UNTIL: Gauge Centre Seconds "steward_archive_covered_until_timestamp_seconds" ["cluster"],
        "Unix time up to which the archive has every job that ended, while this service leads; absent if the archive cannot be read or has nothing of the cluster";
    CENTRE_BUILD_INFO: Gauge Centre Flag "steward_build_info" ["version"],
        "Always 1; the version of steward stands in the label";
    CENTRE_COLLECT_LAST_SUCCESS: Gauge Centre Seconds "steward_collect_last_success_timestamp_seconds" ["cluster"],
        "Unix time at which this service last collected the cluster's jobs; absent if it has not since it started";
    CENTRE_COLLECT_MALFORMED: Counter Centre Count "steward_collect_malformed_total" ["cluster"],
        "Jobs of sacct's answers that could not be read since the service started; their text is kept";
    CENTRE_COLLECT_RUNS: Counter Centre Count "steward_collect_runs_total" ["cluster"],
        "Runs of jobs that were new or had changed, collected since the service started";
    CENTRE_LEADER: Gauge Centre Flag "steward_leader" [],
        "1 while this service leads, 0 while it waits for the leader to end; only the leader runs tasks";
    CENTRE_PUSHGATEWAY_GROUPS_DELETED: Counter Centre Count "steward_pushgateway_groups_deleted_total" [],
        "Groups of silent agents that were deleted from the Pushgateway since the service started";
    CENTRE_REQUESTS: Counter Centre Count "steward_requests_total" ["command", "result"],
        "Requests at the Unix socket since the service started, by command and result, ok or failed; 'unknown' stands for what is no command";
    CENTRE_START_TIMESTAMP: Gauge Centre Seconds "steward_start_timestamp_seconds" [],
        "Unix time at which the service started";
    CENTRE_STORE_FAILURES: Counter Centre Count "steward_store_failures_total" [],
        "Tries of the service to write down states of jobs that failed, since it started, and files of its store that were deleted or replaced; what could not be written is tried again";
    CENTRE_TASK_LAST_DURATION: Gauge Centre Seconds "steward_task_last_duration_seconds" ["task"],
        "Wall time that the last run of the task took";
    CENTRE_TASK_LAST_FAILURE: Gauge Centre Seconds "steward_task_last_failure_timestamp_seconds" ["task"],
        "Unix time at which a run of the task last failed; absent if none has since the service started";
    CENTRE_TASK_LAST_SUCCESS: Gauge Centre Seconds "steward_task_last_success_timestamp_seconds" ["task"],
        "Unix time at which a run of the task last succeeded; absent if none has since the service started";
    CENTRE_TASK_RUNNING: Gauge Centre Flag "steward_task_running" ["task"],
        "1 while the task runs, else 0";
    CENTRE_TASK_RUNS: Counter Centre Count "steward_task_runs_total" ["task", "result"],
        "Times at which the task was due since the service started, by result: ok, failed, or skipped because it was still running";
}

/// The entry of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static MetricDef> {
    own().find(|def| def.name == name)
}

/// Every metric of a name of our own.
pub fn own() -> impl Iterator<Item = &'static MetricDef> {
    CATALOGUE
        .iter()
        .chain(CENTRE)
        .chain(cluster::CLUSTER)
        .chain(rules::RULES)
        .chain(bank::BANK)
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names and labels that existing dashboards and web pages ask for.
    const ORIGINAL: [(&str, &[&str]); 16] = [
        ("jobs_cpu_percent", &[]),
        ("jobs_cpu_percent_per_core", &[]),
        ("jobs_cpu_time_core", &["core"]),
        ("jobs_cpu_time_total", &[]),
        ("jobs_gpus_used", &["gpuid"]),
        ("jobs_opened_files", &[]),
        ("jobs_read_count", &[]),
        ("jobs_read_mb", &[]),
        ("jobs_rss", &[]),
        ("jobs_spawned_processes", &[]),
        ("jobs_system_time", &[]),
        ("jobs_thread_count", &["proc_name"]),
        ("jobs_user_time", &[]),
        ("jobs_uses_scratch", &[]),
        ("jobs_write_count", &[]),
        ("jobs_write_mb", &[]),
    ];

    #[test]
    fn the_sixteen_inherited_metrics_keep_their_names_and_labels() {
        let mut found: Vec<(&str, &[&str])> = CATALOGUE
            .iter()
            .filter(|def| def.set == Set::Original)
            .map(|def| (def.name, def.labels))
            .collect();
        found.sort_unstable();
        assert_eq!(found, ORIGINAL);
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = own().map(|def| def.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), own().count());
    }

    #[test]
    fn new_names_carry_their_unit_and_counters_end_in_total() {
        for def in own().filter(|def| def.set != Set::Original) {
            assert_eq!(def.kind == Kind::Counter, def.name.ends_with("_total"), "{}", def.name);
            let stem = def.name.trim_end_matches("_total");
            match def.unit {
                Unit::Bytes => assert!(stem.ends_with("_bytes"), "{}", def.name),
                Unit::Seconds => assert!(stem.ends_with("_seconds"), "{}", def.name),
                Unit::Count | Unit::Flag => assert!(
                    !stem.ends_with("_bytes") && !stem.ends_with("_seconds"),
                    "{}",
                    def.name
                ),
                Unit::Mebibytes | Unit::Percent => panic!("{}: not a base unit", def.name),
            }
        }
    }

    #[test]
    fn help_is_one_sentence_and_labels_do_not_clash() {
        let compatible = compatible::VPENSO.iter().chain(compatible::MILA).copied();
        for def in own().chain(compatible) {
            assert!(!def.help.is_empty() && !def.help.contains('\n'), "{}", def.name);
            assert!(!def.help.ends_with('.'), "{}: no full stop", def.name);
            let mut labels: Vec<_> = def.all_labels().collect();
            let count = labels.len();
            labels.sort_unstable();
            labels.dedup();
            assert_eq!(labels.len(), count, "{}", def.name);
        }
    }
}
