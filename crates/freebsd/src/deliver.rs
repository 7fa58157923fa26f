//! Delivers a signal to the program: makes FreeBSD's frame for its handler from the host's, and
//! copies changes back.
//!
//! The host has chosen the stack already: the program's alternate one or its ordinary one, as the
//! program asked. What the handler changes in its context, above all the program counter, is copied
//! into the host's frame.
#![expect(unsafe_code, reason = "entered by the host; calls the program")]

use crate::errno::Errno;
use crate::frame::{Context, Info, Registers};
use crate::host::{Answer, number, pass};
use crate::signals::{self, BUS, SEGV, Set};
use crate::user::{self, plain};

/// FreeBSD's `siginfo_t`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct FreeBsdInfo {
    pub(crate) signal: i32,
    pub(crate) error: i32,
    pub(crate) code: i32,
    pub(crate) process: i32,
    pub(crate) user: u32,
    pub(crate) status: i32,
    pub(crate) address: u64,
    pub(crate) value: u64,
    pub(crate) reason: [u64; 5],
}

plain!(FreeBsdInfo);

/// FreeBSD's `mcontext_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Machine {
    on_stack: u64,
    rdi: u64,
    rsi: u64,
    rdx: u64,
    rcx: u64,
    r8: u64,
    r9: u64,
    rax: u64,
    rbx: u64,
    rbp: u64,
    r10: u64,
    r11: u64,
    r12: u64,
    r13: u64,
    r14: u64,
    r15: u64,
    trap: u32,
    segments_f_g: u32,
    fault_address: u64,
    flags: u32,
    segments_e_d: u32,
    error: u64,
    rip: u64,
    cs: u64,
    rflags: u64,
    rsp: u64,
    ss: u64,
    bytes: u64,
    float_format: u64,
    float_owner: u64,
    float: [u64; 64],
    bases_and_spare: [u64; 8],
}

/// FreeBSD's `ucontext_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct FreeBsdContext {
    mask: Set,
    machine: Machine,
    link: u64,
    stack: [u64; 3],
    flags: u32,
    spare: [u32; 7],
}

const MACHINE_BYTES: u64 = 800;
const CODE_SEGMENT: u64 = 0x43;
const STACK_SEGMENT: u64 = 0x3b;
/// The frame has no floating-point state. The host's has.
const NO_FLOAT: u64 = 0x10000;

impl Machine {
    fn new(registers: &Registers) -> Self {
        let from = registers;
        Self {
            on_stack: 0,
            rdi: from.rdi,
            rsi: from.rsi,
            rdx: from.rdx,
            rcx: from.rcx,
            r8: from.r8,
            r9: from.r9,
            rax: from.rax,
            rbx: from.rbx,
            rbp: from.rbp,
            r10: from.r10,
            r11: from.r11,
            r12: from.r12,
            r13: from.r13,
            r14: from.r14,
            r15: from.r15,
            trap: from.trap as u32,
            segments_f_g: 0,
            fault_address: from.fault_address,
            flags: 0,
            segments_e_d: 0,
            error: from.error,
            rip: from.rip,
            cs: CODE_SEGMENT,
            rflags: from.flags,
            rsp: from.rsp,
            ss: STACK_SEGMENT,
            bytes: MACHINE_BYTES,
            float_format: NO_FLOAT,
            float_owner: NO_FLOAT * 2,
            float: [0; 64],
            bases_and_spare: [0; 8],
        }
    }

    /// Copies what the handler may have changed.
    fn restore(&self, registers: &mut Registers) {
        *registers = Registers {
            rdi: self.rdi,
            rsi: self.rsi,
            rdx: self.rdx,
            rcx: self.rcx,
            r8: self.r8,
            r9: self.r9,
            rax: self.rax,
            rbx: self.rbx,
            rbp: self.rbp,
            r10: self.r10,
            r11: self.r11,
            r12: self.r12,
            r13: self.r13,
            r14: self.r14,
            r15: self.r15,
            rip: self.rip,
            flags: self.rflags,
            rsp: self.rsp,
            ..*registers
        };
    }
}

/// FreeBSD's information about a signal for which the host gives `info`.
pub(crate) fn translate(info: &Info) -> FreeBsdInfo {
    const CHILD: i32 = 17;
    const FAULTS: [i32; 5] = [4, 5, 7, 8, 11];
    const ENDED_BY_SIGNAL: core::ops::RangeInclusive<i32> = 2..=6;
    let mut ours = FreeBsdInfo {
        signal: signals::from_host(info.signal as u32) as i32,
        code: code(info),
        ..FreeBsdInfo::default()
    };
    if info.code > 0 && FAULTS.contains(&info.signal) {
        ours.address = info.address();
        return ours;
    }
    (ours.process, ours.user) = (info.process(), info.user());
    if info.signal == CHILD {
        let by_signal = ENDED_BY_SIGNAL.contains(&info.code);
        ours.status = match info.status() {
            signal if by_signal => signals::from_host(signal as u32) as i32,
            status => status,
        };
    } else {
        ours.value = info.value();
    }
    ours
}

