//! `steward doctor`, for people: a line a finding, and what to do below it.

use super::plain::visible;
use super::screen::{Screen, Style};
use super::terminal::wrapped;
use crate::doctor::{Finding, Mark};

/// The findings; `signs` says whether ✓ and ✗ can be shown.
#[must_use]
pub fn text(findings: &[Finding], screen: Screen, signs: bool) -> String {
    let widest = findings.iter().map(|finding| finding.subject.len()).max().unwrap_or(0);
    let mut out = String::new();
    let mut last = "";
    for finding in findings {
        let (sign, word, style) = match finding.mark {
            Mark::Good => ("✓", "ok ", Style::Good),
            Mark::Note => ("!", "!  ", Style::Fair),
            Mark::Trouble => ("✗", "BAD", Style::Bad),
        };
        let sign = if signs { sign } else { word };
        let subject = if last == finding.subject { "" } else { finding.subject };
        last = finding.subject;
        let indent = sign.chars().count() + 1 + widest + 2;
        let room = screen.width.saturating_sub(indent).max(20);
        let head = format!("{} {subject:<widest$}  ", screen.paint(style, sign));
        out += &block(&head, &wrapped(&visible(&finding.text), room), indent);
        if let Some(advice) = &finding.advice {
            let arrow = if signs { "→ " } else { "> " };
            let head = " ".repeat(indent) + arrow;
            out += &block(&head, &wrapped(&visible(advice), room.saturating_sub(2)), indent + 2);
        }
    }
    out += &format!("\n{}\n", summary(findings));
    out
}

/// The lines, the first after `head`, the others below it.
fn block(head: &str, lines: &str, indent: usize) -> String {
    let mut out = String::new();
    for (number, line) in lines.lines().enumerate() {
        let before = if number == 0 { head.to_owned() } else { " ".repeat(indent) };
        out += &format!("{before}{line}\n");
    }
    out
}

fn summary(findings: &[Finding]) -> String {
    let count = |mark| findings.iter().filter(|finding| finding.mark == mark).count();
    match (count(Mark::Trouble), count(Mark::Note)) {
        (0, 0) => "All is well.".to_owned(),
        (0, notes) => format!("Nothing is broken; {notes} to know."),
        (broken, notes) => format!("{broken} broken, {notes} to know."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finding_has_a_line_and_its_advice_below() {
        let finding = |subject, mark, text: &str, advice: Option<&str>| Finding {
            subject,
            mark,
            text: text.to_owned(),
            advice: advice.map(str::to_owned),
        };
        let findings = [
            finding("sacct", Mark::Good, "slurm 22.05.8", None),
            finding("sacct", Mark::Trouble, "no answer\u{1b}[2J", Some("ask again")),
            finding("clock", Mark::Note, "behind", Some("see chrony")),
        ];
        assert_eq!(
            text(&findings, Screen::file(), true),
            "✓ sacct  slurm 22.05.8\n✗        no answer\\x1b[2J\n         → ask again\n! clock  behind\n         → see chrony\n\n1 broken, 1 to know.\n"
        );
        assert!(text(&findings, Screen::file(), false).is_ascii());
    }
}
