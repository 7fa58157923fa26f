//! A load with some of everything, for runs that are disturbed or last long.

use core::time::Duration;
use std::io::{Read, Write, pipe};
use std::sync::Arc;

use kyocho_microprocess::sync::{Mutex, Semaphore};
use kyocho_microprocess::{channel, park_timeout, spawn, yield_now};

pub(super) fn raw_sleep_ms(ms: i64) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: ms * 1_000_000 };
    // SAFETY: reads one timespec.
    unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, 0) };
}

/// Some of everything: messages, locks, memory, children, sleeps of both kinds. The result shows
/// whether anything was lost.
pub(super) fn mixed_round() -> usize {
    const MESSAGES: usize = 200;
    let (sender, receiver) = channel::bounded(4);
    let total = Arc::new(Mutex::new(0_usize));
    let slots = Arc::new(Semaphore::new(2));
    let workers: Vec<_> = (0..8)
        .map(|_| {
            let (receiver, total) = (receiver.clone(), Arc::clone(&total));
            let slots = Arc::clone(&slots);
            spawn(move || {
                for number in receiver {
                    slots.acquire();
                    let parts = vec![number; 3];
                    *total.lock().unwrap() += parts.into_iter().sum::<usize>() / 3;
                    slots.release();
                    if number % 50 == 0 {
                        raw_sleep_ms(1);
                    }
                }
            })
        })
        .collect();
    drop(receiver);
    for number in 1..=MESSAGES {
        sender.send(number).unwrap();
        if number % 64 == 0 {
            park_timeout(Duration::from_micros(100));
        }
    }
    drop(sender);
    let (mut reader, mut writer) = pipe().unwrap();
    let echo = spawn(move || {
        let mut byte = [0];
        reader.read_exact(&mut byte).unwrap();
        usize::from(byte[0])
    });
    yield_now();
    writer.write_all(&[7]).unwrap();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    let sum = *total.lock().unwrap();
    sum + echo.join().unwrap()
}

/// The result of [`mixed_round`].
pub(super) const MIXED: usize = 200 * 201 / 2 + 7;
