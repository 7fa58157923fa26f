use core::time::Duration;
use kyocho_sys::prim::atomic::{AtomicU32, AtomicU64, Ordering};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use kyocho_sys::prim::thread;

use super::{BELLS_MAX, Peer, Post, Standing, Wait, Words, descriptors, own, ring_all};
use crate::wait::sync::tests::on_processors;
use crate::yield_now;
use crate::{Builder, Microprocess, Priority, spawn};

const NO_BELL: u32 = 0;

/// What two processes share in a test: a word, and the bell of its waiter. The other process is a
/// kernel thread outside any runtime.
#[derive(Debug)]
struct Line {
    word: AtomicU32,
    bell: AtomicU32,
    level: AtomicU32,
    over: AtomicU32,
    peer: Peer,
}

fn own_peer() -> Peer {
    let (state_page, ring_page) = descriptors().unwrap();
    let again = |descriptor: std::os::fd::BorrowedFd<'_>| -> OwnedFd {
        descriptor.try_clone_to_owned().unwrap()
    };
    Peer::receive(again(state_page), again(ring_page), std::process::id()).unwrap()
}

impl Line {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            word: AtomicU32::new(0),
            bell: AtomicU32::new(NO_BELL),
            level: AtomicU32::new(0),
            over: AtomicU32::new(0),
            peer: own_peer(),
        })
    }

    fn wait(&self, expected: u32, limit: Option<Duration>) -> Option<u32> {
        let wait = Wait {
            word: &self.word,
            expected,
            level: None,
            over: Some(&self.over),
            from: None,
            woken: false,
            announced: &self.bell,
        };
        wait.run(limit).unwrap()
    }

    /// Passes the caller's post to `body`.
    fn keep<R>(&self, body: impl FnOnce(&Post<'_>) -> R) -> R {
        let Self { word, level, over, bell: announced, peer } = self;
        Post::keep(&Words { word, level, over, announced }, peer, body)
    }

    /// Serves `calls` calls, each by `serve`.
    fn serve(&self, calls: u32, mut serve: impl FnMut()) {
        self.keep(|post| {
            for call in 0..calls {
                assert_eq!(post.wait(call, 0).unwrap(), Some(call + 1));
                serve();
            }
        });
    }

    /// Changes the word and rings, as the other process does.
    fn change(&self, value: u32) {
        self.word.swap(value, Ordering::SeqCst);
        let bell = self.bell.load(Ordering::SeqCst);
        if bell != NO_BELL {
            self.peer.ring(bell - 1);
        }
    }
}

/// A kernel thread that answers each change of one line by the same change of another.
fn answer(asked: &Arc<Line>, answered: &Arc<Line>, rounds: u32) -> thread::JoinHandle<()> {
    let (asked, answered) = (Arc::clone(asked), Arc::clone(answered));
    thread::spawn(move || {
        for round in 1..=rounds {
            while asked.word.load(Ordering::Acquire) != round {
                thread::yield_now();
            }
            answered.change(round);
        }
    })
}

#[test]
fn every_change_from_outside_ends_a_wait() {
    const ROUNDS: u32 = 2000;
    for processors in [1, 2] {
        on_processors(processors, || {
            let (asked, answered) = (Line::new(), Line::new());
            let outside = answer(&asked, &answered, ROUNDS);
            for round in 1..=ROUNDS {
                asked.change(round);
                assert_eq!(answered.wait(round - 1, None), Some(round));
            }
            outside.join().unwrap();
        });
    }
}

#[test]
fn wait_beside_a_pending_read_ends_and_so_does_the_read() {
    use std::io::{Read, Write};
    on_processors(1, || {
        let (mut here, there) = crate::calls::net::UnixStream::pair().unwrap();
        let reader = spawn(move || {
            let mut byte = [0];
            (&there).read_exact(&mut byte).unwrap();
            byte[0]
        });
        yield_now();
        let (asked, answered) = (Line::new(), Line::new());
        let outside = answer(&asked, &answered, 100);
        for round in 1..=100 {
            asked.change(round);
            assert_eq!(answered.wait(round - 1, None), Some(round));
        }
        outside.join().unwrap();
        here.write_all(&[7]).unwrap();
        assert_eq!(reader.join().unwrap(), 7);
    });
}

