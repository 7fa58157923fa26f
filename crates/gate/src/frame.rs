//! Call frames in shared memory.
//!
//! ```text
//!   connection memory   frame 0 │ frame 1 │ ... │ life     one frame a credit; who keeps the connection at the server
//!   frame               line 0: state, bells, level, what is asked   │ 8,064 bytes inline
//! ```
//!
//! Both sides may write anything at any time. So every access is an atomic word, bytes are copied out before anybody looks at them, and nothing
//! read from here is used as an index or a length before it was compared with a bound.
#![expect(unsafe_code, reason = "atomic words and bytes in a shared mapping")]

use core::ffi::c_void;
use core::hint::black_box;
use core::ptr;

use kyocho_microprocess::bell::BELLS_MAX;
use kyocho_sys::prim::atomic::{AtomicU32, AtomicU64, Ordering};
use kyocho_sys::sealed::SealedMemory;

/// Most calls of one client at a time.
pub const CREDITS_MAX: usize = 64;
/// Most bytes of a request or a reply in a frame.
pub const INLINE_BYTES_MAX: usize = FRAME_BYTES - HEAD_BYTES;

const FRAME_BYTES: usize = 8192;
const HEAD_BYTES: usize = 128;
const LIFE_BYTES: usize = 64;
const WORDS: usize = INLINE_BYTES_MAX / size_of::<u64>();

/// Says that nobody has announced a bell yet.
pub(crate) const NO_BELL: u32 = u32::MAX;

/// One frame, as both sides see it.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Frame {
    /// See [`protocol`](crate::protocol).
    pub(crate) state: AtomicU32,
    /// Which bell of the client to ring for the reply; 1 + its number, 0: none.
    client_bell: AtomicU32,
    /// Which bell of the server to ring for a request; the same.
    server_bell: AtomicU32,
    /// The level the caller runs at.
    pub(crate) level: AtomicU32,
    method: AtomicU32,
    /// Length of the request, then of the reply.
    bytes: AtomicU32,
    /// 0, or why there is no result.
    status: AtomicU32,
    /// 1 + the number of the region handed over; 0: none.
    region: AtomicU32,
    region_offset: AtomicU64,
    region_bytes: AtomicU64,
    /// Which object is called.
    handle: AtomicU64,
    /// The caller's number in its address space.
    caller: AtomicU64,
    padding: [u64; 8],
    data: [AtomicU64; WORDS],
}

const _: () = assert!(size_of::<Frame>() == FRAME_BYTES);
const _: () = assert!(core::mem::offset_of!(Frame, data) == HEAD_BYTES);

/// What is asked for, beside the bytes. Copied from a frame it is an allegation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Head {
    pub(crate) method: u32,
    pub(crate) bytes: u32,
    pub(crate) handle: u64,
    pub(crate) caller: u64,
    /// A region's number, offset and length.
    pub(crate) region: Option<(u32, u64, u64)>,
}

/// How many bytes the memory of a connection with `credits` frames takes.
pub(crate) const fn memory_bytes(credits: usize) -> usize {
    credits * FRAME_BYTES + LIFE_BYTES
}

/// The word that names the server's keeper as long as it keeps the connection: a [`robust`](kyocho_sys::robust) one.
///
/// # Panics
/// The memory is not that of a connection with so many `credits`.
pub(crate) fn life(memory: &SealedMemory, credits: usize) -> &AtomicU32 {
    assert!(memory_bytes(credits) <= memory.bytes(), "no such word");
    let address = memory.base() + credits * FRAME_BYTES;
    // SAFETY: inside the mapping, which lasts as long as `memory`, and aligned as frames are; an atomic word.
    unsafe { &*ptr::with_exposed_provenance(address) }
}

/// Frame `index` of a connection's memory.
///
/// # Panics
/// There is no such frame.
pub(crate) fn frame(memory: &SealedMemory, index: usize) -> &Frame {
    assert!((index + 1) * FRAME_BYTES <= memory.bytes(), "no such frame");
    let address = memory.base() + index * FRAME_BYTES;
    // SAFETY: inside the mapping, which lasts as long as `memory`, and page-aligned; a frame has atomic words alone.
    unsafe { &*ptr::with_exposed_provenance(address) }
}

impl Frame {
    /// Where the client [announces](kyocho_microprocess::bell::announce) its bell.
    pub(crate) fn client_place(&self) -> &AtomicU32 {
        &self.client_bell
    }

    /// Where the server announces its own.
    pub(crate) fn server_place(&self) -> &AtomicU32 {
        &self.server_bell
    }

    /// The client's bell, as alleged.
    pub(crate) fn client_bell(&self) -> u32 {
        checked_bell(self.client_bell.load(Ordering::SeqCst))
    }

    /// The server's bell, as alleged.
    pub(crate) fn server_bell(&self) -> u32 {
        checked_bell(self.server_bell.load(Ordering::SeqCst))
    }

    /// Writes what is asked for. The frame is the caller's.
    pub(crate) fn put_head(&self, head: &Head) {
        self.method.store(head.method, Ordering::Relaxed);
        self.bytes.store(head.bytes, Ordering::Relaxed);
        self.handle.store(head.handle, Ordering::Relaxed);
        self.caller.store(head.caller, Ordering::Relaxed);
        let (region, offset, bytes) = head.region.map_or((0, 0, 0), |(r, o, b)| (r + 1, o, b));
        self.region.store(region, Ordering::Relaxed);
        if region != 0 {
            self.region_offset.store(offset, Ordering::Relaxed);
            self.region_bytes.store(bytes, Ordering::Relaxed);
        }
    }

