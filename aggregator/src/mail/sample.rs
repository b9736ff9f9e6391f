//! Letters as they may come, on which templates are tried: names that mean harm, missing figures, much text.

use lettre::Address;
use steward_common::rule;

use super::letter::{Account, Content, Letter, MessageId, Section, Template};
use crate::notice::digest::{Digest, Item};
use crate::output::plain::visible;
use crate::output::sheet::{Cell, Column, Sheet, always, drop, program};

/// A name that somebody gave to a job, or that stands in a passwd entry.
pub const HOSTILE: &str = "<script>alert(1)</script>|\"x\"\r\nBcc: a@b";

/// A letter of that kind, as `steward config check` tries them.
#[must_use]
pub fn letter(template: Template) -> Letter {
    let content = match template {
        Template::Digest | Template::Copy | Template::Proposal => Content::Digest(digest()),
        Template::Warning | Template::Cancelled => Content::Sections(vec![idle()]),
        Template::Held => Content::Account(account(10_042.5)),
        Template::Level | Template::Ending => Content::Account(account(6_180.5)),
        Template::Statement => Content::Account(Account { sheet: month(), ..account(6_180.5) }),
        Template::Report | Template::Trouble => Content::Sections(vec![
            Section {
                title: "Recipients that were refused".to_owned(),
                lines: vec!["Three mails could not be delivered.".to_owned(), HOSTILE.to_owned()],
                sheet: Some(jobs(3)),
                text: None,
            },
            Section {
                text: Some(format!("as it is\n{}\n", visible(HOSTILE))),
                ..Section::default()
            },
        ]),
    };
    let to_user = matches!(template, Template::Digest | Template::Warning | Template::Cancelled);
    let to_coordinator = matches!(content, Content::Account(_));
    Letter {
        template,
        user: (to_user || to_coordinator).then(|| "ada".to_owned()),
        to: Address::new_dangerous("ada", "example.org"),
        cc: vec![Address::new_dangerous("lead", "example.org")],
        about: match (to_user, to_coordinator) {
            (true, _) => None,
            (false, true) => Some("astro-lab".to_owned()),
            (false, false) => Some("ada".to_owned()),
        },
        id: MessageId::sample(),
        content,
    }
}

/// The letters of a kind: the full one, and one that lacks all that may be lacking.
#[must_use]
pub fn letters(template: Template) -> Vec<Letter> {
    let full = letter(template);
    let mut bare = Letter { cc: Vec::new(), ..full.clone() };
    bare.content = match bare.content {
        Content::Digest(digest) => Content::Digest(Digest {
            items: digest.items.into_iter().take(1).map(without_figures).collect(),
            ..digest
        }),
        Content::Account(account) => {
            let none = account.figures.into_keys().map(|key| (key, Cell::Missing)).collect();
            Content::Account(Account { figures: none, ..account })
        }
        Content::Sections(_) => Content::Sections(Vec::new()),
    };
    vec![full, bare]
}

fn without_figures(item: Item) -> Item {
    let mut item = Item { part: None, billing_hours: None, before: 0, ..item };
    item.totals.rows.clear();
    item.jobs.rows.clear();
    item
}

