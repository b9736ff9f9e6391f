//! What templates see of a letter: everything in words, numbers as the language writes them, and nothing
//! from outside that could do harm.

use std::collections::BTreeMap;

use serde::Serialize;
use steward_common::rule::RuleId;

use super::chart::Bar;
use super::letter::{Account, Content, Letter, Section};
use super::person::Person;
use super::sentence::{Figures, Shown};
use super::table::{Table, table};
use super::words::Words;
use crate::config::Mail;
use crate::notice::digest::{Digest, Item};
use crate::output::number;
use crate::output::plain::{cut, visible};
use crate::output::sheet::{Cell, Sheet};

/// A letter as templates see it.
#[derive(Debug, Serialize)]
pub struct View {
    /// The language.
    language: String,
    /// The first line.
    greeting: String,
    /// Who reads it; empty for administrators.
    user: String,
    /// Whom it is about.
    about: String,
    /// The clusters that it is about.
    clusters: String,
    /// From when to when was looked.
    window: String,
    /// Phrases without figures.
    words: BTreeMap<String, String>,
    /// What was found.
    items: Vec<ItemView>,
    /// Figures of an account of the bank; what is not known is empty.
    figures: BTreeMap<&'static str, String>,
    /// Anything else.
    sections: Vec<SectionView>,
    /// Whom to ask; empty for administrators.
    ask: String,
    /// The same as a link, if it is one.
    ask_link: Option<String>,
    /// The chart.
    pub chart: Option<ChartView>,
}

/// The chart as templates see it.
#[derive(Debug, Serialize)]
pub struct ChartView {
    /// The name of the picture within the mail.
    pub cid: String,
    /// What it shows.
    pub title: String,
    /// The same in words, for those who do not see it.
    pub alt: String,
    /// How wide it is shown.
    pub width: u32,
    /// How high.
    pub height: u32,
}

impl ChartView {
    /// One for trials.
    #[must_use]
    pub fn sample() -> ChartView {
        let text = || "chart".to_owned();
        ChartView { cid: text(), title: text(), alt: text(), width: 1, height: 1 }
    }
}

#[derive(Debug, Serialize)]
struct ItemView {
    instance: String,
    rule: &'static str,
    cluster: String,
    title: String,
    what: String,
    why: String,
    advice: String,
    advice_text: String,
    affected: String,
    again: String,
    cost: String,
    help: Option<String>,
    help_text: String,
    table: Table,
    more: String,
}

#[derive(Debug, Serialize)]
struct SectionView {
    title: String,
    lines: Vec<String>,
    table: Option<Table>,
    more: String,
    text: Option<String>,
}

/// The bars of a letter's chart, and what they show.
#[derive(Debug)]
pub struct Bars {
    /// The title.
    pub title: String,
    /// The bars.
    pub bars: Vec<Bar>,
}

/// The view of a letter.
#[must_use]
pub fn view(
    letter: &Letter,
    person: Option<&Person>,
    (language, words): (&str, &Words),
    mail: &Mail,
) -> View {
    let user = letter.user.as_deref().map(clean).unwrap_or_default();
    let about = letter.about.as_deref().map(clean).unwrap_or_default();
    let mut figures = Figures::from([("user".to_owned(), Shown::text(user.clone()))]);
    let name = person.and_then(|person| person.name.clone());
    let greeting = match (&letter.user, name) {
        (None, _) => "greeting_admins",
        (Some(_), None) => "greeting_user",
        (Some(_), Some(name)) => {
            figures.insert("name".to_owned(), Shown::text(clean(&name)));
            "greeting_name"
        }
    };
    let (mut digest, mut account) = (None, None);
    let mut sections = Vec::new();
    match &letter.content {
        Content::Digest(found) => digest = Some(found),
        Content::Account(found) => {
            account = Some(found);
            sections.push(section(Some(&found.sheet), &Section::default(), words));
        }
        Content::Sections(all) => {
            sections.extend(all.iter().map(|one| section(one.sheet.as_ref(), one, words)));
        }
    }
    for (key, text) in digest.iter().flat_map(|d| [("from", &d.from), ("to", &d.to)]) {
        figures.insert(key.to_owned(), Shown::text(clean(text)));
    }
    let ask = mail.ask.as_deref().map(visible);
    let ask_phrase = match (&letter.user, &ask) {
        // Those whom one would ask need not be told.
        (None, _) => "",
        (Some(_), Some(_)) => "ask",
        (Some(_), None) => "ask_nobody",
    };
    if let Some(ask) = &ask {
        figures.insert("ask".to_owned(), Shown::text(ask.clone()));
    }
    let mut clusters: Vec<String> =
        digest.iter().flat_map(|d| &d.items).map(|item| clean(&item.cluster)).collect();
    clusters.sort();
    clusters.dedup();
    View {
        language: language.to_owned(),
        greeting: words.phrase(greeting, &figures),
        user,
        about,
        clusters: clusters.join(", "),
        window: words.phrase("window", &figures),
        words: words.phrases.clone(),
        items: digest
            .iter()
            .flat_map(|digest| digest.items.iter().map(|one| item(digest, one, words, mail)))
            .collect(),
        figures: account.map(|account| shown(account, words)).unwrap_or_default(),
        sections,
        ask: words.phrase(ask_phrase, &figures),
        ask_link: ask.as_deref().and_then(link_of),
        chart: None,
    }
}

