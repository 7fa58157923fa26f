//! Call frames in shared memory.
//!
//! ```text
//!   connection memory   frame 0 │ frame 1 │ ... │ liveness word        one frame for each credit
//!   frame               head: state, doorbells, level, request, result │ 8,064 bytes inline
//! ```
//!
//! Both sides may write anything at any time. So words are accessed atomically, bytes are copied
//! out before they are interpreted, and a value read from here is compared with a bound before it
//! is used as an index or a length.
#![expect(unsafe_code, reason = "atomic words and bytes in a shared mapping")]

use core::ffi::c_void;
use core::hint::black_box;
use core::ptr;

use kyocho_microprocess::bell::BELLS_MAX;
use kyocho_sys::prim::atomic::{AtomicU32, AtomicU64, Ordering};
use kyocho_sys::sealed::SealedMemory;

/// Most concurrent calls of one client.
pub const CREDITS_MAX: usize = 64;
/// Most bytes of a request or a reply in a frame.
pub const INLINE_BYTES_MAX: usize = FRAME_BYTES - HEAD_BYTES;

const FRAME_BYTES: usize = 8192;
const HEAD_BYTES: usize = 128;
const LIVENESS_BYTES: usize = 64;
const WORDS: usize = INLINE_BYTES_MAX / size_of::<u64>();

/// Method numbers from here on are reserved for the gate itself.
pub(crate) const RESERVED_METHODS_MIN: u32 = u32::MAX - 15;
/// The method that waits until the region of the call is attached.
pub(crate) const AWAIT_REGION: u32 = RESERVED_METHODS_MIN;

/// No doorbell has been announced yet.
pub(crate) const NO_BELL: u32 = u32::MAX;

/// One frame, shared by both sides.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Frame {
    /// Phase and number of the call: see [`protocol`](crate::protocol).
    pub(crate) state: AtomicU32,
    /// The doorbell of the client to ring for the reply: 1 + its number, or 0 if none was
    /// announced.
    client_bell: AtomicU32,
    /// The doorbell of the server to ring for a request, in the same form.
    server_bell: AtomicU32,
    /// The priority level of the caller.
    pub(crate) level: AtomicU32,
    method: AtomicU32,
    /// Length of the request, later of the reply.
    bytes: AtomicU32,
    /// 0, or the number of the [`Failure`](crate::Failure).
    status: AtomicU32,
    /// 1 + the number of the region that is passed, or 0 if none is.
    region: AtomicU32,
    region_offset: AtomicU64,
    region_bytes: AtomicU64,
    /// The handle of the object that is called.
    handle: AtomicU64,
    /// The caller's number in its process.
    caller: AtomicU64,
    padding: [u64; 8],
    data: [AtomicU64; WORDS],
}

const _: () = assert!(size_of::<Frame>() == FRAME_BYTES);
const _: () = assert!(core::mem::offset_of!(Frame, data) == HEAD_BYTES);

/// The request without its bytes. Copied from a frame, it is unchecked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Head {
    pub(crate) method: u32,
    pub(crate) bytes: u32,
    pub(crate) handle: u64,
    pub(crate) caller: u64,
    /// Number of a region, and offset and length in it, in bytes.
    pub(crate) region: Option<(u32, u64, u64)>,
}

/// Bytes of shared memory of a connection with `credits` frames.
pub(crate) const fn memory_bytes(credits: usize) -> usize {
    credits * FRAME_BYTES + LIVENESS_BYTES
}

/// The liveness word: a [`robust`](kyocho_sys::robust) futex that names the server's socket thread
/// while that thread serves the connection.
///
/// # Panics
/// `memory` is too short for a connection with `credits` frames.
pub(crate) fn liveness_word(memory: &SealedMemory, credits: usize) -> &AtomicU32 {
    assert!(memory_bytes(credits) <= memory.bytes(), "the memory is too short for a liveness word");
    let address = memory.base() + credits * FRAME_BYTES;
    // SAFETY: inside the mapping, which lives as long as `memory`, and aligned as frames are; an
    // atomic word.
    unsafe { &*ptr::with_exposed_provenance(address) }
}

/// Frame `index` of a connection's memory.
///
/// # Panics
/// The memory has fewer frames.
pub(crate) fn frame(memory: &SealedMemory, index: usize) -> &Frame {
    assert!((index + 1) * FRAME_BYTES <= memory.bytes(), "no such frame");
    let address = memory.base() + index * FRAME_BYTES;
    // SAFETY: inside the mapping, which lives as long as `memory`, and page-aligned; a frame
    // consists of atomic words.
    unsafe { &*ptr::with_exposed_provenance(address) }
}

impl Frame {
    /// The word in which the client [announces](kyocho_microprocess::bell::announce) its doorbell.
    pub(crate) fn client_bell_word(&self) -> &AtomicU32 {
        &self.client_bell
    }

