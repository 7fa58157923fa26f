//! Elements that several threads of one node may touch at once.
#![expect(unsafe_code, reason = "reads and writes words that other threads share")]

use core::cell::{Cell, UnsafeCell};
use core::fmt;
use core::marker::PhantomData;

use bytemuck::Pod;
use kyocho_sys::prim::atomic::unmodelled::{AtomicU32, Ordering};

/// An element of a shared array, as threads of one node share it: each word of 4 bytes is read and written whole, by one plain
/// instruction, in no order with others. What orders them are locks and barriers of shared memory.
#[repr(transparent)]
pub struct SharedCell<T> {
    element: UnsafeCell<T>,
    // A fault is answered on the thread that was prepared for it: a reference to this does not leave its thread.
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
        // SAFETY: the element is plain data of whole, aligned words (asserted), and is touched as such words alone.
        unsafe { core::slice::from_raw_parts(self.element.get().cast(), Self::WORDS) }
    }

    /// Its value. Where another thread writes it meanwhile, each word is the old one or the new.
    #[must_use]
    pub fn get(&self) -> T {
        let mut value = T::zeroed();
        let words = bytemuck::cast_slice_mut::<u8, u32>(bytemuck::bytes_of_mut(&mut value));
        for (word, shared) in words.iter_mut().zip(self.words()) {
            *word = shared.load(Ordering::Relaxed);
        }
        value
    }

    /// Gives it a value.
    pub fn set(&self, value: T) {
        let words = bytemuck::cast_slice::<u8, u32>(bytemuck::bytes_of(&value));
        for (word, shared) in words.iter().zip(self.words()) {
            shared.store(*word, Ordering::Relaxed);
        }
    }
}
