//! Report `usage-by-account`: which accounts, and whose jobs, use a partition.

use super::table::{Field, column};
use super::usage::{Level, Row, rows};
use super::usage_overview::{FIGURES, within};
use super::{Ask, Needs, Report, Table, Value, View, Weight};

/// The report.
pub const REPORT: Report = Report {
    about: "CPU- and GPU-hours held in each partition, by account and by user",
    needs: Needs::Accounting,
    make,
};

fn make(views: &[View<'_>], ask: &Ask) -> Vec<Table> {
    let account: Field<Row> = (column("account", "Account", Weight::Always), |row| within(row, 1));
    let user: Field<Row> = (column("user", "User", Weight::Always), |row| within(row, 2));
    let rest: [Field<Row>; 2] = [
        (column("partition", "Partition", Weight::Always), |row| within(row, 0)),
        (column("cluster", "Cluster", Weight::Drop(2)), |row| Value::text(&row.cluster)),
    ];
    let fields = |first: &[Field<Row>]| -> Vec<Field<Row>> {
        first.iter().chain(&rest).chain(&FIGURES).cloned().collect()
    };
    let note = "% is of the partition. Hours are those held in the window: a job over its border is \
                divided.";
    let by_account = rows(views, ask, Level::Account);
    let mut accounts = Table::new(
        "accounts",
        "Use by account",
        &fields(std::slice::from_ref(&account)),
        &by_account,
    );
    let by_user = rows(views, ask, Level::User);
    let mut users =
        Table::new("users", "Use by account and user", &fields(&[user, account]), &by_user);
    // It is one user a line.
    users.columns.iter_mut().filter(|column| column.key == "users").for_each(|column| {
        column.weight = Weight::Program;
    });
    for table in [&mut accounts, &mut users] {
        table.top = 20;
        table.notes.push(note.to_owned());
    }
    vec![accounts, users]
}
