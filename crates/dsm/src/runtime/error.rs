//! Why something could not be done with shared memory.

use core::fmt;

use kyocho_sys::error::Errno;

use crate::interface::DsmError;
use crate::launch::BadVariable;
use crate::transport::JoinError;

/// Why a call failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The protocol's answer; a dead node is one.
    Protocol(DsmError),
    /// The nodes did not come together.
    Join(JoinError),
    /// The launcher said what cannot be.
    Environment(BadVariable),
    /// So many bytes of shared memory are none, or more than this node's share of half of what its
    /// host or control group has: each node there keeps two copies.
    Size {
        /// Asked for.
        bytes: usize,
        /// The most there may be.
        bytes_max: usize,
    },
    /// The memory is used up: so many bytes were asked for, so many are left.
    Full {
        /// Asked for.
        bytes: usize,
        /// Left.
        left: usize,
    },
    /// A region can begin with a page alone.
    Unaligned {
        /// The address in the shared space that was asked for.
        address: u64,
    },
    /// The host refused memory, a thread, or changing its protection.
    Host(Errno),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Protocol(why) => why.fmt(f),
            Self::Join(why) => why.fmt(f),
            Self::Environment(why) => why.fmt(f),
            Self::Size { bytes, bytes_max } => write!(
                f,
                "{bytes} bytes of shared memory: 1 to {bytes_max} are possible on this host, where each node keeps two copies"
            ),
            Self::Full { bytes, left } => write!(
                f,
                "{bytes} bytes do not fit: {left} are left; ask for more shared memory when joining, or make a region"
            ),
            Self::Unaligned { address } => {
                write!(f, "a region at {address:#x}: it begins with a page, at a multiple of 4096")
            }
            Self::Host(why) => write!(f, "the host refused: {why}"),
        }
    }
}

impl core::error::Error for Error {}

impl From<DsmError> for Error {
    fn from(why: DsmError) -> Self {
        Self::Protocol(why)
    }
}

impl From<JoinError> for Error {
    fn from(why: JoinError) -> Self {
        Self::Join(why)
    }
}

impl From<BadVariable> for Error {
    fn from(why: BadVariable) -> Self {
        Self::Environment(why)
    }
}

impl From<Errno> for Error {
    fn from(why: Errno) -> Self {
        Self::Host(why)
    }
}
