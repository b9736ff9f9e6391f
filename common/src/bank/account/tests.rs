use super::*;

fn hours(hours: i64) -> Units {
    Units::of_hours(hours).unwrap()
}

fn day(text: &str) -> Day {
    text.parse().unwrap()
}

/// What becomes of an account by a change.
fn after(account: Account, change: &Change) -> Account {
    account.after(change)
}

fn account(limit: Limit<Units>) -> Account {
    let (start, end) = period(day("2026-01-01"), 365).unwrap();
    let told = Told { lower: true, upper: true, over: true, end: true };
    let name = "test1".to_owned();
    let made = Timestamp::new(0);
    let bare = Account { name, unlimited: false, start, end, told, made, parts: BTreeMap::new() };
    after(bare, &opening(None, limit))
}

fn with(limit: i64) -> Account {
    account(Limit::At(hours(limit)))
}

#[test]
fn b3_adding_keeps_the_date_and_clears_the_flags() {
    let before = with(10_000);
    let change = before.give(None, hours(500), Kind::Grant, None).unwrap();
    let after = after(before.clone(), &change);
    assert_eq!(after.limit(), Limit::At(hours(10_500)));
    assert_eq!(after.start, before.start);
    assert_eq!(after.told, Told { end: true, ..Told::default() });
}

#[test]
fn a_new_limit_is_an_entry_of_the_difference() {
    let before = with(10_000);
    let today = day("2026-06-01");
    let change = before.modify(None, Limit::At(hours(4_000)), today, 365).unwrap();
    assert_eq!(change.lines[0].amount, hours(-6_000));
    let modified = after(before.clone(), &change);
    assert_eq!((modified.limit(), modified.start), (Limit::At(hours(4_000)), today));
    assert_eq!(modified.told, Told::default());
    let kept = after(before.clone(), &before.set(None, Limit::At(hours(4_000))).unwrap());
    assert_eq!((kept.limit(), kept.start), (Limit::At(hours(4_000)), before.start));
    // Without a limit and back.
    let free = after(kept.clone(), &kept.set(None, Limit::Unlimited).unwrap());
    assert_eq!(free.limit(), Limit::Unlimited);
    let bound = after(free.clone(), &free.set(None, Limit::At(hours(7))).unwrap());
    assert_eq!(bound.limit(), Limit::At(hours(7)));
    assert_eq!(
        free.give(None, hours(1), Kind::Grant, None),
        Err(Refused::Unlimited("test1".into()))
    );
    assert_eq!(kept.set(Some("c1"), Limit::Unlimited), Err(Refused::UnlimitedPart));
}

#[test]
fn no_more_is_taken_than_there_is() {
    let before = with(100);
    let left = after(before.clone(), &before.withdraw(None, hours(100)).unwrap());
    assert_eq!(left.limit(), Limit::At(Units::ZERO));
    let refused = before.withdraw(None, hours(101)).unwrap_err();
    assert!(matches!(refused, Refused::TooLittle { .. }) && !refused.is_bad_input());
    assert!(matches!(before.withdraw(Some("c1"), hours(1)), Err(Refused::TooLittle { .. })));
}

#[test]
fn what_jobs_used_cannot_be_transferred_and_no_unit_is_lost() {
    let mut to = with(5);
    to.name = "test2".to_owned();
    let from = with(100);
    let used = Account::charge("c1", day("2026-02-01"), hours(60), Units::ZERO).unwrap();
    let from = after(from, &used);
    let none = Usage::new();
    // Slurm counts at once what the ledger has tomorrow.
    let counted = Usage::from([("c1".to_owned(), Some(hours(70)))]);
    assert!(matches!(from.transfer(&to, hours(31), &counted), Err(Refused::TooLittle { .. })));
    assert!(from.transfer(&to, hours(30), &counted).is_ok());
    assert!(matches!(from.transfer(&to, hours(41), &none), Err(Refused::TooLittle { .. })));
    let (away, there) = from.transfer(&to, hours(40), &none).unwrap();
    let (from, to) = (after(from, &away), after(to, &there));
    assert_eq!((from.limit(), to.limit()), (Limit::At(hours(60)), Limit::At(hours(45))));
    assert_eq!(from.totals().balance(), Units::ZERO);
    assert!(matches!(from.transfer(&from, hours(1), &none), Err(Refused::Same(_))));
}

