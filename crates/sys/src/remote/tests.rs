use super::{divert, read, write};
use crate::error::Errno;
use crate::task::ThreadId;
use core::time::Duration;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;

/// The watchdog: a wait that takes longer is considered endless.
const WATCHDOG: Duration = Duration::from_secs(60);

/// A shell that runs `script`, its input, and the lines of its output.
fn shell(script: &str) -> (Child, ChildStdin, Lines<BufReader<ChildStdout>>) {
    let mut shell = Command::new("sh")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (hears, says) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
    (shell, hears, BufReader::new(says).lines())
}

/// The next line. This kernel thread, which may still trace another one, is blocked meanwhile.
fn next_line(mut lines: Lines<BufReader<ChildStdout>>) -> String {
    let (send, received) = mpsc::channel();
    let reading = crate::prim::thread::spawn(move || send.send(lines.next().unwrap().unwrap()));
    let line = received.recv_timeout(WATCHDOG).expect("the shell prints a line");
    reading.join().unwrap().unwrap();
    line
}

#[test]
fn parent_learns_of_the_end_of_a_thread_that_dies_while_diverted() {
    let (mut parent, _hears, mut lines) = shell("sleep 1000 & echo $!; wait $!; echo ended $?");
    let dying: u32 = lines.next().unwrap().unwrap().parse().unwrap();
    let die = || {
        let handle = crate::process::open(dying)?;
        crate::process::signal(std::os::fd::AsFd::as_fd(&handle), libc::SIGKILL)?;
        Err(Errno::SRCH)
    };
    assert_eq!(divert(dying, die, |_| ()), Err(Errno::SRCH));
    assert_eq!(next_line(lines), "ended 137");
    assert!(parent.wait().unwrap().success());
}

#[test]
fn thread_whose_call_cannot_be_ended_continues() {
    let (mut shell, mut hears, lines) = shell("read line; echo $line");
    assert_eq!(divert(shell.id(), || Err(Errno::PERM), |_| ()), Err(Errno::PERM));
    hears.write_all(b"on\n").unwrap();
    assert_eq!(next_line(lines), "on");
    assert!(shell.wait().unwrap().success());
}

#[test]
fn memory_is_copied_up_to_the_first_inaccessible_page() {
    let (text, own) = (*b"memory", std::process::id());
    let mut copy = [0; 6];
    assert_eq!(read(own, text.as_ptr().addr() as u64, &mut copy), Ok(6));
    assert_eq!(copy, text);
    let mut target = [0; 3];
    let address = (&raw mut target).addr() as u64;
    assert_eq!(write(own, address, b"abc"), Ok(3));
    assert_eq!(core::hint::black_box(target), *b"abc");
    assert_eq!(read(own, 8, &mut copy), Err(Errno::FAULT));
    assert_eq!(write(own, 8, &copy), Err(Errno::FAULT));
    assert_eq!(read(i32::MAX as u32, 8, &mut copy), Err(Errno::SRCH));
}

#[test]
fn thread_of_the_own_process_cannot_be_diverted() {
    let own = ThreadId::current().number();
    assert_eq!(divert(own, || Ok(()), |_| ()), Err(Errno::PERM));
    assert_eq!(divert(i32::MAX as u32, || Ok(()), |_| ()), Err(Errno::SRCH));
}
