//! The settings of rules: `[rules.NAME]`, one for each instance.
//!
//! Every rule holds with its defaults unless `[rules.ID]` changes or disables it. A further instance
//! of a rule has a name of its own and says with `rule` what it is an instance of.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use steward_common::config::ConfigError;
use steward_common::id::NodeName;
use steward_common::report::REPORTS;
use steward_common::rule::specialized_nodes::{NodeSet, Special, SpecializedNodes};
use steward_common::rule::{self, Instance, RULES, Rule, Scope, Setting};
use steward_common::slurm::hostlist;
use steward_common::slurm::memory::{self, Bare};
use steward_common::span::Span;

/// All of `[rules]`, by name.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(transparent)]
pub struct Rules(BTreeMap<String, RuleSettings>);

/// One instance. What is not set is as the rule has it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct RuleSettings {
    /// The rule; by default that of the instance's name.
    rule: Option<String>,
    /// Whether it is looked at.
    enabled: Option<bool>,
    clusters: Option<Names>,
    partitions: Option<Names>,
    excluded_partitions: Option<Names>,
    qos: Option<Names>,
    excluded_qos: Option<Names>,
    /// Slurm's lists of nodes.
    nodes: Option<Names>,
    excluded_users: Option<Names>,
    min_run_time: Option<String>,
    include_running: Option<bool>,
    /// Node sets of `specialized-nodes`.
    sets: BTreeMap<String, Set>,
    /// Options of the rule itself.
    #[serde(flatten)]
    options: BTreeMap<String, toml::Value>,
}

/// An instance, also one that is switched off.
#[derive(Debug)]
pub struct Listed {
    /// The rule with its name, options and scope.
    pub instance: Instance,
    /// Whether it is looked at.
    pub enabled: bool,
    /// Whether the configuration speaks of it.
    pub configured: bool,
    /// The names of its node sets, if it is one of `specialized-nodes`.
    pub sets: Vec<String>,
}

/// A name or several; `"all"` is the same as none.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged)]
enum Names {
    One(String),
    Many(Vec<String>),
}

impl Names {
    fn list(&self) -> Vec<String> {
        let names = match self {
            Names::One(name) => std::slice::from_ref(name),
            Names::Many(names) => names,
        };
        if names.iter().any(|name| name == "all") { Vec::new() } else { names.to_vec() }
    }
}

/// Nodes that are special in the same way: exactly one of the last three.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Set {
    nodes: Names,
    /// Memory of an ordinary node, as Slurm writes it.
    ordinary_memory: Option<String>,
    gpus: Option<bool>,
    licence: Option<String>,
}

/// Slurm's lists of nodes as names.
fn node_names(lists: &[String]) -> Result<Vec<NodeName>, String> {
    let mut nodes = Vec::new();
    for list in lists {
        nodes.extend(hostlist::expand(list).map_err(|error| error.to_string())?);
    }
    Ok(nodes)
}

impl Set {
    fn build(&self, name: &str) -> Result<NodeSet, String> {
        let special = match (&self.ordinary_memory, self.gpus, &self.licence) {
            (Some(memory), None, None) => {
                let ordinary =
                    memory::size(memory, Bare::Mib).map_err(|error| error.to_string())?;
                let ordinary = ordinary.ok_or("ordinary_memory: a size such as 190G is missing")?;
                Special::Memory { ordinary }
            }
            (None, Some(true), None) => Special::Gpus,
            (None, None, Some(licence)) => Special::Licence(licence.clone()),
            _ => {
                return Err("say what is special with exactly one of ordinary_memory = \"190G\", \
                            gpus = true and licence = \"name\""
                    .to_owned());
            }
        };
        let nodes = node_names(&self.nodes.list())?;
        if nodes.is_empty() {
            return Err("nodes: name at least one node".to_owned());
        }
        Ok(NodeSet { name: name.to_owned(), nodes, special })
    }
}

impl Rules {
    /// All instances, those that are switched off too: all rules in the order of their ids, then
    /// those with names of their own.
    ///
    /// # Errors
    /// Names the key that cannot be used, and says what could stand there.
    pub fn listed(&self) -> Result<Vec<Listed>, ConfigError> {
        let mut all = Vec::new();
        let of_rules = RULES.iter().map(|(id, _)| (*id, self.0.get(*id)));
        let own = self.0.iter().filter(|(name, _)| rule::find(name).is_none());
        let default = RuleSettings::default();
        for (name, settings) in of_rules.chain(own.map(|(name, own)| (name.as_str(), Some(own)))) {
            let built = settings.unwrap_or(&default);
            all.push(Listed {
                instance: built.build(name)?,
                enabled: built.enabled != Some(false),
                configured: settings.is_some(),
                sets: built.sets.keys().cloned().collect(),
            });
        }
        Ok(all)
    }

