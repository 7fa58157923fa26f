//! Error numbers. The library uses the host's, the program gets FreeBSD's. They are translated only
//! here.

/// An error, by the host's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) i32);

impl Errno {
    pub(crate) const BADF: Self = Self(9);
    pub(crate) const AGAIN: Self = Self(11);
    pub(crate) const NOMEM: Self = Self(12);
    pub(crate) const FAULT: Self = Self(14);
    pub(crate) const EXIST: Self = Self(17);
    pub(crate) const INVAL: Self = Self(22);
    pub(crate) const NOTTY: Self = Self(25);
    pub(crate) const MLINK: Self = Self(31);
    pub(crate) const RANGE: Self = Self(34);
    pub(crate) const NOENT: Self = Self(2);
    pub(crate) const LOOP: Self = Self(40);
    pub(crate) const NOSYS: Self = Self(38);
    pub(crate) const NOPROTOOPT: Self = Self(92);
    pub(crate) const AFNOSUPPORT: Self = Self(97);

    /// FreeBSD's number for it; `EIO` if FreeBSD has none.
    pub(crate) const fn freebsd(self) -> u64 {
        const EIO: u8 = 5;
        let known = match self.0 {
            // The errors of Seventh Edition UNIX have the same numbers everywhere, with one
            // exception.
            11 => 35,
            1..=34 => self.0 as u8,
            _ => EIO,
        };
        let mut index = 0;
        while index < LATER.len() {
            if LATER[index].0 as i32 == self.0 {
                return LATER[index].1 as u64;
            }
            index += 1;
        }
        known as u64
    }
}

/// The host's numbers above 34, and FreeBSD's.
#[rustfmt::skip]
const LATER: [(u8, u8); 50] = [
    (35, 11), (36, 63), (37, 77), (38, 78), (39, 66), (40, 62), (42, 83), (43, 82), (61, 87), (62, 60), (67, 91),
    (71, 92), (72, 90), (74, 89), (75, 84), (84, 86), (87, 68), (88, 38), (89, 39), (90, 40), (91, 41), (92, 42),
    (93, 43), (94, 44), (95, 45), (96, 46), (97, 47), (98, 48), (99, 49), (100, 50), (101, 51), (102, 52),
    (103, 53), (104, 54), (105, 55), (106, 56), (107, 57), (108, 58), (109, 59), (110, 60), (111, 61), (112, 64),
    (113, 65), (114, 37), (115, 36), (116, 70), (122, 69), (125, 85), (130, 96), (131, 95),
];

#[cfg(test)]
mod tests {
    use super::Errno;

    #[test]
    fn what_programs_look_at_most_is_translated() {
        for (host, freebsd) in [
            (libc::ENOENT, 2),
            (libc::EAGAIN, 35),
            (libc::EDEADLK, 11),
            (libc::ENAMETOOLONG, 63),
            (libc::ENOTEMPTY, 66),
            (libc::ENOSYS, 78),
            (libc::ECONNREFUSED, 61),
            (libc::EINPROGRESS, 36),
            (libc::ETIMEDOUT, 60),
            (libc::EADDRINUSE, 48),
            (libc::ELOOP, 62),
            (9999, 5),
        ] {
            assert_eq!(Errno(host).freebsd(), freebsd, "{host}");
        }
    }

    #[test]
    fn every_error_of_freebsd_stands_for_one_of_the_host() {
        let mut seen: Vec<u64> = (1..=131).map(|host| Errno(host).freebsd()).collect();
        seen.retain(|number| ![5, 60].contains(number));
        let all = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), all);
    }
}
