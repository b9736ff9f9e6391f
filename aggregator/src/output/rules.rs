//! `steward rules`: a table of all instances, and the manual of one.

use serde_json::{Value, json};
use steward_common::rule::Rule;

use super::plain::{cut, padded, visible, width};
use super::screen::{Screen, Style};
use super::terminal::wrapped;
use crate::config::Listed;
use crate::manual::{self, or_none};

/// Space between columns, and the most that the jobs of an instance take.
const GAP: &str = "  ";
const SCOPE: usize = 30;

fn state(one: &Listed) -> &'static str {
    if one.enabled { "on" } else { "off" }
}

/// All instances, a line each. Names are for typing, so they are never cut.
#[must_use]
pub fn list(listed: &[Listed], screen: Screen) -> String {
    let rows: Vec<[String; 4]> = listed.iter().map(row).collect();
    let heads = ["Name", "", "Jobs", "What it is about"].map(str::to_owned);
    let widest = |at: usize| {
        let cells = rows.iter().chain([&heads]).filter_map(|row| row.get(at));
        cells.map(|cell| width(cell)).max().unwrap_or(0)
    };
    let before = [widest(0), widest(1), widest(2).min(SCOPE)];
    let used: usize = before.iter().map(|width| width + GAP.len()).sum();
    let rest = screen.width.saturating_sub(used);
    let line = |row: &[String; 4]| {
        let widths = before.into_iter().chain([rest]);
        let cells =
            row.iter().zip(widths).map(|(cell, width)| padded(&cut(cell, width), width, false));
        cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned() + "\n"
    };
    let mut text = screen.paint(Style::Bold, line(&heads).trim_end()) + "\n";
    rows.iter().for_each(|row| text += &line(row));
    let on = listed.iter().filter(|one| one.enabled).count();
    let note = format!("{on} of {} are on. 'steward rules NAME' explains one.", listed.len());
    text + "\n" + &screen.paint(Style::Dim, &note) + "\n"
}

fn row(one: &Listed) -> [String; 4] {
    let (name, id) = (&one.instance.name, one.instance.rule.id().as_str());
    let of = if name == id { String::new() } else { format!("[{id}] ") };
    [
        visible(name),
        state(one).to_owned(),
        visible(&manual::in_short(&one.instance.scope)),
        of + manual::what(&one.instance),
    ]
}

/// The same for programs.
#[must_use]
pub fn list_json(listed: &[Listed]) -> String {
    let row = |one: &Listed| {
        json!({
            "name": one.instance.name,
            "rule": one.instance.rule.id().as_str(),
            "state": state(one),
            "configured": one.configured,
            "scope": manual::in_short(&one.instance.scope),
            "what": manual::what(&one.instance),
        })
    };
    super::json::text(&json!({ "rules": listed.iter().map(row).collect::<Vec<_>>() }))
}

/// The paragraphs of a rule's manual.
const HEADS: [&str; 3] = ["What it looks at", "Why it matters", "What to do"];

/// The manual of an instance, for people.
#[must_use]
pub fn manual(one: &Listed, screen: Screen) -> String {
    let mut page = Page { screen, text: String::new() };
    let (name, rule) = (&one.instance.name, &one.instance.rule);
    let of = if name == rule.id().as_str() { String::new() } else { format!(", {}", rule.id()) };
    page.text = format!("{} ({}{of})\n", screen.paint(Style::Bold, &visible(name)), state(one));
    for (head, paragraph) in HEADS.iter().zip(rule.doc().lines()) {
        page.head(head);
        page.lines(paragraph, 2);
    }
    page.head("Jobs that it is about (* as the site has it)");
    let changed = manual::changed_scope(&one.instance);
    for (key, value) in manual::scope(&one.instance.scope) {
        let was = changed.iter().find(|((known, _), _)| *known == key).map(|(_, was)| was.as_str());
        page.setting(key, &value, was, "");
    }
    page.head("Options (* as the site has it)");
    for setting in manual::settings(&one.instance) {
        let was = setting.is_changed().then(|| or_none(setting.default.as_deref()));
        let value = or_none(setting.shown.value.as_deref());
        page.setting(setting.shown.name, value, was, setting.shown.expected);
        page.lines(setting.shown.doc, 6);
    }
    page.head("What must be known");
    for line in needs(&**rule) {
        page.lines(&line, 2);
    }
    page.head("In steward.toml");
    for line in manual::example(one).lines() {
        page.text += &format!("  {}\n", visible(line));
    }
    page.text
}

