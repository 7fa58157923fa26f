//! Mapping, and locks that end with their holder.

use std::ffi::CString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::SharedFile;
use crate::error::Errno;
use crate::prim::atomic::{AtomicU32, Ordering};

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let file = format!("kyocho-shared-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(file))
    }

    fn open(&self) -> Result<SharedFile, Errno> {
        open(&self.0)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.0);
    }
}

fn open(path: &Path) -> Result<SharedFile, Errno> {
    SharedFile::open(&CString::new(path.as_os_str().as_encoded_bytes()).unwrap(), 8192)
}

fn word(file: &SharedFile) -> &AtomicU32 {
    let word = core::ptr::with_exposed_provenance::<AtomicU32>(file.base() + 4096);
    // SAFETY: inside the mapping, aligned, and mapped as long as `file` is borrowed.
    unsafe { &*word }
}

#[test]
fn two_openings_see_one_word() {
    let scratch = Scratch::new("word");
    let (one, another) = (scratch.open().unwrap(), scratch.open().unwrap());
    word(&one).store(7, Ordering::SeqCst);
    assert_eq!(word(&another).load(Ordering::SeqCst), 7);
}

#[test]
fn a_range_is_locked_by_one_opening_until_it_is_closed() {
    let scratch = Scratch::new("lock");
    let (one, another) = (scratch.open().unwrap(), scratch.open().unwrap());
    assert_eq!(one.try_lock(64, 64), Ok(true));
    assert_eq!(another.try_lock(64, 64), Ok(false));
    assert_eq!(another.try_lock(128, 64), Ok(true));
    assert_eq!(one.unlock(64, 64), Ok(()));
    assert_eq!(another.try_lock(64, 64), Ok(true));
    drop(another);
    assert_eq!(one.try_lock(64, 128), Ok(true));
}

#[test]
fn a_link_is_not_followed() {
    let scratch = Scratch::new("target");
    scratch.open().unwrap();
    let link = Scratch::new("link");
    symlink(&scratch.0, &link.0).unwrap();
    assert_eq!(link.open().unwrap_err().number(), libc::ELOOP);
}
