//! Files, and other descriptors that can be read and written: pipes, terminals.
#![expect(unsafe_code, reason = "borrows descriptors 0 to 2")]

use core::{mem::ManuallyDrop, ops::Deref};
use std::{
    fs,
    io::{self, IoSlice, IoSliceMut, Read, Result, Seek, SeekFrom, Write},
    os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd},
    path::Path,
};

use super::descriptor::{self, Extent};
use super::routing;

/// An open file, pipe or terminal, as [`std::fs::File`].
///
/// ```
/// use std::io::{Read, Write};
/// use kyocho_microprocess::{io::File, run};
///
/// # fn main() -> std::io::Result<()> {
/// run(|| {
///     let (reader, writer) = std::io::pipe()?;
///     let (mut reader, mut writer) = (File::from(reader), File::from(writer));
///     writer.write_all(b"kyocho")?;
///     drop(writer);
///     let mut text = String::new();
///     reader.read_to_string(&mut text)?;
///     assert_eq!(text, "kyocho");
///     Ok(())
/// })
/// .unwrap()
/// # }
/// ```
#[derive(Debug)]
pub struct File {
    inner: fs::File,
}

impl File {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// As [`std::fs::File::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        fs::File::open(path).map(Self::from)
    }

    /// Opens a file for writing; an existing one is emptied.
    ///
    /// # Errors
    /// As [`std::fs::File::create`].
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        fs::File::create(path).map(Self::from)
    }

    /// Opens a file with `options`.
    ///
    /// # Errors
    /// As [`std::fs::OpenOptions::open`].
    pub fn open_with(options: &fs::OpenOptions, path: impl AsRef<Path>) -> Result<Self> {
        options.open(path).map(Self::from)
    }

    /// Reads from `offset` without changing the position. Returns 0 at the end.
    ///
    /// # Errors
    /// The kernel's.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        descriptor::read_at(self.as_fd(), buffer, offset)
    }

    /// Writes at `offset` without changing the position. Returns how many bytes were written.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_at(&self, buffer: &[u8], offset: u64) -> Result<usize> {
        descriptor::write_at(self.as_fd(), buffer, offset)
    }

    /// Waits until what was written is on the device, with all metadata of the file system.
    ///
    /// # Errors
    /// The kernel's.
    pub fn sync_all(&self) -> Result<()> {
        descriptor::sync(self.as_fd(), Extent::All)
    }

    /// As [`sync_all`](Self::sync_all), for the contents and what is needed to find them.
    ///
    /// # Errors
    /// The kernel's.
    pub fn sync_data(&self) -> Result<()> {
        descriptor::sync(self.as_fd(), Extent::Data)
    }

    /// Truncates the file to `bytes`, or extends it with zeros.
    ///
    /// # Errors
    /// As [`std::fs::File::set_len`].
    pub fn set_len(&self, bytes: u64) -> Result<()> {
        self.inner.set_len(bytes)
    }

    /// The file's metadata.
    ///
    /// # Errors
    /// As [`std::fs::File::metadata`].
    pub fn metadata(&self) -> Result<fs::Metadata> {
        self.inner.metadata()
    }

    /// Another handle to the same open file.
    ///
    /// # Errors
    /// As [`std::fs::File::try_clone`].
    pub fn try_clone(&self) -> Result<Self> {
        self.inner.try_clone().map(Self::from)
    }
}

impl Read for &File {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        descriptor::read(self.as_fd(), buffer)
    }

    fn read_vectored(&mut self, parts: &mut [IoSliceMut<'_>]) -> Result<usize> {
        descriptor::read_vectored(self.as_fd(), parts)
    }
}

impl Read for File {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        (&*self).read(buffer)
    }

    fn read_vectored(&mut self, parts: &mut [IoSliceMut<'_>]) -> Result<usize> {
        (&*self).read_vectored(parts)
    }
}

impl Write for &File {
    fn write(&mut self, buffer: &[u8]) -> Result<usize> {
        descriptor::write(self.as_fd(), buffer)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> Result<usize> {
        descriptor::write_vectored(self.as_fd(), parts)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Write for File {
    fn write(&mut self, buffer: &[u8]) -> Result<usize> {
        (&*self).write(buffer)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> Result<usize> {
        (&*self).write_vectored(parts)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Seek for &File {
    fn seek(&mut self, position: SeekFrom) -> Result<u64> {
        (&self.inner).seek(position)
    }
}

impl Seek for File {
    fn seek(&mut self, position: SeekFrom) -> Result<u64> {
        (&*self).seek(position)
    }
}

impl From<fs::File> for File {
    fn from(inner: fs::File) -> Self {
        routing::forget(&inner);
        Self { inner }
    }
}

impl From<OwnedFd> for File {
    fn from(descriptor: OwnedFd) -> Self {
        routing::forget(&descriptor);
        Self { inner: descriptor.into() }
    }
}

impl From<io::PipeReader> for File {
    fn from(pipe: io::PipeReader) -> Self {
        OwnedFd::from(pipe).into()
    }
}

impl From<io::PipeWriter> for File {
    fn from(pipe: io::PipeWriter) -> Self {
        OwnedFd::from(pipe).into()
    }
}

impl From<File> for OwnedFd {
    fn from(file: File) -> Self {
        file.inner.into()
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

/// One of the three standard descriptors of a process; dropping it closes nothing.
///
/// Not buffered: wrap it in [`std::io::BufReader`] to read lines.
#[derive(Debug)]
pub struct Standard {
    file: ManuallyDrop<File>,
}

impl Standard {
    fn new(descriptor: i32) -> Self {
        // SAFETY: 0 to 2 stay open while the process runs, and `ManuallyDrop` keeps this from
        // closing them.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Self { file: ManuallyDrop::new(descriptor.into()) }
    }
}

impl Deref for Standard {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl Read for Standard {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        (&**self).read(buffer)
    }
}

impl Write for Standard {
    fn write(&mut self, buffer: &[u8]) -> Result<usize> {
        (&**self).write(buffer)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Standard input.
#[must_use]
pub fn stdin() -> Standard {
    Standard::new(0)
}

/// Standard output.
#[must_use]
pub fn stdout() -> Standard {
    Standard::new(1)
}

/// Standard error.
#[must_use]
pub fn stderr() -> Standard {
    Standard::new(2)
}
