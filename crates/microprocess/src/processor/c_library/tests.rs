use super::{PUT_OFFS_MAX, code_of, next};

#[test]
fn code_of_the_c_library_is_found_by_name() {
    const MAPS: &str = "\
7f00-8000 r-xp 00001000 00:01 1    /usr/bin/program
8000-9000 r--p 00000000 00:01 2    /usr/lib/x86_64-linux-gnu/libc.so.6
9000-a000 r-xp 00001000 00:01 2    /usr/lib/x86_64-linux-gnu/libc.so.6
a000-b000 r-xp 00001000 00:01 3    /usr/lib/x86_64-linux-gnu/libcrypto.so.3
b000-c000 r-xp 00001000 00:01 4    /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2
c000-d000 r-xp 00000000 00:00 0    [vdso]
d000-e000 rwxp 00000000 00:00 0 \n";
    assert_eq!(code_of(MAPS), [0x9000..0xa000, 0xb000..0xc000]);
}

#[test]
fn long_library_call_is_preempted_in_the_end() {
    let mut count = 0;
    for _ in 0..PUT_OFFS_MAX {
        count = next(count, true);
        assert_ne!(count, 0);
    }
    assert_eq!(next(count, true), 0, "it is preempted");
    assert_eq!(next(count, false), 0);
}
