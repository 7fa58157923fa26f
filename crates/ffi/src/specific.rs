//! Microprocess-specific values: a table of keys, and the values of each microprocess.
//!
//! A key is a slot of a fixed table. Its *generation* is odd while the key is in use. A value
//! records the generation it was set in, so a key that was deleted and created again finds no old
//! values.
#![expect(unsafe_code, reason = "calls destructors of C")]

use core::cell::RefCell;
use core::ffi::c_void;
use core::ptr;

use kyocho_microprocess::local;
use kyocho_sys::prim::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::error::{Code, Result};

/// As many keys as glibc has.
const KEYS_MAX: usize = 1024;
/// The minimum that POSIX requires.
const ROUNDS_MAX: u32 = 4;

pub(crate) type Destructor = unsafe extern "C" fn(*mut c_void);

struct Key {
    generation: AtomicU32,
    /// A [`Destructor`], or null.
    destructor: AtomicPtr<()>,
}

static KEYS: [Key; KEYS_MAX] =
    [const { Key { generation: AtomicU32::new(0), destructor: AtomicPtr::new(ptr::null_mut()) } };
        KEYS_MAX];

/// A value, and the generation of its key. Generation 0 is never in use.
#[derive(Debug, Clone, Copy)]
struct Value {
    generation: u32,
    pointer: *mut c_void,
}

const NEVER_SET: Value = Value { generation: 0, pointer: ptr::null_mut() };

local! {
    static VALUES: RefCell<Vec<Value>> = const { RefCell::new(Vec::new()) };
}

const fn in_use(generation: u32) -> bool {
    generation % 2 == 1
}

/// The generation of a key that is in use.
pub(crate) fn generation(key: u32) -> Result<u32> {
    let generation = KEYS.get(key as usize).map(|key| key.generation.load(Ordering::Acquire));
    generation.filter(|generation| in_use(*generation)).ok_or(Code::INVALID)
}

/// Takes a free key for values that `destructor` destroys.
///
/// # Errors
/// `EAGAIN`: all [`KEYS_MAX`] keys are in use.
pub(crate) fn create(destructor: Option<Destructor>) -> Result<u32> {
    let free = |key: &Key| {
        let generation = key.generation.load(Ordering::Relaxed);
        let taken = generation.wrapping_add(1);
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        !in_use(generation)
            && key.generation.compare_exchange(generation, taken, success, failure).is_ok()
    };
    let index = KEYS.iter().position(free).ok_or(Code::AGAIN)?;
    let destructor =
        destructor.map_or(ptr::null_mut(), |function| (function as *const ()).cast_mut());
    KEYS[index].destructor.store(destructor, Ordering::Release);
    Ok(index as u32)
}

/// Frees a key. Its values stay where they are; no destructor is called for them.
///
/// # Errors
/// `EINVAL`: the key is not in use.
pub(crate) fn delete(key: u32) -> Result<()> {
    let generation = generation(key)?;
    let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
    KEYS[key as usize]
        .generation
        .compare_exchange(generation, generation.wrapping_add(1), success, failure)
        .map(drop)
        .map_err(|_| Code::INVALID)
}

/// Sets the calling microprocess's value of the key with this generation.
pub(crate) fn set(key: u32, generation: u32, pointer: *mut c_void) {
    VALUES.with_borrow_mut(|values| {
        let index = key as usize;
        if values.len() <= index {
            values.resize(index + 1, NEVER_SET);
        }
        values[index] = Value { generation, pointer };
    });
}

/// The calling microprocess's value of the key with this generation; null if it has set none.
pub(crate) fn get(key: u32, generation: u32) -> *mut c_void {
    let value = VALUES.with_borrow(|values| values.get(key as usize).copied());
    match value {
        Some(value) if value.generation == generation => value.pointer,
        _ => ptr::null_mut(),
    }
}

/// Calls the destructors of the caller's values. Repeats this for values that destructors have set.
pub(crate) fn run_destructors() {
    for _ in 0..ROUNDS_MAX {
        let mut called = false;
        let mut key = 0;
        while let Some((destructor, value)) = next_to_destroy(&mut key) {
            called = true;
            // SAFETY: C passed the function for values of this key.
            unsafe { destructor(value) };
        }
        if !called {
            return;
        }
    }
}

/// Takes the caller's next value to be destroyed, searching from `key` on. Sets `key` to the key
/// after it.
fn next_to_destroy(key: &mut usize) -> Option<(Destructor, *mut c_void)> {
    VALUES.with_borrow_mut(|values| {
        while let Some(place) = values.get_mut(*key) {
            let index = *key;
            *key += 1;
            let value = core::mem::replace(place, NEVER_SET);
            let destructor = KEYS[index].destructor.load(Ordering::Acquire);
            let valid = generation(index as u32) == Ok(value.generation);
            if valid && !value.pointer.is_null() && !destructor.is_null() {
                // SAFETY: stored by `create`, from a function of this type.
                let destructor = unsafe { core::mem::transmute::<*mut (), Destructor>(destructor) };
                return Some((destructor, value.pointer));
            }
        }
        None
    })
}
