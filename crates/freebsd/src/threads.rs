//! Threads, and waiting for words of memory.

use crate::errno::Errno;
use crate::frame::{AlternateStack, Context};
use crate::host::{Answer, DONE, address, address_of, number, pass};
use crate::user::{self, plain};
use kyocho_arch::emulation;

/// The arguments of `thr_new`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct NewThread {
    start: u64,
    argument: u64,
    stack: u64,
    stack_bytes: u64,
    pointer: u64,
    pointer_bytes: u64,
    for_child: u64,
    for_parent: u64,
    flags: u64,
    real_time: u64,
    spare: [u64; 3],
}

plain!(NewThread);

/// `thr_new`.
#[expect(unsafe_code, reason = "starts a thread")]
pub(crate) fn start(place: u64, bytes: u64) -> Answer {
    /// A thread that shares everything, with a thread pointer. Its number is written for both
    /// threads.
    const FLAGS: u64 = 0x100 | 0x200 | 0x400 | 0x800 | 0x1_0000 | 0x4_0000 | 0x8_0000;
    const TELL_PARENT: u64 = 0x10_0000;
    const TELL_CHILD: u64 = 0x100_0000;
    if bytes != size_of::<NewThread>() as u64 {
        return Err(Errno::INVAL);
    }
    let wanted: NewThread = user::read(place)?;
    let top = wanted.stack.checked_add(wanted.stack_bytes).ok_or(Errno::INVAL)? & !15;
    // The first instruction, its argument, and an invalid return address.
    let begin = [wanted.start, wanted.argument, 0];
    let stack = top.checked_sub(size_of_val(&begin) as u64).ok_or(Errno::INVAL)?;
    user::write(stack, &begin)?;
    let mut flags = FLAGS;
    for (place, flag) in [(wanted.for_parent, TELL_PARENT), (wanted.for_child, TELL_CHILD)] {
        if place != 0 {
            // The host writes only the low half.
            user::write(place, &0_u64)?;
            flags |= flag;
        }
    }
    // SAFETY: the words are on the stack that the program provides, and the program provides both
    // places.
    let answer = unsafe {
        emulation::thread(flags, stack, wanted.for_parent, wanted.for_child, wanted.pointer)
    };
    if answer < 0 { Err(Errno(-answer as i32)) } else { DONE }
}

/// The size of stacks that the library lends. They are recognised by it: programs use no such size.
const LENT_BYTES: u64 = 0x8010;

/// `sigaltstack`. The stack is changed at once, and in the host's frame, because the host sets it
/// again when the frame is gone.
///
/// A program that removes its alternate stack may free its ordinary stack next, and then end the
/// thread. The trap of that last call must not use either of them. So the library lends the thread
/// a stack, which is freed when the thread ends.
pub(crate) fn alternate_stack(new: u64, old: u64, context: &mut Context) -> Answer {
    const DISABLED: u64 = 4;
    const ON_STACK: u64 = 1;
    const HOST_DISABLED: u32 = 2;
    const LEAST_BYTES: u64 = 2048;
    let stack = context.stack;
    let none = stack.flags & HOST_DISABLED != 0 || is_lent(context);
    let within = stack.address..stack.address.saturating_add(stack.bytes);
    let standing = !none && within.contains(&context.registers.rsp);
    let state = if none { DISABLED } else { u64::from(standing) * ON_STACK };
    let before = if none { [0, 0, DISABLED] } else { [stack.address, stack.bytes, state] };
    if new != 0 {
        let [place, bytes, flags]: [u64; 3] = user::read(new)?;
        if standing {
            return Err(Errno(1));
        }
        if flags & DISABLED != 0 {
            lend(context)?;
        } else if bytes < LEAST_BYTES {
            return Err(Errno::NOMEM);
        } else {
            change(context, AlternateStack { address: place, flags: 0, padding: 0, bytes })?;
        }
    }
    user::write_if_wanted(old, &before)?;
    DONE
}

fn is_lent(context: &Context) -> bool {
    context.stack.bytes == LENT_BYTES
}

fn lend(context: &mut Context) -> Result<(), Errno> {
    const READ_WRITE: u64 = 3;
    const PRIVATE_NAMELESS: u64 = 0x22;
    if is_lent(context) {
        return Ok(());
    }
    let words = [0, LENT_BYTES, READ_WRITE, PRIVATE_NAMELESS, u64::MAX, 0];
    let address = pass(number::MMAP, &words)?;
    change(context, AlternateStack { address, flags: 0, padding: 0, bytes: LENT_BYTES })
}

