//! The ways in which a runtime notices that a kernel thread sleeps.

/// How the runtime notices that a kernel thread sleeps in the kernel (the event Blocked).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Detection {
    /// The best way that the host permits.
    #[default]
    Auto,
    /// A BPF program in the host's scheduler, which reports a sleep the moment it begins, even if
    /// the core is busy. It also reports preemption by the host. Needs `CAP_BPF` and `CAP_PERFMON`;
    /// without them this means `Auto`. Pins virtual processors to CPUs.
    Bpf,
    /// A thread of the lowest class on the same core, which runs as soon as the holder does not.
    /// Pins virtual processors to CPUs.
    Sentinel,
    /// A thread on another core that checks every 0.05 to 1 ms while any microprocess runs.
    Monitor,
    /// Sleep is not noticed: a sleeping kernel thread keeps its virtual processor.
    Off,
}
