//! What administrators must hear of a run: who could not be told, and what nobody knows.

use super::restraint::Held;
use super::run::Done;
use crate::mail::{Content, Section};
use crate::output::notices;

/// What went wrong; `None` if nothing did. What is wrong with mails about trouble is not told by mail.
#[must_use]
pub fn content(done: &Done) -> Option<Content> {
    let mut sections = Vec::new();
    let of = |wanted: fn(&Held) -> bool| {
        done.held.iter().filter(move |one| wanted(&one.why)).cloned().collect::<Vec<_>>()
    };
    let late = of(|why| matches!(why, Held::Most(_)));
    if !late.is_empty() {
        sections.push(Section {
            title: "More users than notices.most were to be told".to_owned(),
            lines: vec![
                "They are told in the next run, unless so many come first again.".to_owned(),
            ],
            sheet: Some(notices::held(&late)),
            text: None,
        });
    }
    let nowhere = of(|why| matches!(why, Held::Address(_)));
    if !nowhere.is_empty() {
        sections.push(Section {
            title: "Nobody knows where to write to".to_owned(),
            lines: vec!["Name them in mail.address.map, or exempt them.".to_owned()],
            sheet: Some(notices::held(&nowhere)),
            text: None,
        });
    }
    let zone = jiff::tz::TimeZone::system();
    for (title, line, deliveries) in [
        (
            "Mails that nobody knows of",
            "The program or the line ended while they were handed over. They count as sent.",
            &done.delivered.unknown,
        ),
        (
            "Mails that were refused too often",
            "They are not tried again; the users count as told.",
            &done.delivered.given_up,
        ),
    ] {
        let told: Vec<_> = deliveries.iter().filter(|one| one.kind != "trouble").cloned().collect();
        if !told.is_empty() {
            let sheet = Some(notices::open(&told, &zone));
            let (title, lines) = (title.to_owned(), vec![line.to_owned()]);
            sections.push(Section { title, lines, sheet, text: None });
        }
    }
    (!sections.is_empty()).then_some(Content::Sections(sections))
}