/// Makes `stack` the alternate one. A lent stack that is replaced is not unmapped, because the
/// library may be running on it. Programs remove and install theirs once, so this happens rarely.
#[expect(unsafe_code, reason = "a call with another stack pointer")]
fn change(context: &mut Context, stack: AlternateStack) -> Result<(), Errno> {
    const SET: u64 = 2;
    let (mut all, mut before) = (u64::MAX, 0_u64);
    pass(number::RT_SIGPROCMASK, &[SET, address(&mut all), address(&mut before), 8])?;
    // SAFETY: every signal is blocked.
    let answer =
        unsafe { emulation::set_alternate_stack(address_of(&stack), context.registers.rsp) };
    pass(number::RT_SIGPROCMASK, &[SET, address(&mut before), 0, 8])?;
    if answer < 0 {
        return Err(Errno(-answer as i32));
    }
    context.stack = stack;
    Ok(())
}

/// `thr_exit`: wakes threads that wait for `state`, and ends the thread.
#[expect(unsafe_code, reason = "ends a thread on its own stack")]
pub(crate) fn end(state: u64, context: &Context) -> Answer {
    let mut all = u64::MAX;
    const SET: u64 = 2;
    pass(number::RT_SIGPROCMASK, &[SET, address(&mut all), 0, 8])?;
    if state != 0 && user::write(state, &1_u64).is_ok() {
        let _ = pass(number::FUTEX, &[state, WAKE, i32::MAX as u64]);
    }
    let (stack, bytes) =
        if is_lent(context) { (context.stack.address, LENT_BYTES) } else { (0, 0) };
    // SAFETY: every signal is blocked, and nothing of this thread runs afterwards.
    unsafe { emulation::leave(stack, bytes) }
}

/// `thr_self`.
pub(crate) fn own_number(place: u64) -> Answer {
    let thread = pass(number::GETTID, &[])?;
    user::write(place, &thread)?;
    DONE
}

/// `sysarch`: sets thread pointers.
pub(crate) fn set_pointer(request: u64, place: u64) -> Answer {
    const GET_FS: u64 = 128;
    const SET_FS: u64 = 129;
    const GET_GS: u64 = 130;
    const SET_GS: u64 = 131;
    match request {
        SET_FS => pass(number::ARCH_PRCTL, &[0x1002, user::read(place)?]),
        SET_GS => pass(number::ARCH_PRCTL, &[0x1001, user::read(place)?]),
        GET_FS => pass(number::ARCH_PRCTL, &[0x1003, place]),
        GET_GS => pass(number::ARCH_PRCTL, &[0x1004, place]),
        _ => Err(Errno::INVAL),
    }
}

const WAIT: u64 = 0;
const WAKE: u64 = 1;
const WAIT_UNTIL: u64 = 9;
const PRIVATE: u64 = 128;
const REAL_TIME: u64 = 256;
const ANY: u64 = 0xffff_ffff;

/// `_umtx_op`: the operations that wait for a word and wake its waiters.
pub(crate) fn wait_or_wake(words: &[u64; 6]) -> Answer {
    let [place, operation, value, bytes, time, _] = *words;
    match operation {
        2 => {
            // The word has eight bytes, of which the host compares four. A change of the others is
            // found only if it was made before the wait.
            let now: u64 = user::read(place)?;
            if now == value { wait(place, value, 0, bytes, time) } else { DONE }
        }
        3 => pass(number::FUTEX, &[place, WAKE, value]).and(DONE),
        11 => wait(place, value, 0, bytes, time),
        15 => wait(place, value, PRIVATE, bytes, time),
        16 => pass(number::FUTEX, &[place, WAKE | PRIVATE, value]).and(DONE),
        _ => Err(Errno::INVAL),
    }
}

/// Waits while the word at `place` is `value`. The `bytes` at `time` are the time limit.
fn wait(place: u64, value: u64, private: u64, bytes: u64, time: u64) -> Answer {
    let answer = if time == 0 {
        pass(number::FUTEX, &[place, WAIT | private, value])
    } else {
        let (limit, absolute, clock) = limit(bytes, time)?;
        let operation = match (absolute, clock) {
            (false, _) => WAIT,
            (true, 0) => WAIT_UNTIL | REAL_TIME,
            (true, _) => WAIT_UNTIL,
        };
        pass(number::FUTEX, &[place, operation | private, value, address_of(&limit), 0, ANY])
    };
    match answer {
        // The word had changed.
        Err(Errno::AGAIN) => DONE,
        other => other.and(DONE),
    }
}

