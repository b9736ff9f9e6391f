//! What can be said of an instance of a rule: its scope and options beside those it is shipped with.

use steward_common::rule::option::Shown;
use steward_common::rule::{self, Instance, Scope};
use steward_common::slurm::hostlist;
use steward_common::span::Span;

use crate::config::Listed;

/// A key of a scope with its value in words.
pub type ScopeLine = (&'static str, String);

/// A scope, key by key.
#[must_use]
pub fn scope(scope: &Scope) -> Vec<ScopeLine> {
    let list = |names: &[String], none: &str| {
        if names.is_empty() { none.to_owned() } else { names.join(", ") }
    };
    let nodes = match scope.nodes.as_slice() {
        [] => "all".to_owned(),
        nodes => hostlist::fold(nodes),
    };
    vec![
        ("clusters", list(&scope.clusters, "all")),
        ("partitions", list(&scope.partitions, "all")),
        ("excluded_partitions", list(&scope.excluded_partitions, "none")),
        ("qos", list(&scope.qos, "all")),
        ("excluded_qos", list(&scope.excluded_qos, "none")),
        ("nodes", nodes),
        ("excluded_users", list(&scope.excluded_users, "none")),
        ("min_run_time", Span(scope.min_run_time).to_string()),
        ("include_running", scope.running.to_string()),
    ]
}

/// What narrows a scope, in a few words.
#[must_use]
pub fn in_short(one: &Scope) -> String {
    let every = scope(&Scope::default());
    let narrows = scope(one).into_iter().zip(every).filter(|(own, every)| own != every);
    let words: Vec<String> = narrows
        .map(|((key, value), _)| match key {
            "min_run_time" => format!("from {value} on"),
            "include_running" => "running too".to_owned(),
            _ => match key.strip_prefix("excluded_") {
                Some(what) => format!("not {what} {value}"),
                None => format!("{key} {value}"),
            },
        })
        .collect();
    if words.is_empty() { "all that ended".to_owned() } else { words.join("; ") }
}

/// An option with the value that it is shipped with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// As it is.
    pub shown: Shown,
    /// As it is shipped.
    pub default: Option<String>,
}

impl Setting {
    /// Whether the site changed it.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.shown.value != self.default
    }
}

/// A value, or what says that there is none.
#[must_use]
pub fn or_none(value: Option<&str>) -> &str {
    value.unwrap_or("none")
}

/// The options of an instance.
#[must_use]
pub fn settings(instance: &Instance) -> Vec<Setting> {
    let shipped = rule::find(instance.rule.id().as_str());
    let shipped = shipped.map(|rule| rule.list()).unwrap_or_default();
    let default = |name: &str| shipped.iter().find(|one| one.name == name)?.value.clone();
    let setting = |shown: Shown| Setting { default: default(shown.name), shown };
    instance.rule.list().into_iter().map(setting).collect()
}

/// The keys of a scope that the site changed, with the value as it is and as it is shipped.
#[must_use]
pub fn changed_scope(instance: &Instance) -> Vec<(ScopeLine, String)> {
    let shipped = scope(&instance.rule.scope());
    let both = scope(&instance.scope).into_iter().zip(shipped);
    both.filter(|(own, shipped)| own != shipped).map(|(own, shipped)| (own, shipped.1)).collect()
}

/// What it is about, in one sentence.
#[must_use]
pub fn what(instance: &Instance) -> &'static str {
    let doc = instance.rule.doc();
    let first = doc.lines().next().unwrap_or(doc);
    first.split_inclusive(". ").next().unwrap_or(first).trim_end()
}

/// Its part of a configuration as it would have to be written, every option with its value.
#[must_use]
pub fn example(one: &Listed) -> String {
    let (name, id) = (&one.instance.name, one.instance.rule.id().as_str());
    let mut text = format!("[rules.{}]\n", key(name));
    if name != id {
        text += &format!("rule = {}\n", quoted(id));
    }
    text += &format!("enabled = {}\n", one.enabled);
    let shipped = scope(&one.instance.rule.scope());
    for (key, value) in scope(&one.instance.scope) {
        let same = shipped.contains(&(key, value.clone()));
        match key {
            "min_run_time" => text += &format!("{key} = {}\n", quoted(&value)),
            "include_running" => text += &format!("{key} = {value}\n"),
            "nodes" if !same => text += &format!("{key} = {}\n", quoted(&value)),
            _ if !same => text += &format!("{key} = {}\n", names(&one.instance.scope, key)),
            _ => {}
        }
    }
    for setting in settings(&one.instance) {
        let value = or_none(setting.shown.value.as_deref());
        text += &format!("{} = {}\n", setting.shown.name, literal(value));
    }
    if !one.sets.is_empty() {
        text += &format!("# and its sets: {}\n", one.sets.join(", "));
    } else if id == "specialized-nodes" {
        text += &format!(
            "[rules.{}.sets.large-memory]\nnodes = \"m[1-4]\"\nordinary_memory = \"190G\"\n",
            key(name)
        );
    }
    text
}

