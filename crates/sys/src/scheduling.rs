//! How the host schedules a kernel thread: its CPUs and its class.
#![expect(unsafe_code, reason = "system calls on structures")]

use core::fmt;

use crate::error::Errno;
use crate::fault::{self, Call};
use crate::raw::call;
use crate::thread_id::ThreadId;

/// Most CPUs in a set. Common kernels are built for at most 8,192 CPUs (`NR_CPUS`), but a set need
/// only cover the CPUs of the machine.
pub const CPUS_MAX: usize = 4096;

/// A set of CPUs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CpuSet([u64; CPUS_MAX / 64]);

impl CpuSet {
    /// No CPU.
    pub const EMPTY: Self = Self([0; CPUS_MAX / 64]);

    /// A set of one CPU.
    ///
    /// # Panics
    /// `cpu` is not below [`CPUS_MAX`].
    #[must_use]
    pub const fn single(cpu: usize) -> Self {
        let mut set = Self::EMPTY;
        set.insert(cpu);
        set
    }

    /// Adds a CPU.
    ///
    /// # Panics
    /// As for [`CpuSet::single`].
    pub const fn insert(&mut self, cpu: usize) {
        assert!(cpu < CPUS_MAX, "no such CPU");
        self.0[cpu / 64] |= 1 << (cpu % 64);
    }

    /// Removes a CPU, if it is in the set.
    pub const fn remove(&mut self, cpu: usize) {
        if cpu < CPUS_MAX {
            self.0[cpu / 64] &= !(1 << (cpu % 64));
        }
    }

    /// Whether the set contains the CPU.
    #[must_use]
    pub const fn contains(&self, cpu: usize) -> bool {
        cpu < CPUS_MAX && self.0[cpu / 64] >> (cpu % 64) & 1 == 1
    }

    /// Number of CPUs in the set.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The CPUs of the set in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..CPUS_MAX).filter(|&cpu| self.contains(cpu))
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// The CPUs that a thread may use.
///
/// # Errors
/// `SRCH`: no such thread.
pub fn affinity(thread: ThreadId) -> Result<CpuSet, Errno> {
    fault::check(Call::Affinity)?;
    let mut set = CpuSet::EMPTY;
    let arguments = [thread.number() as usize, size_of::<CpuSet>(), &raw mut set as usize];
    // SAFETY: the kernel writes at most the given length to `set`.
    unsafe { call(libc::SYS_sched_getaffinity, arguments) }?;
    Ok(set)
}

/// Restricts a thread to some CPUs.
///
/// # Errors
/// `INVAL`: none of them exists or is allowed. `SRCH`: no such thread.
pub fn set_affinity(thread: ThreadId, set: &CpuSet) -> Result<(), Errno> {
    fault::check(Call::Affinity)?;
    let arguments = [thread.number() as usize, size_of::<CpuSet>(), &raw const *set as usize];
    // SAFETY: the kernel reads the given length from `set`.
    unsafe { call(libc::SYS_sched_setaffinity, arguments) }?;
    Ok(())
}

/// The CPU that runs the caller now. The caller may have migrated when this returns.
///
/// # Panics
/// The kernel has no such call, which every Linux has.
#[must_use]
pub fn current_cpu() -> usize {
    // SAFETY: takes nothing.
    let cpu = unsafe { libc::sched_getcpu() };
    usize::try_from(cpu).expect("every Linux knows the current CPU")
}

/// Number of CPUs this machine may ever have: one more than the greatest number. [`CPUS_MAX`] if
/// the host does not report it. Allocates.
#[must_use]
pub fn cpus_possible() -> usize {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    // "0-7" or "0,2-5": ascending.
    let greatest =
        text.trim().rsplit(['-', ',']).next().and_then(|last| last.parse::<usize>().ok());
    greatest.map_or(CPUS_MAX, |last| (last + 1).min(CPUS_MAX))
}

/// Scheduling classes of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Time sharing.
    Normal,
    /// Runs only if no other thread wants the CPU. Threads that it starts are idle, too.
    Idle,
    /// Real time: runs until it blocks or a thread of a higher level (1..=99) is runnable. Needs a
    /// permission.
    Fifo(u8),
    /// The same, but threads of equal level alternate, every 100 ms unless the host is configured
    /// otherwise.
    RoundRobin(u8),
}

impl Class {
    /// The host's numbers of policy and level.
    const fn numbers(self) -> (i32, i32) {
        match self {
            Self::Normal => (libc::SCHED_OTHER, 0),
            Self::Idle => (libc::SCHED_IDLE, 0),
            Self::Fifo(level) => (libc::SCHED_FIFO, level as i32),
            Self::RoundRobin(level) => (libc::SCHED_RR, level as i32),
        }
    }
}

