//! Registration of areas for restartable sequences: by the C library, by this crate, or not at all.
//! The answer belongs to the process, so each case runs in a process of its own.
#![cfg(target_arch = "x86_64")]
#![expect(clippy::unwrap_used, reason = "a test")]

use std::process::Command;

use kyocho_arch::rseq::{Cpu, Library, library};
use kyocho_sys::error::Errno;
use kyocho_sys::fault::{Call, Injection, Kinds};
use kyocho_sys::prim::thread::scope;
use kyocho_sys::rseq::{Registrar, Unavailable, register_thread, registrar};
use kyocho_sys::skip::skip;

/// The case that a child process runs.
const CASE: &str = "KYOCHO_RSEQ_CASE";
/// Disables rseq registration by glibc.
const OFF: (&str, &str) = ("GLIBC_TUNABLES", "glibc.pthread.rseq=0");

/// Runs the test `player` of this program in a new process.
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
        "ourselves" => by_this_crate(),
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
        threads.spawn(|| assert!(Cpu::current().is_some(), "another thread has an area, too"));
    });
}

fn by_this_crate() {
    assert_eq!(Cpu::current(), None, "no area has been registered");
    assert_eq!(registrar(), Ok(Registrar::Ourselves));
    assert!(Cpu::current().is_some());
    for _ in 0..100 {
        scope(|threads| {
            threads.spawn(|| {
                assert_eq!(Cpu::current(), None, "each thread registers its own area");
                assert_eq!(register_thread(), Ok(()));
                assert_eq!(register_thread(), Ok(()), "registering again must succeed");
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
    assert_eq!(registrar(), Err(expected), "the first answer must stay");
    assert_eq!(register_thread(), Err(expected));
    assert_eq!(Cpu::current(), None);
    assert!(!expected.to_string().is_empty());
}

#[test]
fn either_the_c_library_or_this_crate_registers_areas() {
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
fn refusals_of_the_kernel_are_reported() {
    for case in ["no call", "taken", "refused"] {
        play(case, &[OFF]);
    }
}
