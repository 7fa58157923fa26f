//! A port that reads and writes one file (`binary-input/output` of SRFI 170).
//!
//! ```text
//!   file  ......|read, not taken yet|......      or      ......|written, not passed on|......
//!               ^ the program's place                                                ^
//! ```
//!
//! Where the file has places, both directions have one place in it: what is written goes where the next byte would have been read. So at most one
//! of the buffers holds anything. Whoever begins to read passes on what was written; whoever begins to write gives back what was read ahead.
//! A pipe, a terminal or a socket has no places: there the directions are apart, and who waits to read holds up nobody who writes.
//!
//! Lock order: output, input.

use super::turn::Turn;
use super::{Input, Locked, Output, Port, lock};
use kyocho_heap::heap::Mutator;
use kyocho_heap::raise::Raise;
use rustix::fs::{SeekFrom, seek};
use std::io;
use std::os::fd::OwnedFd;

/// Both ends of a port.
#[derive(Debug)]
pub(super) struct Both {
    pub(super) input: Turn<Input>,
    pub(super) output: Turn<Output>,
    has_places: bool,
}

impl Both {
    /// The ends are over two descriptors of one open file.
    pub(super) fn new(input: Input, output: Output) -> Self {
        let has_places = input.file().is_some_and(|file| seek(file, SeekFrom::Current(0)).is_ok());
        Self { input: Turn::new(input), output: Turn::new(output), has_places }
    }

    /// The reading end, locked, behind what was written.
    pub(super) fn input(&self, m: &mut Mutator, port: &Port) -> Result<Locked<'_, Input>, Raise> {
        if !self.has_places {
            return lock(m, &self.input);
        }
        let mut output = lock(m, &self.output)?;
        output.pass_on(m).map_err(|error| port.refused("read", &error))?;
        lock(m, &self.input)
    }

    /// The writing end, locked, at the place of the next byte that was not read.
    pub(super) fn output(&self, m: &mut Mutator, port: &Port) -> Result<Locked<'_, Output>, Raise> {
        let output = lock(m, &self.output)?;
        if self.has_places {
            let mut input = lock(m, &self.input)?;
            input.give_back().map_err(|error| port.refused("write", &error))?;
        }
        Ok(output)
    }

    /// Closes the reading end; what was read ahead is given back to who goes on to write.
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
