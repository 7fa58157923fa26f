//! A port that reads and writes one file (`binary-input/output` of SRFI 170).
//!
//! ```text
//!   file  ......|read ahead, not taken|......      or      ......|written, not flushed|......
//!               ^ the program's position                                               ^
//! ```
//!
//! If the file has a position, both directions share it: output goes where the next byte would have
//! been read. So at most one of the buffers is not empty. Before reading, buffered output is
//! flushed; before writing, bytes read ahead are returned. Pipes, terminals and sockets have no
//! position. There the directions are independent, and a thread that waits to read does not block
//! writers.
//!
//! Lock order: output, input.

use super::interruptible_lock::InterruptibleLock;
use super::{Input, Locked, Output, Port, lock};
use kyocho_heap::heap::Mutator;
use kyocho_heap::raise::Raise;
use rustix::fs::{SeekFrom, seek};
use std::io;
use std::os::fd::OwnedFd;

/// Both ends of a port.
#[derive(Debug)]
pub(super) struct Both {
    pub(super) input: InterruptibleLock<Input>,
    pub(super) output: InterruptibleLock<Output>,
    has_places: bool,
}

impl Both {
    /// A port whose ends have two descriptors of one open file.
    pub(super) fn new(input: Input, output: Output) -> Self {
        let has_places = input.file().is_some_and(|file| seek(file, SeekFrom::Current(0)).is_ok());
        Self {
            input: InterruptibleLock::new(input),
            output: InterruptibleLock::new(output),
            has_places,
        }
    }

    /// The input end, locked, after buffered output has been flushed.
    pub(super) fn input(&self, m: &mut Mutator, port: &Port) -> Result<Locked<'_, Input>, Raise> {
        if !self.has_places {
            return lock(m, &self.input);
        }
        let mut output = lock(m, &self.output)?;
        output.pass_on(m).map_err(|error| port.refused("read", &error))?;
        lock(m, &self.input)
    }

    /// The output end, locked, at the position of the next unread byte.
    pub(super) fn output(&self, m: &mut Mutator, port: &Port) -> Result<Locked<'_, Output>, Raise> {
        let output = lock(m, &self.output)?;
        if self.has_places {
            let mut input = lock(m, &self.input)?;
            input.give_back().map_err(|error| port.refused("write", &error))?;
        }
        Ok(output)
    }

    /// Closes the input end. Bytes read ahead are returned, so that later output goes to the right
    /// position.
    pub(super) fn close_input(&self, m: &mut Mutator, port: &Port) -> Result<(), Raise> {
        if self.has_places {
            drop(self.output(m, port)?);
        }
        lock(m, &self.input)?.close();
        Ok(())
    }
}

/// Two descriptors of one open file.
pub(crate) fn twice(file: OwnedFd) -> io::Result<(OwnedFd, OwnedFd)> {
    let second = file.try_clone()?;
    Ok((file, second))
}
