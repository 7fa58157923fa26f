//! Clocks advance.

use super::{monotonic_ns, process_cpu_ns, thread_cpu_ns, timespec};

#[test]
fn clocks_go_forward_while_the_thread_works() {
    // The narrowest clock starts last and stops first.
    let [elapsed, process, thread] = [monotonic_ns(), process_cpu_ns(), thread_cpu_ns()];
    while thread_cpu_ns() < thread + 1_000_000 {}
    assert!(monotonic_ns() >= elapsed + 1_000_000, "CPU time passed faster than time");
    assert!(process_cpu_ns() >= process + 1_000_000, "a process used less than its thread");
}

#[test]
fn spans_split_into_seconds_and_rest() {
    let time = timespec(3_000_000_007);
    assert_eq!((time.tv_sec, time.tv_nsec), (3, 7));
}

#[test]
fn a_thread_that_works_uses_its_own_time_and_one_that_is_gone_none() {
    let me = crate::task::ThreadId::current();
    let before_ns = super::cpu_ns_of(me).unwrap();
    while super::cpu_ns_of(me).unwrap() == before_ns {}
    assert!(super::cpu_ns_of(me).unwrap() <= thread_cpu_ns());
    assert_eq!(super::cpu_ns_of(crate::task::ThreadId::new(0x3f_ffff)), None);
}
