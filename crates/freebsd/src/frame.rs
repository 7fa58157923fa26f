//! The frame that the host's kernel pushes for a signal handler, and reads when the handler
//! returns: layouts of x86-64 Linux.

/// The interrupted registers. They are restored when the handler returns.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Registers {
    pub(crate) r8: u64,
    pub(crate) r9: u64,
    pub(crate) r10: u64,
    pub(crate) r11: u64,
    pub(crate) r12: u64,
    pub(crate) r13: u64,
    pub(crate) r14: u64,
    pub(crate) r15: u64,
    pub(crate) rdi: u64,
    pub(crate) rsi: u64,
    pub(crate) rbp: u64,
    pub(crate) rbx: u64,
    pub(crate) rdx: u64,
    pub(crate) rax: u64,
    pub(crate) rcx: u64,
    pub(crate) rsp: u64,
    pub(crate) rip: u64,
    pub(crate) flags: u64,
    pub(crate) segments: u64,
    pub(crate) error: u64,
    pub(crate) trap: u64,
    pub(crate) old_mask: u64,
    pub(crate) fault_address: u64,
}

/// The alternate stack. When the handler returns, the host sets it to what is here.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct AlternateStack {
    pub(crate) address: u64,
    pub(crate) flags: u32,
    pub(crate) padding: u32,
    pub(crate) bytes: u64,
}

/// `ucontext_t`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Context {
    pub(crate) flags: u64,
    pub(crate) link: u64,
    pub(crate) stack: AlternateStack,
    pub(crate) registers: Registers,
    /// The address of the floating-point state. The words after it are unused.
    pub(crate) state: u64,
    pub(crate) reserved: [u64; 8],
    /// The signals that are blocked once the handler has returned.
    pub(crate) mask: u64,
}

/// `siginfo_t`. Its members depend on the signal.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Info {
    pub(crate) signal: i32,
    pub(crate) error: i32,
    pub(crate) code: i32,
    pub(crate) padding: i32,
    pub(crate) rest: [u64; 14],
}

impl Info {
    pub(crate) const NONE: Self = Self { signal: 0, error: 0, code: 0, padding: 0, rest: [0; 14] };

    /// The process that sent the signal, or that ended.
    pub(crate) fn process(&self) -> i32 {
        self.rest[0] as i32
    }

    pub(crate) fn user(&self) -> u32 {
        (self.rest[0] >> 32) as u32
    }

    /// The exit status or signal of a child.
    pub(crate) fn status(&self) -> i32 {
        self.rest[1] as i32
    }

    /// The value that was queued with it.
    pub(crate) fn value(&self) -> u64 {
        self.rest[1]
    }

    /// The address of the fault.
    pub(crate) fn address(&self) -> u64 {
        self.rest[0]
    }
}

#[cfg(test)]
mod tests {
    use super::{Context, Info};
    use core::mem::offset_of;

    #[test]
    fn the_layouts_are_the_hosts() {
        assert_eq!(offset_of!(Context, stack), offset_of!(libc::ucontext_t, uc_stack));
        assert_eq!(offset_of!(Context, registers), offset_of!(libc::ucontext_t, uc_mcontext));
        assert_eq!(offset_of!(Context, mask), offset_of!(libc::ucontext_t, uc_sigmask));
        assert_eq!(size_of::<Info>(), size_of::<libc::siginfo_t>());
        let place = offset_of!(Context, registers.rip) - offset_of!(Context, registers);
        assert_eq!(place, 8 * libc::REG_RIP as usize);
        let place = offset_of!(Context, registers.fault_address) - offset_of!(Context, registers);
        assert_eq!(place, 8 * libc::REG_CR2 as usize);
    }
}