#[test]
fn a_day_is_charged_once_and_corrected_by_the_difference() {
    let (c1, today) = ("c1", day("2026-02-01"));
    let first = Account::charge(c1, today, Units::new(500), Units::ZERO).unwrap();
    assert_eq!(first.lines[0].amount, Units::new(-500));
    assert_eq!(Account::charge(c1, today, Units::new(500), Units::new(500)), None);
    let late = Account::charge(c1, today, Units::new(700), Units::new(500)).unwrap();
    assert_eq!(late.lines[0].amount, Units::new(-200));
}

#[test]
fn a_renewal_begins_with_its_grant_and_no_use() {
    let before = with(100);
    let own = before.give(Some("c2"), hours(10), Kind::Grant, None).unwrap();
    let before = after(before, &own);
    let used = Account::charge("c1", day("2026-02-01"), hours(60), Units::ZERO).unwrap();
    let before = after(before, &used);
    assert_eq!(before.totals().balance(), hours(50));
    let change = before.renew(Limit::At(hours(70)), day("2026-12-31"), 365).unwrap();
    assert!(change.reset);
    let renewed = after(before, &change);
    assert_eq!(renewed.limit(), Limit::At(hours(80)), "with the part of c2");
    assert_eq!(renewed.totals().balance(), hours(80));
    assert_eq!(renewed.end, day("2027-12-31"));
}

#[test]
fn the_ledger_charges_anew_from_a_renewal_on_even_if_nothing_was_charged_before() {
    let before = with(100);
    let change = before.renew(Limit::At(hours(70)), day("2026-12-31"), 365).unwrap();
    assert!(change.lines.iter().any(|line| line.kind == Kind::Reset), "{change:?}");
    assert_eq!(after(before, &change).totals().balance(), hours(70));
}

#[test]
fn b19_an_account_without_limit_keeps_that_at_the_end() {
    let free = account(Limit::Unlimited);
    let today = free.start.plus(400).unwrap();
    let change = free.expire(hours(1), today, 365).unwrap().unwrap();
    let next = after(free, &change);
    assert_eq!((next.limit(), next.start, change.reset), (Limit::Unlimited, today, true));
    let nothing = with(10);
    let nothing = after(nothing.clone(), &nothing.withdraw(None, hours(10)).unwrap());
    let change = nothing.expire(hours(1), today, 365).unwrap().unwrap();
    assert_eq!(after(nothing, &change).limit(), Limit::At(Units::ZERO));
}

#[test]
fn what_was_granted_expires_after_the_last_day() {
    let before = with(10_000);
    assert_eq!(before.expire(hours(1), before.end, 365), Ok(None), "365 days are not more");
    let today = before.end.plus(1).unwrap();
    let change = before.expire(hours(1), today, 365).unwrap().unwrap();
    let next = after(before.clone(), &change);
    assert_eq!((next.limit(), next.start), (Limit::At(hours(1)), today));
    assert_eq!((next.told, change.reset), (Told::default(), true));
    let own = before.give(Some("c2"), hours(10), Kind::Grant, None).unwrap();
    let before = after(before, &own);
    let change = before.expire(hours(1), today, 365).unwrap().unwrap();
    assert_eq!(after(before, &change).limit(), Limit::At(hours(1)), "the part of c2 ends too");
}

#[test]
fn the_end_is_told_once_within_ninety_days() {
    let mut account = with(10);
    account.told = Told::default();
    let before = |days: i64| account.end.plus(-days).unwrap();
    assert!(!account.ends_soon(before(91), 90));
    assert!(account.ends_soon(before(90), 90) && account.ends_soon(before(12), 90));
    assert!(!account.ends_soon(before(-1), 90));
    account.told.end = true;
    assert!(!account.ends_soon(account.end, 90));
}

#[test]
fn sums_that_cannot_be_counted_are_refused() {
    let rich = with(1_000_000_000_000);
    let refused = rich.give(None, hours(1), Kind::Grant, None).unwrap_err();
    assert_eq!(refused, Refused::TooMuch("test1".into()));
    assert!(refused.is_bad_input());
    assert!(period(day("9999-12-31"), 365).is_err());
}
