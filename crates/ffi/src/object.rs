//! Objects that lie in memory of C.
//!
//! ```text
//!   kyocho_mutex_t   │ magic │ detail │ state ...            │
//!   Object<Mutex>    │ magic │ detail │ value: Mutex │ unused │
//! ```
//!
//! A static initialiser of C is the magic word, the detail and zeros; so the value of a kind that has one must be the fresh one
//! when all its bytes are zero. `tests/c/objects.c` starts from such objects.
#![expect(unsafe_code, reason = "looks at objects of C")]

use kyocho_sys::prim::atomic::{AtomicU32, Ordering};

use crate::error::{Code, Result};

/// What a kind of object is made of.
///
/// # Safety
/// Each value of [`C_BYTES`](Self::C_BYTES) is the size of the object's type in `kyocho.h`, and each
/// [`MAGIC`](Self::MAGIC) is another. Where C has a static initialiser, zeros are a fresh value.
pub(crate) unsafe trait Kind: Sync + Sized {
    /// Marks an initialised object of this kind.
    const MAGIC: u32;
    /// The size of the object's type in `kyocho.h`.
    const C_BYTES: usize;
}

/// An object that C passes by its address.
#[repr(C)]
pub(crate) struct Object<T> {
    magic: AtomicU32,
    /// What a static initialiser says, such as the kind of a mutex.
    pub(crate) detail: u32,
    pub(crate) value: T,
}

impl<T: Kind> Object<T> {
    /// The object fits into what C gives it, and is left without a destructor.
    const FITS: () = assert!(
        size_of::<Self>() <= T::C_BYTES && align_of::<Self>() <= 8 && !core::mem::needs_drop::<T>(),
        "what C reserves for an object does not hold it"
    );

    /// Makes the object at `place`.
    ///
    /// # Safety
    /// `place` is null or memory for an object of this kind that nobody uses.
    pub(crate) unsafe fn create(place: *mut Self, detail: u32, value: T) -> Result<()> {
        const { Self::FITS };
        if place.is_null() || !place.is_aligned() {
            return Err(Code::INVALID);
        }
        // SAFETY: the caller's promise, and it is neither null nor misaligned.
        unsafe { place.write(Self { magic: AtomicU32::new(T::MAGIC), detail, value }) };
        Ok(())
    }

    /// The object at `place`, if there is one of this kind.
    ///
    /// # Safety
    /// `place` is null or memory for an object of this kind, which stays as long as `'a`.
    pub(crate) unsafe fn at<'a>(place: *const Self) -> Result<&'a Self> {
        const { Self::FITS };
        if place.is_null() || !place.is_aligned() {
            return Err(Code::INVALID);
        }
        // SAFETY: an atomic word at the beginning of the object, whatever that is.
        let magic = unsafe { &(*place).magic };
        if magic.load(Ordering::Relaxed) != T::MAGIC {
            return Err(Code::INVALID);
        }
        // SAFETY: made by `create`, or by a static initialiser, whose zeros are a value.
        Ok(unsafe { &*place })
    }

    /// Nobody uses the object any more.
    pub(crate) fn destroy(&self) {
        self.magic.store(0, Ordering::Relaxed);
    }
}
