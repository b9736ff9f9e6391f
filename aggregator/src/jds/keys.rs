//! The keys of Job Defense Shield 1.2.6, and what becomes of each.
//!
//! Its alerts have the names of our rules. Where it has another default than we have, the table says
//! so, because a key that is left out must not change its meaning on the way.

use Kind::{Flag, Hours, Minutes, Number, PerCent, TbHours};

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number as it is. "GB" there are GiB.
    Number,
    /// 25 is a quarter.
    PerCent,
    /// A length of time in minutes.
    Minutes,
    /// A length of time in hours.
    Hours,
    /// Thousands of GiB-hours, called TB-hours there.
    TbHours,
    /// Yes or no.
    Flag,
}

/// What holds where the key is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// Job Defense Shield does not run without it.
    Required,
    /// This, in our words.
    Is(&'static str),
}

/// A key that is an option of our rule.
#[derive(Clone, Copy, Debug)]
pub struct Mapped {
    /// Its name there.
    pub key: &'static str,
    /// Our option.
    pub option: &'static str,
    /// What its value is.
    pub kind: Kind,
    /// What holds without it.
    pub absent: Absent,
}

/// An alert.
#[derive(Clone, Copy, Debug)]
pub struct Alert {
    /// Its name, which is that of our rule.
    pub rule: &'static str,
    /// Keys that become options.
    pub mapped: &'static [Mapped],
    /// Options of ours that say what it does without being asked.
    pub always: &'static [(&'static str, &'static str)],
    /// Keys that are looked at by [`super::special`].
    pub special: &'static [&'static str],
    /// Keys that have no effect in 1.2.6, and why.
    pub dead: &'static [(&'static str, &'static str)],
    /// Whether it heeds `min_run_time`.
    pub min_run_time: bool,
    /// Whether it heeds `include_running_jobs`.
    pub running: bool,
    /// Where its decisions differ from those of our rule.
    pub differs: Option<&'static str>,
}

const fn need(key: &'static str, option: &'static str, kind: Kind) -> Mapped {
    Mapped { key, option, kind, absent: Absent::Required }
}

const fn or(key: &'static str, option: &'static str, kind: Kind, absent: &'static str) -> Mapped {
    Mapped { key, option, kind, absent: Absent::Is(absent) }
}

const NONE: Alert = Alert {
    rule: "",
    mapped: &[],
    always: &[],
    special: &[],
    dead: &[],
    min_run_time: true,
    running: false,
    differs: None,
};

const ROUNDS: &str = "it rounds to whole per cent and hours before it compares; Steward does not \
                      round, so a user on the very bound may be told by one and not by the other";

const OVERALL: Mapped = need("overall_ratio_threshold", "overall_ratio", Number);
const MEAN: Mapped = or("mean_ratio_threshold", "mean_ratio", Number, "1");
const MEDIAN: Mapped = or("median_ratio_threshold", "median_ratio", Number, "1");
const TOP: Mapped = or("num_top_users", "top_users", Number, "10");

