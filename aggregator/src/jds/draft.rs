//! One alert on its way to an instance of a rule.

use std::time::Duration;

use steward_common::rule::{self, Rule, SetError, Setting};
use steward_common::slurm::hostlist;
use steward_common::span::Span;

use super::keys::{Absent, Alert, HARDWARE, Kind, MAIL, REPORT, RUNNING};
use super::left::Reason;
use crate::manual::{key as table, literal, quoted};
use crate::source::yaml::{Entry, Value};

/// Why a key was not taken, or what is to be known of it.
pub type Refused = (Reason, String);

/// An instance that is being put together.
#[derive(Debug)]
pub struct Draft {
    /// Its name.
    pub name: String,
    /// The alert that it is of.
    pub alert: &'static Alert,
    /// The rule with the options so far, by which values are tried.
    rule: Box<dyn Rule>,
    /// Lines of TOML: key, value, and a word about it.
    lines: Vec<(&'static str, String, &'static str)>,
    /// Whether a limit of its scope could not be read: then it would reach more than it did.
    is_wider: bool,
}

/// Keys that every alert has.
const SCOPE: &[&str] = &[
    "cluster",
    "enabled",
    "excluded_partitions",
    "excluded_qos",
    "excluded_users",
    "include_running_jobs",
    "min_run_time",
    "nodelist",
    "partitions",
];

const THEIRS: &str = "Job Defense Shield's default";

impl Draft {
    /// Nothing is set yet; `None` if we have no such rule.
    pub fn new(name: String, alert: &Alert) -> Option<Draft> {
        let alert = super::ALERTS.iter().find(|known| known.rule == alert.rule)?;
        Some(Draft {
            name,
            alert,
            rule: rule::find(alert.rule)?,
            lines: Vec::new(),
            is_wider: false,
        })
    }

    /// Takes over one key of the alert.
    pub fn take(&mut self, entry: &Entry, all: &[Entry]) -> Result<(), Refused> {
        let key = entry.key.as_str();
        if let Some(mapped) = self.alert.mapped.iter().find(|mapped| mapped.key == key) {
            let setting = setting(mapped.kind, &entry.value.value).map_err(unfit)?;
            return self.set(mapped.option, setting, "");
        }
        if SCOPE.contains(&key) {
            let taken = self.scope(key, &entry.value.value);
            self.is_wider |= matches!(taken, Err((Reason::Unfit, _)));
            return taken;
        }
        if self.alert.special.contains(&key) {
            super::special::take(self, entry, all)?;
        }
        if let Some((_, why)) = self.alert.dead.iter().find(|(dead, _)| *dead == key) {
            return Err((Reason::Dead, (*why).to_owned()));
        }
        if HARDWARE.contains(&key) {
            let why = "Steward takes what nodes have from Slurm".to_owned();
            return Err((Reason::Hardware, why));
        }
        if MAIL.contains(&key) {
            return Err((Reason::Mail, super::MAIL.to_owned()));
        }
        if REPORT.contains(&key) {
            return Err((
                Reason::Report,
                "is about how reports look; Steward's have --top".to_owned(),
            ));
        }
        if let Some((_, why)) = RUNNING.iter().find(|(known, _)| *known == key) {
            return Err((Reason::Elsewhere, (*why).to_owned()));
        }
        if self.alert.special.contains(&key) {
            return Ok(());
        }
        let known = self.alert.mapped.iter().map(|mapped| mapped.key);
        let known = known.chain(SCOPE.iter().chain(MAIL).chain(REPORT).chain(HARDWARE).copied());
        Err((Reason::Unknown, super::unknown(key, known)))
    }

    /// Sets an option of the rule.
    pub fn set(
        &mut self,
        option: &'static str,
        setting: Setting,
        about: &'static str,
    ) -> Result<(), Refused> {
        let text = match &setting {
            Setting::Flag(flag) => flag.to_string(),
            Setting::Number(number) => number.to_string(),
            Setting::Text(text) => quoted(text),
        };
        let held = self.shown(option).unwrap_or_else(|| "none".to_owned());
        self.rule.set(option, setting).map_err(|error| match error {
            SetError::Unfit { expected, .. } => unfit(format!(
                "would be {option} = {text}; expected {expected}; Steward's {held} holds"
            )),
            error @ SetError::Unknown { .. } => unfit(error.to_string()),
        })?;
        self.lines.retain(|(known, ..)| *known != option);
        self.lines.push((option, text, about));
        Ok(())
    }

    /// Sets what Job Defense Shield takes where nothing is said, if that is not what we take; names
    /// the keys without which it does not run.
    pub fn complete(&mut self, keys: &[Entry]) -> Vec<(&'static str, String)> {
        let mut missing = Vec::new();
        let absent = |key: &str| keys.iter().all(|entry| entry.key != key);
        for mapped in self.alert.mapped.iter().filter(|mapped| absent(mapped.key)) {
            match mapped.absent {
                Absent::Is(value) => self.assume(mapped.option, value, THEIRS),
                Absent::Required => {
                    let held = self.shown(mapped.option).unwrap_or_else(|| "none".to_owned());
                    let option = mapped.option;
                    let why = format!(
                        "Job Defense Shield does not run without it; Steward's {option} = {held} holds"
                    );
                    missing.push((mapped.key, why));
                }
            }
        }
        for (option, value) in self.alert.always {
            self.assume(option, value, "as in Job Defense Shield");
        }
        let at_least = !self.rule.scope().min_run_time.is_zero();
        if at_least && self.alert.min_run_time && absent("min_run_time") {
            self.lines.push(("min_run_time", quoted("0s"), THEIRS));
        }
        for key in ["cluster", "partitions"].into_iter().filter(|key| absent(key)) {
            let why = "Job Defense Shield does not run without it; here it means all".to_owned();
            missing.push((key, why));
        }
        missing
    }