/// FreeBSD's number for the reason.
fn code(info: &Info) -> i32 {
    const FLOAT: i32 = 8;
    const BY_USER: i32 = 0x10000;
    match (info.signal, info.code) {
        (_, 0) => BY_USER | 1,
        (_, -1) => BY_USER | 2,
        (_, -2) => BY_USER | 3,
        (_, -4) => BY_USER | 4,
        (_, -3) => BY_USER | 5,
        (_, 0x80) => BY_USER | 6,
        (_, -6) => BY_USER | 7,
        // The numbers of integer division and integer overflow are exchanged.
        (FLOAT, 1) => 2,
        (FLOAT, 2) => 1,
        (_, code) => code,
    }
}

/// The host's handler of memory faults, and of all signals that the program handles.
pub(crate) extern "C" fn on_signal(signal: u32, info: &Info, context: &mut Context) {
    let after = kyocho_arch::emulation::after_fault(context.registers.rip);
    if let (SEGV | BUS, Some(after)) = (signal, after) {
        context.registers.rip = after;
        return;
    }
    deliver(signal, info, context);
}

/// Calls the program's handler, or does what the program asked for if it has none.
pub(crate) fn deliver(signal: u32, info: &Info, context: &mut Context) {
    let ours = signals::from_host(signal);
    let action = signals::action(ours);
    if !action.is_handled() {
        const BY_PROCESSES: i32 = 0;
        let ignored = action.handler == 1 && info.code <= BY_PROCESSES;
        if !ignored {
            // If the process cannot end itself here, it continues and ends at the next fault.
            let _ = end_by(signal);
        }
        return;
    }
    signals::note_call(ours, &action);
    let info = translate(info);
    let mut frame = FreeBsdContext {
        mask: signals::set_from_host(context.mask),
        machine: Machine::new(&context.registers),
        link: 0,
        stack: [context.stack.address, context.stack.bytes, 0],
        flags: 0,
        spare: [0; 7],
    };
    let handler = core::ptr::with_exposed_provenance::<()>(action.handler as usize);
    // SAFETY: the program says that a handler is at this address.
    let handler: extern "C" fn(u32, *const FreeBsdInfo, *mut FreeBsdContext) =
        unsafe { core::mem::transmute(handler) };
    handler(ours, &raw const info, &raw mut frame);
    context.mask = signals::set_to_host(frame.mask);
    frame.machine.restore(&mut context.registers);
}

/// Ends the process by `signal`, which only this library handled. It arrives when the frame is
/// gone.
fn end_by(signal: u32) -> Answer {
    signals::reset(signal)?;
    let (process, thread) = (pass(number::GETPID, &[])?, pass(number::GETTID, &[])?);
    pass(number::TGKILL, &[process, thread, u64::from(signal)])
}

/// `sigwaitinfo`, `sigtimedwait`, `sigwait`: waits for a signal in `set`, and writes its
/// information to `info`.
pub(crate) fn wait(set: u64, info: u64, timeout: u64) -> Result<u32, Errno> {
    let set = signals::set_to_host(user::read(set)?);
    let mut came = Info::NONE;
    let words = [
        crate::host::address_of(&set),
        crate::host::address(&mut came),
        timeout,
        size_of::<u64>() as u64,
    ];
    let signal = pass(number::RT_SIGTIMEDWAIT, &words)?;
    user::write_if_wanted(info, &translate(&came))?;
    Ok(signals::from_host(signal as u32))
}

#[cfg(test)]
mod tests {
    use super::{FreeBsdContext, FreeBsdInfo, Machine, translate};
    use crate::frame::{Info, Registers};
    use core::mem::offset_of;

    #[test]
    fn the_layouts_are_freebsds() {
        assert_eq!(size_of::<Machine>(), 800);
        assert_eq!(offset_of!(Machine, rip), 160);
        assert_eq!(offset_of!(Machine, rsp), 184);
        assert_eq!(size_of::<FreeBsdContext>(), 880);
        assert_eq!(offset_of!(FreeBsdContext, machine), 16);
        assert_eq!(size_of::<FreeBsdInfo>(), 80);
    }

    #[test]
    fn a_handler_that_changes_nothing_leaves_the_registers_as_they_are() {
        let before =
            Registers { rip: 7, rsp: 8, r15: 9, rax: 10, error: 11, ..Registers::default() };
        let mut after = before;
        Machine::new(&before).restore(&mut after);
        assert_eq!(format!("{after:?}"), format!("{before:?}"));
    }

    #[test]
    fn a_fault_carries_its_address_and_a_child_its_number() {
        let mut info = Info { signal: 11, code: 1, ..Info::NONE };
        info.rest[0] = 0x1234;
        let fault = translate(&info);
        assert_eq!((fault.signal, fault.code, fault.address, fault.process), (11, 1, 0x1234, 0));
        let mut info = Info { signal: 17, code: 2, ..Info::NONE };
        (info.rest[0], info.rest[1]) = (5 | 1000 << 32, 10);
        let child = translate(&info);
        assert_eq!((child.signal, child.process, child.user, child.status), (20, 5, 1000, 30));
        assert_eq!(translate(&Info { signal: 15, ..Info::NONE }).code, 0x10001);
    }
}
