//! The settings of Job Defense Shield as settings of Steward.
//!
//! It looks at every top-level key that contains the name of an alert as an instance of it, and at
//! no key that it does not know. Here whatever has no effect any more is named.

mod draft;
mod keys;
mod left;
mod special;
pub mod violations;

use steward_common::rule;

pub use left::{Left, Reason};

use crate::manual;
use crate::source::yaml::{Entry, Node, Value};
use draft::Draft;
use keys::{ALERTS, Alert, GLOBAL, Global};

/// What came of it.
#[derive(Debug)]
pub struct Converted {
    /// Settings for steward.toml.
    pub toml: String,
    /// How many instances are in it.
    pub instances: usize,
    /// What could not be taken over, and what is to be known, in the order of the lines.
    pub left: Vec<Left>,
}

impl Converted {
    /// Whether something could not be taken over.
    #[must_use]
    pub fn is_in_part(&self) -> bool {
        self.left.iter().any(|one| one.reason != Reason::Differs)
    }
}

const MAIL: &str = "belongs to notices, which Steward does not send yet";

/// Takes over what can be. `None` if the top of the file is no map.
#[must_use]
pub fn convert(file: &str, root: &Node) -> Option<Converted> {
    let Value::Map(entries) = &root.value else { return None };
    let (mut left, mut drafts): (Vec<Left>, Vec<Draft>) = (Vec::new(), Vec::new());
    for entry in entries {
        let alerts: Vec<&Alert> =
            ALERTS.iter().filter(|alert| entry.key.contains(alert.rule)).collect();
        for alert in &alerts {
            drafts.extend(instance(entry, alert, &drafts, &mut left));
        }
        if alerts.is_empty() {
            left.push(global(entry));
        }
    }
    left.sort_by_key(|one| one.line);
    Some(Converted { toml: text(file, &drafts), instances: drafts.len(), left })
}

fn global(entry: &Entry) -> Left {
    let known = GLOBAL.iter().find(|(key, _)| *key == entry.key);
    let (reason, why) = match known {
        Some((_, Global::Mail)) => (Reason::Mail, MAIL.to_owned()),
        Some((_, Global::Else(why))) => (Reason::Elsewhere, (*why).to_owned()),
        None => {
            let known = GLOBAL.iter().map(|(key, _)| *key);
            let known = known.chain(ALERTS.iter().map(|alert| alert.rule));
            (Reason::Unknown, unknown(&entry.key, known))
        }
    };
    Left { line: entry.place.line, instance: String::new(), key: entry.key.clone(), reason, why }
}

fn unknown<'a>(key: &str, known: impl Iterator<Item = &'a str>) -> String {
    match manual::nearest(key, known).as_slice() {
        [] => "Job Defense Shield has no such key and ignores it".to_owned(),
        near => {
            let near = near.join(" or ");
            format!("Job Defense Shield has no such key and ignores it; was {near} meant?")
        }
    }
}

/// One alert of the file.
fn instance(entry: &Entry, alert: &Alert, others: &[Draft], left: &mut Vec<Left>) -> Option<Draft> {
    let name = distinct(&entry.key, others);
    let mut draft = Draft::new(name, alert)?;
    let mut tell = |line: usize, key: &str, reason: Reason, why: String| {
        let (instance, key) = (entry.key.clone(), key.to_owned());
        left.push(Left { line, instance, key, reason, why });
    };
    let line = entry.place.line;
    let Value::Map(keys) = &entry.value.value else {
        tell(line, "", Reason::Unfit, "an alert must have keys of its own".to_owned());
        return None;
    };
    for key in keys {
        if let Err((reason, why)) = draft.take(key, keys) {
            tell(key.place.line, &key.key, reason, why);
        } else if key.key == "cluster" && matches!(key.value.value, Value::List(_)) {
            let why = "Job Defense Shield takes one name, no list; here each of them is meant";
            tell(key.place.line, &key.key, Reason::Differs, why.to_owned());
        }
    }
    for (key, why) in draft.complete(keys) {
        tell(line, key, Reason::Missing, why);
    }
    for (key, reason, why) in special::after(&mut draft, keys) {
        let at = keys.iter().find(|entry| entry.key == key).map_or(line, |entry| entry.place.line);
        tell(at, key, reason, why);
    }
    if let Some(differs) = alert.differs {
        tell(line, "", Reason::Differs, differs.to_owned());
    }
    Some(draft)
}

/// A name that a table may have and no other instance has.
fn distinct(key: &str, others: &[Draft]) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name: String = key.chars().map(|c| if fits(c) { c } else { '-' }).collect();
    let taken = |name: &str| others.iter().any(|other| other.name == name);
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.clone()).chain(numbered).find(|name| !taken(name)).unwrap_or(name)
}

fn text(file: &str, drafts: &[Draft]) -> String {
    // A name may hold what ends a comment.
    let file = file.escape_default();
    let mut text = format!(
        "# Made by 'steward import jds' from {file}.\n\
         # Alerts that are not in it are switched off here. Rules that Job Defense Shield does not have\n\
         # hold as Steward ships them: 'steward rules' lists them.\n"
    );
    drafts.iter().for_each(|draft| text += &draft.toml());
    for alert in ALERTS.iter().filter(|alert| rule::find(alert.rule).is_some()) {
        if drafts.iter().all(|draft| draft.name != alert.rule) {
            let of_own = drafts.iter().any(|draft| draft.alert.rule == alert.rule);
            let why = if of_own { "has other names above" } else { "is not in the file" };
            text += &format!("\n# It {why}.\n[rules.{}]\nenabled = false\n", alert.rule);
        }
    }
    text
}

#[cfg(test)]
mod tests;