    /// Those that hold.
    ///
    /// # Errors
    /// As [`Rules::listed`].
    pub fn instances(&self) -> Result<Vec<Instance>, ConfigError> {
        let all = self.listed()?.into_iter();
        Ok(all.filter(|one| one.enabled).map(|one| one.instance).collect())
    }

    /// The names of instances that are switched off.
    pub fn disabled(&self) -> impl Iterator<Item = &str> {
        let off = |settings: &RuleSettings| settings.enabled == Some(false);
        self.0.iter().filter(move |(_, settings)| off(settings)).map(|(name, _)| name.as_str())
    }
}

impl RuleSettings {
    /// The instance. One that is switched off must make sense all the same.
    fn build(&self, name: &str) -> Result<Instance, ConfigError> {
        let refuse = |key: &str, message: String| {
            let key = if key.is_empty() {
                format!("rules.{name}")
            } else {
                format!("rules.{name}.{key}")
            };
            ConfigError::senseless(key, message)
        };
        if name.is_empty()
            || name.chars().any(|c| !(c.is_ascii_alphanumeric() || "-_.".contains(c)))
        {
            return Err(refuse("", "a name has letters, digits, '-', '_' and '.' only".to_owned()));
        }
        if name == "list" || REPORTS.iter().any(|(report, _)| *report == name) {
            let message = "is the name of a report; give it another".to_owned();
            return Err(refuse("", message));
        }
        let id = self.rule.as_deref().unwrap_or(name);
        let Some(mut rule) = rule::find(id) else {
            let known: Vec<&str> = RULES.iter().map(|(id, _)| *id).collect();
            let known = known.join(", ");
            return Err(refuse("rule", format!("there is no rule {id:?}; there are {known}")));
        };
        if rule::find(name).is_some() && id != name {
            return Err(refuse("rule", format!("{name} is the name of another rule than {id}")));
        }
        if !self.sets.is_empty() {
            rule = self.specialized(id).map_err(|(key, message)| refuse(&key, message))?;
        }
        for (key, value) in &self.options {
            let setting = setting(value).ok_or_else(|| {
                refuse(key, "expected a number, a text, true or false".to_owned())
            })?;
            rule.set(key, setting).map_err(|error| match error {
                rule::SetError::Unknown { known, .. } => {
                    refuse(key, format!("there is no such option; there are {SCOPE}, {known}"))
                }
                error @ rule::SetError::Unfit { .. } => refuse("", error.to_string()),
            })?;
        }
        let scope = self.scope(&*rule).map_err(|(key, message)| refuse(key, message))?;
        Ok(Instance { name: name.to_owned(), rule, scope })
    }

    fn specialized(&self, id: &str) -> Result<Box<dyn Rule>, (String, String)> {
        if id != "specialized-nodes" {
            return Err(("sets".to_owned(), "only specialized-nodes has sets of nodes".to_owned()));
        }
        let mut rule = SpecializedNodes::default();
        for (name, set) in &self.sets {
            rule.sets.push(set.build(name).map_err(|error| (format!("sets.{name}"), error))?);
        }
        Ok(Box::new(rule))
    }

    fn scope(&self, rule: &dyn Rule) -> Result<Scope, (&'static str, String)> {
        let default = rule.scope();
        let list = |names: &Option<Names>, default: Vec<String>| {
            names.as_ref().map_or(default, Names::list)
        };
        let nodes = match &self.nodes {
            Some(names) => node_names(&names.list()).map_err(|error| ("nodes", error))?,
            None => default.nodes,
        };
        let min_run_time = match &self.min_run_time {
            Some(text) => {
                let span: Result<Span, _> = text.parse();
                span.map_err(|error| ("min_run_time", error.to_string()))?.0
            }
            None => default.min_run_time,
        };
        if min_run_time > Duration::from_secs(366 * 86_400) {
            return Err(("min_run_time", "must be at most 366d".to_owned()));
        }
        Ok(Scope {
            clusters: list(&self.clusters, default.clusters),
            partitions: list(&self.partitions, default.partitions),
            excluded_partitions: list(&self.excluded_partitions, default.excluded_partitions),
            qos: list(&self.qos, default.qos),
            excluded_qos: list(&self.excluded_qos, default.excluded_qos),
            nodes,
            excluded_users: list(&self.excluded_users, default.excluded_users),
            min_run_time,
            running: self.include_running.unwrap_or(default.running),
        })
    }
}

/// The keys that every instance may have.
const SCOPE: &str = "rule, enabled, clusters, partitions, excluded_partitions, qos, excluded_qos, \
                     nodes, excluded_users, min_run_time, include_running";

