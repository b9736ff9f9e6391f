//! Accounts of the bank, for Prometheus.

use std::fmt;

use steward_common::bank::{Day, Standing, Units};
use steward_common::exposition::{header, line};
use steward_common::metric::{MetricDef, bank};

use crate::bank::view::View;

/// Values of one metric, with their labels.
type Values<'a> = Vec<(Vec<&'a str>, f64)>;

/// A page about the last check.
///
/// # Errors
/// Writing to a string does not fail.
pub fn page(views: &[View], unbanked: usize, troubles: usize) -> Result<String, fmt::Error> {
    let mut out = String::new();
    let mut put = |def: &MetricDef, values: Values<'_>| -> fmt::Result {
        header(&mut out, def)?;
        values.iter().try_for_each(|(labels, value)| line(&mut out, def, labels, *value))
    };
    let each = |value: &dyn Fn(&View) -> Option<f64>| -> Values<'_> {
        let one = |view| Some((vec![name(view)], value(view)?));
        views.iter().filter_map(one).collect()
    };
    put(&bank::BANK_ACCOUNTS, vec![(vec![], count(views.len()))])?;
    put(&bank::BANK_CHARGED, each(&|view| Some(view.account.totals().charged.hours())))?;
    put(&bank::BANK_END, each(&|view| Some(seconds(view.account.end))))?;
    put(&bank::BANK_EXHAUSTED, each(&|view| view.forecast?.exhausted.map(seconds)))?;
    let clusters = views.iter().flat_map(|view| {
        let used = view.used.iter().flat_map(|used| used.keys());
        used.map(move |cluster| {
            let held = view.held().any(|held| held == cluster);
            (vec![name(view), cluster.as_str()], f64::from(u8::from(held)))
        })
    });
    put(&bank::BANK_HELD, clusters.collect())?;
    let left = |view: &View| view.standing.as_ref().and_then(Standing::left);
    put(&bank::BANK_LEFT, each(&|view| left(view).map(Units::hours)))?;
    put(&bank::BANK_LIMIT, each(&|view| view.account.limit().at().map(Units::hours)))?;
    let told = views.iter().flat_map(|view| {
        let told = view.account.told;
        let flags =
            [("lower", told.lower), ("upper", told.upper), ("over", told.over), ("end", told.end)];
        flags.map(|(level, is)| (vec![name(view), level], f64::from(u8::from(is))))
    });
    put(&bank::BANK_TOLD, told.collect())?;
    put(&bank::BANK_TROUBLES, vec![(vec![], count(troubles))])?;
    put(&bank::BANK_UNBANKED, vec![(vec![], count(unbanked))])?;
    let used = views.iter().flat_map(|view| {
        let used = view.used.iter().flatten();
        used.filter_map(move |(cluster, used)| {
            Some((vec![name(view), cluster.as_str()], (*used)?.hours()))
        })
    });
    put(&bank::BANK_USED, used.collect())?;
    Ok(out)
}

fn name(view: &View) -> &str {
    &view.account.name
}

#[allow(clippy::cast_precision_loss, reason = "Prometheus has only floating point")]
fn count(number: usize) -> f64 {
    number as f64
}

#[allow(clippy::cast_precision_loss, reason = "Prometheus has only floating point")]
fn seconds(day: Day) -> f64 {
    day.number() as f64 * 86_400.0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use steward_common::bank::{Account, Levels, Told, Totals};
    use steward_common::time::Timestamp;

    use super::*;

    #[test]
    fn what_nobody_said_is_absent_and_not_0() {
        let start: Day = "2026-11-16".parse().unwrap();
        let totals = Totals { granted: Units::new(36_000), charged: Units::new(3600) };
        let account = Account {
            name: "phy\"sics".into(),
            unlimited: false,
            start,
            end: start.plus(365).unwrap(),
            told: Told { lower: true, upper: true, ..Told::default() },
            made: Timestamp::new(0),
            parts: [(None, totals)].into(),
        };
        let view = |used: Option<i64>| {
            let used: BTreeMap<_, _> = [("c1".to_owned(), used.map(Units::new))].into();
            let standing = Standing::new(&account.allocation(), &used, &Levels::default());
            let (used, standing) = (Some(used), Some(standing));
            let (account, below) = (account.clone(), BTreeMap::new());
            View { account, used, below, standing, holds: Vec::new(), forecast: None }
        };
        let known = page(&[view(Some(9000))], 3, 0).unwrap();
        for line in [
            "steward_bank_left_units{account=\"phy\\\"sics\"} 7.5",
            "steward_bank_used_units{account=\"phy\\\"sics\",cluster=\"c1\"} 2.5",
            "steward_bank_limit_units{account=\"phy\\\"sics\"} 10",
            "steward_bank_charged_units{account=\"phy\\\"sics\"} 1",
            "steward_bank_level_told{account=\"phy\\\"sics\",level=\"lower\"} 1",
            "steward_bank_level_told{account=\"phy\\\"sics\",level=\"upper\"} 1",
            "steward_bank_level_told{account=\"phy\\\"sics\",level=\"over\"} 0",
            "steward_bank_level_told{account=\"phy\\\"sics\",level=\"end\"} 0",
            "steward_bank_unbanked_accounts 3",
        ] {
            assert!(known.lines().any(|one| one == line), "{line}\n{known}");
        }
        let silent = page(&[view(None)], 0, 1).unwrap();
        assert!(!silent.contains("left_units{") && !silent.contains("used_units{"), "{silent}");
        assert!(silent.contains("steward_bank_troubles 1"));
    }
}
