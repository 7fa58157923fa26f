//! Reads the headers of ELF programs. Pure; the bytes may come from a hostile client.
//!
//! **Invariant:** the segments of what [`Elf::read`] accepts lie within the address space of
//! programs, in rising order. No sum of addresses and sizes in it overflows.

use crate::options::Personality;
use crate::program::launcher::GUARD;
use core::fmt;

/// The headers must lie within this many bytes at the beginning of a file.
pub(crate) const HEADERS_BYTES_MAX: usize = 4096;
/// The end of the addresses that programs can map.
const ADDRESS_END: u64 = 0x7fff_ffff_f000;
const PAGE: u64 = 4096;
const SEGMENT_BYTES: usize = 56;
/// In programs of Linux this byte is another, mostly 0.
const OF_FREEBSD: u8 = 9;

/// A program's headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Elf {
    /// The system whose calls it makes.
    pub(crate) personality: Personality,
    /// Whether its addresses are fixed.
    pub(crate) position: Position,
    /// The address of its first instruction.
    pub(crate) entry: u64,
    /// The address of its program headers in memory, and their number.
    pub(crate) headers: Option<u64>,
    pub(crate) headers_count: u16,
    /// The parts of the file that are mapped.
    pub(crate) segments: Vec<Segment>,
    /// Offset and length of the interpreter's path.
    pub(crate) interpreter: Option<(u64, usize)>,
}

/// Whether a program chooses its addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Position {
    Fixed,
    Anywhere,
}

/// One `PT_LOAD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) address: u64,
    pub(crate) offset: u64,
    pub(crate) in_file: u64,
    pub(crate) in_memory: u64,
    pub(crate) flags: u32,
}

/// Why a file is not a program for this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImageError {
    /// It does not begin as ELF.
    NoElf,
    /// It is for another instruction set.
    Foreign,
    /// It makes FreeBSD's system calls; the instance runs programs of Linux.
    FreeBsd,
    /// It does not make FreeBSD's system calls; the instance runs programs of FreeBSD.
    NotFreeBsd,
    /// It is truncated, or its headers contradict each other.
    Broken,
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoElf => "neither an ELF program nor a script",
            Self::Foreign => "a program for another kind of processor",
            Self::FreeBsd => "a FreeBSD program; run it with --personality freebsd",
            Self::NotFreeBsd => "no FreeBSD program; run it without --personality freebsd",
            Self::Broken => "an ELF file that is cut off or damaged",
        })
    }
}

/// Reads little-endian numbers from `bytes`, never beyond their end.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&self, at: usize) -> Result<[u8; N], ImageError> {
        let bytes =
            at.checked_add(N).and_then(|end| self.0.get(at..end)).ok_or(ImageError::Broken)?;
        bytes.try_into().map_err(|_| ImageError::Broken)
    }
    fn half(&self, at: usize) -> Result<u16, ImageError> {
        self.take(at).map(u16::from_le_bytes)
    }
    fn word(&self, at: usize) -> Result<u32, ImageError> {
        self.take(at).map(u32::from_le_bytes)
    }
    fn long(&self, at: usize) -> Result<u64, ImageError> {
        self.take(at).map(u64::from_le_bytes)
    }
}