fn names(scope: &Scope, key: &str) -> String {
    let list = match key {
        "clusters" => &scope.clusters,
        "partitions" => &scope.partitions,
        "excluded_partitions" => &scope.excluded_partitions,
        "qos" => &scope.qos,
        "excluded_qos" => &scope.excluded_qos,
        _ => &scope.excluded_users,
    };
    let names: Vec<String> = list.iter().map(|name| quoted(name)).collect();
    format!("[{}]", names.join(", "))
}

/// A text as TOML writes it.
#[must_use]
pub fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// The name of a table; one with other than letters, digits and dashes stands in quotes.
#[must_use]
pub fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(bare) { name.to_owned() } else { quoted(name) }
}

/// The value of an option as TOML writes it: numbers and flags are bare.
#[must_use]
pub fn literal(value: &str) -> String {
    let number = value.parse::<f64>().is_ok_and(f64::is_finite);
    if number || matches!(value, "true" | "false") { value.to_owned() } else { quoted(value) }
}

/// The names that are most like the one that is not there, the best first.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut all: Vec<(usize, &str)> = known
        .map(|one| {
            let within = one.contains(name) || name.contains(one);
            (if within { 0 } else { strsim::damerau_levenshtein(name, one) }, one)
        })
        .collect();
    all.sort_unstable();
    let most = name.chars().count().max(6) / 2;
    all.into_iter().filter(|(far, _)| *far <= most).take(3).map(|(_, one)| one).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    fn listed(text: &str) -> Vec<Listed> {
        let config = Config::parse(Path::new("a.toml"), text).unwrap();
        config.check().unwrap();
        config.rules.listed().unwrap()
    }

    #[test]
    fn the_example_of_every_rule_is_read_again_as_the_same() {
        let site = "[rules.mine]\nrule = \"low-cpu-efficiency\"\nclusters = [\"c1\"]\n\
                    partitions = [\"a\", \"b\"]\nexcluded_users = \"bench\"\nnodes = \"n[1-3]\"\n\
                    min_run_time = \"90s\"\ninclude_running = true\nefficiency = 0.55\n\
                    [rules.\"a.b\"]\nrule = \"gpu-model-too-powerful\"\nenabled = false\n\
                    gpu_gib = \"none\"\n";
        for one in listed(site) {
            let text = example(&one);
            let again = listed(&text);
            let again =
                again.iter().find(|found| found.instance.name == one.instance.name).unwrap();
            assert_eq!(again.enabled, one.enabled, "{text}");
            assert_eq!(again.instance.scope, one.instance.scope, "{text}");
            assert_eq!(again.instance.rule.list(), one.instance.rule.list(), "{text}");
        }
    }

    #[test]
    fn a_change_is_told_with_what_was_shipped() {
        let all = listed("[rules.low-cpu]\nefficiency = 0.5\nmin_run_time = \"1h\"\nqos = \"x\"");
        let one = all.iter().find(|one| one.instance.name == "low-cpu").unwrap();
        let changed: Vec<_> = settings(&one.instance);
        let changed: Vec<_> = changed.iter().filter(|setting| setting.is_changed()).collect();
        let [setting] = changed.as_slice() else { panic!("{changed:?}") };
        assert_eq!(setting.default.as_deref(), Some("0.8"));
        assert_eq!(setting.shown.value.as_deref(), Some("0.5"));
        let scope = changed_scope(&one.instance);
        let scope: Vec<_> = scope.iter().map(|((key, own), was)| (*key, &**own, &**was)).collect();
        assert_eq!(scope, [("qos", "x", "all"), ("min_run_time", "1h", "5m")]);
        assert_eq!(in_short(&one.instance.scope), "qos x; from 1h on; running too");
        assert_eq!(in_short(&Scope::default()), "all that ended");
    }

    #[test]
    fn a_slip_of_the_pen_finds_the_name_that_was_meant() {
        let known = || rule::RULES.iter().map(|(id, _)| *id);
        assert_eq!(nearest("exess-cpu-memroy", known()).first(), Some(&"excess-cpu-memory"));
        assert_eq!(nearest("low-cpu-eff", known()).first(), Some(&"low-cpu"));
        assert!(nearest("low-cpu-eff", known()).contains(&"low-cpu-efficiency"));
        assert!(nearest("zzz", known()).is_empty());
    }
}
