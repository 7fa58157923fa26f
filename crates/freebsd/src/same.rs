//! Calls with the same meaning and the same arguments on both systems. Only their numbers differ.

/// FreeBSD's number and the host's, in the order of FreeBSD's.
#[rustfmt::skip]
const SAME: [(u16, u16); 70] = [
    (1, 231), (3, 0), (4, 1), (9, 86), (10, 87), (12, 80), (13, 81), (15, 90), (16, 92), (20, 39), (23, 105), (24, 102),
    (25, 107), (33, 21), (36, 162), (39, 110), (41, 32), (43, 108), (47, 104), (57, 88), (58, 89), (59, 59), (60, 95),
    (73, 11), (79, 115), (80, 116), (81, 111), (82, 109), (83, 38), (86, 36), (93, 23), (95, 74), (96, 141),
    (106, 50), (116, 96), (117, 98), (120, 19), (121, 20), (123, 93), (124, 91), (126, 113), (127, 114), (128, 82), (131, 73),
    (134, 48), (136, 83), (137, 84), (147, 112), (181, 106), (203, 149), (204, 150), (207, 121), (209, 7), (240, 35),
    (254, 94), (289, 295), (290, 296), (310, 124), (331, 24), (360, 118), (361, 120), (475, 17), (476, 18), (478, 8), (479, 76),
    (480, 77), (496, 258), (500, 267), (501, 264), (502, 266),
];

/// Calls that were added later.
#[rustfmt::skip]
const LATER: [(u16, u16); 3] = [(550, 75), (563, 318), (569, 326)];

/// The host's number for `call`, if nothing else has to be changed.
pub(crate) fn number(call: u64) -> Option<u32> {
    let call = u16::try_from(call).ok()?;
    let list: &[(u16, u16)] = if call < LATER[0].0 { &SAME } else { &LATER };
    let place = list.binary_search_by_key(&call, |(ours, _)| *ours).ok()?;
    Some(u32::from(list[place].1))
}

#[cfg(test)]
mod tests {
    use super::{LATER, SAME, number};
    use crate::names;

    #[test]
    fn the_list_is_sorted_and_all_have_names() {
        let all: Vec<u16> = SAME.iter().chain(&LATER).map(|(ours, _)| *ours).collect();
        assert!(all.is_sorted());
        assert!(all.iter().all(|call| names::of(u32::from(*call)).is_some()));
    }

    #[test]
    fn some_that_everybody_knows() {
        for (call, host) in [
            (3, libc::SYS_read),
            (4, libc::SYS_write),
            (1, libc::SYS_exit_group),
            (20, libc::SYS_getpid),
            (128, libc::SYS_rename),
            (478, libc::SYS_lseek),
            (563, libc::SYS_getrandom),
            (496, libc::SYS_mkdirat),
            (73, libc::SYS_munmap),
        ] {
            assert_eq!(number(call), Some(host as u32));
        }
        assert_eq!(number(2), None);
        // `getpriority`: the host adds to its answer.
        assert_eq!(number(100), None);
        assert_eq!(number(u64::MAX), None);
    }
}
