//! What `steward import jds` could not take over.

use serde_json::json;

use super::plain::{padded, visible, width};
use super::screen::{Screen, Style};
use super::terminal::wrapped;
use crate::jds::{Converted, Left, Reason};

/// For people: a line a key, with the reason below one another.
#[must_use]
pub fn text(done: &Converted, screen: Screen) -> String {
    let is_left = |one: &&Left| one.reason != Reason::Differs;
    let left: Vec<&Left> = done.left.iter().filter(is_left).collect();
    let differs: Vec<&Left> = done.left.iter().filter(|one| !is_left(one)).collect();
    let mut out = String::new();
    for (title, list) in
        [("Not taken over", left), ("Taken over, and decided a little otherwise", differs)]
    {
        if list.is_empty() {
            continue;
        }
        if !out.is_empty() {
            out.push('\n');
        }
        out += &(screen.paint(Style::Bold, &format!("{title} ({})", list.len())) + "\n");
        let widest = list.iter().map(|one| width(&name(one))).max().unwrap_or(0).min(60);
        for one in list {
            out += &line(one, widest, screen);
        }
    }
    out
}

fn name(one: &Left) -> String {
    let parts = [one.instance.as_str(), one.key.as_str()];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    visible(&parts.join("."))
}

fn line(one: &Left, widest: usize, screen: Screen) -> String {
    let reason = if one.reason == Reason::Differs { "" } else { one.reason.word() };
    let head = format!("{:>5}  {}  {reason:<9}", one.line, padded(&name(one), widest, false));
    let indent = 9;
    let why = visible(&one.why);
    if width(&head) + 2 + width(&why) <= screen.width {
        return format!("{head}  {why}\n");
    }
    let mut out = head.trim_end().to_owned() + "\n";
    for line in wrapped(&why, screen.width.saturating_sub(indent).max(20)).lines() {
        out += &format!("{:indent$}{line}\n", "");
    }
    out
}

/// For programs, with the settings.
#[must_use]
pub fn json(done: &Converted) -> String {
    let left: Vec<_> = done
        .left
        .iter()
        .map(|one| {
            json!({
                "line": one.line,
                "instance": one.instance,
                "key": one.key,
                "reason": one.reason.word(),
                "why": one.why,
            })
        })
        .collect();
    super::json::text(&json!({ "instances": done.instances, "toml": done.toml, "left": left }))
}
