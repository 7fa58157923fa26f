//! Stack slots: the memory of microprocesses.
//!
//! ```text
//!   slot of a stackful microprocess                            stackless
//!   ┌───────┬───────────────────────────┬─────────┬────────┬──────┐   ┌────────┐
//!   │ guard │ stack               ◄──── │ closure │ record │colour│   │ record │
//!   │ page  │                           │ /result │        │      │   └────────┘
//!   └───────┴───────────────────────────┴─────────┴────────┴──────┘
//!             untouched pages cost nothing └── the one page of a parked one ──┘
//! ```
//!
//! Slots are cut from a few large reservations: a mapping for each of a million slots would exceed
//! `max_map_count` (65,530). They are never unmapped, so a reference to a record is valid for ever.
//! The *colour* moves records of neighbouring slots to different cache lines of their page; without
//! it all records would compete for the same few sets of the cache.
//!
//! Each virtual processor keeps free slots in two magazines, last in, first out, since the most
//! recent ones are in its caches. Full magazines are exchanged through a depot. The stacks of
//! surplus slots go back to the host ([`free`]).
#![expect(unsafe_code, reason = "cuts memory into slots")]

use core::mem::offset_of;
use core::ops::Range;
use core::ptr::{self, NonNull};

use kyocho_sys::memory::{self, PAGE_BYTES};
use kyocho_sys::prim::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::processor::instruments::register_stack;
use crate::processor::record::{Record, State};
use crate::processor::spin::AlwaysLock;

pub(crate) mod free;
use free::Depot;
pub(crate) use free::FreeLists;

/// Size classes: usable stack bytes, with the closure and the record on top.
const STACK_BYTES: [usize; CLASSES] = [0, 64 << 10, 256 << 10, 1 << 20, 8 << 20];

/// How many size classes there are.
pub(crate) const CLASSES: usize = 5;
/// The class of microprocesses without a stack.
pub(crate) const STACKLESS: u8 = 0;
/// The default class of a microprocess.
pub(crate) const NORMAL: u8 = 1;
/// The class of the main microprocess.
pub(crate) const LARGEST: u8 = CLASSES as u8 - 1;

/// The smallest class with at least `stack_bytes` of stack, or the largest class.
pub(crate) fn class_for(stack_bytes: usize) -> u8 {
    let fitting = (1..CLASSES).find(|&class| STACK_BYTES[class] >= stack_bytes);
    fitting.unwrap_or(CLASSES - 1) as u8
}

/// The usable stack of a class.
pub(crate) fn stack_bytes(class: u8) -> usize {
    STACK_BYTES[usize::from(class)]
}

/// The distance between slots of a class.
const fn stride(class: usize) -> usize {
    match STACK_BYTES[class] {
        0 => size_of::<Record>(),
        stack => stack + PAGE_BYTES,
    }
}

/// Over how many cache lines records are spread. With 32 of them, a page still holds 1.7 KB of
/// frames.
const COLOURS: usize = 32;

/// The offset of the record in slot `number` of a class.
fn record_offset(class: usize, number: usize) -> usize {
    match STACK_BYTES[class] {
        0 => 0,
        _ => stride(class) - size_of::<Record>() - number % COLOURS * align_of::<Record>(),
    }
}

/// The size in which reservations are tried first. If the address space is limited, smaller ones
/// follow.
const RESERVE_BYTES_MAX: usize = 4 << 30;
/// If a reservation of this size fails, there is no memory.
const RESERVE_BYTES_MIN: usize = 32 << 20;
/// The most reservations of a class: 4 million stacks of 64 KiB.
const RESERVATIONS_MAX: usize = 64;

/// One reservation, of which the first `slots_used` slots have been cut.
struct Reservation {
    address: AtomicPtr<u8>,
    slots_max: AtomicUsize,
    slots_used: AtomicUsize,
}

/// All slots of one class.
struct Arena {
    free: AlwaysLock<Depot>,
    reservations: [Reservation; RESERVATIONS_MAX],
}

static ARENAS: [Arena; CLASSES] = [const {
    Arena {
        free: AlwaysLock::new(Depot::new()),
        reservations: [const {
            Reservation {
                address: AtomicPtr::new(ptr::null_mut()),
                slots_max: AtomicUsize::new(0),
                slots_used: AtomicUsize::new(0),
            }
        }; RESERVATIONS_MAX],
    }
}; CLASSES];

/// The location of the slots, for debuggers.
#[repr(C)]
pub(crate) struct ArenaLayout {
    arenas: &'static [Arena; CLASSES],
    arena_bytes: usize,
    reservations: usize,
    reservation_bytes: usize,
    reservations_max: usize,
    address: usize,
    used: usize,
    strides: [usize; CLASSES],
    colours: usize,
    colour_bytes: usize,
}

pub(crate) const LAYOUT: ArenaLayout = ArenaLayout {
    arenas: &ARENAS,
    arena_bytes: size_of::<Arena>(),
    reservations: offset_of!(Arena, reservations),
    reservation_bytes: size_of::<Reservation>(),
    reservations_max: RESERVATIONS_MAX,
    address: offset_of!(Reservation, address),
    used: offset_of!(Reservation, slots_used),
    strides: [stride(0), stride(1), stride(2), stride(3), stride(4)],
    colours: COLOURS,
    colour_bytes: align_of::<Record>(),
};

/// A free slot of the depot, or a new one; `None` if there is no memory for more.
#[cold]
pub(crate) fn make(class: u8) -> Option<&'static Record> {
    let arena = &ARENAS[usize::from(class)];
    let mut depot = arena.free.acquire();
    depot.take().or_else(|| arena.cut(usize::from(class)))
}