    /// Sets an option to a value of ours, unless it has that already.
    pub fn assume(&mut self, option: &'static str, value: &str, about: &'static str) {
        if self.shown(option).as_deref().unwrap_or("none") == value {
            return;
        }
        let setting = match (value.parse::<bool>(), value.parse::<f64>()) {
            (Ok(flag), _) => Setting::Flag(flag),
            (_, Ok(number)) => Setting::Number(number),
            _ => Setting::Text(value.to_owned()),
        };
        if self.rule.set(option, setting).is_ok() {
            self.lines.push((option, literal(value), about));
        }
    }

    fn shown(&self, option: &str) -> Option<String> {
        self.rule.list().into_iter().find(|shown| shown.name == option)?.value
    }

    fn scope(&mut self, key: &str, value: &Value) -> Result<(), Refused> {
        let ignored = || {
            let why = "Job Defense Shield does not look at it in this alert".to_owned();
            Err((Reason::Dead, why))
        };
        let (key, text) = match key {
            "cluster" => ("clusters", list(value)?),
            "partitions" => ("partitions", list(value)?),
            "excluded_partitions" => ("excluded_partitions", list(value)?),
            "excluded_qos" => ("excluded_qos", list(value)?),
            "excluded_users" => ("excluded_users", list(value)?),
            "nodelist" => {
                for name in names(value)? {
                    hostlist::expand(&name).map_err(|error| unfit(error.to_string()))?;
                }
                ("nodes", list(value)?)
            }
            "enabled" => ("enabled", flag(value)?.to_string()),
            "include_running_jobs" if self.alert.running => {
                ("include_running", flag(value)?.to_string())
            }
            "min_run_time" if self.alert.min_run_time => {
                match setting(Kind::Minutes, value).map_err(unfit)? {
                    Setting::Text(text) => ("min_run_time", quoted(&text)),
                    _ => return ignored(),
                }
            }
            _ => return ignored(),
        };
        self.lines.push((key, text, ""));
        Ok(())
    }

    /// The table of the instance.
    pub fn toml(&self) -> String {
        let mut text = format!("\n[rules.{}]\n", table(&self.name));
        if self.name != self.alert.rule {
            text += &format!("rule = {}\n", quoted(self.alert.rule));
        }
        if self.is_wider {
            text += "enabled = false  # until its limits that could not be read are set\n";
        }
        for (key, value, about) in &self.lines {
            if self.is_wider && *key == "enabled" {
                continue;
            }
            let about = if about.is_empty() { String::new() } else { format!("  # {about}") };
            text += &format!("{key} = {value}{about}\n");
        }
        text
    }
}

fn unfit(why: String) -> Refused {
    (Reason::Unfit, why)
}

/// The value as one of ours.
pub fn setting(kind: Kind, value: &Value) -> Result<Setting, String> {
    if kind == Kind::Flag {
        return flag(value).map(Setting::Flag).map_err(|(_, why)| why);
    }
    let Value::Number(number) = value else {
        return Err(format!("expected a number, found {}", spoken(value)));
    };
    let time = |seconds: f64| {
        // Whole seconds are more than enough, and years more than a job runs.
        let time = Duration::try_from_secs_f64(seconds.round());
        let time = time.map_err(|_| "expected a length of time".to_owned())?;
        Ok(Setting::Text(Span(time).to_string()))
    };
    match kind {
        Kind::Number | Kind::Flag => Ok(Setting::Number(*number)),
        Kind::PerCent => Ok(Setting::Number(number / 100.0)),
        Kind::TbHours => Ok(Setting::Number(number * 1000.0)),
        Kind::Minutes => time(number * 60.0),
        Kind::Hours => time(number * 3600.0),
    }
}

fn spoken(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Flag(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Text(text) => format!("{text:?}"),
        Value::List(_) => "a list".to_owned(),
        Value::Map(_) => "keys with values".to_owned(),
    }
}

fn flag(value: &Value) -> Result<bool, Refused> {
    match value {
        Value::Flag(flag) => Ok(*flag),
        other => Err(unfit(format!("expected True or False, found {}", spoken(other)))),
    }
}

fn names(value: &Value) -> Result<Vec<String>, Refused> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Text(text) => Ok(vec![text.clone()]),
        Value::List(list) => {
            let names = list.iter().map(|node| match &node.value {
                Value::Text(text) => Ok(text.clone()),
                other => Err(unfit(format!("expected a name, found {}", spoken(other)))),
            });
            names.collect()
        }
        other => Err(unfit(format!("expected a name or a list of names, found {}", spoken(other)))),
    }
}

/// Names as TOML writes them; `*` is all.
fn list(value: &Value) -> Result<String, Refused> {
    let names = names(value)?;
    if names.iter().any(|name| name == "*") {
        return Ok(quoted("all"));
    }
    if names.iter().any(|name| name == "all") {
        let why = "the name all means every one in Steward, so nothing is narrowed here";
        return Err(unfit(why.to_owned()));
    }
    let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    Ok(format!("[{}]", names.join(", ")))
}
