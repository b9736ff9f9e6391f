//! Settings that are legal and most likely not what was meant.

use std::time::Duration;

use steward_common::rule::Instance;
use steward_common::rule::cancel_zero_gpu_jobs::CancelZeroGpuJobs;
use steward_common::span::Span;

use super::{Config, Listed};

/// Pairs of options of a rule of which the first should be less than the second, and what happens
/// if it is not.
const ORDER: &[(&str, &str, &str, &str)] = &[
    (CANCEL, "first_warning", "second_warning", "the first warning is never given"),
    (CANCEL, "first_warning", "cancel", "the first warning comes too late"),
    (CANCEL, "second_warning", "cancel", "the second warning comes too late"),
    (CANCEL, "sliding_warning", "sliding_cancel", "nobody is warned before"),
    ("serial-allocating-multiple", "lower_ratio", "upper_ratio", "no job is between them"),
];

/// The same, where both may be equal.
const AT_MOST: &[(&str, &str, &str, &str)] = &[
    (
        "zero-util-gpu-hours",
        "gpu_hours_admin",
        "gpu_hours_user",
        "administrators alone are never told",
    ),
    ("low-cpu-efficiency", "efficiency", "target", "users are told who do as they should"),
    ("low-gpu-efficiency", "efficiency", "target", "users are told who do as they should"),
    ("gpu-model-too-powerful", "utilisation", "target", "users are told who do as they should"),
    (
        "too-many-cores-per-gpu",
        "cores_per_gpu_target",
        "cores_per_gpu",
        "the target is too much itself",
    ),
    (
        "too-much-cpu-mem-per-gpu",
        "gib_per_gpu_target",
        "gib_per_gpu",
        "the target is too much itself",
    ),
];

const CANCEL: &str = "cancel-zero-gpu-jobs";

impl Config {
    /// What is likely wrong, each with its key and what follows.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut all = Vec::new();
        if self.evaluate.enabled && self.prometheus.url.is_none() {
            all.push(
                "evaluate.enabled: prometheus.url is not set, so rules do not know what agents and \
                 GPU exporters measure; set it, or evaluate.enabled = false"
                    .to_owned(),
            );
        }
        // Settings that cannot be built are refused elsewhere.
        let listed = self.rules.listed().unwrap_or_default();
        let on: Vec<&Listed> = listed.iter().filter(|one| one.enabled).collect();
        for one in &on {
            about(one, self.evaluate.days.max(1), &mut all);
        }
        for one in &on {
            let twice = on.iter().find(|other| is_shadowed(one, other));
            all.extend(twice.map(|other| {
                let (own, shipped) = (&one.instance.name, &other.instance.name);
                format!(
                    "rules.{own}: {shipped} is on as shipped, for all jobs, so the jobs of {own} are \
                     judged twice; set enabled = false in [rules.{shipped}], or give it a scope"
                )
            }));
        }
        all
    }
}

/// Whether the other is the shipped instance of the same rule, which is about all jobs of this one
/// too.
fn is_shadowed(own: &Listed, other: &Listed) -> bool {
    own.instance.rule.id() == other.instance.rule.id()
        && own.instance.name != other.instance.name
        && !other.configured
}

fn about(one: &Listed, days: u16, all: &mut Vec<String>) {
    let (name, id) = (&one.instance.name, one.instance.rule.id().as_str());
    let value = |option: &str| amount(&one.instance, option);
    let mut say = |key: &str, what: &str| all.push(format!("rules.{name}.{key}: {what}"));
    for (pairs, may_equal) in [(ORDER, false), (AT_MOST, true)] {
        for (_, low, high, follows) in pairs.iter().filter(|(rule, ..)| *rule == id) {
            let (Some(less), Some(more)) = (value(low), value(high)) else { continue };
            if less.0 > more.0 || (less.0 == more.0 && !may_equal) {
                let beyond = if less.0 == more.0 { "is" } else { "is more than" };
                say(low, &format!("{} {beyond} {high} ({}): {follows}", less.1, more.1));
            }
        }
    }
    if id == CANCEL {
        for (one, other) in
            [("interactive_time", "interactive_gpus"), ("interactive_gpus", "interactive_time")]
        {
            if value(one).is_some() && value(other).is_none() {
                say(one, &format!("has no effect unless {other} is set too"));
            }
        }
        let warns = value("first_warning").or(value("second_warning")).is_some();
        if value("cancel").is_some() && !warns {
            say("cancel", "nobody is warned before; set first_warning");
        }
    }
    for key in ["sliding_warning", "sliding_cancel"] {
        if value(key).is_some_and(|time| time.0 > CancelZeroGpuJobs::LONGEST.as_secs_f64()) {
            say(key, "is more than 24h, and nobody looks further back: it is never reached");
        }
    }
    if let Some(time) = value("time").filter(|_| matches!(id, "failure-loop" | "short-job-flood"))
        && time.0 > f64::from(days) * 86_400.0
    {
        say(
            "time",
            &format!(
                "is more than the {days} days of evaluate.days, and counts no more than these"
            ),
        );
    }
    if value("top_users").is_some_and(|users| users.0 == 0.0) {
        say("top_users", "is 0, so nobody is looked at");
    }
    if id == "specialized-nodes" && one.configured && one.sets.is_empty() {
        say("sets", "there are none, so it never finds anything; name the special nodes");
    }
}

