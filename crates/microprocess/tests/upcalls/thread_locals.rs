//! Thread-local values and `errno` belong to the kernel thread, also when it loses its virtual
//! processor.

use core::time::Duration;
use std::io::{Read, Write};

use kyocho_microprocess::{Detection, spawn, yield_now};

use super::on;
use super::watchdog::under_watchdog;

fn set_errno(value: i32) {
    // SAFETY: the address of this kernel thread's `errno`.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    unsafe { place.write(value) };
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

#[test]
fn preempted_code_keeps_its_thread_locals_and_errno() {
    thread_local!(static DEPTH: core::cell::Cell<u32> = const { core::cell::Cell::new(0) });
    under_watchdog("thread locals", || {
        on(1, Detection::Auto)
            .run(|| {
                let deadline = std::time::Instant::now() + Duration::from_millis(60);
                let hogs: Vec<_> = (1..=3)
                    .map(|number| {
                        spawn(move || {
                            DEPTH.set(number);
                            set_errno(number as i32);
                            while std::time::Instant::now() < deadline {}
                            // There was no call into the runtime: this is still the same kernel
                            // thread.
                            assert_eq!(DEPTH.get(), number);
                            assert_eq!(errno(), number as i32);
                        })
                    })
                    .collect();
                for hog in hogs {
                    hog.join().unwrap();
                }
            })
            .unwrap();
    });
}

thread_local!(static LOCAL: core::cell::Cell<u32> = const { core::cell::Cell::new(0) });

/// Not inlined: otherwise the compiler would keep the value's address across calls that change the
/// kernel thread.
#[inline(never)]
fn local() -> u32 {
    LOCAL.get()
}

#[test]
fn thread_locals_belong_to_the_kernel_thread() {
    under_watchdog("thread locals", || {
        on(1, Detection::Sentinel)
            .run(|| {
                let (mut reader, mut writer) = std::io::pipe().unwrap();
                LOCAL.set(1);
                // Keeps this kernel thread in the kernel until the write, so that another one takes
                // over.
                let sleeper = spawn(move || {
                    let before = local();
                    reader.read_exact(&mut [0]).unwrap();
                    // The same kernel thread: there was no call into the runtime.
                    assert_eq!((before, local()), (1, 1));
                });
                yield_now();
                assert_eq!(local(), 0, "the value of another kernel thread");
                writer.write_all(&[0]).unwrap();
                sleeper.join().unwrap();
            })
            .unwrap();
    });
}
