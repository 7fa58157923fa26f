//! Several runs in one process, after each other and side by side.

use kyocho_microprocess::{Killed, park, spawn, yield_now};

use super::on_one;

/// Handles of a run are used outside it after another run has reused its slots. An ended
/// microprocess has its result; one that did not end never will.
#[test]
fn handles_answer_for_their_own_microprocess_after_their_run() {
    const OTHERS: u64 = 300;
    let (ended, waits, dropped) = on_one(|| {
        let ended = spawn(|| 5);
        let [waits, dropped] = [(); 2].map(|()| {
            spawn(|| {
                park();
                6
            })
        });
        while !ended.is_finished() {
            yield_now();
        }
        (ended, waits, dropped)
    });
    let sum_of_others = || -> u64 {
        let others: Vec<_> = (0..OTHERS).map(|number| spawn(move || number)).collect();
        others.into_iter().map(|other| other.join().unwrap()).sum()
    };
    let (sum, kept) = on_one(|| {
        let sum = sum_of_others();
        let kept: Vec<_> = (0..OTHERS).map(|_| spawn(|| 7)).collect();
        while !kept.iter().all(|other| other.is_finished()) {
            yield_now();
        }
        (sum, kept)
    });
    assert_eq!(sum, OTHERS * (OTHERS - 1) / 2);
    assert!(ended.is_finished() && waits.is_finished());
    assert_eq!(ended.join().unwrap(), 5);
    assert!(waits.join().unwrap_err().is::<Killed>());
    drop(dropped);
    assert!(kept.into_iter().all(|other| other.join().unwrap() == 7));
    assert_eq!(on_one(sum_of_others), OTHERS * (OTHERS - 1) / 2);
}

/// The end of a run does not affect what other runs do with the slots meanwhile.
#[test]
fn concurrent_runs_do_not_affect_each_other() {
    const WORKERS: u64 = 40;
    let short_run = || {
        let sum = on_one(|| {
            // Never joined, and no longer there when the next run reuses the slots.
            (0..WORKERS / 2).for_each(|_| drop(spawn(park)));
            let workers: Vec<_> = (0..WORKERS)
                .map(|number| {
                    spawn(move || {
                        yield_now();
                        number
                    })
                })
                .collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).sum::<u64>()
        });
        assert_eq!(sum, WORKERS * (WORKERS - 1) / 2);
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..100).for_each(|_| short_run()));
        }
    });
}
