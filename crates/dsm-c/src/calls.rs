//! Functions that return an error number: everything that a Rust program can ask for.
#![expect(unsafe_code, reason = "exports symbols and follows C's pointers")]

use core::ffi::{c_char, c_int, c_void};
use core::ops::Range;
use core::time::Duration;

use kyocho_dsm::{
    BarrierKind, ConditionId, Dsm, LockId, Mode, NodeId, PageId, Placement, RegionSettings,
    Settings, Waiters,
};

use crate::node::{
    Failure, Result, answer, attach, detach, enter, leave, share, unshare, with, with_either, words,
};

/// `kyocho_dsm_settings_t`
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct CSettings {
    memory_bytes: usize,
    locks: u32,
}

/// `kyocho_dsm_region_t`
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct CRegion {
    bytes: usize,
    placement: c_int,
    node: u32,
    address: u64,
    here: *mut c_void,
}

/// `KYOCHO_DSM_ANYWHERE`
const ANYWHERE: u64 = u64::MAX;

/// `kyocho_dsm_statistics_t`
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct CStatistics {
    messages_sent: u64,
    bytes_sent: u64,
    messages_received: u64,
    bytes_received: u64,
    read_faults: u64,
    write_faults: u64,
    pages_compared: u64,
    words_written: u64,
    locks: u64,
    barriers: u64,
    detecting_ns: u64,
    fetching_ns: u64,
    locking_ns: u64,
    at_barriers_ns: u64,
}

fn invalid(what: &str) -> Failure {
    Failure::Invalid(what.to_owned())
}

fn node_of(number: u32) -> Result<NodeId> {
    u16::try_from(number)
        .map(NodeId)
        .map_err(|_| Failure::Invalid(format!("there is no node {number}")))
}

fn mode_of(number: c_int) -> Result<Mode> {
    match number {
        0 => Ok(Mode::Exclusive),
        1 => Ok(Mode::NonExclusive),
        _ => Err(invalid("the mode must be KYOCHO_DSM_EXCLUSIVE or KYOCHO_DSM_NON_EXCLUSIVE")),
    }
}

fn placement_of(placement: c_int, node: u32) -> Result<Placement> {
    match placement {
        0 => Ok(Placement::On(node_of(node)?)),
        1 => Ok(Placement::Blocks),
        2 => Ok(Placement::Cyclic),
        _ => Err(invalid("the placement must be KYOCHO_DSM_ON, _BLOCKS or _CYCLIC")),
    }
}

/// A range of addresses in this process.
fn addresses_of(first: *const c_void, bytes: usize) -> Range<usize> {
    first.addr()..first.addr().saturating_add(bytes)
}