    /// The word in which the server announces its doorbell.
    pub(crate) fn server_bell_word(&self) -> &AtomicU32 {
        &self.server_bell
    }

    /// The client's doorbell, or [`NO_BELL`] if the word names none that can exist.
    pub(crate) fn client_bell(&self) -> u32 {
        checked_bell(self.client_bell.load(Ordering::SeqCst))
    }

    /// The server's doorbell, or [`NO_BELL`] if the word names none that can exist.
    pub(crate) fn server_bell(&self) -> u32 {
        checked_bell(self.server_bell.load(Ordering::SeqCst))
    }

    /// Writes the request without its bytes. The frame must be the client's.
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

    /// Copies the request without its bytes, unchecked.
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

    /// Writes status and length of the reply, without its bytes.
    pub(crate) fn put_result(&self, status: u32, bytes: u32) {
        self.status.store(status, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Status and length of the reply, unchecked.
    pub(crate) fn result(&self) -> (u32, u32) {
        (self.status.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    /// Copies `bytes` into the frame.
    ///
    /// # Panics
    /// They are longer than a frame.
    pub(crate) fn put(&self, bytes: &[u8]) {
        assert!(bytes.len() <= INLINE_BYTES_MAX, "longer than a frame");
        copy_in(&self.data, bytes);
    }

    /// Fills `into` with bytes from the frame.
    ///
    /// # Panics
    /// `into` is longer than a frame.
    pub(crate) fn get(&self, into: &mut [u8]) {
        assert!(into.len() <= INLINE_BYTES_MAX, "longer than a frame");
        copy_out(&self.data, into);
    }
}

/// The doorbell that an announcement names, or [`NO_BELL`].
fn checked_bell(announced: u32) -> u32 {
    announced.checked_sub(1).filter(|&bell| (bell as usize) < BELLS_MAX).unwrap_or(NO_BELL)
}

/// Copies `bytes` to the start of shared words.
///
/// # Panics
/// The words are shorter.
pub(crate) fn copy_in(words: &[AtomicU64], bytes: &[u8]) {
    assert!(bytes.len() <= size_of_val(words), "longer than the shared memory");
    let to = words.as_ptr().cast_mut().cast();
    // SAFETY: the words are shared memory, mapped for writing and long enough; `bytes` are private.
    unsafe { copy(to, bytes.as_ptr(), bytes.len()) };
}

/// Fills `into` from the start of shared words.
///
/// # Panics
/// The words are shorter.
pub(crate) fn copy_out(words: &[AtomicU64], into: &mut [u8]) {
    assert!(into.len() <= size_of_val(words), "longer than the shared memory");
    // SAFETY: the words are shared memory, mapped and long enough; `into` is private.
    unsafe { copy(into.as_mut_ptr(), words.as_ptr().cast(), into.len()) };
}

/// Copies between shared and private memory.
///
/// The other side may write during the copy; then the result is a mixture of old and new bytes. The
/// C library's `memcpy` makes the copy, through a pointer that the compiler cannot see through. So
/// the compiler concludes nothing from the access. A loop over atomic words is three times slower.
///
/// # Safety
/// Both ranges are mapped, `to` for writing, and do not overlap. The private one is initialised,
/// and nothing else accesses it during the copy.
unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    type Copy = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void;
    let copy: Copy = black_box(libc::memcpy);
    // SAFETY: the caller guarantees the ranges.
    unsafe { copy(to.cast(), from.cast(), bytes) };
}

#[cfg(test)]
mod tests {
    use super::{CREDITS_MAX, Head, INLINE_BYTES_MAX, NO_BELL, frame, memory_bytes};
    use kyocho_microprocess::bell::announce;
    use kyocho_sys::prim::atomic::Ordering;
    use kyocho_sys::sealed::{SealedMemory, Writers};

    #[test]
    fn get_returns_what_put_wrote_for_every_length() {
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
        assert_eq!(other, [0; 64], "the other frame was written to");
    }

    #[test]
    fn head_returns_what_put_head_wrote_and_impossible_doorbells_are_none() {
        let memory = SealedMemory::new(memory_bytes(CREDITS_MAX), Writers::All).unwrap();
        let frame = frame(&memory, CREDITS_MAX - 1);
        for region in [None, Some((3, 16, 4096))] {
            let head = Head { method: 7, bytes: 9, handle: 1 << 40, caller: 12, region };
            frame.put_head(&head);
            assert_eq!(frame.head(), head);
        }
        assert_eq!(frame.client_bell(), NO_BELL);
        announce(frame.client_bell_word(), 5);
        assert_eq!(frame.client_bell(), 5);
        for nonsense in [u32::MAX, 65, 1 << 20] {
            frame.server_bell.store(nonsense, Ordering::SeqCst);
            assert_eq!(frame.server_bell(), NO_BELL);
        }
    }
}
