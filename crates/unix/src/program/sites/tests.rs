use super::{
    PART_BYTES, PATTERN_BYTES_MAX, PATTERNS, Pattern, REPLACED, SITES_MAX, SearchScope, Site, find,
    find_in_file, is_library,
};
use crate::program::elf::Segment;
use crate::program::launcher::{self, GUARD};
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

const ALL: [SearchScope; 4] =
    [SearchScope::Asked, SearchScope::Answered, SearchScope::Owner, SearchScope::Mapped];

fn whole(pattern: &Pattern) -> Vec<u8> {
    [pattern.before, &pattern.replaced, pattern.after].concat()
}

#[test]
fn a_system_call_becomes_a_call_as_long() {
    let getpid = [0xb8, 0x27, 0, 0, 0, 0x0f, 0x05, 0xc3];
    let entry = launcher::address(|launcher| launcher.process);
    assert!(entry < u64::from(GUARD));
    let [a, b, c, d] = (entry as u32).to_le_bytes();
    let site = Site {
        offset: 0x1003,
        old: u64::from_le_bytes(getpid),
        new: u64::from_le_bytes([0xb9, a, b, c, d, 0xff, 0xd1, 0xc3]),
    };
    let text = [&[0x90; 3], getpid.as_slice(), &[0x90; 5]].concat();
    assert_eq!(find(&text, 0x1000, &ALL), [site]);
    assert_eq!(
        find(&text, 0x1000, &[SearchScope::Asked, SearchScope::Owner, SearchScope::Mapped]),
        []
    );
}

#[test]
fn each_pattern_is_found_whole_and_nowhere_else() {
    for pattern in PATTERNS {
        let text = whole(pattern);
        let found = find(&text, 0, &ALL);
        assert_eq!(found, [pattern.site(pattern.before.len() as u64)], "{text:x?}");
        assert_eq!(find(&text, 0, &[pattern.scope]), found);
        for cut in 1..text.len() {
            assert_eq!(find(&text[cut..], 0, &ALL), [], "{text:x?} from {cut}");
            assert_eq!(find(&text[..cut], 0, &ALL), [], "{text:x?} up to {cut}");
        }
        for place in 0..text.len() {
            let mut other = text.clone();
            other[place] ^= 0x40;
            assert!(find(&other, 0, &ALL) != found, "{text:x?} changed at {place}");
        }
    }
}

#[test]
fn no_file_has_more_than_there_is_room_for() {
    let text = whole(&PATTERNS[0]).repeat(SITES_MAX + 1);
    assert_eq!(find(&text, 0, &ALL).len(), SITES_MAX);
}

#[test]
fn sites_at_every_place_of_a_file_are_found_once() {
    let text = whole(&PATTERNS[5]);
    let segment =
        |in_file| Segment { address: 0, offset: 4096, in_file, in_memory: in_file, flags: 5 };
    for at in (PART_BYTES - 40)..(PART_BYTES + 40) {
        let bytes = [vec![0x90; 4096 + at], text.clone(), vec![0x90; 100], text.clone()].concat();
        let file = OwnedFd::from(tempfile(&bytes));
        let mut sites = Vec::new();
        find_in_file(&file, &segment((bytes.len() - 4096) as u64), &ALL, &mut sites).unwrap();
        let before = PATTERNS[5].before.len() as u64;
        let first = 4096 + at as u64 + before;
        let offsets: Vec<u64> = sites.iter().map(|site| site.offset).collect();
        assert_eq!(offsets, [first, first + text.len() as u64 + 100]);
    }
    assert!(PATTERNS.iter().all(|pattern| whole(pattern).len() <= PATTERN_BYTES_MAX));
}

/// A file without a name.
fn tempfile(bytes: &[u8]) -> File {
    let file = File::from(memfd_create("sites", MemfdFlags::CLOEXEC).unwrap());
    file.write_all_at(bytes, 0).unwrap();
    file
}

proptest! {
    #[test]
    fn what_is_found_stands_there_and_is_no_longer_a_call_of_the_host(
        text in proptest::collection::vec(any::<u8>(), 0..64), which in 0..PATTERNS.len(), rest in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        let text = [text, whole(&PATTERNS[which]), rest].concat();
        let found = find(&text, 0, &ALL);
        prop_assert!(!found.is_empty());
        for site in found {
            let at = site.offset as usize;
            prop_assert_eq!(&site.old.to_le_bytes(), &text[at..at + 8]);
            let new = site.new.to_le_bytes();
            prop_assert_eq!([new[0], new[5], new[6], new[7]], [0xb9, 0xff, 0xd1, text[at + REPLACED]]);
        }
    }
}

#[test]
fn the_c_library_is_known_by_its_name() {
    for name in ["/lib/x86_64-linux-gnu/libc.so.6", "libc.so.6", "/lib64/libc-2.31.so"] {
        assert!(is_library(name.as_bytes()), "{name}");
    }
    for name in ["/usr/lib/libc.so", "libcap.so.2", "/libc.so.6/x", "", "/etc/ld.so.cache"] {
        assert!(!is_library(name.as_bytes()), "{name}");
    }
}
