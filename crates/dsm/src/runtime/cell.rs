//! Elements that several threads of one node may access at once.
#![expect(unsafe_code, reason = "reads and writes words that other threads share")]

use core::cell::{Cell, UnsafeCell};
use core::fmt;
use core::marker::PhantomData;

use bytemuck::Pod;
use kyocho_sys::prim::atomic::unmodelled::{AtomicU32, Ordering};

/// An element of a shared array, shared by the threads of a node. Each word of 4 bytes is read and
/// written by one plain instruction, without ordering. Locks and barriers of shared memory order
/// accesses.
#[repr(transparent)]
pub struct SharedCell<T> {
    element: UnsafeCell<T>,
    // A fault is handled on the thread that was prepared for it, so a reference to this stays on
    // its thread.
    _here: PhantomData<Cell<T>>,
}

impl<T: Pod + fmt::Debug> fmt::Debug for SharedCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedCell").field(&self.get()).finish()
    }
}

impl<T: Pod> SharedCell<T> {
    const WORDS: usize = {
        assert!(align_of::<T>() >= 4, "elements of whole words");
        size_of::<T>() / 4
    };

    fn words(&self) -> &[AtomicU32] {
        // SAFETY: the element is plain data of whole, aligned words (asserted), and is touched as
        // such words alone.
        unsafe { core::slice::from_raw_parts(self.element.get().cast(), Self::WORDS) }
    }

    /// The value. If another thread writes at the same time, each word is the old one or the new
    /// one.
    #[must_use]
    pub fn get(&self) -> T {
        let mut value = T::zeroed();
        let words = bytemuck::cast_slice_mut::<u8, u32>(bytemuck::bytes_of_mut(&mut value));
        for (word, shared) in words.iter_mut().zip(self.words()) {
            *word = shared.load(Ordering::Relaxed);
        }
        value
    }

    /// Sets the value.
    pub fn set(&self, value: T) {
        let words = bytemuck::cast_slice::<u8, u32>(bytemuck::bytes_of(&value));
        for (word, shared) in words.iter().zip(self.words()) {
            shared.store(*word, Ordering::Relaxed);
        }
    }
}
