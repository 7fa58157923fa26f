//! The lower bound of a call on one core: two processes yield the core to each other, and a word
//! says which one may run. This is no usable call: nothing is checked, and both processes spin
//! instead of sleeping.

use std::ffi::CString;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::yield_now;

use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::shared_file::SharedFile;

use super::System;
use crate::pair::{ready, stay_on};
use crate::timing;

pub const SYSTEM: System = System { name: "floor", serve, call, many: None };

/// Twice the number of the last call; one more once it was answered.
fn turn(path: &Path) -> &'static AtomicU32 {
    let path = CString::new(path.as_os_str().as_encoded_bytes()).expect("no NUL in a path");
    let file = Box::leak(Box::new(SharedFile::open(&path, PAGE_BYTES).expect("a page")));
    let word: *const AtomicU32 = std::ptr::with_exposed_provenance(file.base());
    // SAFETY: the file stays mapped; its first word is aligned, and both sides touch it by atomic
    // instructions alone.
    unsafe { &*word }
}

fn await_value(turn: &AtomicU32, value: u32) {
    while turn.load(Ordering::Acquire) != value {
        yield_now();
    }
}

fn serve(path: &Path, cpu: usize, _size: usize) {
    stay_on(cpu);
    let turn = turn(path);
    ready();
    for number in (1..).step_by(2) {
        await_value(turn, number);
        turn.store(number + 1, Ordering::Release);
    }
}

fn call(path: &Path, _size: usize, calls: usize) -> Vec<f64> {
    let turn = turn(path);
    let mut number = 1;
    timing::each(calls, || {
        turn.store(number, Ordering::Release);
        await_value(turn, number + 1);
        number += 2;
    })
}
