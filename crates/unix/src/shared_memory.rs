//! The private directory that `/dev/shm` is in an instance.

use crate::instance::StartError;
use kyocho_sys::error::Errno;
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Most directories that may be left of killed instances whose commands had this process's number.
const LEFT_MAX: usize = 1000;

/// A directory of the host's memory, removed with all that is in it when dropped.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    path: PathBuf,
}

impl SharedMemory {
    /// Makes one that nobody else has: where an instance was killed whole, its directory is left, and its number comes again.
    ///
    /// # Errors
    /// The host's.
    pub(crate) fn new() -> Result<Self, StartError> {
        let first = format!("/dev/shm/kyocho-unix-{}", std::process::id());
        let mut path = PathBuf::from(&first);
        let mut made = DirBuilder::new().mode(0o700).create(&path);
        for number in 1..=LEFT_MAX {
            if !made.as_ref().is_err_and(|error| error.kind() == ErrorKind::AlreadyExists) {
                break;
            }
            path = PathBuf::from(format!("{first}-{number}"));
            made = DirBuilder::new().mode(0o700).create(&path);
        }
        match made {
            Ok(()) => Ok(Self { path }),
            Err(error) => {
                let errno = Errno::new(error.raw_os_error().unwrap_or(libc::EIO));
                Err(StartError::Mount(path, errno))
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn remove(&self) {
        // What is left there belonged to the instance.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        self.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::SharedMemory;

    #[test]
    fn what_another_left_is_not_used() {
        let left = SharedMemory::new().unwrap();
        std::fs::write(left.path().join("theirs"), "").unwrap();
        let own = SharedMemory::new().unwrap();
        assert_eq!(std::fs::read_dir(own.path()).unwrap().count(), 0);
        let paths = [left.path().to_path_buf(), own.path().to_path_buf()];
        drop((left, own));
        assert!(paths.iter().all(|path| !path.exists()), "{paths:?}");
    }
}
