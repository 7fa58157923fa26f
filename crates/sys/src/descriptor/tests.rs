use super::{is_readable, read, write};
use crate::error::Errno;
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
fn a_pipe_without_reader_refuses() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    // The test harness ignores SIGPIPE, as every Rust program does unless told otherwise.
    assert_eq!(write(writer.as_fd(), b"x"), Err(Errno::new(libc::EPIPE)));
}
