//! The program in each client of the FreeBSD personality: the launcher, followed by the emulation
//! library. The build script of `kyocho-unix` builds it.
#![no_std]
#![no_main]

use core::panic::PanicInfo;

kyocho_arch::emulation_image!(begin);

/// The launcher continues here once the program is mapped. `stack` is the host's first stack
/// pointer.
extern "C" fn begin(stack: u64) -> ! {
    kyocho_freebsd::begin(stack)
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    kyocho_arch::emulation::abort()
}
