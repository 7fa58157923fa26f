//! Who registers areas for restartable sequences: the C library, ourselves, nobody. Each answer is one of a whole
//! process, so each case is a process of its own.
#![cfg(target_arch = "x86_64")]
#![expect(clippy::unwrap_used, reason = "a test")]

use std::process::Command;

use kyocho_arch::rseq::{Cpu, Library, library};
use kyocho_sys::error::Errno;
use kyocho_sys::fault::{Call, Injection, Kinds};
use kyocho_sys::prim::thread::scope;
use kyocho_sys::rseq::{Registrar, Unavailable, register_thread, registrar};
use kyocho_sys::skip::skip;

/// Which case a child process is to play.
const CASE: &str = "KYOCHO_RSEQ_CASE";
/// Makes glibc leave rseq alone.
const OFF: (&str, &str) = ("GLIBC_TUNABLES", "glibc.pthread.rseq=0");

/// Runs the test `player` of this program in a process of its own.
fn play(case: &str, environment: &[(&str, &str)]) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "player", "--nocapture"]).env(CASE, case);
    let output = child.envs(environment.iter().copied()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{case}: {text}{errors}");
    assert!(text.contains(&format!("played {case}")), "{case}: {text}{errors}");
}

#[test]
fn player() {
    let Ok(case) = std::env::var(CASE) else { return };
    match case.as_str() {
        "library" => by_library(),
        "ourselves" => by_ourselves(),
        "no call" => fails_by(Errno::NOSYS, Unavailable::NoCall),
        "taken" => fails_by(Errno::INVAL, Unavailable::Taken),
        "refused" => fails_by(Errno::FAULT, Unavailable::Refused(Errno::FAULT)),
        other => panic!("no case {other}"),
    }
    println!("played {case}");
}

fn by_library() {
    assert_eq!(registrar(), Ok(Registrar::Library));
    assert!(Cpu::current().is_some(), "the first thread");
    scope(|threads| {
        threads.spawn(|| assert!(Cpu::current().is_some(), "another thread"));
    });
}

fn by_ourselves() {
    assert_eq!(Cpu::current(), None, "nobody has registered");
    assert_eq!(registrar(), Ok(Registrar::Ourselves));
    assert!(Cpu::current().is_some());
    for _ in 0..100 {
        scope(|threads| {
            threads.spawn(|| {
                assert_eq!(Cpu::current(), None, "a thread registers for itself");
                assert_eq!(register_thread(), Ok(()));
                assert_eq!(register_thread(), Ok(()), "once is enough");
                assert!(Cpu::current().is_some());
            });
        });
    }
}

fn fails_by(errno: Errno, expected: Unavailable) {
    {
        let _injection = Injection::new(Kinds::Only(Call::Rseq), 1, errno);
        assert_eq!(registrar(), Err(expected));
    }
    assert_eq!(registrar(), Err(expected), "the first answer stays");
    assert_eq!(register_thread(), Err(expected));
    assert_eq!(Cpu::current(), None);
    assert!(!expected.to_string().is_empty());
}

#[test]
fn the_library_registers_or_we_do() {
    if matches!(library(), Library::Registered(_)) {
        play("library", &[]);
    } else {
        skip("the_library_registers", "this C library leaves rseq alone, or the kernel has none");
    }
    if registrar() == Err(Unavailable::NoCall) {
        skip("we_register", "this kernel has no rseq");
    } else {
        play("ourselves", &[OFF]);
    }
}

#[test]
fn what_the_kernel_refuses_is_named() {
    for case in ["no call", "taken", "refused"] {
        play(case, &[OFF]);
    }
}