/// Returns one slot to the depot, from a kernel thread without a virtual processor.
pub(crate) fn give_back(record: &'static Record) {
    record.state.set(State::Free);
    ARENAS[usize::from(record.class.get())].free.acquire().put(record);
}

impl Arena {
    /// Cuts a new slot. The caller holds the lock.
    fn cut(&self, class: usize) -> Option<&'static Record> {
        for reservation in &self.reservations {
            if reservation.address.load(Ordering::Relaxed).is_null() {
                reservation.make(class)?;
            }
            let number = reservation.slots_used.load(Ordering::Relaxed);
            if number < reservation.slots_max.load(Ordering::Relaxed) {
                let record = reservation.fit_out(class, number)?;
                reservation.slots_used.store(number + 1, Ordering::Release);
                return Some(record);
            }
        }
        None
    }
}

impl Reservation {
    fn make(&self, class: usize) -> Option<()> {
        let mut bytes =
            if class == usize::from(STACKLESS) { RESERVE_BYTES_MIN } else { RESERVE_BYTES_MAX };
        let address = loop {
            match memory::reserve(bytes) {
                Ok(address) => break address,
                Err(_) if bytes > RESERVE_BYTES_MIN => bytes /= 2,
                Err(_) => return None,
            }
        };
        self.slots_max.store(bytes / stride(class), Ordering::Relaxed);
        self.address.store(address.as_ptr(), Ordering::Release);
        Some(())
    }

    /// Prepares slot `number`: its guard page and its record.
    fn fit_out(&self, class: usize, number: usize) -> Option<&'static Record> {
        let address = self.address.load(Ordering::Relaxed);
        // SAFETY: the slot lies inside the reservation.
        let slot = unsafe { address.add(number * stride(class)) };
        if class != usize::from(STACKLESS) {
            // SAFETY: the slot belongs to the caller and is unused.
            unsafe { memory::guard_page(NonNull::new(slot)?) }.ok()?;
        }
        let record = self.record(class, number)?;
        if class != usize::from(STACKLESS) {
            register_stack(slot.addr() + PAGE_BYTES, record.addr().get());
        }
        // SAFETY: the place of this slot's record: inside the reservation, aligned, and not used
        // yet.
        unsafe { record.write(Record::new(slot, class as u8)) };
        // SAFETY: written just now; a slot is never unmapped.
        Some(unsafe { record.as_ref() })
    }

    fn record(&self, class: usize, number: usize) -> Option<NonNull<Record>> {
        let address = self.address.load(Ordering::Acquire);
        // SAFETY: the record lies inside the reservation.
        let record = unsafe { address.add(number * stride(class) + record_offset(class, number)) };
        NonNull::new(record.cast())
    }
}

/// All slots ever cut, of all runtimes.
pub(crate) fn all() -> impl Iterator<Item = &'static Record> {
    ARENAS.iter().enumerate().flat_map(|(class, arena)| {
        arena.reservations.iter().flat_map(move |reservation| {
            let used = reservation.slots_used.load(Ordering::Acquire);
            (0..used).filter_map(move |number| {
                let record = reservation.record(class, number)?;
                // SAFETY: slots below `slots_used` are prepared.
                Some(unsafe { record.as_ref() })
            })
        })
    })
}

/// The record of the slot whose guard page contains `address`, so that its stack has overflowed.
pub(crate) fn overflowed(address: usize) -> Option<&'static Record> {
    for (class, arena) in ARENAS.iter().enumerate().skip(1) {
        for reservation in &arena.reservations {
            let start = reservation.address.load(Ordering::Acquire).addr();
            let used = reservation.slots_used.load(Ordering::Acquire);
            let within = address.wrapping_sub(start);
            if start != 0 && within / stride(class) < used && within % stride(class) < PAGE_BYTES {
                let record = reservation.record(class, within / stride(class))?;
                // SAFETY: slots below `slots_used` are prepared.
                return Some(unsafe { record.as_ref() });
            }
        }
    }
    None
}

impl Record {
    /// The addresses of its stack, up to the record; `None` if it has no stack.
    pub(crate) fn stack(&self) -> Option<Range<usize>> {
        let bottom = self.slot.get().expose_provenance() + PAGE_BYTES;
        let has_one = !self.is_stackless.get();
        has_one.then(|| bottom..ptr::from_ref(self).addr())
    }

    /// Returns the stack to the host, except for the page of the record. The slot is free, and
    /// owned by the caller.
    fn discard_stack(&self) {
        let bottom = self.slot.get().wrapping_add(PAGE_BYTES);
        let bytes = (ptr::from_ref(self).addr() & !(PAGE_BYTES - 1)) - bottom.addr();
        if let Some(bottom) = NonNull::new(bottom) {
            // SAFETY: between guard page and record of an unused slot.
            let discarded = unsafe { memory::discard(bottom, bytes) };
            // Only an injected fault makes this fail, which costs memory.
            let _costs_memory_at_most = discarded;
        }
    }
}

/// The most bytes below the record that a closure or a result may take in the slot.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 1024;

/// Where a value of type `P` lies in the slot: directly below the record.
pub(crate) fn payload<P>(record: &'static Record) -> *mut P {
    debug_assert!(size_of::<P>() <= PAYLOAD_BYTES_MAX && align_of::<P>() <= 64);
    let top = ptr::from_ref(record).cast::<u8>().cast_mut();
    top.map_addr(|top| (top - size_of::<P>()) & !(align_of::<P>() - 1)).cast()
}
