//! How a microprocess is named from other processes.

use core::fmt;
use core::str::FromStr;
use std::process;

use crate::thread::microprocess::Microprocess;

/// The name of a microprocess among all of the machine: `PID:LOCAL`.
///
/// ```
/// use kyocho_microprocess::GlobalId;
/// let id: GlobalId = "4711:12".parse().unwrap();
/// assert_eq!((id.process, id.local), (4711, 12));
/// assert_eq!(id.to_string(), "4711:12");
/// assert!("4711".parse::<GlobalId>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GlobalId {
    /// The process number of the address space.
    pub process: u32,
    /// The microprocess inside the process: [`Microprocess::id`].
    pub local: u64,
}

impl fmt::Display for GlobalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.process, self.local)
    }
}

/// The text is not of the form `PID:LOCAL`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotAnId;

impl fmt::Display for NotAnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected the number of a process and that of a microprocess, as in 4711:12")
    }
}

impl core::error::Error for NotAnId {}

impl FromStr for GlobalId {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let (process, local) = text.split_once(':').ok_or(NotAnId)?;
        let process = process.parse().map_err(|_| NotAnId)?;
        Ok(Self { process, local: local.parse().map_err(|_| NotAnId)? })
    }
}

impl Microprocess {
    /// Its name among all microprocesses of the machine.
    #[must_use]
    pub fn global_id(&self) -> GlobalId {
        GlobalId { process: process::id(), local: self.id() }
    }
}
