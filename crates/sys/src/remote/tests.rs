use super::{divert, read, write};
use crate::error::Errno;
use crate::task::ThreadId;

#[test]
fn memory_is_copied_in_and_out_up_to_what_can_be_reached() {
    let (text, own) = (*b"memory", std::process::id());
    let mut copy = [0; 6];
    assert_eq!(read(own, text.as_ptr().addr() as u64, &mut copy), Ok(6));
    assert_eq!(copy, text);
    let mut target = [0; 3];
    let address = (&raw mut target).addr() as u64;
    assert_eq!(write(own, address, b"abc"), Ok(3));
    assert_eq!(core::hint::black_box(target), *b"abc");
    assert_eq!(read(own, 8, &mut copy), Err(Errno::FAULT));
    assert_eq!(write(own, 8, &copy), Err(Errno::FAULT));
    assert_eq!(read(i32::MAX as u32, 8, &mut copy), Err(Errno::SRCH));
}

#[test]
fn nobody_diverts_a_thread_of_its_own_process() {
    let own = ThreadId::current().number();
    assert_eq!(divert(own, || Ok(()), |_| ()), Err(Errno::PERM));
    assert_eq!(divert(i32::MAX as u32, || Ok(()), |_| ()), Err(Errno::SRCH));
}
