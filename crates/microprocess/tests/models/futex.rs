//! The kernel's futexes: a table of sleepers under one lock, by the address of the word.
//!
//! As in the kernel, reading the word and falling asleep are one step for a waker. A deadline never
//! passes by itself.

use loom::sync::{Condvar, Mutex};

use crate::prim::atomic::{AtomicU32, Ordering};

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    Woken,
    Changed,
    TimedOut,
}

/// The numbers of sleepers by word, and of those that have been woken.
#[derive(Default)]
struct Table {
    asleep: Vec<(usize, u32)>,
    woken: Vec<u32>,
    last: u32,
}

loom::lazy_static! {
    static ref TABLE: Mutex<Table> = Mutex::new(Table::default());
    static ref WAKES: Condvar = Condvar::new();
}

fn address(word: &AtomicU32) -> usize {
    core::ptr::from_ref(word).addr()
}

pub fn wait(word: &AtomicU32, expected: u32, _deadline_ns: Option<u64>) -> Wait {
    let mut table = TABLE.lock().unwrap();
    // An addition sees the last store. So does the kernel's read, if the waker came before it; a
    // load of loom's may see an older value.
    if word.fetch_add(0, Ordering::Relaxed) != expected {
        return Wait::Changed;
    }
    table.last += 1;
    let me = table.last;
    table.asleep.push((address(word), me));
    while !table.woken.contains(&me) {
        table = WAKES.wait(table).unwrap();
    }
    table.woken.retain(|&number| number != me);
    Wait::Woken
}

/// In models, processes are threads.
pub fn wait_shared(word: &AtomicU32, expected: u32, deadline_ns: Option<u64>) -> Wait {
    wait(word, expected, deadline_ns)
}

pub fn wake_shared(word: &AtomicU32, count: u32) -> u32 {
    wake(word, count)
}

pub fn wake(word: &AtomicU32, count: u32) -> u32 {
    let mut table = TABLE.lock().unwrap();
    let mut woken = 0;
    while woken < count {
        let Some(at) = table.asleep.iter().position(|&(at, _)| at == address(word)) else { break };
        let (_, number) = table.asleep.remove(at);
        table.woken.push(number);
        woken += 1;
    }
    WAKES.notify_all();
    woken
}
