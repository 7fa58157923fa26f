//! A pipe accepts what it has room for, and the writer never waits for more room.

use std::fs::File;
use std::io::{Read, Seek, pipe};
use std::os::fd::AsFd;

use super::{BYTES_MAX, Errno, Text, write};

#[test]
fn a_full_pipe_is_not_waited_for() {
    let (mut reader, writer) = pipe().unwrap();
    let line = [b'x'; BYTES_MAX];
    let mut lines = 0;
    let refused = loop {
        match write(writer.as_fd(), &line) {
            Ok(()) => lines += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused, Errno::AGAIN);
    assert!(lines > 0, "an empty pipe must accept a line");
    drop(writer);
    let mut read = Vec::new();
    reader.read_to_end(&mut read).unwrap();
    assert_eq!(read.len(), lines * BYTES_MAX, "all accepted lines must arrive");
}

#[test]
fn a_file_takes_lines_one_behind_the_other() {
    let path = std::env::temp_dir().join(format!("kyocho-line-{}", std::process::id()));
    let mut file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    for line in [&b"one\n"[..], b"two\n"] {
        write(file.as_fd(), line).unwrap();
    }
    let mut read = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut read).unwrap();
    assert_eq!(read, "one\ntwo\n");
}

#[test]
fn a_long_line_is_cut() {
    let mut text = Text { used: 0, bytes: [0; BYTES_MAX] };
    let long = "x".repeat(2 * BYTES_MAX);
    assert!(core::fmt::write(&mut text, format_args!("{long}")).is_err());
    assert_eq!(text.used, BYTES_MAX);
}
