use super::{divert, read, write};
use crate::error::Errno;
use crate::task::ThreadId;
use core::time::Duration;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;

/// What waits longer than this for a condition waits for ever.
const WATCHDOG: Duration = Duration::from_secs(60);

/// A shell that runs `script`: what it hears, and the lines that it says.
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

/// The next line, while this kernel thread, which may still trace somebody, waits.
fn next_line(mut lines: Lines<BufReader<ChildStdout>>) -> String {
    let (tell, told) = mpsc::channel();
    let reading = crate::prim::thread::spawn(move || tell.send(lines.next().unwrap().unwrap()));
    let line = told.recv_timeout(WATCHDOG).expect("the shell says something");
    reading.join().unwrap().unwrap();
    line
}

#[test]
fn the_end_of_a_thread_that_dies_while_it_is_diverted_is_told_to_its_parent() {
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
fn a_thread_whose_call_cannot_be_ended_goes_on() {
    let (mut shell, mut hears, lines) = shell("read line; echo $line");
    assert_eq!(divert(shell.id(), || Err(Errno::PERM), |_| ()), Err(Errno::PERM));
    hears.write_all(b"on\n").unwrap();
    assert_eq!(next_line(lines), "on");
    assert!(shell.wait().unwrap().success());
}

#[test]
fn memory_is_copied_in_and_out_up_to_what_can_be_reached() {
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
fn nobody_diverts_a_thread_of_its_own_process() {
    let own = ThreadId::current().number();
    assert_eq!(divert(own, || Ok(()), |_| ()), Err(Errno::PERM));
    assert_eq!(divert(i32::MAX as u32, || Ok(()), |_| ()), Err(Errno::SRCH));
}
