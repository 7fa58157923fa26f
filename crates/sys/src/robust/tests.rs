use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;

use super::{ENDED, LivenessGuard, await_end, mark};
use crate::prim::atomic::{AtomicU32, Ordering};
use crate::prim::thread;
use crate::sealed::{SealedMemory, Use, Writers};

/// A word of memory that another process has, too.
fn word(memory: &SealedMemory) -> &AtomicU32 {
    // SAFETY: the first bytes of a mapping that lasts as long as `memory`; aligned, and all access
    // is atomic.
    unsafe { &*core::ptr::with_exposed_provenance(memory.base()) }
}

#[test]
fn word_is_marked_when_its_thread_ends() {
    let memory = Arc::new(SealedMemory::new(4096, Writers::All).unwrap());
    let theirs = Arc::clone(&memory);
    let (ready, is_ready) = std::sync::mpsc::channel();
    let (go, may_go) = std::sync::mpsc::channel::<()>();
    let other = thread::spawn(move || {
        let living = LivenessGuard::new(word(&theirs)).unwrap();
        ready.send(()).unwrap();
        may_go.recv().unwrap();
        drop(living);
    });
    is_ready.recv().unwrap();
    assert_eq!(word(&memory).load(Ordering::SeqCst) & ENDED, 0, "it lives");
    go.send(()).unwrap();
    assert!(await_end(word(&memory)));
    other.join().unwrap();
}

#[test]
fn wait_returns_at_once_for_a_free_or_marked_word() {
    let word = AtomicU32::new(0);
    assert!(!await_end(&word));
    let living = LivenessGuard::new(&word).unwrap();
    mark(&word);
    assert!(await_end(&word));
    drop(living);
}

const PLACE: &str = "KYOCHO_ROBUST_PLACE";

/// Waits in another process, whose thread is named by the inherited word, until it is killed.
#[test]
fn entry_of_the_other_process() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let file = std::fs::File::options().read(true).write(true).open(place).unwrap();
    let memory = SealedMemory::receive(file.into(), 4096, Use::ReadWrite).unwrap();
    let _living = LivenessGuard::new(word(&memory)).unwrap();
    println!("\nready");
    let _killed_before = std::io::stdin().read_line(&mut String::new());
}

#[test]
fn word_is_marked_when_its_process_is_killed() {
    use std::os::fd::{AsFd, AsRawFd};
    let memory = SealedMemory::new(4096, Writers::All).unwrap();
    let place = format!("/proc/{}/fd/{}", std::process::id(), memory.as_fd().as_raw_fd());
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "robust::tests::entry_of_the_other_process",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(PLACE, place)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(other.stdout.take().unwrap()).lines();
    assert!(lines.map(Result::unwrap).any(|line| line == "ready"));
    assert_eq!(word(&memory).load(Ordering::SeqCst) & ENDED, 0, "it lives");
    other.kill().unwrap();
    // Without a mark this would block for ever.
    assert!(await_end(word(&memory)));
    other.wait().unwrap();
}
