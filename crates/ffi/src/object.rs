//! Objects in memory of C.
//!
//! ```text
//!   kyocho_mutex_t   │ magic │ detail │ state ...            │
//!   Object<Mutex>    │ magic │ detail │ value: Mutex │ unused │
//! ```
//!
//! A static initialiser of C is the magic word, the detail and zeros. So for a kind with a static
//! initialiser, a value whose bytes are all zero must be a new one. `tests/c/objects.c` starts from
//! such objects.
#![expect(unsafe_code, reason = "looks at objects of C")]

use kyocho_sys::prim::atomic::{AtomicU32, Ordering};

use crate::error::{Code, Result};

/// A kind of object.
///
/// # Safety
/// [`C_BYTES`](Self::C_BYTES) is the size of the kind's type in `kyocho.h`, and each kind has its
/// own [`MAGIC`](Self::MAGIC). If C has a static initialiser for the kind, zeros are a new value.
pub(crate) unsafe trait Kind: Sync + Sized {
    /// Marks an initialised object of this kind.
    const MAGIC: u32;
    /// The size of the object's type in `kyocho.h`.
    const C_BYTES: usize;
}

/// An object that C names by its address.
#[repr(C)]
pub(crate) struct Object<T> {
    magic: AtomicU32,
    /// Set by the static initialiser, such as the kind of a mutex.
    pub(crate) detail: u32,
    pub(crate) value: T,
}

impl<T: Kind> Object<T> {
    /// Checks that the object fits into the memory that C reserves, and needs no destructor.
    const FITS: () = assert!(
        size_of::<Self>() <= T::C_BYTES && align_of::<Self>() <= 8 && !core::mem::needs_drop::<T>(),
        "what C reserves for an object does not hold it"
    );

    /// Makes an object at `place`.
    ///
    /// # Safety
    /// `place` is null, or memory for an object of this kind that is not in use.
    pub(crate) unsafe fn create(place: *mut Self, detail: u32, value: T) -> Result<()> {
        const { Self::FITS };
        if place.is_null() || !place.is_aligned() {
            return Err(Code::INVALID);
        }
        // SAFETY: guaranteed by the caller; the pointer is neither null nor misaligned.
        unsafe { place.write(Self { magic: AtomicU32::new(T::MAGIC), detail, value }) };
        Ok(())
    }

    /// The object at `place`, if there is one of this kind.
    ///
    /// # Safety
    /// `place` is null, or memory for an object of this kind that lives as long as `'a`.
    pub(crate) unsafe fn at<'a>(place: *const Self) -> Result<&'a Self> {
        const { Self::FITS };
        if place.is_null() || !place.is_aligned() {
            return Err(Code::INVALID);
        }
        // SAFETY: an atomic word at the start of the object, whatever its kind.
        let magic = unsafe { &(*place).magic };
        if magic.load(Ordering::Relaxed) != T::MAGIC {
            return Err(Code::INVALID);
        }
        // SAFETY: made by `create`, or by a static initialiser, whose zeros are a valid value.
        Ok(unsafe { &*place })
    }

    /// Marks the object as destroyed. It must not be in use.
    pub(crate) fn destroy(&self) {
        self.magic.store(0, Ordering::Relaxed);
    }
}
