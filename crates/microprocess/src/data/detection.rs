//! How a runtime notices that a kernel thread sleeps.

/// How a kernel thread that sleeps in the kernel is noticed (Blocked).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Detection {
    /// The best that the host permits.
    #[default]
    Auto,
    /// A program in the host's scheduler, which tells the moment it happens, also of a busy core; it hears of preemption by the host,
    /// too. Needs `CAP_BPF` and `CAP_PERFMON`; without them, as `Auto`. Pins virtual processors to CPUs.
    Bpf,
    /// A thread of the lowest class on the same core, which runs the moment the holder does not. Pins virtual processors to CPUs.
    Sentinel,
    /// A thread on another core that looks every 0.05 to 1 ms while anything runs.
    Monitor,
    /// Not at all: a sleeping kernel thread holds its virtual processor.
    Off,
}
