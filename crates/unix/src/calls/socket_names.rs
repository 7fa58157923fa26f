//! Names of sockets: translation between the instance's and the host's.

use crate::errors::host;
use crate::paths::walk::Node;
use crate::server::{Answer, DONE, Request, Server};
use crate::state::addresses::{
    ADDRESS_BYTES_MAX, Address, IN_DESCRIPTOR, SOCKET_DIRECTORIES_MAX, SocketDirectory,
    random_digits,
};
use kyocho_sys::error::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix};
use std::os::fd::AsRawFd;

impl Server {
    /// The host's address for an abstract name.
    ///
    /// # Errors
    /// `INVAL`: it is too long.
    pub(crate) fn without_file(&self, name: &[u8]) -> Result<SocketAddrUnix, Errno> {
        let hidden = self.state().sockets.hidden(name);
        SocketAddrUnix::new_abstract_name(&hidden).map_err(|_| Errno::INVAL)
    }

    /// The path inside for a host path that came in a message.
    pub(crate) fn socket_path(&self, path: &[u8]) -> Option<Vec<u8>> {
        self.state().sockets.path_inside(path)
    }

    /// A name for an unnamed socket, like those that the host chooses.
    pub(crate) fn any_name(&self) -> Result<SocketAddrUnix, Errno> {
        const DIGITS: usize = 5;
        self.without_file(&random_digits::<DIGITS>())
    }

    /// The host's address for `name` in `directory`.
    ///
    /// # Errors
    /// `NAMETOOLONG`.
    pub(crate) fn in_directory(
        &self,
        directory: &Node,
        name: &[u8],
    ) -> Result<SocketAddrUnix, Errno> {
        let number = self.directory_number(directory)?;
        let host_path = [IN_DESCRIPTOR, format!("{number}/").as_bytes(), name].concat();
        SocketAddrUnix::new(host_path.as_slice()).map_err(host)
    }

    /// The number of a descriptor of `directory` that stays open as long as the server runs. If too
    /// many are open, the number of the node's own.
    fn directory_number(&self, directory: &Node) -> Result<i32, Errno> {
        let status = rustix::fs::fstat(&directory.file).map_err(host)?;
        let identity = (status.st_dev, status.st_ino);
        let mut state = self.state();
        let directories = &mut state.sockets.directories;
        let known = directories
            .iter()
            .find(|(_, kept)| kept.identity == identity && kept.path == directory.path);
        if let Some((number, _)) = known {
            return Ok(*number);
        }
        if directories.len() >= SOCKET_DIRECTORIES_MAX {
            return Ok(directory.file.as_raw_fd());
        }
        let kept = directory.file.try_clone().map_err(|_| Errno::new(libc::ENFILE))?;
        let number = kept.as_raw_fd();
        directories.insert(
            number,
            SocketDirectory { _kept: kept, identity, path: directory.path.clone() },
        );
        Ok(number)
    }
}

/// The end whose name is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Own,
    Peer,
}

impl Request<'_> {
    /// The address that two arguments describe: a pointer and a length.
    ///
    /// # Errors
    /// As for [`Address::read`], and `FAULT`.
    pub(crate) fn address(&self, place: usize, length: usize) -> Result<Address, Errno> {
        let bytes_count = self.word(length) as usize & 0xffff_ffff;
        let mut bytes = [0; ADDRESS_BYTES_MAX];
        let bytes = bytes.get_mut(..bytes_count).ok_or(Errno::INVAL)?;
        self.client.read(self.word(place), bytes)?;
        Address::read(bytes)
    }

    /// `getsockname`, `getpeername`.
    pub(crate) fn name_of_socket(&self, end: End) -> Result<Answer, Errno> {
        let socket = self.client.descriptor(self.int(0))?;
        let address = match end {
            End::Own => rustix::net::getsockname(&socket).map(Some),
            End::Peer => rustix::net::getpeername(&socket),
        };
        let address = address.map_err(host)?;
        let of_path = address.filter(|address| address.address_family() == AddressFamily::UNIX);
        let of_path = of_path.and_then(|address| SocketAddrUnix::try_from(address).ok());
        let inside = of_path.and_then(|address| self.server.state().sockets.inside(&address));
        // The host's own answer is right. It concerns a descriptor of the caller's and needs no
        // memory checks.
        let Some(inside) = inside else { return Ok(Answer::LetThrough) };
        self.put_address(&inside)
    }

    /// Writes an address of `AF_UNIX` as the host does: cut to the room there is, with its whole
    /// length.
    fn put_address(&self, name: &[u8]) -> Result<Answer, Errno> {
        let (place, length) = (self.word(1), self.word(2));
        let mut room = [0; 4];
        self.client.read(length, &mut room)?;
        let room = usize::try_from(i32::from_le_bytes(room)).map_err(|_| Errno::INVAL)?;
        let bytes = [&(libc::AF_UNIX as u16).to_le_bytes(), name].concat();
        self.client.write(place, &bytes[..room.min(bytes.len())])?;
        self.client.write(length, &(bytes.len() as u32).to_le_bytes())?;
        DONE
    }
}