#[test]
fn wait_ends_beside_a_loop_without_calls() {
    on_processors(1, || {
        static STOP: AtomicU64 = AtomicU64::new(0);
        STOP.store(0, Ordering::Relaxed);
        let (asked, answered) = (Line::new(), Line::new());
        let outside = answer(&asked, &answered, 20);
        let hog = Builder::new().priority(Priority::LOWEST);
        let hog = hog.spawn(|| while STOP.load(Ordering::Relaxed) == 0 {}).unwrap();
        for round in 1..=20 {
            asked.change(round);
            assert_eq!(answered.wait(round - 1, None), Some(round));
        }
        STOP.store(1, Ordering::Relaxed);
        outside.join().unwrap();
        hog.join().unwrap();
    });
}

#[test]
fn server_continues_at_the_level_that_the_waker_wrote() {
    // An invalid level from another process is limited to the highest.
    for (written, level) in [(50, 50), (u32::MAX, Priority::HIGHEST.level())] {
        on_processors(1, || {
            let line = Line::new();
            line.level.store(written, Ordering::Relaxed);
            let other = Arc::clone(&line);
            let waiter = spawn(move || {
                let mut served_at = None;
                other.serve(1, || served_at = Some(Microprocess::current().priority()));
                served_at
            });
            yield_now();
            line.change(1);
            assert_eq!(waiter.join().unwrap(), Priority::new(level));
        });
    }
}

/// Serves call number `number`, during which its caller has each of `levels` in turn.
fn serve_at(line: &Line, number: u32, levels: [u32; 2]) {
    let me = Microprocess::current();
    line.keep(|post| {
        post.wait(number, 0).unwrap();
        for level in levels {
            line.level.store(level, Ordering::Relaxed);
            while u32::from(me.priority().level()) != level {
                crate::sleep(Duration::from_micros(100));
            }
        }
    });
}

fn await_bell(line: &Line) {
    while line.bell.swap(NO_BELL, Ordering::SeqCst) == NO_BELL {
        yield_now();
    }
}

fn await_level(line: &Line, level: u8) {
    while line.level.load(Ordering::SeqCst) != u32::from(level) {
        yield_now();
    }
}

#[test]
fn server_follows_the_level_of_its_caller_until_it_waits_again() {
    for processors in [1, 2] {
        on_processors(processors, || {
            // Otherwise this microprocess would keep the server from running, which begins at the
            // lowest level.
            Microprocess::current().set_priority(Priority::LOWEST);
            let line = Line::new();
            let other = Arc::clone(&line);
            let server = spawn(move || {
                serve_at(&other, 0, [7, 40]);
                serve_at(&other, 1, [3, 9]);
            });
            for call in 1..=2 {
                await_bell(&line);
                line.change(call);
            }
            server.join().unwrap();
            assert!(!super::mask_for_test(|vp| vp.bell.awaits()));
        });
    }
}

/// Waits as a caller does.
fn wait_and_tell(line: &Line) -> Option<u32> {
    let wait = Wait {
        word: &line.word,
        expected: 0,
        level: Some(&line.level),
        over: None,
        from: Some((&line.peer, 0)),
        woken: false,
        announced: &line.bell,
    };
    wait.run(None).unwrap()
}

#[test]
fn level_of_a_waiter_is_published_also_when_it_changes() {
    for processors in [1, 2] {
        on_processors(processors, || {
            let line = Line::new();
            let other = Arc::clone(&line);
            let waiter = spawn(move || wait_and_tell(&other));
            await_level(&line, Priority::NORMAL.level());
            for level in [50, 12, 33] {
                waiter.microprocess().set_priority(Priority::new(level).unwrap());
                await_level(&line, level);
            }
            // The level is also right if it is inherited, here from a joiner.
            let joiner = Builder::new().priority(Priority::new(60).unwrap());
            let joiner = joiner.spawn(move || waiter.join().unwrap()).unwrap();
            await_level(&line, 60);
            line.change(1);
            assert_eq!(joiner.join().unwrap(), Some(1));
        });
    }
}

