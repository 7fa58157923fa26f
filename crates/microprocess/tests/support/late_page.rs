//! A page whose first access waits until it is filled: `userfaultfd(2)`, for which the C library
//! has no function.

/// `struct uffdio_api`, `uffdio_register` and `uffdio_zeropage` of linux/userfaultfd.h, as words,
/// and their `ioctl`s.
const UFFDIO_API: libc::Ioctl = 0xc018_aa3f;
const UFFDIO_REGISTER: libc::Ioctl = 0xc020_aa00;
const UFFDIO_ZEROPAGE: libc::Ioctl = 0xc020_aa04;
const UFFD_API: u64 = 0xaa;
const UFFD_USER_MODE_ONLY: i32 = 1;
const REGISTER_MODE_MISSING: u64 = 1;
const PAGE: usize = 4096;

/// A page that waits for [`fill`](LatePage::fill). It stays mapped.
pub(crate) struct LatePage {
    descriptor: i32,
    address: usize,
}

impl LatePage {
    /// `None` if the host does not permit it.
    pub(crate) fn new() -> Option<Self> {
        let flags = libc::O_CLOEXEC | UFFD_USER_MODE_ONLY;
        // SAFETY: passes a number, makes a descriptor.
        let descriptor = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) } as i32;
        let (protection, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: maps a page at an address that the kernel chooses.
        let page = unsafe { libc::mmap(core::ptr::null_mut(), PAGE, protection, kind, -1, 0) };
        let late = Self { descriptor, address: page.expose_provenance() };
        let mut api = [UFFD_API, 0, 0];
        let mut register = [late.address as u64, PAGE as u64, REGISTER_MODE_MISSING, 0];
        // SAFETY: the kernel reads and writes three words.
        let spoken =
            descriptor >= 0 && unsafe { libc::ioctl(descriptor, UFFDIO_API, &raw mut api) } == 0;
        // SAFETY: the kernel reads and writes four words.
        let there =
            spoken && unsafe { libc::ioctl(descriptor, UFFDIO_REGISTER, &raw mut register) } == 0;
        there.then_some(late)
    }

    pub(crate) fn address(&self) -> usize {
        self.address
    }

    /// Ends the wait of the thread that accesses it.
    pub(crate) fn fill(&self) {
        let mut zero = [self.address as u64, PAGE as u64, 0, 0];
        // SAFETY: the kernel reads and writes four words, and fills the page of this value.
        assert_eq!(unsafe { libc::ioctl(self.descriptor, UFFDIO_ZEROPAGE, &raw mut zero) }, 0);
    }
}

impl Drop for LatePage {
    fn drop(&mut self) {
        // SAFETY: the descriptor belongs to this value and is not used any more; -1 if there is
        // none.
        unsafe { libc::close(self.descriptor) };
    }
}
