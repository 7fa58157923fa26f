use super::{Access, is_readable, open, read, write};
use crate::error::Errno;
use std::ffi::CString;
use std::os::fd::AsFd;

#[test]
fn a_pipe_is_readable_once_written_and_at_its_end() {
    let (reader, writer) = std::io::pipe().unwrap();
    assert_eq!(is_readable(reader.as_fd()), Ok(false));
    assert_eq!(write(writer.as_fd(), b"abc"), Ok(3));
    assert_eq!(is_readable(reader.as_fd()), Ok(true));
    let mut buffer = [0; 8];
    assert_eq!(read(reader.as_fd(), &mut buffer), Ok(3));
    assert_eq!(&buffer[..3], b"abc");
    drop(writer);
    assert_eq!(is_readable(reader.as_fd()), Ok(true));
    assert_eq!(read(reader.as_fd(), &mut buffer), Ok(0));
}

#[test]
fn files_are_replaced_appended_to_and_read() {
    let path = std::env::temp_dir().join(format!("kyocho-descriptor-{}", std::process::id()));
    let name = CString::new(path.to_str().unwrap()).unwrap();
    for (access, text) in
        [(Access::Replace, b"old"), (Access::Replace, b"new"), (Access::Append, b"er!")]
    {
        assert_eq!(write(open(&name, access).unwrap().as_fd(), text), Ok(3));
    }
    let mut buffer = [0; 8];
    let file = open(&name, Access::Read).unwrap();
    assert_eq!(read(file.as_fd(), &mut buffer), Ok(6));
    assert_eq!(&buffer[..6], b"newer!");
    std::fs::remove_file(path).unwrap();
    assert_eq!(open(&name, Access::Read).unwrap_err(), Errno::new(libc::ENOENT));
}

#[test]
fn writing_to_a_pipe_without_reader_fails() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    // The test harness ignores SIGPIPE, as Rust programs do by default.
    assert_eq!(write(writer.as_fd(), b"x"), Err(Errno::new(libc::EPIPE)));
}

#[test]
#[expect(unsafe_code, reason = "takes a descriptor over")]
fn descriptors_are_inherited_only_if_set() {
    use super::{Inheritance, adopt, set_inheritance};
    use std::os::fd::{AsFd, AsRawFd};
    let (reader, writer) = std::io::pipe().unwrap();
    let sees = || {
        let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
        let pipe = std::fs::read_link(&path).unwrap();
        let list = std::process::Command::new("readlink").arg(path).output().unwrap();
        String::from_utf8_lossy(&list.stdout).trim() == pipe.to_string_lossy()
    };
    assert!(!sees());
    set_inheritance(reader.as_fd(), Inheritance::Inherited).unwrap();
    assert!(sees());
    set_inheritance(reader.as_fd(), Inheritance::Closed).unwrap();
    assert!(!sees());
    let number = std::os::fd::IntoRawFd::into_raw_fd(writer) as u32;
    // SAFETY: ownership was given up in the line above.
    drop(unsafe { adopt(number) }.unwrap());
    // SAFETY: no descriptor has such a large number.
    assert!(unsafe { adopt(1 << 29) }.is_err());
}

#[test]
fn descriptor_is_replaced_by_another_file() {
    use std::os::fd::{AsFd, AsRawFd};
    let (_, replaced) = std::io::pipe().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    super::replace(replaced.as_raw_fd() as u32, writer.as_fd()).unwrap();
    write(replaced.as_fd(), b"x").unwrap();
    assert_eq!(read(reader.as_fd(), &mut [0; 8]), Ok(1));
    let same = super::replace(writer.as_raw_fd() as u32, writer.as_fd());
    assert_eq!(same, Err(Errno::new(libc::EINVAL)));
}