/// The data that a rule needs, and how much of it.
fn needs(rule: &dyn Rule) -> Vec<String> {
    let mut lines: Vec<String> = rule.needs().iter().map(|need| need.what().to_owned()).collect();
    let value = |name: &str| rule.list().into_iter().find(|one| one.name == name)?.value;
    if let Some(share) = value("coverage") {
        lines.push(format!(
            "A job of which less than {share} was measured (coverage) is not judged."
        ));
    }
    if let Some(share) = value("hours_coverage") {
        lines.push(format!(
            "Of a user of whose hours less than {share} are known (hours_coverage) nothing is said \
             that needs them; that is shown as no data."
        ));
    }
    lines
}

struct Page {
    screen: Screen,
    text: String,
}

impl Page {
    fn head(&mut self, text: &str) {
        self.text += &format!("\n{}\n", self.screen.paint(Style::Bold, text));
    }

    fn lines(&mut self, text: &str, indent: usize) {
        let room = self.screen.width.saturating_sub(indent).max(20);
        for line in wrapped(text, room).lines() {
            self.text += &format!("{:indent$}{line}\n", "");
        }
    }

    /// `* key = value`, what was shipped if it was changed, and what may stand there.
    fn setting(&mut self, key: &str, value: &str, was: Option<&str>, expected: &str) {
        let mark = if was.is_some() { "*" } else { " " };
        let was = was.map(|was| format!("shipped: {was}"));
        let more: Vec<&str> = was.as_deref().into_iter().chain([expected]).collect();
        let more: Vec<&str> = more.into_iter().filter(|text| !text.is_empty()).collect();
        let more = if more.is_empty() { String::new() } else { format!("  ({})", more.join("; ")) };
        let line = format!("{key} = {}{more}", visible(value));
        let room = self.screen.width.saturating_sub(4).max(20);
        for (at, line) in wrapped(&line, room).lines().enumerate() {
            let before = if at == 0 { format!("  {mark} ") } else { " ".repeat(8) };
            self.text += &format!("{before}{}\n", line.trim_end());
        }
    }
}

/// The same for programs.
#[must_use]
pub fn manual_json(one: &Listed) -> String {
    let rule = &one.instance.rule;
    let mut paragraphs = rule.doc().lines();
    let shipped = manual::scope(&rule.scope());
    let scope = manual::scope(&one.instance.scope).into_iter().zip(shipped);
    let scope: Vec<Value> = scope
        .map(|((key, value), (_, default))| {
            json!({ "name": key, "changed": value != default, "value": value, "default": default })
        })
        .collect();
    let options: Vec<Value> = manual::settings(&one.instance)
        .into_iter()
        .map(|setting| {
            json!({
                "name": setting.shown.name,
                "doc": setting.shown.doc,
                "expected": setting.shown.expected,
                "changed": setting.is_changed(),
                "value": setting.shown.value,
                "default": setting.default,
            })
        })
        .collect();
    super::json::text(&json!({
        "name": one.instance.name,
        "rule": rule.id().as_str(),
        "state": state(one),
        "what": paragraphs.next(),
        "why": paragraphs.next(),
        "what_to_do": paragraphs.next(),
        "scope": scope,
        "options": options,
        "sets": one.sets,
        "needs": rule.needs().iter().map(|need| need.what()).collect::<Vec<_>>(),
        "example": manual::example(one),
    }))
}
