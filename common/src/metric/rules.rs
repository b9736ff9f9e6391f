//! What the central service says about rules after each evaluation.

use super::{Kind, MetricDef, Set, Unit};

catalogue! {
    /// What it says, in alphabetical order of the constants.
    RULES;
    EVALUATE_JOBS: Gauge Cluster Count "steward_evaluate_jobs" ["cluster"],
        "Jobs that the last evaluation looked at";
    EVALUATE_MEASURED: Gauge Cluster Count "steward_evaluate_measured_ratio" ["cluster", "partition", "figure"],
        "Part of the partition's CPU-hours, of GPU-hours for gpu, whose use was measured, from 0 to 1, by figure: cpu, memory, gpu or processes; absent if nothing was held";
    EVALUATE_TROUBLES: Gauge Cluster Count "steward_evaluate_troubles" ["cluster"],
        "Sources, jobs and questions that failed in the last evaluation; the cluster is empty for what concerns all";
    NODES_WITHOUT_AGENT: Gauge Cluster Count "steward_nodes_without_agent" ["cluster"],
        "Nodes that are up and whose agent has not scanned for ten minutes; absent if Prometheus or slurmctld did not say";
    NODE_WITHOUT_AGENT: Gauge Cluster Flag "steward_node_without_agent" ["cluster", "node"],
        "1 for each of these nodes, for the first hundred of them by name";
    RULE_BILLING_HOURS: Gauge Cluster Count "steward_rule_billing_hours_wasted" ["cluster", "rule"],
        "Billing hours that were of no use, by what the rule found; absent where Slurm bills nothing, and different rules may count the same hours";
    RULE_FINDINGS: Gauge Cluster Count "steward_rule_findings" ["cluster", "rule", "told"],
        "Findings of the rule in the last evaluation, by who should hear of them: user, administrators, or advice on single jobs";
    RULE_NO_DATA: Gauge Cluster Count "steward_rule_no_data" ["cluster", "rule"],
        "Users or jobs of which the rule could say nothing for want of figures";
}
