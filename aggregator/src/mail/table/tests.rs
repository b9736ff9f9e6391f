use super::*;
use crate::output::sheet::{always, drop, program};

fn words() -> Words {
    Words::read(include_str!("../../../templates/en/words.toml"), None).unwrap().0
}

fn sheet(columns: Vec<Column>, rows: Vec<Vec<Cell>>) -> Sheet {
    let none: [&(); 0] = [];
    let mut sheet = Sheet::new("jobs", "Jobs", &[], none);
    (sheet.columns, sheet.rows) = (columns, rows);
    sheet
}

#[test]
fn text_stands_in_columns_whatever_characters_it_has() {
    let columns =
        vec![always("job", "Job"), drop(30, "name", "Name"), always("gpu_hours", "GPU hours")];
    let row =
        |job: &str, name: &str, hours| vec![Cell::text(job), Cell::text(name), Cell::Number(hours)];
    let rows = vec![row("1", "計算", 1.25), row("1234", "x\u{1b}[2J", 100.0)];
    let table = table(&sheet(columns, rows), &words(), &[]);
    assert_eq!(
        table.text,
        "                  GPU\nJob   Name      hours\n----  --------  -----\n\
         1     計算        1.2\n1234  x\\x1b[2J  100.0\n"
    );
    assert_eq!(table.rows[1], ["1234", "x\\x1b[2J", "100.0"]);
    assert_eq!(table.columns.iter().map(|one| one.right).collect::<Vec<_>>(), [false, false, true]);
}

#[test]
fn ten_rows_and_the_columns_that_matter_are_shown() {
    let mut columns = vec![always("user", "User"), always("job", "Job"), program("cluster")];
    columns.extend([drop(2, "partition", "Partition"), drop(3, "state", "State")]);
    columns.push(drop(30, "name", "Name"));
    columns.extend((10..16).map(|rank| drop(rank, "cores", "A head of some length")));
    columns.push(always("billing_hours_wasted", "Billing h wasted"));
    let row = |at: u64| {
        let mut row = vec![Cell::text("ann"), Cell::text(at.to_string()), Cell::text("tux")];
        row.extend(
            ["a-long-partition", "COMPLETED", "a-name-that-is-longer-than-others"].map(Cell::text),
        );
        row.extend((0..6).map(|_| Cell::Count(1_000_000)));
        row.push(Cell::Number(at as f64));
        row
    };
    let table = table(&sheet(columns, (0..13).map(row).collect()), &words(), &["user"]);
    assert_eq!((table.rows.len(), table.left_out), (10, 3));
    let heads: Vec<&str> = table.columns.iter().map(|one| one.head.as_str()).collect();
    assert_eq!(heads.len(), COLUMNS);
    assert_eq!((heads[0], heads[1], heads[6]), ("Job", "Name", "Billing h unused"));
    assert_eq!(table.columns.iter().filter(|one| !one.minor).count(), NARROW);
    assert!(!heads.contains(&"Partition") && !heads.contains(&"User"), "{heads:?}");
    let widest = table.text.lines().map(width).max().unwrap();
    assert!((60..=WIDTH).contains(&widest), "{widest}\n{}", table.text);
}

#[test]
fn words_are_wrapped_and_none_is_lost() {
    assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
    assert_eq!(wrapped("incomprehensible a b", 4), ["incomprehensible", "a b"]);
    assert_eq!(wrapped("", 4), Vec::<String>::new());
}
