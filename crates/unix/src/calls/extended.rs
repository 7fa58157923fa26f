//! Extended attributes of files: named values beside the contents.
//!
//! The host decides about them by the rights of the *server*. So two kinds are kept from clients.
//! Attributes of `security.` can only be read, because one of them gives a program capabilities.
//! Those of `trusted.` do not exist.

use crate::errors::host;
use crate::paths::walk::Node;
use crate::server::{Answer, DONE, Request};
use kyocho_sys::error::Errno;
use rustix::fs::{FileType, XattrFlags};

/// Longest name, longest value and longest list, as on Linux.
const NAME_BYTES_MAX: usize = 255;
const VALUE_BYTES_MAX: usize = 64 * 1024;
const NO_ATTRIBUTE: Errno = Errno::new(libc::ENODATA);

/// What the first argument of a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    /// A path, whose last link is followed.
    Path,
    /// A path, whose last link is not followed.
    Link,
    /// A descriptor.
    Open,
}

/// Whether a client may make, change and remove attributes with this name.
fn is_changeable(name: &[u8]) -> bool {
    name.starts_with(b"user.") || name.starts_with(b"system.posix_acl_")
}

fn is_hidden(name: &[u8]) -> bool {
    name.starts_with(b"trusted.")
}

impl Request<'_> {
    fn attributed(&self, named: Named) -> Result<Node, Errno> {
        match named {
            Named::Path => self.find(libc::AT_FDCWD, 0, 0),
            Named::Link => self.find(libc::AT_FDCWD, 0, libc::AT_SYMLINK_NOFOLLOW),
            Named::Open => self.server.node_of(&self.client, self.client.descriptor(self.int(0))?),
        }
    }

    /// A file whose attribute `name` will change. Links have no changeable attributes.
    fn changeable(&self, named: Named, name: &[u8]) -> Result<Node, Errno> {
        let node = self.attributed(named)?;
        node.must_be_own()?;
        if node.kind == FileType::Symlink || !is_changeable(name) {
            return Err(Errno::PERM);
        }
        Ok(node)
    }

    fn attribute_name(&self) -> Result<Vec<u8>, Errno> {
        let out_of_range = Errno::new(libc::ERANGE);
        match self.client.string(self.word(1), NAME_BYTES_MAX + 1) {
            Ok(name) if name.is_empty() => Err(out_of_range),
            Err(errno) if errno.number() == libc::ENAMETOOLONG => Err(out_of_range),
            other => other,
        }
    }

    /// `getxattr`, `lgetxattr`, `fgetxattr`.
    pub(crate) fn get_attribute(&self, named: Named) -> Result<Answer, Errno> {
        let name = self.attribute_name()?;
        let node = self.attributed(named)?;
        if node.kind == FileType::Symlink || is_hidden(&name) {
            return Err(NO_ATTRIBUTE);
        }
        let mut value = vec![0; VALUE_BYTES_MAX];
        let bytes = rustix::fs::getxattr(node.descriptor_path(), name, value.as_mut_slice())
            .map_err(host)?;
        self.hand_over(2, &value[..bytes])
    }

    /// `listxattr`, `llistxattr`, `flistxattr`.
    pub(crate) fn list_attributes(&self, named: Named) -> Result<Answer, Errno> {
        let node = self.attributed(named)?;
        let mut names = vec![0; VALUE_BYTES_MAX];
        let bytes = match node.kind {
            FileType::Symlink => 0,
            _ => {
                rustix::fs::listxattr(node.descriptor_path(), names.as_mut_slice()).map_err(host)?
            }
        };
        let each = names[..bytes].split_inclusive(|byte| *byte == 0);
        let seen: Vec<u8> = each.filter(|name| !is_hidden(name)).flatten().copied().collect();
        self.hand_over(1, &seen)
    }

    /// Writes `bytes` to the address in argument `place`. The next argument is the room there; 0
    /// asks how much is needed.
    fn hand_over(&self, place: usize, bytes: &[u8]) -> Result<Answer, Errno> {
        let room = self.word(place + 1);
        if room != 0 && room < bytes.len() as u64 {
            return Err(Errno::new(libc::ERANGE));
        }
        if room != 0 {
            self.client.write(self.word(place), bytes)?;
        }
        Ok(Answer::Value(bytes.len() as i64))
    }

    /// `setxattr`, `lsetxattr`, `fsetxattr`.
    pub(crate) fn set_attribute(&self, named: Named) -> Result<Answer, Errno> {
        let name = self.attribute_name()?;
        let flags = XattrFlags::from_bits(self.word(4) as u32).ok_or(Errno::INVAL)?;
        let bytes = self.word(3);
        if bytes > VALUE_BYTES_MAX as u64 {
            return Err(Errno::new(libc::E2BIG));
        }
        let mut value = vec![0; bytes as usize];
        self.client.read(self.word(2), &mut value)?;
        let node = self.changeable(named, &name)?;
        rustix::fs::setxattr(node.descriptor_path(), name, &value, flags).map_err(host)?;
        DONE
    }

    /// `removexattr`, `lremovexattr`, `fremovexattr`.
    pub(crate) fn remove_attribute(&self, named: Named) -> Result<Answer, Errno> {
        let name = self.attribute_name()?;
        let node = self.changeable(named, &name)?;
        rustix::fs::removexattr(node.descriptor_path(), name).map_err(host)?;
        DONE
    }
}

#[cfg(test)]
mod tests {
    use super::{is_changeable, is_hidden};

    #[test]
    fn what_would_give_rights_cannot_be_changed() {
        assert!(is_changeable(b"user.mime_type") && is_changeable(b"system.posix_acl_access"));
        assert!(
            !is_changeable(b"security.capability") && !is_changeable(b"trusted.overlay.opaque")
        );
        assert!(!is_changeable(b"user") && !is_changeable(b""));
        assert!(is_hidden(b"trusted.x") && !is_hidden(b"user.trusted.x"));
    }
}
