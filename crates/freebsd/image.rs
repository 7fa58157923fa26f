//! The program that stands in clients of the FreeBSD personality: the launcher, and behind it the emulation library. `kyocho-unix` has it built.
#![no_std]
#![no_main]

use core::panic::PanicInfo;

kyocho_arch::emulation_image!(begin);

/// Where the launcher goes on when the program is mapped; `stack` is the host's first stack pointer.
extern "C" fn begin(stack: u64) -> ! {
    kyocho_freebsd::begin(stack)
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    kyocho_arch::emulation::abort()
}
