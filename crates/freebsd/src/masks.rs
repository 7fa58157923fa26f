//! The signals that are blocked. When a handler's frame is gone, the host sets the mask that is in
//! the frame. So the mask is changed there.

use crate::errno::Errno;
use crate::frame::Context;
use crate::host::{Answer, DONE, address, address_of, number, pass};
use crate::signals::{set_from_host, set_to_host};
use crate::user;

/// `sigprocmask`.
pub(crate) fn change(how: u64, new: u64, old: u64, context: &mut Context) -> Answer {
    const BLOCK: u64 = 1;
    const UNBLOCK: u64 = 2;
    const SET: u64 = 3;
    let before = context.mask;
    if new != 0 {
        let wanted = set_to_host(user::read(new)?);
        context.mask = match how {
            BLOCK => before | wanted,
            UNBLOCK => before & !wanted,
            SET => wanted,
            _ => return Err(Errno::INVAL),
        };
    }
    user::write_if_wanted(old, &set_from_host(before))?;
    DONE
}

/// `sigsuspend`.
pub(crate) fn suspend(mask: u64) -> Answer {
    let mask = set_to_host(user::read(mask)?);
    pass(number::RT_SIGSUSPEND, &[address_of(&mask), 8])
}

/// `sigpending`.
pub(crate) fn pending(place: u64) -> Answer {
    let mut pending = 0_u64;
    pass(number::RT_SIGPENDING, &[address(&mut pending), 8])?;
    user::write(place, &set_from_host(pending))?;
    DONE
}

#[cfg(test)]
mod tests {
    use super::change;
    use crate::errno::Errno;
    use crate::frame::Context;
    use crate::host::{address, address_of};

    #[test]
    fn blocking_and_unblocking_change_the_frame_and_tell_what_was() {
        let mut context = Context::default();
        // SIGUSR1 and SIGUSR2 in FreeBSD's numbers.
        let (set, mut old) = ([1_u32 << 29 | 1 << 30, 0, 0, 0], [9_u32; 4]);
        assert_eq!(change(1, address_of(&set), address(&mut old), &mut context), Ok(0));
        assert_eq!(old, [0; 4]);
        assert_eq!(context.mask, 1 << (libc::SIGUSR1 - 1) | 1 << (libc::SIGUSR2 - 1));
        let one = [1_u32 << 29, 0, 0, 0];
        assert_eq!(change(2, address_of(&one), address(&mut old), &mut context), Ok(0));
        assert_eq!((old, context.mask), (set, 1 << (libc::SIGUSR2 - 1)));
        assert_eq!(change(7, address_of(&one), 0, &mut context), Err(Errno::INVAL));
        assert_eq!(change(3, address_of(&[0_u32; 4]), 0, &mut context), Ok(0));
        assert_eq!(context.mask, 0);
    }
}
