//! Accounts alone: counting, charging, settling.

use super::{Account, Bounds, Countable};

fn account(memory_bytes_max: usize) -> std::sync::Arc<Account> {
    let bounds = Bounds { memory_bytes_max, threads_max: 2, ..Bounds::NONE };
    Account::new("eva", bounds)
}

#[test]
fn held_units_are_returned_on_drop() {
    let account = account(1000);
    let first = account.hold(Countable::Threads).unwrap();
    let _second = account.hold(Countable::Threads).unwrap();
    let error = account.hold(Countable::Threads).unwrap_err();
    assert_eq!(error.to_string(), "too many threads: eva may have 2");
    assert_eq!(account.usage().threads, 2);
    drop(first);
    account.hold(Countable::Threads).unwrap();
    assert_eq!(account.usage().threads, 1);
}

#[test]
fn a_charge_beyond_the_bound_takes_nothing() {
    let account = account(1000);
    account.charge(900, true).unwrap();
    account.charge(200, true).unwrap_err();
    assert_eq!(account.room_bytes(), 100);
    account.refund(400);
    account.charge(200, true).unwrap();
    assert_eq!(account.usage().taken_bytes, 700);
}

#[test]
fn memory_is_kept_for_handlers() {
    let account = account(16_000);
    account.charge(15_500, false).unwrap_err();
    account.charge(15_200, false).unwrap();
    account.charge(500, false).unwrap_err();
    account.charge(500, true).unwrap();
    account.settle(15_700, usize::MAX);
    assert!(account.is_exhausted(), "after the first refusal");
}

#[test]
fn reserved_memory_is_charged_while_it_is_held() {
    let account = account(1000);
    let mut first = account.reserve(200).unwrap();
    assert_eq!(account.room_bytes(), 800);
    let error = account.reserve(51).unwrap_err();
    assert_eq!(error.to_string(), "out of memory: pending requests of eva may take 250 bytes");
    first.resize(251).unwrap_err();
    first.resize(250).unwrap();
    // A collection does not free it.
    account.settle(0, usize::MAX);
    assert_eq!(account.room_bytes(), 750);
    account.reserve(usize::MAX).unwrap_err();
    first.resize(10).unwrap();
    let second = account.reserve(240).unwrap();
    drop(first);
    assert_eq!(account.room_bytes(), 760);
    drop(second);
    assert_eq!(account.room_bytes(), 1000);
    account.settle(1000, usize::MAX);
    let _heard = account.reserve(250).expect("an exhausted account can still receive");
}

#[test]
fn a_collection_measures_live_bytes() {
    let account = account(1000);
    account.charge(1000, true).unwrap();
    account.settle(300, usize::MAX);
    assert_eq!(account.room_bytes(), 700);
    assert!(!account.is_exhausted());
    account.settle(990, usize::MAX);
    assert!(account.is_exhausted());
}

#[test]
fn collections_that_one_account_causes_are_spaced() {
    let account = account(1000);
    account.may_collect(100, 10).unwrap();
    assert_eq!(account.may_collect(150, 10), Err(190));
    account.may_collect(190, 10).unwrap();
}