/// All alerts.
pub const ALERTS: &[Alert] = &[
    Alert {
        rule: "cancel-zero-gpu-jobs",
        mapped: &[
            or("first_warning_minutes", "first_warning", Minutes, "none"),
            or("second_warning_minutes", "second_warning", Minutes, "none"),
            or("cancel_minutes", "cancel", Minutes, "none"),
            or("sliding_warning_minutes", "sliding_warning", Minutes, "none"),
            or("sliding_cancel_minutes", "sliding_cancel", Minutes, "none"),
            or("gpu_frac_threshold", "gpu_share", Number, "1"),
            or("max_interactive_hours", "interactive_time", Hours, "none"),
            or("max_interactive_gpus", "interactive_gpus", Number, "none"),
        ],
        dead: &[("scond_warning_minutes", "is misspelt: it reads second_warning_minutes")],
        min_run_time: false,
        differs: Some(
            "it takes a mean below 0.05 % for idle, and misses a stage if it is not started in time; \
             for Steward one sample above 0 is work, and a stage is due until the next",
        ),
        ..NONE
    },
    Alert {
        rule: "excess-cpu-memory",
        mapped: &[
            need("tb_hours_threshold", "gib_hours", TbHours),
            need("ratio_threshold", "ratio", Number),
            need("mean_ratio_threshold", "mean_ratio", Number),
            need("median_ratio_threshold", "median_ratio", Number),
            or("num_top_users", "top_users", Number, "15"),
            or("combine_partitions", "combine_partitions", Flag, "false"),
        ],
        always: &[("gpu_jobs", "true")],
        special: &["cores_fraction", "cores_per_node", "mem_per_node"],
        running: true,
        differs: Some(
            "it rounds to whole TB-hours and hundredths before it compares; Steward does not round, \
             and leaves out jobs that used more than they held",
        ),
        ..NONE
    },
    Alert {
        rule: "excessive-time-cpu",
        mapped: &[need("absolute_thres_hours", "cpu_hours", Number), OVERALL, MEAN, MEDIAN, TOP],
        ..NONE
    },
    Alert {
        rule: "excessive-time-gpu",
        mapped: &[need("absolute_thres_hours", "gpu_hours", Number), OVERALL, MEAN, MEDIAN, TOP],
        ..NONE
    },
    Alert {
        rule: "gpu-model-too-powerful",
        mapped: &[
            need("gpu_util_threshold", "utilisation", PerCent),
            or("gpu_util_target", "target", PerCent, "0.5"),
            or("gpu_mem_usage_max", "gpu_gib", Number, "none"),
            or("cpu_mem_usage_per_gpu", "cpu_gib_per_gpu", Number, "none"),
            or("num_gpus", "gpus", Number, "none"),
            or("num_cores_per_gpu", "cores_per_gpu", Number, "none"),
            or("gpu_hours_threshold", "gpu_hours", Number, "0"),
        ],
        running: true,
        ..NONE
    },
    Alert {
        rule: "low-cpu-efficiency",
        mapped: &[
            need("eff_thres_pct", "efficiency", PerCent),
            need("eff_target_pct", "target", PerCent),
            need("absolute_thres_hours", "cpu_hours", Number),
            or("proportion_thres_pct", "proportion", PerCent, "0"),
            or("num_top_users", "top_users", Number, "15"),
        ],
        always: &[("gpu_jobs", "true")],
        differs: Some(ROUNDS),
        ..NONE
    },
    Alert {
        rule: "low-gpu-efficiency",
        mapped: &[
            need("eff_thres_pct", "efficiency", PerCent),
            need("eff_target_pct", "target", PerCent),
            need("absolute_thres_hours", "gpu_hours", Number),
            or("proportion_thres_pct", "proportion", PerCent, "0"),
            or("num_top_users", "top_users", Number, "15"),
            or("gpu_mem_eff_pct", "gpu_memory", PerCent, "none"),
        ],
        differs: Some(ROUNDS),
        ..NONE
    },
    Alert {
        rule: "multinode-cpu-fragmentation",
        mapped: &[
            or("cores_fraction", "cores_fraction", Number, "0.5"),
            or("safety_fraction", "safety_fraction", Number, "0.2"),
            or("cores_per_node_thres", "cores_per_node_below", Number, "none"),
        ],
        dead: &[
            ("min_nodes_thres", "it takes 2 whatever is set; Steward's min_nodes would heed it"),
            ("min_nodes", "it crashes with it; Steward's min_nodes would heed it"),
            ("safety_frac", "it reads safety_fraction only"),
        ],
        running: true,
        ..NONE
    },
    Alert {
        rule: "multinode-gpu-fragmentation",
        running: true,
        differs: Some("it counts jobs with an idle GPU, against its manual; Steward does not"),
        ..NONE
    },
    Alert {
        rule: "serial-allocating-multiple",
        mapped: &[
            need("cpu_hours_threshold", "cpu_hours", Number),
            need("lower_ratio", "lower_ratio", Number),
            or("num_top_users", "top_users", Number, "5"),
            or("ignore_job_arrays", "ignore_arrays", Flag, "false"),
        ],
        always: &[("gpu_jobs", "true")],
        running: true,
        differs: Some(
            "it takes the first users of the alphabet for the top ones and rounds to a tenth of a \
             per cent; Steward takes those with the most waste and does not round",
        ),
        ..NONE
    },
    Alert {
        rule: "too-many-cores-per-gpu",
        mapped: &[
            need("cores_per_gpu_limit", "cores_per_gpu", Number),
            need("cores_per_gpu_target", "cores_per_gpu_target", Number),
            or("cpu_eff_threshold", "efficiency", PerCent, "1"),
            or("gpu_hours_threshold", "gpu_hours", Number, "0"),
        ],
        running: true,
        ..NONE
    },
    Alert {
        rule: "too-much-cpu-mem-per-gpu",
        mapped: &[
            need("cpu_mem_per_gpu_limit", "gib_per_gpu", Number),
            need("cpu_mem_per_gpu_target", "gib_per_gpu_target", Number),
            or("mem_eff_thres", "efficiency", Number, "1"),
            or("gpu_hours_threshold", "gpu_hours", Number, "0"),
        ],
        running: true,
        ..NONE
    },
    Alert {
        rule: "zero-cpu-utilization",
        mapped: &[or("cpu_hours_threshold", "cpu_hours", Number, "none")],
        running: true,
        differs: Some(
            "for it a node is unused if its CPU time is 0; for Steward also if it is no more than \
             what the shell and Slurm need (seconds_per_hour)",
        ),
        ..NONE
    },
    Alert {
        rule: "zero-util-gpu-hours",
        mapped: &[
            need("gpu_hours_threshold_user", "gpu_hours_user", Number),
            need("gpu_hours_threshold_admin", "gpu_hours_admin", Number),
        ],
        dead: &[("max_num_jobid", "it reads max_num_jobid_admin only")],
        running: true,
        ..NONE
    },
];

