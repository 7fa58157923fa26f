//! Clocks go forward.

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