    /// Copies what is asked for.
    pub(crate) fn head(&self) -> Head {
        let region = self.region.load(Ordering::Relaxed).checked_sub(1).map(|number| {
            let offset = self.region_offset.load(Ordering::Relaxed);
            (number, offset, self.region_bytes.load(Ordering::Relaxed))
        });
        Head {
            method: self.method.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            handle: self.handle.load(Ordering::Relaxed),
            caller: self.caller.load(Ordering::Relaxed),
            region,
        }
    }

    /// Writes how the call ended, but for the bytes themselves.
    pub(crate) fn put_result(&self, status: u32, bytes: u32) {
        self.status.store(status, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// How the call ended: status and length, as alleged.
    pub(crate) fn result(&self) -> (u32, u32) {
        (self.status.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    /// Copies `bytes` in.
    ///
    /// # Panics
    /// They are more than a frame holds.
    pub(crate) fn put(&self, bytes: &[u8]) {
        assert!(bytes.len() <= INLINE_BYTES_MAX, "more than a frame holds");
        copy_in(&self.data, bytes);
    }

    /// Copies bytes out, as many as `into` holds.
    ///
    /// # Panics
    /// They are more than a frame holds.
    pub(crate) fn get(&self, into: &mut [u8]) {
        assert!(into.len() <= INLINE_BYTES_MAX, "more than a frame holds");
        copy_out(&self.data, into);
    }
}

/// Writes which bell to ring, where that is new: a line that is only read stays in the caches of both sides.
fn checked_bell(announced: u32) -> u32 {
    announced.checked_sub(1).filter(|&bell| (bell as usize) < BELLS_MAX).unwrap_or(NO_BELL)
}

/// Copies `bytes` into shared words, from the first one on.
///
/// # Panics
/// There are not as many words.
pub(crate) fn copy_in(words: &[AtomicU64], bytes: &[u8]) {
    assert!(bytes.len() <= size_of_val(words), "more than there is room for");
    let to = words.as_ptr().cast_mut().cast();
    // SAFETY: the words are shared memory, mapped for writing and long enough; `bytes` are our own.
    unsafe { copy(to, bytes.as_ptr(), bytes.len()) };
}

/// Copies out of shared words, as much as `into` holds.
///
/// # Panics
/// There are not as many words.
pub(crate) fn copy_out(words: &[AtomicU64], into: &mut [u8]) {
    assert!(into.len() <= size_of_val(words), "more than there is");
    // SAFETY: the words are shared memory, mapped and long enough; `into` is our own.
    unsafe { copy(into.as_mut_ptr(), words.as_ptr().cast(), into.len()) };
}

/// Copies between shared memory and our own. The other side may change what is read meanwhile, then any mixture arrives: so the C library does it,
/// through a pointer that the compiler knows nothing of, and nothing follows from the access but the bytes. (A loop over atomic words
/// is three times as slow.)
///
/// # Safety
/// Both ranges are mapped, `to` for writing, and do not overlap; the one of our own is initialised and nobody else's meanwhile.
unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    type Copy = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void;
    let copy: Copy = black_box(libc::memcpy);
    // SAFETY: the caller's promise.
    unsafe { copy(to.cast(), from.cast(), bytes) };
}

#[cfg(test)]
mod tests {
    use super::{CREDITS_MAX, Head, INLINE_BYTES_MAX, NO_BELL, frame, memory_bytes};
    use kyocho_microprocess::bell::announce;
    use kyocho_sys::prim::atomic::Ordering;
    use kyocho_sys::sealed::{SealedMemory, Writers};

    #[test]
    fn bytes_of_every_length_come_out_as_they_went_in() {
        let memory = SealedMemory::new(memory_bytes(2), Writers::All).unwrap();
        let bytes: Vec<u8> = (0..INLINE_BYTES_MAX).map(|index| (index * 7 + 1) as u8).collect();
        for length in (0..40).chain([4096, INLINE_BYTES_MAX - 1, INLINE_BYTES_MAX]) {
            frame(&memory, 1).put(&bytes[..length]);
            let mut out = vec![0; length];
            frame(&memory, 1).get(&mut out);
            assert_eq!(out, bytes[..length], "{length} bytes");
        }
        let mut other = [0xff; 64];
        frame(&memory, 0).get(&mut other);
        assert_eq!(other, [0; 64], "the neighbour is untouched");
    }

    #[test]
    fn head_is_copied_and_bells_are_checked() {
        let memory = SealedMemory::new(memory_bytes(CREDITS_MAX), Writers::All).unwrap();
        let frame = frame(&memory, CREDITS_MAX - 1);
        for region in [None, Some((3, 16, 4096))] {
            let head = Head { method: 7, bytes: 9, handle: 1 << 40, caller: 12, region };
            frame.put_head(&head);
            assert_eq!(frame.head(), head);
        }
        assert_eq!(frame.client_bell(), NO_BELL);
        announce(frame.client_place(), 5);
        assert_eq!(frame.client_bell(), 5);
        for nonsense in [u32::MAX, 65, 1 << 20] {
            frame.server_bell.store(nonsense, Ordering::SeqCst);
            assert_eq!(frame.server_bell(), NO_BELL);
        }
    }
}