/// Text from outside in one line of bounded length.
fn clean(text: &str) -> String {
    cut(&visible(text), 200)
}

fn link_of(ask: &str) -> Option<String> {
    if ask.starts_with("https://") || ask.starts_with("http://") {
        return Some(ask.to_owned());
    }
    ask.parse::<lettre::Address>().ok().map(|address| format!("mailto:{address}"))
}

fn item(digest: &Digest, item: &Item, words: &Words, mail: &Mail) -> ItemView {
    let figures = figures(digest, item, words);
    let of = words.rules.get(item.rule.as_str());
    let sentence = |text: Option<&String>| text.cloned().unwrap_or_default();
    let filled = of.and_then(|of| words.filled(&of.what, &figures));
    let table = table(&item.jobs, words, &["user", "cluster", "submit_timestamp_seconds"]);
    let help = help(digest, item, mail);
    let help_figures = help.iter().map(|link| ("link".to_owned(), Shown::text(link.clone())));
    let advice = sentence(of.map(|of| &of.advice));
    let in_text = Figures::from([("advice".to_owned(), Shown::text(advice.clone()))]);
    let again = match item.before {
        0 => String::new(),
        1 => words.phrase("again_once", &figures),
        _ => words.phrase("again", &figures),
    };
    ItemView {
        instance: clean(&item.instance),
        rule: item.rule.as_str(),
        cluster: clean(&item.cluster),
        title: title(item.rule, words),
        what: filled.unwrap_or_default(),
        why: sentence(of.map(|of| &of.why)),
        advice_text: words.phrase("advice_text", &in_text),
        advice,
        affected: words.phrase("affected", &figures),
        again,
        cost: words.phrase("cost", &figures),
        help_text: words.phrase("help_text", &help_figures.collect()),
        help,
        more: more(&table, words),
        table,
    }
}

/// What a rule is called.
fn title(rule: RuleId, words: &Words) -> String {
    words.rules.get(rule.as_str()).map_or_else(|| rule.to_string(), |of| of.title.clone())
}

fn more(table: &Table, words: &Words) -> String {
    if table.left_out == 0 {
        return String::new();
    }
    let cell = count(words, table.left_out as u64);
    words.phrase("more", &Figures::from([("n".to_owned(), cell)]))
}

fn count(words: &Words, count: u64) -> Shown {
    Shown { text: words.cell("", &Cell::Count(count), 0), number: Some(count as f64) }
}

