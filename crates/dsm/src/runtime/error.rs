//! Errors of calls that use shared memory.

use core::fmt;

use kyocho_sys::error::Errno;

use crate::interface::DsmError;
use crate::launch::BadVariable;
use crate::transport::JoinError;

/// Why a call failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An error of the protocol, for example a dead node.
    Protocol(DsmError),
    /// The nodes could not join.
    Join(JoinError),
    /// The environment that the launcher has set is invalid.
    Environment(BadVariable),
    /// This size of shared memory is zero, or more than this node may have. A node may have its
    /// share of half of the memory of its host or control group: each node keeps two copies.
    Size {
        /// Bytes asked for.
        bytes: usize,
        /// Bytes permitted.
        bytes_max: usize,
    },
    /// Shared memory is used up.
    Full {
        /// Bytes asked for.
        bytes: usize,
        /// Bytes left.
        left: usize,
    },
    /// A region must start at a page boundary.
    Unaligned {
        /// The address in the shared space that was asked for.
        address: u64,
    },
    /// The host refused memory, a thread, or a change of protection. Also `PROTO` if the node has
    /// panicked, and `PERM` if this process is a copy of the node, made by `fork`.
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
                write!(
                    f,
                    "the address of a region must be a multiple of 4096, and {address:#x} is not"
                )
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