/// A time limit, whether it is absolute, and the host's number of its clock.
fn limit(bytes: u64, time: u64) -> Result<([u64; 2], bool, u64), Errno> {
    const PLAIN_BYTES: u64 = 16;
    const ABSOLUTE: u32 = 1;
    let limit = user::read(time)?;
    if bytes <= PLAIN_BYTES {
        return Ok((limit, false, 0));
    }
    let [flags, clock]: [u32; 2] = user::read(time + PLAIN_BYTES)?;
    Ok((limit, flags & ABSOLUTE != 0, crate::time::clock(u64::from(clock))?))
}

/// `cpuset_getaffinity`: the processors that the caller may use.
pub(crate) fn processors(bytes: u64, place: u64) -> Answer {
    let mut mask = [0_u64; 16];
    const MASK_BYTES: u64 = 128;
    pass(number::SCHED_GETAFFINITY, &[0, MASK_BYTES, address(&mut mask)])?;
    let mut set = [0; MASK_BYTES as usize];
    for (to, from) in set.chunks_exact_mut(8).zip(mask) {
        to.copy_from_slice(&from.to_ne_bytes());
    }
    if bytes > MASK_BYTES || set[bytes as usize..].iter().any(|byte| *byte != 0) {
        return Err(Errno::RANGE);
    }
    user::write_bytes(place, &set[..bytes as usize])?;
    DONE
}

#[cfg(test)]
mod tests {
    use super::{alternate_stack, processors, wait_or_wake};
    use crate::errno::Errno;
    use crate::frame::{AlternateStack, Context};
    use crate::host::{address, address_of};

    #[test]
    fn a_word_that_changed_is_not_waited_for_and_a_limit_ends_the_wait() {
        let mut word = 5_u32;
        let place = address(&mut word);
        assert_eq!(wait_or_wake(&[place, 15, 4, 0, 0, 0]), Ok(0));
        let time = [0_u64, 1_000_000, 4 << 32];
        let limited = [place, 15, 5, 24, address_of(&time), 0];
        assert_eq!(wait_or_wake(&limited), Err(Errno(libc::ETIMEDOUT)));
        // A time of the clock that is long past.
        let time = [0_u64, 1, 4 << 32 | 1];
        let limited = [place, 11, 5, 24, address_of(&time), 0];
        assert_eq!(wait_or_wake(&limited), Err(Errno(libc::ETIMEDOUT)));
        assert_eq!(wait_or_wake(&[place, 16, 1, 0, 0, 0]), Ok(0));
        assert_eq!(wait_or_wake(&[place, 99, 1, 0, 0, 0]), Err(Errno::INVAL));
    }

    #[test]
    fn there_is_a_processor() {
        let mut mask = [0_u8; 128];
        assert_eq!(processors(128, address(&mut mask)), Ok(0));
        assert!(mask.iter().any(|byte| *byte != 0));
        assert_eq!(processors(1 << 20, address(&mut mask)), Err(Errno::RANGE));
    }

    #[test]
    fn a_thread_without_an_alternate_stack_gets_one_and_reads_that_it_has_none() {
        // A thread of its own, so that no other test uses its stacks.
        std::thread::spawn(alternate_stacks).join().unwrap();
    }

    fn alternate_stacks() {
        let none = AlternateStack { flags: 2, ..AlternateStack::default() };
        let mut context = Context { stack: none, ..Context::default() };
        let mut old = [9_u64; 3];
        let disable = [0_u64, 0, 4];
        assert_eq!(alternate_stack(address_of(&disable), address(&mut old), &mut context), Ok(0));
        assert_eq!(old, [0, 0, 4]);
        assert!(context.stack.address != 0 && context.stack.flags == 0);
        let own = [0x7000_0000_u64, 0x8000, 0];
        assert_eq!(alternate_stack(address_of(&own), address(&mut old), &mut context), Ok(0));
        assert_eq!(old, [0, 0, 4]);
        assert_eq!(alternate_stack(0, address(&mut old), &mut context), Ok(0));
        assert_eq!(old, own);
        context.registers.rsp = 0x7000_0100;
        assert_eq!(alternate_stack(address_of(&disable), 0, &mut context), Err(Errno(libc::EPERM)));
    }
}
