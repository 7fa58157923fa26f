//! The start of a program: installs the library's handlers, and converts the auxiliary vector to
//! FreeBSD's.
//!
//! ```text
//!   stack ─► count, arguments, 0, environment, 0, vector: pairs of kind and value, up to kind 0
//! ```
//!
//! The host's vector is rewritten in place. Kinds up to 14 are the same; the others are replaced by
//! FreeBSD's.

use crate::host::{Answer, address, number, pass};
use crate::sysctl::{self, RELEASE_DATE};
use crate::user;
use crate::{deliver, report, signals, trap};

/// Most pairs in a vector of the host's.
const PAIRS_MAX: usize = 64;
/// Most arguments and variables.
const STRINGS_MAX: u64 = 1 << 24;

/// Kinds of entries, in FreeBSD's numbers.
mod kind {
    pub(super) const END: u64 = 0;
    pub(super) const IGNORED: u64 = 1;
    pub(super) const ENTRY: u64 = 9;
    pub(super) const LAST_COMMON: u64 = 14;
    pub(super) const PATH: u64 = 15;
    pub(super) const CANARY: u64 = 16;
    pub(super) const CANARY_BYTES: u64 = 17;
    pub(super) const RELEASE_DATE: u64 = 18;
    pub(super) const PROCESSORS: u64 = 19;
}

/// Kinds of the host's whose values are used.
const HOST_RANDOM: u64 = 25;
const HOST_PATH: u64 = 31;
const RANDOM_BYTES: u64 = 16;

type Pair = [u64; 2];

/// Makes the process one of FreeBSD's, and enters the program. The stack is as the host made it,
/// and the program is mapped.
#[expect(unsafe_code, reason = "enters the program")]
pub(crate) fn start(stack: u64) -> ! {
    let entry = prepare(stack).unwrap_or_else(|_| fail());
    // SAFETY: nothing of this library's is in use any more.
    unsafe { kyocho_arch::emulation::enter(stack, entry) }
}

/// Everything before the first instruction of the program. Returns its address.
fn prepare(stack: u64) -> Answer {
    let (trap, deliver) = (trap as *const (), deliver::on_signal as *const ());
    signals::install_own(trap.addr() as u64, deliver.addr() as u64)?;
    report::ask();
    let vector = find_vector(stack)?;
    let mut pairs = [[0; 2]; PAIRS_MAX];
    let mut count = 0;
    while count < PAIRS_MAX {
        pairs[count] = user::read(vector + 16 * count as u64)?;
        count += 1;
        if pairs[count - 1][0] == kind::END {
            break;
        }
    }
    let entry = value_of(&pairs[..count], kind::ENTRY).unwrap_or(0);
    rewrite(&mut pairs[..count], sysctl::processors()?);
    for (index, pair) in pairs[..count].iter().enumerate() {
        user::write(vector + 16 * index as u64, pair)?;
    }
    Ok(entry)
}

/// The address after the arguments and the environment.
fn find_vector(stack: u64) -> Answer {
    let arguments: u64 = user::read(stack)?;
    let mut at = stack + 8 * (arguments.min(STRINGS_MAX) + 2);
    for _ in 0..STRINGS_MAX {
        let variable: u64 = user::read(at)?;
        at += 8;
        if variable == 0 {
            break;
        }
    }
    Ok(at)
}

fn value_of(pairs: &[Pair], kind: u64) -> Option<u64> {
    pairs.iter().find(|pair| pair[0] == kind).map(|pair| pair[1])
}

/// Replaces the host's vector by FreeBSD's.
fn rewrite(pairs: &mut [Pair], processors: u32) {
    let ours = [
        [kind::RELEASE_DATE, u64::from(RELEASE_DATE)],
        [kind::PROCESSORS, u64::from(processors)],
        [kind::PATH, value_of(pairs, HOST_PATH).unwrap_or(0)],
        [kind::CANARY, value_of(pairs, HOST_RANDOM).unwrap_or(0)],
        [kind::CANARY_BYTES, RANDOM_BYTES],
    ];
    let mut ours = ours.into_iter().filter(|pair| pair[1] != 0);
    for pair in pairs.iter_mut().filter(|pair| pair[0] > kind::LAST_COMMON) {
        *pair = ours.next().unwrap_or([kind::IGNORED, 0]);
    }
}

/// Ends a process that cannot be prepared, for example because its stack has another layout. There
/// is no way to report it.
fn fail() -> ! {
    const EXIT_GROUP: u32 = 231;
    const NOT_FOUND: u64 = 127;
    loop {
        let _ = pass(EXIT_GROUP, &[NOT_FOUND]);
    }
}

/// The name of the thread, set by `thr_set_name`.
pub(crate) fn set_name(name: u64) -> Answer {
    const SET_NAME: u64 = 15;
    let mut text = [0_u8; 16];
    for (index, byte) in text.iter_mut().take(15).enumerate() {
        *byte = user::read(name + index as u64)?;
        if *byte == 0 {
            break;
        }
    }
    pass(number::PRCTL, &[SET_NAME, address(&mut text)])
}

#[cfg(test)]
mod tests {
    use super::{find_vector, kind, rewrite, value_of};
    use crate::host::address_of;

    #[test]
    fn the_vector_is_found_behind_the_environment() {
        let stack = [2_u64, 100, 101, 0, 200, 0, 6, 4096, 0, 0];
        assert_eq!(find_vector(address_of(&stack)), Ok(address_of(&stack) + 6 * 8));
        let bare = [0_u64, 0, 0, 0, 0];
        assert_eq!(find_vector(address_of(&bare)), Ok(address_of(&bare) + 3 * 8));
    }

    #[test]
    fn entries_of_the_host_make_room_for_freebsds() {
        let mut pairs = [
            [3, 30],
            [6, 4096],
            [9, 90],
            [15, 1],
            [16, 2],
            [17, 3],
            [23, 0],
            [25, 77],
            [31, 88],
            [33, 5],
            [0, 0],
        ];
        rewrite(&mut pairs, 4);
        assert_eq!(pairs[..3], [[3, 30], [6, 4096], [9, 90]]);
        assert_eq!(value_of(&pairs, kind::PROCESSORS), Some(4));
        assert_eq!(value_of(&pairs, kind::CANARY), Some(77));
        assert_eq!(value_of(&pairs, kind::PATH), Some(88));
        assert_eq!(value_of(&pairs, kind::RELEASE_DATE), Some(1_302_001));
        assert_eq!(pairs[8][0], kind::IGNORED);
        assert_eq!(pairs[10], [0, 0]);
    }
}