impl Elf {
    /// Reads the headers in `start`, the beginning of a file of `file_bytes`.
    ///
    /// # Errors
    /// Why it is not a program for this server.
    pub(crate) fn read(start: &[u8], file_bytes: u64) -> Result<Self, ImageError> {
        let fields = Fields(start);
        if !start.starts_with(b"\x7fELF") {
            return Err(ImageError::NoElf);
        }
        let (class, order, machine) =
            (fields.take::<1>(4)?, fields.take::<1>(5)?, fields.half(18)?);
        if class != [2] || order != [1] || machine != libc::EM_X86_64 {
            return Err(ImageError::Foreign);
        }
        let position = match fields.half(16)? {
            libc::ET_EXEC => Position::Fixed,
            libc::ET_DYN => Position::Anywhere,
            _ => return Err(ImageError::Broken),
        };
        let table = usize::try_from(fields.long(32)?).map_err(|_| ImageError::Broken)?;
        let count = fields.half(56)?;
        if usize::from(fields.half(54)?) != SEGMENT_BYTES {
            return Err(ImageError::Broken);
        }
        let [system] = fields.take::<1>(7)?;
        let mut elf = Self {
            personality: if system == OF_FREEBSD {
                Personality::FreeBsd
            } else {
                Personality::Linux
            },
            position,
            entry: fields.long(24)?,
            headers: None,
            headers_count: count,
            segments: Vec::new(),
            interpreter: None,
        };
        for index in 0..usize::from(count) {
            let at = table.checked_add(index * SEGMENT_BYTES).ok_or(ImageError::Broken)?;
            elf.header(&fields, at, file_bytes)?;
        }
        elf.check()?;
        elf.headers = elf.find_headers(table as u64);
        Ok(elf)
    }

    /// # Errors
    /// It makes the calls of another system.
    pub(crate) fn must_be_for(&self, personality: Personality) -> Result<(), ImageError> {
        match personality {
            _ if personality == self.personality => Ok(()),
            Personality::Linux => Err(ImageError::FreeBsd),
            Personality::FreeBsd => Err(ImageError::NotFreeBsd),
        }
    }

    /// Adds the program header at `at`.
    fn header(
        &mut self,
        fields: &Fields<'_>,
        at: usize,
        file_bytes: u64,
    ) -> Result<(), ImageError> {
        let segment = Segment {
            flags: fields.word(at + 4)?,
            offset: fields.long(at + 8)?,
            address: fields.long(at + 16)?,
            in_file: fields.long(at + 32)?,
            in_memory: fields.long(at + 40)?,
        };
        let end_in_file = segment.offset.checked_add(segment.in_file).ok_or(ImageError::Broken)?;
        match fields.word(at)? {
            libc::PT_LOAD if segment.in_memory > 0 => {
                let fits = segment.in_file <= segment.in_memory
                    && end_in_file <= file_bytes
                    && segment.address % PAGE == segment.offset % PAGE
                    && segment.in_memory < ADDRESS_END
                    && segment.address < ADDRESS_END - segment.in_memory;
                if !fits {
                    return Err(ImageError::Broken);
                }
                self.segments.push(segment);
            }
            libc::PT_INTERP => {
                let within = (2..=libc::PATH_MAX as u64).contains(&segment.in_file);
                if !within || end_in_file > file_bytes {
                    return Err(ImageError::Broken);
                }
                self.interpreter = Some((segment.offset, segment.in_file as usize));
            }
            _ => {}
        }
        Ok(())
    }

    fn check(&self) -> Result<(), ImageError> {
        let first = self.segments.first().ok_or(ImageError::Broken)?;
        let rising = self
            .segments
            .windows(2)
            .all(|pair| pair[0].address + pair[0].in_memory <= pair[1].address);
        let low = self.position == Position::Fixed && first.address < u64::from(GUARD);
        if !rising || low || self.entry >= ADDRESS_END {
            return Err(ImageError::Broken);
        }
        Ok(())
    }

    /// The address in memory of the program headers, which are at `offset` of the file.
    fn find_headers(&self, offset: u64) -> Option<u64> {
        self.segments
            .iter()
            .find(|segment| (segment.offset..segment.offset + segment.in_file).contains(&offset))
            .map(|segment| segment.address + (offset - segment.offset))
    }

    /// The address of the first page that it maps, and the bytes up to the last, in whole pages.
    pub(crate) fn extent(&self) -> (u64, u64) {
        let start = self.segments.first().map_or(0, |segment| segment.address) & !(PAGE - 1);
        let end = self.segments.last().map_or(0, |segment| segment.address + segment.in_memory);
        (start, (end - start).next_multiple_of(PAGE))
    }
}

#[cfg(test)]
mod tests;