#[test]
fn limit_and_kill_end_a_wait_and_leave_nothing_linked() {
    for processors in [1, 2] {
        on_processors(processors, || {
            let line = Line::new();
            assert_eq!(line.wait(0, Some(Duration::from_millis(2))), None);
            let other = Arc::clone(&line);
            let killed = spawn(move || other.wait(0, None));
            while line.bell.swap(NO_BELL, Ordering::SeqCst) == NO_BELL {
                yield_now();
            }
            killed.microprocess().kill().unwrap();
            assert!(killed.join().is_err());
            // A later check must not find a frame that no longer exists.
            line.change(1);
            assert_eq!(line.wait(0, None), Some(1));
            assert!(!super::mask_for_test(|vp| vp.bell.awaits()));
        });
    }
}

#[test]
fn each_of_many_waiters_is_woken_by_its_own_word() {
    on_processors(2, || {
        let lines: Vec<_> = (0..64).map(|_| Line::new()).collect();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let waiters: Vec<_> = lines
            .iter()
            .enumerate()
            .map(|(index, line)| {
                let (line, seen) = (Arc::clone(line), Arc::clone(&seen));
                spawn(move || {
                    line.wait(0, None);
                    seen.lock().unwrap().push(index);
                })
            })
            .collect();
        let outside = thread::spawn(move || lines.iter().rev().for_each(|line| line.change(1)));
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
        outside.join().unwrap();
        let mut seen = Arc::into_inner(seen).unwrap().into_inner().unwrap();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..64));
    });
}

#[test]
fn pages_of_another_process_are_checked() {
    let (state_page, ring_page) = descriptors().unwrap();
    let again = |descriptor: std::os::fd::BorrowedFd<'_>| descriptor.try_clone_to_owned().unwrap();
    let (socket, _other) = UnixStream::pair().unwrap();
    assert!(Peer::receive(again(socket.as_fd()), again(ring_page), 1).is_err());
    // A page that only its owner may write is not accepted as the open one.
    assert!(Peer::receive(again(state_page), again(state_page), 1).is_err());
    let peer = own_peer();
    assert_eq!(peer.standing(BELLS_MAX as u32), Standing::Absent);
    assert!(!peer.ring(u32::MAX));
}

#[test]
fn word_of_this_process_also_ends_a_wait() {
    on_processors(2, || {
        let line = Line::new();
        let other = Arc::clone(&line);
        let waiter = spawn(move || other.wait(0, None));
        while line.bell.load(Ordering::SeqCst) == NO_BELL {
            yield_now();
        }
        let outside = Arc::clone(&line);
        let outside = thread::spawn(move || {
            outside.over.store(1, Ordering::SeqCst);
            ring_all();
        });
        assert_eq!(waiter.join().unwrap(), None);
        outside.join().unwrap();
    });
}

#[test]
fn bells_are_returned_when_a_runtime_ends() {
    for _ in 0..2 * BELLS_MAX {
        on_processors(1, || assert!((own().unwrap() as usize) < BELLS_MAX));
    }
}

#[test]
fn panic_while_serving_leaves_nothing_linked_or_masked() {
    on_processors(1, || {
        let line = Line::new();
        let other = Arc::clone(&line);
        let server = spawn(move || other.serve(2, || panic!("while it serves")));
        await_bell(&line);
        line.change(1);
        assert!(server.join().is_err());
        assert!(!super::mask_for_test(|vp| vp.bell.awaits()));
        // With events masked, waiting would be impossible here.
        assert_eq!(line.wait(1, Some(Duration::from_millis(1))), None);
    });
}