/// Puts a thread into a class.
///
/// # Errors
/// `PERM`: the class needs a permission. `SRCH`: no such thread. `INVAL`: no such level.
pub fn set_class(thread: ThreadId, class: Class) -> Result<(), Errno> {
    fault::check(Call::Scheduler)?;
    let (policy, level) = class.numbers();
    // The kernel's `struct sched_param` is one word; some C libraries have more fields.
    let arguments = [thread.number() as usize, policy as usize, &raw const level as usize];
    // SAFETY: the kernel reads one `int` from `level`.
    unsafe { call(libc::SYS_sched_setscheduler, arguments) }?;
    Ok(())
}

/// The class of a thread; `None` if it is none of [`Class`].
///
/// # Errors
/// `SRCH`: no such thread.
pub fn class(thread: ThreadId) -> Result<Option<Class>, Errno> {
    fault::check(Call::Scheduler)?;
    // SAFETY: takes a number.
    let policy = unsafe { call(libc::SYS_sched_getscheduler, [thread.number() as usize]) }?;
    let mut level = 0_i32;
    let arguments = [thread.number() as usize, &raw mut level as usize];
    // SAFETY: the kernel writes one `int` to `level`.
    unsafe { call(libc::SYS_sched_getparam, arguments) }?;
    Ok(match policy as i32 & !libc::SCHED_RESET_ON_FORK {
        libc::SCHED_OTHER => Some(Class::Normal),
        libc::SCHED_IDLE => Some(Class::Idle),
        libc::SCHED_FIFO => Some(Class::Fifo(level as u8)),
        libc::SCHED_RR => Some(Class::RoundRobin(level as u8)),
        _ => None,
    })
}

/// Whether the calling thread's own class is a real-time one. An inherited class does not count.
#[must_use]
pub fn is_real_time() -> bool {
    // SAFETY: takes a number; 0 is the caller.
    let policy = unsafe { call(libc::SYS_sched_getscheduler, [0]) };
    let policy = policy.map_or(libc::SCHED_OTHER, |policy| policy as i32);
    matches!(policy & !libc::SCHED_RESET_ON_FORK, libc::SCHED_FIFO | libc::SCHED_RR)
}

/// Scheduling of threads and processes that a thread starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFork {
    /// They inherit it.
    Inherit,
    /// Time sharing with nice value 0, if the thread is real-time or has a negative nice value.
    /// Once set, this cannot be undone without privileges.
    Reset,
}

/// All scheduling attributes of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Its class.
    pub class: Class,
    /// Its weight in time sharing: -20..=19, lower is more.
    pub nice: i32,
    /// What threads it starts inherit.
    pub on_fork: OnFork,
}

/// The kernel's `struct sched_attr`, first version.
#[repr(C)]
struct KernelAttributes {
    bytes: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    level: u32,
    /// Parameters of deadline scheduling, and a requested time slice; 0 for none.
    times_ns: [u64; 3],
}

/// Sets all scheduling attributes of a thread with one call.
///
/// # Errors
/// `PERM`: the class or the nice value needs a permission. `SRCH`: no such thread. `INVAL`: no such
/// level.
pub fn set_attributes(thread: ThreadId, attributes: Attributes) -> Result<(), Errno> {
    fault::check(Call::Scheduler)?;
    let (policy, level) = attributes.class.numbers();
    let flags = match attributes.on_fork {
        OnFork::Inherit => 0,
        OnFork::Reset => 1, // SCHED_FLAG_RESET_ON_FORK
    };
    let words = KernelAttributes {
        bytes: size_of::<KernelAttributes>() as u32,
        policy: policy as u32,
        flags,
        nice: attributes.nice,
        level: level as u32,
        times_ns: [0; 3],
    };
    let arguments = [thread.number() as usize, &raw const words as usize, 0];
    // SAFETY: the kernel reads as many bytes as `words` says it has.
    unsafe { call(libc::SYS_sched_setattr, arguments) }?;
    Ok(())
}

/// The nice value of a thread, which applies in time sharing.
///
/// # Errors
/// `SRCH`: no such thread.
pub fn nice(thread: ThreadId) -> Result<i32, Errno> {
    fault::check(Call::Scheduler)?;
    let arguments = [libc::PRIO_PROCESS as usize, thread.number() as usize];
    // SAFETY: takes numbers.
    let answer = unsafe { call(libc::SYS_getpriority, arguments) }?;
    // The kernel returns 20 minus the value, so that it is positive.
    Ok(20 - answer as i32)
}

/// Sets how late the calling thread's sleeps may end. The host uses the slack to combine wake-ups;
/// the default is 50 µs.
///
/// # Errors
/// Injected errors.
pub fn set_timer_slack_ns(slack_ns: usize) -> Result<(), Errno> {
    fault::check(Call::Scheduler)?;
    // SAFETY: takes numbers.
    unsafe { call(libc::SYS_prctl, [libc::PR_SET_TIMERSLACK as usize, slack_ns]) }?;
    Ok(())
}

/// Yields the CPU to another runnable thread, if there is one.
pub fn yield_to_host() {
    // SAFETY: takes nothing and cannot fail.
    let _always_zero = unsafe { call(libc::SYS_sched_yield, []) };
}

#[cfg(test)]
mod tests;