fn setting(value: &toml::Value) -> Option<Setting> {
    match value {
        toml::Value::Boolean(flag) => Some(Setting::Flag(*flag)),
        toml::Value::Integer(number) => Some(Setting::Number(*number as f64)),
        toml::Value::Float(number) => Some(Setting::Number(*number)),
        toml::Value::String(text) => Some(Setting::Text(text.clone())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instances(text: &str) -> Result<Vec<Instance>, String> {
        let rules: Rules = toml::from_str(text).map_err(|error| error.to_string())?;
        rules.instances().map_err(|error| error.to_string())
    }

    fn named<'a>(instances: &'a [Instance], name: &str) -> Option<&'a Instance> {
        instances.iter().find(|instance| instance.name == name)
    }

    fn value(instance: &Instance, option: &str) -> Option<String> {
        instance.rule.list().into_iter().find(|shown| shown.name == option)?.value
    }

    #[test]
    fn every_rule_holds_unless_it_is_switched_off_and_more_can_be_had_of_one() {
        let all = instances("").unwrap();
        assert_eq!(all.len(), RULES.len());
        let some = instances(
            "[low-cpu]\nenabled = false\n\
             [low-cpu-efficiency]\nefficiency = 0.5\npartitions = \"all\"\nexcluded_users = [\"bench\"]\n\
             [low-cpu-night]\nrule = \"low-cpu-efficiency\"\npartitions = [\"night\", \"long\"]\n\
             nodes = [\"n[1-3]\", \"m1\"]\nmin_run_time = \"2h\"\ninclude_running = true\n",
        )
        .unwrap();
        assert_eq!(some.len(), RULES.len());
        assert!(named(&some, "low-cpu").is_none());
        let first = named(&some, "low-cpu-efficiency").unwrap();
        assert_eq!(value(first, "efficiency").as_deref(), Some("0.5"));
        assert!(first.scope.partitions.is_empty());
        assert_eq!(first.scope.excluded_users, ["bench"]);
        let night = named(&some, "low-cpu-night").unwrap();
        assert_eq!(value(night, "efficiency").as_deref(), Some("0.6"), "as shipped");
        assert_eq!(night.scope.partitions, ["night", "long"]);
        assert_eq!((night.scope.nodes.len(), night.scope.running), (4, true));
        assert_eq!(night.scope.min_run_time, Duration::from_secs(7200));
        assert_eq!(some.last().map(|instance| instance.name.as_str()), Some("low-cpu-night"));
    }

    #[test]
    fn sets_of_nodes_say_what_is_special_about_them() {
        let all = instances(
            "[specialized-nodes.sets.large]\nnodes = \"m[1-2]\"\nordinary_memory = \"190G\"\n\
             [specialized-nodes.sets.gpu]\nnodes = [\"g1\"]\ngpus = true\n",
        )
        .unwrap();
        let rule = named(&all, "specialized-nodes").unwrap();
        let shown = format!("{:?}", rule.rule);
        assert!(shown.contains("large") && shown.contains("Gpus"), "{shown}");
    }

    #[test]
    fn what_makes_no_sense_is_named_with_its_key() {
        for (text, said) in [
            (
                "[low-cpu]\neficiency = 1",
                "rules.low-cpu.eficiency: there is no such option; there are rule,",
            ),
            (
                "[low-cpu]\nefficiency = 1.5",
                "rules.low-cpu: efficiency: expected a share from 0 to 1",
            ),
            ("[low-cpu]\nefficiency = [1]", "rules.low-cpu.efficiency: expected a number"),
            (
                "[mine]\nefficiency = 1",
                "rules.mine.rule: there is no rule \"mine\"; there are cancel",
            ),
            (
                "[low-cpu]\nrule = \"low-memory\"",
                "rules.low-cpu.rule: low-cpu is the name of another",
            ),
            ("[low-cpu]\nnodes = \"n[1-\"", "rules.low-cpu.nodes: "),
            ("[low-cpu]\nmin_run_time = \"soon\"", "rules.low-cpu.min_run_time: "),
            ("[\"a b\"]\nrule = \"low-cpu\"", "rules.a b: a name has letters"),
            ("[waste]\nrule = \"low-cpu\"", "rules.waste: is the name of a report"),
            ("[low-cpu]\nenabled = false\nx = 1", "rules.low-cpu.x: there is no such option"),
            ("[low-cpu.sets.a]\nnodes = \"n1\"\ngpus = true", "rules.low-cpu.sets: only"),
            ("[specialized-nodes.sets.a]\nnodes = \"n1\"", "rules.specialized-nodes.sets.a: say"),
        ] {
            let error = instances(text).unwrap_err();
            assert!(error.starts_with(said), "{text}\n{error}");
        }
    }
}