fn in_shared_memory(pages: Option<Vec<PageId>>) -> Result<Vec<PageId>> {
    pages.ok_or_else(|| invalid("these bytes are not in shared memory"))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_dsm_join(settings: *const CSettings) -> c_int {
    answer(|| {
        // SAFETY: null, or what the header promises.
        let settings = unsafe { settings.as_ref() }.map_or_else(Settings::default, |given| {
            Settings { memory_bytes: given.memory_bytes, locks: given.locks }
        });
        enter(|| Ok(Dsm::join(settings)?))
    })
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_dsm_leave() -> c_int {
    answer(leave)
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_dsm_share(threads: u32) -> c_int {
    answer(|| {
        let possible = u16::try_from(threads).ok().filter(|threads| (1..1 << 15).contains(threads));
        share(possible.ok_or_else(|| invalid("a node can have 1 to 32767 threads"))?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_dsm_attach_thread() -> c_int {
    answer(attach)
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_dsm_detach_thread() -> c_int {
    answer(detach)
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_dsm_unshare() -> c_int {
    answer(unshare)
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_dsm_rank() -> u32 {
    with_either!(|dsm| Ok(dsm.rank().into())).unwrap_or(0)
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_dsm_nodes() -> u32 {
    with_either!(|dsm| Ok(dsm.nodes().into())).unwrap_or(0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_dsm_error(text: *mut c_char, bytes: usize) -> usize {
    let words = words();
    if !text.is_null() && bytes > 0 {
        let kept = words.len().min(bytes - 1);
        // SAFETY: the caller's promise: room for `bytes`, and `kept` is less.
        unsafe { text.copy_from_nonoverlapping(words.as_ptr().cast(), kept) };
        // SAFETY: as above.
        let end = unsafe { text.add(kept) };
        // SAFETY: as above.
        unsafe { end.write(0) };
    }
    words.len()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_dsm_allocate(
    place: *mut *mut c_void,
    bytes: usize,
    placement: c_int,
    node: u32,
) -> c_int {
    answer(|| {
        let placement = placement_of(placement, node)?;
        // SAFETY: the caller's promise: null, or room for a pointer.
        let place = unsafe { place.as_mut() }
            .ok_or_else(|| invalid("the pointer for the address is null"))?;
        with(|dsm| {
            let array = dsm.allocate::<u32>(bytes.div_ceil(4), placement)?;
            *place = dsm.cells(&array).as_ptr().cast::<c_void>().cast_mut();
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_dsm_region(number: *mut u32, region: *const CRegion) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise: null, or room for a number.
        let number = unsafe { number.as_mut() }
            .ok_or_else(|| invalid("the pointer for the number is null"))?;
        // SAFETY: null, or what the header promises.
        let wanted =
            unsafe { region.as_ref() }.ok_or_else(|| invalid("the region is a null pointer"))?;
        let settings = RegionSettings {
            bytes: wanted.bytes,
            placement: placement_of(wanted.placement, wanted.node)?,
            address: Some(wanted.address).filter(|address| *address != ANYWHERE),
            here: Some(wanted.here.addr()).filter(|here| *here != 0),
        };
        *number = with_either!(|dsm| Ok(dsm.region(settings)?))?.number().into();
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_dsm_region_allocate(
    number: u32,
    place: *mut *mut c_void,
    bytes: usize,
) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise: null, or room for a pointer.
        let place = unsafe { place.as_mut() }
            .ok_or_else(|| invalid("the pointer for the address is null"))?;
        with_either!(|dsm| {
            let region = u16::try_from(number).ok().and_then(|number| dsm.numbered(number));
            let region = region.ok_or_else(|| invalid("there is no region of that number"))?;
            let array = dsm.array::<u32>(region, bytes.div_ceil(4))?;
            *place = dsm.cells(&array).as_ptr().cast::<c_void>().cast_mut();
            Ok(())
        })
    })
}

fn acquired(outcome: bool, otherwise: Failure) -> Result<()> {
    if outcome { Ok(()) } else { Err(otherwise) }
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_dsm_acquire(lock: u32, mode: c_int) -> c_int {
    answer(|| {
        let mode = mode_of(mode)?;
        with_either!(|dsm| Ok(dsm.acquire(LockId(lock), mode)?))
    })
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_dsm_try_acquire(lock: u32, mode: c_int) -> c_int {
    answer(|| {
        let mode = mode_of(mode)?;
        with_either!(|dsm| acquired(dsm.try_acquire(LockId(lock), mode)?, Failure::Busy))
    })
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_dsm_acquire_within(lock: u32, mode: c_int, limit_ns: u64) -> c_int {
    answer(|| {
        let (mode, limit) = (mode_of(mode)?, Duration::from_nanos(limit_ns));
        with_either!(|dsm| acquired(
            dsm.acquire_within(LockId(lock), mode, limit)?,
            Failure::TimedOut
        ))
    })
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_dsm_release(lock: u32) -> c_int {
    answer(|| with_either!(|dsm| Ok(dsm.release(LockId(lock))?)))
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_dsm_publish(lock: u32) -> c_int {
    answer(|| with_either!(|dsm| Ok(dsm.publish(LockId(lock))?)))
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_dsm_wait(lock: u32, condition: u32) -> c_int {
    answer(|| with_either!(|dsm| Ok(dsm.wait(LockId(lock), ConditionId(condition))?)))
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_dsm_signal(lock: u32, condition: u32) -> c_int {
    answer(|| {
        with_either!(|dsm| Ok(dsm.signal(LockId(lock), ConditionId(condition), Waiters::One)?))
    })
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_dsm_broadcast(lock: u32, condition: u32) -> c_int {
    answer(|| {
        with_either!(|dsm| Ok(dsm.signal(LockId(lock), ConditionId(condition), Waiters::All)?))
    })
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_dsm_barrier(kind: c_int) -> c_int {
    answer(|| {
        let kind = match kind {
            0 => BarrierKind::Ordinary,
            1 => BarrierKind::SingleReadWrite,
            _ => return Err(invalid("the kind must be KYOCHO_DSM_ORDINARY or _SINGLE_READ_WRITE")),
        };
        with_either!(|dsm| Ok(dsm.barrier(kind)?))
    })
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_dsm_move_lock(lock: u32, node: u32) -> c_int {
    answer(|| {
        let node = node_of(node)?;
        with(|dsm| Ok(dsm.move_lock(LockId(lock), node)?))
    })
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_dsm_move_pages(memory: *const c_void, bytes: usize, node: u32) -> c_int {
    answer(|| {
        let node = node_of(node)?;
        with(|dsm| {
            for page in in_shared_memory(dsm.pages_at(addresses_of(memory, bytes)))? {
                dsm.move_page(page, node)?;
            }
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn kyocho_dsm_fetch(memory: *const c_void, bytes: usize) -> c_int {
    answer(|| {
        with_either!(|dsm| {
            for page in in_shared_memory(dsm.pages_at(addresses_of(memory, bytes)))? {
                dsm.fetch(page)?;
            }
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_dsm_statistics(place: *mut CStatistics) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise: null, or room for the structure.
        let place = unsafe { place.as_mut() }
            .ok_or_else(|| invalid("the pointer for the counters is null"))?;
        let counted = with_either!(|dsm| Ok(dsm.statistics()))?;
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        *place = CStatistics {
            messages_sent: counted.traffic.messages_sent,
            bytes_sent: counted.traffic.bytes_sent,
            messages_received: counted.traffic.messages_received,
            bytes_received: counted.traffic.bytes_received,
            read_faults: counted.read_faults,
            write_faults: counted.write_faults,
            pages_compared: counted.pages_compared,
            words_written: counted.words_written,
            locks: counted.locks,
            barriers: counted.barriers,
            detecting_ns: ns(counted.detecting()),
            fetching_ns: ns(counted.fetching),
            locking_ns: ns(counted.locking),
            at_barriers_ns: ns(counted.at_barriers),
        };
        Ok(())
    })
}