/// All that sentences may name.
fn figures(digest: &Digest, item: &Item, words: &Words) -> Figures {
    let mut figures = Figures::new();
    if let Some(row) = item.totals.rows.first() {
        for (column, cell) in item.totals.columns.iter().zip(row) {
            if *cell == Cell::Missing || column.key == "job_ids" {
                continue;
            }
            let decimals = number::decimals(std::iter::once(cell));
            let text = cut(&words.cell(&column.key, cell, decimals), 80);
            figures.insert(column.key.to_string(), Shown { text, number: cell.figure() });
        }
    }
    let mut put = |key: &str, shown| figures.insert(key.to_owned(), shown);
    put("n", count(words, item.jobs.rows.len() as u64));
    put("user", Shown::text(clean(&digest.user)));
    put("cluster", Shown::text(clean(&item.cluster)));
    put("before", count(words, u64::from(item.before)));
    if let Some(part) = item.part.as_deref().filter(|part| !part.is_empty()) {
        put("part", Shown::text(clean(part)));
    }
    if let Some(hours) = item.billing_hours.filter(|hours| hours.is_finite()) {
        let decimals = usize::from(hours.abs() < 1000.0);
        put("billing_hours", Shown { text: words.figure(hours, decimals), number: Some(hours) });
    }
    figures
}

fn help(digest: &Digest, item: &Item, mail: &Mail) -> Option<String> {
    let pattern = mail.help_of.get(&item.instance).or(mail.help.as_ref())?;
    let filled = pattern
        .replace("{rule}", &encoded(item.rule.as_str()))
        .replace("{instance}", &encoded(&item.instance))
        .replace("{user}", &encoded(&digest.user));
    Some(visible(&filled))
}

/// Text that may stand in a link.
fn encoded(text: &str) -> String {
    let byte = |byte: &u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
            char::from(*byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    text.as_bytes().iter().map(byte).collect()
}

/// Figures for sentences; what is not known is empty, so that a template can leave it out.
fn shown(account: &Account, words: &Words) -> BTreeMap<&'static str, String> {
    let text = |(key, cell): (&&'static str, &Cell)| {
        let text = match cell {
            Cell::Missing => String::new(),
            cell => cut(&words.cell(key, cell, number::decimals(std::iter::once(cell))), 80),
        };
        (*key, text)
    };
    account.figures.iter().map(text).collect()
}

fn section(sheet: Option<&Sheet>, section: &Section, words: &Words) -> SectionView {
    let table = sheet.map(|sheet| table(sheet, words, &["cluster"]));
    // Lines stay lines; what is in them is made harmless.
    let text = |text: &String| text.lines().map(visible).collect::<Vec<_>>().join("\n");
    SectionView {
        title: clean(&section.title),
        lines: section.lines.iter().map(|line| visible(line)).collect(),
        more: table.as_ref().map(|table| more(table, words)).unwrap_or_default(),
        table,
        text: section.text.as_ref().map(text),
    }
}

/// The bars of a letter: by topic where there are three, else by job.
#[must_use]
pub fn bars(content: &Content, words: &Words) -> Option<Bars> {
    let Content::Digest(digest) = content else { return None };
    let bar = |label: String, figure: f64| Bar {
        label,
        figure,
        text: words.figure(figure, usize::from(figure.abs() < 1000.0)),
    };
    let items: Vec<Bar> = digest
        .items
        .iter()
        .filter_map(|item| Some(bar(title(item.rule, words), item.billing_hours?)))
        .filter(|bar| bar.figure > 0.0)
        .collect();
    let phrase = |name: &str| words.phrase(name, &Figures::new());
    if items.len() >= 3 {
        return Some(Bars { title: phrase("chart_items"), bars: items });
    }
    let mut jobs: Vec<(String, f64)> = Vec::new();
    for (job, hours) in digest.items.iter().flat_map(|item| hours_of_jobs(&item.jobs)) {
        // A job that two rules speak of has one bar.
        match jobs.iter_mut().find(|(known, _)| *known == job) {
            Some((_, known)) => *known = known.max(hours),
            None => jobs.push((job, hours)),
        }
    }
    let bars = jobs.into_iter().map(|(job, hours)| bar(clean(&job), hours)).collect();
    Some(Bars { title: phrase("chart_jobs"), bars })
}

fn hours_of_jobs(sheet: &Sheet) -> Vec<(String, f64)> {
    let place = |key: &str| sheet.columns.iter().position(|column| column.key == key);
    let (Some(job), Some(hours)) = (place("job"), place("billing_hours_wasted")) else {
        return Vec::new();
    };
    let of = |row: &Vec<Cell>| match (row.get(job)?, row.get(hours)?.figure()?) {
        (Cell::Text(job), hours) if hours > 0.0 => Some((job.clone(), hours)),
        _ => None,
    };
    sheet.rows.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests;