/// An option as a number, or in seconds, with what is shown of it; `None` if it is not set.
fn amount(instance: &Instance, option: &str) -> Option<(f64, String)> {
    let shown = instance.rule.list().into_iter().find(|shown| shown.name == option)?.value?;
    let span = || shown.parse::<Span>().ok().map(|Span(span): Span| Duration::as_secs_f64(&span));
    Some((shown.parse().ok().or_else(span)?, shown))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn warnings(text: &str) -> Vec<String> {
        let url = "[prometheus]\nurl = \"http://mon:9090\"\n";
        let config = Config::parse(Path::new("a.toml"), &format!("{url}{text}")).unwrap();
        config.check().unwrap();
        config.warnings()
    }

    #[test]
    fn what_is_shipped_makes_sense_but_for_prometheus() {
        assert_eq!(warnings(""), [""; 0]);
        let [one] = Config::default().warnings().try_into().unwrap();
        assert!(one.starts_with("evaluate.enabled: prometheus.url is not set"), "{one}");
    }

    #[test]
    fn options_that_contradict_each_other_are_named_with_what_follows() {
        for (text, said) in [
            (
                "[rules.cancel-zero-gpu-jobs]\nfirst_warning = \"3h\"",
                &[
                    "first_warning: 3h is more than second_warning (105m): the first",
                    "first_warning: 3h is more than cancel (2h): the first",
                ][..],
            ),
            (
                "[rules.cancel-zero-gpu-jobs]\nsliding_cancel = \"4h\"",
                &["sliding_warning: 4h is sliding_cancel (4h): nobody is warned before"],
            ),
            (
                "[rules.cancel-zero-gpu-jobs]\nfirst_warning = \"none\"\nsecond_warning = \"none\"\n\
                 interactive_gpus = 1",
                &["interactive_gpus: has no effect unless interactive_time", "cancel: nobody is"],
            ),
            (
                "[rules.zero-util-gpu-hours]\ngpu_hours_user = 10",
                &["gpu_hours_admin: 24 is more than gpu_hours_user (10): administrators"],
            ),
            ("[rules.zero-util-gpu-hours]\ngpu_hours_user = 24", &[]),
            ("[rules.low-cpu-efficiency]\ntop_users = 0", &["top_users: is 0"]),
            ("[rules.specialized-nodes]\nmin_run_time = \"1h\"", &["sets: there are none"]),
            ("[rules.specialized-nodes.sets.a]\nnodes = \"n1\"\ngpus = true", &[]),
            ("[rules.specialized-nodes]\nenabled = false", &[]),
        ] {
            let found = warnings(text);
            assert_eq!(found.len(), said.len(), "{text}\n{found:?}");
            for (found, said) in found.iter().zip(said) {
                let rest = found.strip_prefix("rules.").unwrap().split_once('.').unwrap().1;
                assert!(rest.starts_with(said), "{text}\n{found}");
            }
        }
    }

    #[test]
    fn an_instance_beside_the_shipped_one_judges_the_same_jobs_again() {
        let own = "[rules.night]\nrule = \"low-cpu-efficiency\"\npartitions = [\"night\"]\n";
        let [one] = warnings(own).try_into().unwrap();
        assert!(one.contains("low-cpu-efficiency is on as shipped"), "{one}");
        let off = format!("{own}[rules.low-cpu-efficiency]\nenabled = false\n");
        assert_eq!(warnings(&off), [""; 0]);
    }
}
