//! Values of a microprocess's own: `kyocho_key_*`, `kyocho_getspecific`, `kyocho_setspecific`.
//!
//! A key is a slot of a fixed table. Its *generation* is odd while it is in use; a value remembers the generation it was set
//! in, so a key that was deleted and made again finds no old values.
#![expect(unsafe_code, reason = "the border to C")]

use core::cell::RefCell;
use core::ffi::{c_int, c_void};
use core::ptr;

use kyocho_microprocess::{Microprocess, local};
use kyocho_sys::prim::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::error::{Code, Result, answer, caller};

/// As many as glibc has.
const KEYS_MAX: usize = 1024;
/// As often as POSIX wants it at least.
const ROUNDS_MAX: u32 = 4;

type Destructor = unsafe extern "C" fn(*mut c_void);

struct Key {
    generation: AtomicU32,
    /// A [`Destructor`], or null.
    destructor: AtomicPtr<()>,
}

static KEYS: [Key; KEYS_MAX] =
    [const { Key { generation: AtomicU32::new(0), destructor: AtomicPtr::new(ptr::null_mut()) } };
        KEYS_MAX];

/// A value, and the generation of its key; generation 0 is in no use.
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
fn generation(key: u32) -> Result<u32> {
    let generation = KEYS.get(key as usize).map(|key| key.generation.load(Ordering::Acquire));
    generation.filter(|generation| in_use(*generation)).ok_or(Code::INVALID)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_key_create(key: *mut u32, destructor: Option<Destructor>) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise: null or a place for a key.
        let place = unsafe { key.as_mut() }.ok_or(Code::INVALID)?;
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
        *place = index as u32;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_key_delete(key: u32) -> c_int {
    answer(|| {
        let generation = generation(key)?;
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        KEYS[key as usize]
            .generation
            .compare_exchange(generation, generation.wrapping_add(1), success, failure)
            .map(drop)
            .map_err(|_| Code::INVALID)
    })
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_setspecific(key: u32, value: *const c_void) -> c_int {
    answer(|| {
        let generation = generation(key)?;
        caller()?;
        VALUES.with_borrow_mut(|values| {
            let index = key as usize;
            if values.len() <= index {
                values.resize(index + 1, NEVER_SET);
            }
            values[index] = Value { generation, pointer: value.cast_mut() };
        });
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_getspecific(key: u32) -> *mut c_void {
    let Ok(generation) = generation(key) else { return ptr::null_mut() };
    if Microprocess::try_current().is_none() {
        return ptr::null_mut();
    }
    let value = VALUES.with_borrow(|values| values.get(key as usize).copied());
    match value {
        Some(value) if value.generation == generation => value.pointer,
        _ => ptr::null_mut(),
    }
}

/// Calls the destructors for the caller's values, again for values that those have set.
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

/// Takes the next value of the caller, from `key` on, that is to be destroyed; `key` is the one behind it then.
fn next_to_destroy(key: &mut usize) -> Option<(Destructor, *mut c_void)> {
    VALUES.with_borrow_mut(|values| {
        while let Some(place) = values.get_mut(*key) {
            let index = *key;
            *key += 1;
            let value = core::mem::replace(place, NEVER_SET);
            let destructor = KEYS[index].destructor.load(Ordering::Acquire);
            let valid = generation(index as u32) == Ok(value.generation);
            if valid && !value.pointer.is_null() && !destructor.is_null() {
                // SAFETY: stored by `kyocho_key_create`, from a function of this type.
                let destructor = unsafe { core::mem::transmute::<*mut (), Destructor>(destructor) };
                return Some((destructor, value.pointer));
            }
        }
        None
    })
}
