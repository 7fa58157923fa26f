//! Fields that one kernel thread at a time writes and any thread may read. Snapshots are made of
//! them.
//!
//! Reads and writes are relaxed atomics, which are plain moves for the machine. A reader sees some
//! recent value of each field, but not all fields of one moment. Where that matters, it reads the
//! record's id before and after.
#![expect(unsafe_code, reason = "turns bytes back into the values that were stored")]

use core::marker::PhantomData;
use core::{fmt, mem, ptr};

use kyocho_sys::prim::atomic::{AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use crate::processor::record::{Kind, NAME_BYTES_MAX, Name, Reason, Record, State};

/// A one-byte enumeration.
pub(crate) trait OneByte: Copy {
    fn to_byte(self) -> u8;
    /// # Safety
    /// `byte` comes from [`to_byte`](Self::to_byte).
    unsafe fn from_byte(byte: u8) -> Self;
}

macro_rules! one_byte {
    ($type:ty) => {
        const _: () = assert!(mem::size_of::<$type>() == 1);
        impl OneByte for $type {
            #[inline(always)]
            fn to_byte(self) -> u8 {
                self as u8
            }

            #[inline(always)]
            unsafe fn from_byte(byte: u8) -> Self {
                // SAFETY: the caller promises that it is one of the enumeration's own values.
                unsafe { mem::transmute::<u8, Self>(byte) }
            }
        }
    };
}

one_byte!(State);
one_byte!(Kind);

/// A value of a one-byte enumeration.
pub(crate) struct Published<T>(AtomicU8, PhantomData<T>);

impl<T: OneByte> Published<T> {
    pub(crate) const fn new(value: T) -> Self
    where
        T: Copy,
    {
        // SAFETY: checked to be one byte where the trait is implemented.
        let byte = unsafe { mem::transmute_copy::<T, u8>(&value) };
        Self(AtomicU8::new(byte), PhantomData)
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> T {
        // SAFETY: `new` and `set` store nothing else.
        unsafe { T::from_byte(self.0.load(Ordering::Relaxed)) }
    }

    #[inline(always)]
    pub(crate) fn set(&self, value: T) {
        self.0.store(value.to_byte(), Ordering::Relaxed);
    }
}

/// What a microprocess waits for. A reader may see the kind of one wait with the object of another.
pub(crate) struct PublishedReason {
    kind: Published<Kind>,
    object: AtomicUsize,
}

impl PublishedReason {
    pub(crate) const KIND_OFFSET: usize = mem::offset_of!(Self, kind);
    pub(crate) const OBJECT_OFFSET: usize = mem::offset_of!(Self, object);

    pub(crate) const fn new() -> Self {
        Self { kind: Published::new(Kind::Nothing), object: AtomicUsize::new(0) }
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> Reason {
        Reason { kind: self.kind.get(), object: self.object.load(Ordering::Relaxed) }
    }

    #[inline(always)]
    pub(crate) fn set(&self, reason: Reason) {
        self.kind.set(reason.kind);
        self.object.store(reason.object, Ordering::Relaxed);
    }
}

/// Number of words of a name.
const NAME_WORDS: usize = (NAME_BYTES_MAX + 1) / 8;

/// The name of a microprocess.
pub(crate) struct PublishedName([AtomicU64; NAME_WORDS]);

impl PublishedName {
    pub(crate) const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; NAME_WORDS])
    }

    pub(crate) fn get(&self) -> Name {
        let mut bytes = [0; NAME_BYTES_MAX + 1];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(&self.0) {
            chunk.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        Name::from_bytes(bytes)
    }

    #[inline]
    pub(crate) fn set(&self, name: Name) {
        let bytes = name.to_bytes();
        for (chunk, word) in bytes.chunks_exact(8).zip(&self.0) {
            let value = chunk.try_into().map_or(0, u64::from_ne_bytes);
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Sets no name. One store, since every spawn does this.
    #[inline(always)]
    pub(crate) fn clear(&self) {
        self.0[NAME_WORDS - 1].store(0, Ordering::Relaxed);
    }
}

/// The running microprocess of a virtual processor.
pub(crate) struct Current(AtomicPtr<Record>);

impl Current {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> Option<&'static Record> {
        // SAFETY: null, or set by `set` to a record, which is never freed.
        unsafe { self.0.load(Ordering::Relaxed).as_ref() }
    }

    #[inline(always)]
    pub(crate) fn set(&self, record: Option<&'static Record>) {
        let record = record.map_or(ptr::null_mut(), |record| ptr::from_ref(record).cast_mut());
        self.0.store(record, Ordering::Relaxed);
    }

    pub(crate) fn take(&self) -> Option<&'static Record> {
        let record = self.get();
        self.set(None);
        record
    }
}

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}