/// Keys about what Steward learns from Slurm.
pub const HARDWARE: &[&str] =
    &["cores_per_node", "gpus_per_node", "mem_per_node", "cpu_mem_per_node"];

/// Keys about mails.
pub const MAIL: &[&str] = &[
    "admin_emails",
    "cluster_name",
    "email_file",
    "email_file_cancel",
    "email_file_first_warning",
    "email_file_second_warning",
    "email_file_sliding_cancel",
    "email_file_sliding_warning",
    "email_subject",
    "warnings_to_admin",
];

/// Keys about how reports look.
pub const REPORT: &[&str] =
    &["max_num_jobid_admin", "num_jobs_display", "report_title", "show_all_users"];

/// Keys about how its own runs go, and what takes their place.
pub const RUNNING: &[(&str, &str)] = &[
    ("sampling_period_minutes", "Steward looks at rules by evaluate.schedule"),
    ("fraction_of_period", "Steward asks for all jobs at once and needs no such bound"),
    ("warning_frac", "Steward knows how long a GPU has been idle at every evaluation"),
    ("jobid_cache_path", "Steward needs no cache of jobs"),
    ("do_not_cancel", "Steward cancels no job yet; it tells only"),
];

/// Settings of the whole program, and why they are not taken over.
pub const GLOBAL: &[(&str, Global)] = &[
    ("email-domain-name", Global::Mail),
    ("email-files-path", Global::Mail),
    ("email-method", Global::Mail),
    ("external-emails", Global::Mail),
    ("greeting-method", Global::Mail),
    ("holidays-file", Global::Mail),
    ("jobstats-config-path", Global::Else("set prometheus.url and [gpus] instead")),
    ("jobstats-module-path", Global::Else("set prometheus.url and [gpus] instead")),
    ("ldap-base-dn", Global::Mail),
    ("ldap-displayname", Global::Mail),
    ("ldap-dn", Global::Mail),
    ("ldap-mail", Global::Mail),
    ("ldap-password", Global::Mail),
    ("ldap-server", Global::Mail),
    ("ldap-uid", Global::Mail),
    ("partition-renamings", Global::Else("set evaluate.renamed_partitions to the same map")),
    ("reply-to", Global::Mail),
    ("report-emails", Global::Mail),
    ("sender", Global::Mail),
    ("show-empty-reports", Global::Else("Steward says when there is nothing to report")),
    ("smtp-password", Global::Mail),
    ("smtp-port", Global::Mail),
    ("smtp-server", Global::Mail),
    ("smtp-user", Global::Mail),
    ("use-external-db", Global::Else("Steward reads summaries that Slurm's database has")),
    ("verbose", Global::Else("set log = \"debug\" instead")),
    ("violation-logs-path", Global::Mail),
    ("workday-method", Global::Mail),
];

/// Where a setting of the whole program belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Global {
    /// To mails.
    Mail,
    /// Elsewhere, or nowhere.
    Else(&'static str),
}
