use super::{Elf, HEADERS_BYTES_MAX, ImageError, Personality, Position};
use proptest::prelude::{any, proptest};

fn busybox_like() -> Vec<u8> {
    let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    file[..HEADERS_BYTES_MAX].to_vec()
}

const BYTES: u64 = u64::MAX / 2;

#[test]
fn the_running_program_is_understood() {
    let elf = Elf::read(&busybox_like(), BYTES).unwrap();
    assert_eq!(elf.position, Position::Anywhere);
    assert!(elf.interpreter.is_some());
    assert!(elf.headers.is_some());
    assert!(elf.segments.len() >= 2);
}

#[test]
fn what_is_no_program_is_named() {
    assert_eq!(Elf::read(b"#!/bin/sh\n", 10), Err(ImageError::NoElf));
    assert_eq!(Elf::read(b"\x7fELF", 4), Err(ImageError::Broken));
    let mut foreign = busybox_like();
    foreign[18] = 0xb7;
    assert_eq!(Elf::read(&foreign, BYTES), Err(ImageError::Foreign));
    let mut freebsd = busybox_like();
    freebsd[7] = 9;
    let freebsd = Elf::read(&freebsd, BYTES).unwrap();
    assert_eq!(freebsd.must_be_for(Personality::Linux), Err(ImageError::FreeBsd));
    assert_eq!(freebsd.must_be_for(Personality::FreeBsd), Ok(()));
    let linux = Elf::read(&busybox_like(), BYTES).unwrap();
    assert_eq!(linux.must_be_for(Personality::FreeBsd), Err(ImageError::NotFreeBsd));
    let mut cut = busybox_like();
    cut.truncate(100);
    assert_eq!(Elf::read(&cut, BYTES), Err(ImageError::Broken));
    assert_eq!(Elf::read(&busybox_like(), 4096), Err(ImageError::Broken));
}

proptest! {
    /// Every accepted program can be mapped: no sum overflows, and the segments rise.
    #[test]
    fn damage_is_refused_or_harmless(places in proptest::collection::vec((0_usize..900, any::<u8>()), 1..12)) {
        let mut file = busybox_like();
        for (place, byte) in places {
            file[place] = byte;
        }
        if let Ok(elf) = Elf::read(&file, 1 << 40) {
            let (start, bytes) = elf.extent();
            assert!(start.checked_add(bytes).is_some());
            for pair in elf.segments.windows(2) {
                assert!(pair[0].address + pair[0].in_memory <= pair[1].address);
            }
            crate::program::plan::Plan::new().map(&elf, 0x5555_0000_0000, 3, &[]);
        }
    }
}