fn digest() -> Digest {
    let items = [
        ("zero-util-gpu-hours", ("gpu_hours_idle", 1834.5), Some(3669.0), 12, 1),
        ("low-cpu-efficiency", ("cpu_hours", 5210.0), Some(2709.2), 5, 0),
    ];
    let item = |(name, (key, figure), billing_hours, count, before): (
        &str,
        (&'static str, f64),
        _,
        _,
        _,
    )| {
        let rule = rule::find(name)?.id();
        let columns = vec![
            always("user", "User"),
            always(key, "Hours"),
            always("cpu_efficiency_percent", "CPU efficiency %"),
            always("jobs", "Jobs"),
        ];
        let row = vec![
            Cell::text("ada"),
            Cell::Number(figure),
            Cell::Share(0.48),
            Cell::Count(count as u64),
        ];
        Some(Item {
            instance: name.to_owned(),
            rule,
            cluster: "tuxedo".to_owned(),
            part: None,
            totals: sheet("findings", columns, vec![row]),
            jobs: if key == "cpu_hours" { cpu_jobs(count) } else { jobs(count) },
            billing_hours,
            before,
        })
    };
    Digest {
        user: "ada".to_owned(),
        from: "2026-11-09".to_owned(),
        to: "2026-11-15".to_owned(),
        items: items.into_iter().filter_map(item).collect(),
    }
}

fn account(used: f64) -> Account {
    let figures = [
        ("limit", Cell::Number(10_000.0)),
        ("used", Cell::Number(used)),
        ("left", Cell::Number(10_000.0 - used)),
        ("percent", Cell::Share(used / 10_000.0)),
        ("start", Cell::text("2026-03-01")),
        ("end", Cell::text("2027-03-01")),
        ("per_day", Cell::Number(61.4)),
        ("exhausted", Cell::text("2027-01-18")),
        ("before_end", Cell::text("yes")),
        ("held_on", Cell::text("tuxedo, penguin")),
        ("over", Cell::Missing),
        ("is_unlimited", Cell::Missing),
        ("running_go_on", Cell::text("yes")),
        ("running_end", Cell::Missing),
        ("new_are_refused", Cell::Missing),
        ("end_is_enforced", Cell::text("yes")),
        ("month", Cell::text("2026-10")),
    ];
    let columns = vec![
        always("su_limit_hrs", "Limit, SU"),
        always("used_sus", "Used, SU"),
        always("left_sus", "Left, SU"),
        always("sus_per_day", "Daily, SU"),
        always("start", "From"),
        always("end", "To"),
    ];
    let mut row: Vec<Cell> = [10_000.0, used, 10_000.0 - used, 61.4].map(Cell::Number).into();
    row.extend(["2026-03-01", "2027-03-01"].map(Cell::text));
    Account { figures: figures.into(), sheet: sheet("balance", columns, vec![row]) }
}

fn month() -> Sheet {
    let columns = vec![
        always("account", "Account"),
        always("before_sus", "Before, SU"),
        always("granted_sus", "Granted"),
        always("charged_sus", "Charged"),
        always("after_sus", "After, SU"),
    ];
    let mut row = vec![Cell::text("astro-lab")];
    row.extend([5_220.0, 500.0, -1_900.5, 3_819.5].map(Cell::Number));
    sheet("statement", columns, vec![row])
}

fn sheet(name: &'static str, columns: Vec<Column>, rows: Vec<Vec<Cell>>) -> Sheet {
    let none: [&(); 0] = [];
    let mut sheet = Sheet::new(name, name, &[], none);
    (sheet.columns, sheet.rows) = (columns, rows);
    sheet
}

const NAMES: [&str; 5] = ["train-resnet", HOSTILE, "évaluation", "計算", "sweep-lr-0.01"];

fn first_columns() -> Vec<Column> {
    vec![
        always("user", "User"),
        always("job", "Job"),
        program("cluster"),
        drop(2, "partition", "Partition"),
        drop(3, "state", "State"),
        drop(30, "name", "Name"),
    ]
}

fn first_cells(at: usize) -> Vec<Cell> {
    let mut cells = vec![Cell::text("ada"), Cell::text((814_200 + at * 7).to_string())];
    cells.extend(["tuxedo", "gpu", "COMPLETED"].map(Cell::text));
    cells.push(Cell::text(NAMES.get(at % NAMES.len()).copied().unwrap_or_default()));
    cells
}

fn jobs(count: usize) -> Sheet {
    let mut columns = first_columns();
    columns.extend([
        always("gpus", "GPUs"),
        always("gpus_idle", "GPUs idle"),
        drop(13, "gpu_hours_idle", "GPU hours idle"),
        drop(14, "share_idle_percent", "Share idle %"),
        always("billing_hours_wasted", "Billing h wasted"),
    ]);
    let row = |at: usize| {
        let hours = 620.0 / (1.0 + at as f64 * 0.6);
        let mut row = first_cells(at);
        row.extend([Cell::Count(4), Cell::Count(3), Cell::Number(hours / 2.0), Cell::Share(0.75)]);
        // Of one job nobody knows what it cost.
        row.push(if at == 4 { Cell::Missing } else { Cell::Number(hours) });
        row
    };
    sheet("jobs", columns, (0..count).map(row).collect())
}

fn cpu_jobs(count: usize) -> Sheet {
    let mut columns = first_columns();
    columns.extend([
        always("cpu_hours", "CPU hours"),
        always("cpu_efficiency_percent", "CPU efficiency %"),
        always("billing_hours_wasted", "Billing h wasted"),
    ]);
    let row = |at: usize| {
        let hours = 1400.0 - 210.0 * at as f64;
        let mut row = first_cells(at + 60);
        row.extend([Cell::Number(hours), Cell::Share(0.42 + 0.03 * at as f64)]);
        row.push(Cell::Number(hours * 0.55));
        row
    };
    sheet("jobs", columns, (0..count).map(row).collect())
}

fn idle() -> Section {
    let columns = vec![
        always("job", "Job"),
        drop(1, "name", "Name"),
        always("gpus", "GPUs"),
        always("hours", "Hours"),
        always("stage", "Stage"),
    ];
    let row = vec![
        Cell::text("814207"),
        Cell::text(HOSTILE),
        Cell::Count(4),
        Cell::Number(1.75),
        Cell::text("second-warning"),
    ];
    Section { sheet: Some(sheet("jobs", columns, vec![row])), ..Section::default() }
}
