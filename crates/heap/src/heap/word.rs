//! All accesses to the memory of Lisp objects: aligned words and bytes, read and written
//! atomically.
//!
//! Lisp threads run in parallel over one heap and may race on any field. With atomic accesses a
//! race yields an old or a new word, never a torn one and never undefined behaviour. On x86-64 each
//! access is a plain `mov`. Publishing stores are `Release` and loads are `Relaxed`. The address
//! that a reader uses depends on the word that it loaded, so a reader that sees an object's address
//! also sees its header.
//!
//! Invariant (from `value`): addresses passed here come from live `Value`s, free cells of a cache,
//! or ranges that the heap has reserved. All of them are in a heap's mapping.
#![expect(unsafe_code, reason = "the one place where heap addresses become pointers")]

use crate::heap::foreign::ForeignObject;
use crate::value::Value;
use core::ptr::with_exposed_provenance;
use kyocho_syntax::symbol::{Symbol, SymbolData};
use kyocho_sys::prim::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Bytes in a word.
pub(crate) const WORD_BYTES: usize = 8;

#[inline(always)]
fn word(address: usize) -> &'static AtomicU64 {
    debug_assert!(address.is_multiple_of(WORD_BYTES) && address != 0, "a heap word's address");
    // SAFETY: by the module's invariant `address` is an aligned word of mapped memory that is only
    // accessed atomically; the reference does not outlive the calling accessor.
    unsafe { &*with_exposed_provenance::<AtomicU64>(address) }
}

/// The word at `address`.
#[inline(always)]
pub(crate) fn load(address: usize) -> u64 {
    word(address).load(Ordering::Relaxed)
}

/// Writes a word of an object that no other thread can access yet.
#[inline(always)]
pub(crate) fn initialise(address: usize, new: u64) {
    word(address).store(new, Ordering::Relaxed);
}

/// Writes a word of an object that other threads may access. The object that `new` points to
/// becomes visible before the word.
#[inline(always)]
pub(crate) fn publish(address: usize, new: u64) {
    word(address).store(new, Ordering::Release);
}

/// Replaces `old` by `new`. The error is the word found instead of `old`.
#[inline]
pub(crate) fn exchange(address: usize, old: u64, new: u64) -> Result<u64, u64> {
    word(address).compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed)
}

/// Sets the bits of `mask`. Returns the word as it was.
#[inline]
pub(crate) fn set_bits(address: usize, mask: u64) -> u64 {
    word(address).fetch_or(mask, Ordering::Acquire)
}

/// Clears the bits of `mask`.
#[inline]
pub(crate) fn clear_bits(address: usize, mask: u64) {
    word(address).fetch_and(!mask, Ordering::Release);
}

#[inline(always)]
fn byte(address: usize) -> &'static AtomicU8 {
    // SAFETY: as for `word`; a byte needs no alignment.
    unsafe { &*with_exposed_provenance::<AtomicU8>(address) }
}

/// The byte at `address`.
#[inline(always)]
pub(crate) fn load_byte(address: usize) -> u8 {
    byte(address).load(Ordering::Relaxed)
}

/// Writes the byte at `address`.
#[inline(always)]
pub(crate) fn store_byte(address: usize, new: u8) {
    byte(address).store(new, Ordering::Relaxed);
}

#[inline(always)]
fn quarter(address: usize) -> &'static AtomicU32 {
    debug_assert!(address.is_multiple_of(4), "a wide character's address");
    // SAFETY: as for `word`; the address is a multiple of four.
    unsafe { &*with_exposed_provenance::<AtomicU32>(address) }
}

/// The four bytes at `address`: a wide character.
#[inline(always)]
pub(crate) fn load_quarter(address: usize) -> u32 {
    quarter(address).load(Ordering::Relaxed)
}

/// Writes the four bytes at `address`.
#[inline(always)]
pub(crate) fn store_quarter(address: usize, new: u32) {
    quarter(address).store(new, Ordering::Relaxed);
}

/// The symbol that `value` points to; `None` if it is not a symbol.
#[inline]
pub(crate) fn symbol_at(value: Value) -> Option<Symbol> {
    if !value.is_symbol() {
        return None;
    }
    // SAFETY: a value with the symbol tag was made from a `&'static SymbolData`.
    Some(Symbol::from_data(unsafe { &*with_exposed_provenance::<SymbolData>(value.address()) }))
}

/// Moves a foreign object into a word, which owns it until `foreign_take`.
pub(crate) fn foreign_into_word(object: Box<dyn ForeignObject>) -> u64 {
    Box::into_raw(Box::new(object)).expose_provenance() as u64
}

/// The foreign object of a word that `foreign_into_word` returned. Valid while the caller keeps the
/// Lisp object alive: until its next safepoint.
pub(crate) fn foreign_at<'a>(word: u64) -> Option<&'a dyn ForeignObject> {
    // SAFETY: a non-zero payload of a foreign object is the address of a leaked
    // `Box<dyn ForeignObject>`. Only `foreign_take` ends the leak. The heap calls it when it is
    // dropped, and for objects that are unreachable while the world is stopped, which it is only at
    // safepoints. Until its next safepoint, the caller of this function keeps the object reachable
    // and the heap alive.
    let object =
        unsafe { with_exposed_provenance::<Box<dyn ForeignObject>>(word as usize).as_ref() };
    object.map(|object| &**object)
}

/// Takes a foreign object back. Each word is taken once, because the caller removes the Lisp object
/// from the heap's list of Rust objects.
pub(crate) fn foreign_take(word: u64) -> Option<Box<dyn ForeignObject>> {
    if word == 0 {
        return None;
    }
    let object = core::ptr::with_exposed_provenance_mut::<Box<dyn ForeignObject>>(word as usize);
    // SAFETY: the word came from `Box::into_raw`, and each word is taken only once.
    Some(*unsafe { Box::from_raw(object) })
}
