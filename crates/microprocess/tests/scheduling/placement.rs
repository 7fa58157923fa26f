//! Pins, and virtual processors that retire and return.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::Arc;

use kyocho_microprocess::{
    Builder, ConcurrencyError, Microprocess, concurrency, set_concurrency, sleep, spawn,
    statistics, virtual_processor, yield_now,
};

use super::{mixture, on, policies, raw_sleep_ms, under_watchdog};

#[test]
fn pinned_microprocesses_stay_and_others_are_shared() {
    under_watchdog("pinned", || {
        let counted = on(2).build().run(|| {
            let handles: Vec<_> = (0..40)
                .map(|number| {
                    let builder = Builder::new().virtual_processor(number % 2);
                    let body = move || {
                        for _ in 0..200 {
                            assert_eq!(virtual_processor(), number % 2);
                            if number % 7 == 0 {
                                raw_sleep_ms(1);
                                assert_eq!(virtual_processor(), number % 2);
                                sleep(Duration::from_micros(100));
                            }
                            yield_now();
                        }
                    };
                    builder.spawn(body).unwrap()
                })
                .collect();
            handles.into_iter().for_each(|handle| handle.join().unwrap());
            assert_eq!(concurrency(), 2);
            statistics()
        });
        // Only main may move.
        let counted = counted.unwrap();
        assert!(counted.shared < 200, "{counted:?}");
    });
}

#[test]
fn a_pin_that_names_nothing_is_refused() {
    on(2)
        .build()
        .run(|| {
            let refused = Builder::new().virtual_processor(2).spawn(|| ()).unwrap_err();
            assert_eq!(refused.kind(), std::io::ErrorKind::InvalidInput);
            assert!(refused.to_string().contains("no virtual processor 2"), "{refused}");
        })
        .unwrap();
}

#[test]
fn pins_change_while_microprocesses_run() {
    under_watchdog("moved", || {
        for make in [None, Some(policies()[0].1), Some(policies()[4].1)] {
            let mut builder = on(2);
            if let Some(make) = make {
                builder = builder.scheduler(make);
            }
            builder
                .build()
                .run(|| {
                    let stop = Arc::new(AtomicBool::new(false));
                    // Loops without calls, sleepers in the kernel, yielders: all move.
                    let bodies: [fn(); 3] = [|| {}, || raw_sleep_ms(1), yield_now];
                    let movers: Vec<_> = bodies
                        .into_iter()
                        .map(|body| {
                            let stop = Arc::clone(&stop);
                            spawn(move || {
                                while !stop.load(Ordering::Relaxed) {
                                    body();
                                }
                                // It is where it was sent last, at the latest after its next call.
                                while virtual_processor() != 1 {
                                    yield_now();
                                }
                            })
                        })
                        .collect();
                    let me = Microprocess::current();
                    for turn in 0..20 {
                        me.set_virtual_processor(Some(turn % 2));
                        assert_eq!(virtual_processor(), turn % 2);
                        for mover in &movers {
                            mover.microprocess().set_virtual_processor(Some((turn + 1) % 2));
                        }
                        sleep(Duration::from_millis(1));
                        assert_eq!(virtual_processor(), turn % 2);
                    }
                    for mover in &movers {
                        mover.microprocess().set_virtual_processor(Some(1));
                        assert_eq!(mover.microprocess().pinned_to(), Some(1));
                    }
                    stop.store(true, Ordering::Relaxed);
                    movers.into_iter().for_each(|mover| mover.join().unwrap());
                    me.set_virtual_processor(None);
                    assert_eq!(me.pinned_to(), None);
                })
                .unwrap();
        }
    });
}

#[test]
fn number_of_virtual_processors_changes_while_microprocesses_run() {
    under_watchdog("concurrency", || {
        for make in [None, Some(policies()[2].1), Some(policies()[4].1)] {
            let mut builder = on(2).virtual_processors_max(4);
            if let Some(make) = make {
                builder = builder.scheduler(make);
            }
            builder
                .build()
                .run(|| {
                    let workers: Vec<_> = (0..4).map(|_| spawn(mixture)).collect();
                    for count in [1, 4, 2, 3, 1, 2, 4, 1] {
                        set_concurrency(count).unwrap();
                        assert_eq!(concurrency(), count);
                        sleep(Duration::from_millis(2));
                        // It continued on one that runs.
                        assert!(virtual_processor() < 4);
                    }
                    let everybody = (0..20).map(|_| {
                        spawn(|| {
                            sleep(Duration::from_millis(1));
                            raw_sleep_ms(1);
                            yield_now();
                            virtual_processor()
                        })
                    });
                    let everybody: Vec<_> = everybody.collect();
                    for one in everybody {
                        assert_eq!(one.join().unwrap(), 0, "the others are retired");
                    }
                    let sums: Vec<u64> = workers.into_iter().map(|w| w.join().unwrap()).collect();
                    assert_eq!(sums, [5150; 4]);
                })
                .unwrap();
        }
    });
}

#[test]
fn a_number_of_virtual_processors_out_of_range_is_refused() {
    let runtime = on(1).virtual_processors_max(2).build();
    runtime
        .run(|| {
            for asked in [0, 3] {
                let refused = set_concurrency(asked).unwrap_err();
                assert_eq!(refused, ConcurrencyError { asked, most: 2 });
                assert!(refused.to_string().contains("1 to 2"), "{refused}");
            }
            assert_eq!(concurrency(), 1);
            // A microprocess pinned to a retired virtual processor runs anywhere.
            assert!(Builder::new().virtual_processor(1).spawn(|| ()).is_err());
            Microprocess::current().set_virtual_processor(Some(1));
            assert_eq!(virtual_processor(), 0);
        })
        .unwrap();
}
