use super::{Address, Names, SocketDirectory};
use proptest::prelude::*;
use rustix::net::SocketAddrUnix;
use std::os::fd::OwnedFd;

#[test]
fn addresses_are_read_by_their_family() {
    let read = |bytes: &[u8]| Address::read(bytes).map(|address| format!("{address:?}"));
    let v4 = [2, 0, 0, 80, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(read(&v4).unwrap(), "Internet(127.0.0.1:80)");
    let mut v6 = [0; 28];
    (v6[0], v6[3], v6[23]) = (10, 80, 1);
    assert_eq!(read(&v6).unwrap(), "Internet([::1]:80)");
    assert_eq!(read(&v6[..24]).unwrap(), "Internet([::1]:80)");
    assert!(read(&v4[..15]).is_err() && read(&v6[..23]).is_err() && read(&[1]).is_err());
    assert_eq!(read(b"\x01\0/a\0b").unwrap(), format!("{:?}", Address::Named(b"/a".to_vec())));
    assert_eq!(read(b"\x01\0\0a").unwrap(), format!("{:?}", Address::Abstract(b"a".to_vec())));
    assert_eq!(read(b"\x01\0").unwrap(), "Unnamed");
    assert_eq!(read(&[0, 0]).unwrap(), "Unspecified");
    assert!(read(&[77, 0, 0]).is_err());
}

#[test]
fn paths_lead_back_where_their_directory_is_known() {
    let mut names = Names::new();
    let directory = OwnedFd::from(std::fs::File::open("/").unwrap());
    names
        .directories
        .insert(7, SocketDirectory { _kept: directory, identity: (0, 0), path: b"/run".to_vec() });
    let inside = |path: &str| names.inside(&SocketAddrUnix::new(path).unwrap());
    assert_eq!(inside("/proc/self/fd/7/x"), Some(b"/run/x\0".to_vec()));
    assert_eq!(inside("/proc/self/fd/8/x"), None);
    assert_eq!(inside("/proc/self/fd/7"), None);
    assert_eq!(inside("/run/x"), None);
}

proptest! {
    #[test]
    fn whatever_is_read_is_an_address_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = Address::read(&bytes);
    }

    #[test]
    fn names_without_a_file_lead_back_and_are_the_instances_own(name in proptest::collection::vec(any::<u8>(), 0..80)) {
        let (ours, others) = (Names::new(), Names::new());
        let hidden = ours.hidden(&name);
        let address = SocketAddrUnix::new_abstract_name(&hidden).unwrap();
        prop_assert_eq!(ours.inside(&address), Some([b"\0", name.as_slice()].concat()));
        prop_assert_eq!(others.inside(&address), None);
        // As it comes in a message.
        prop_assert_eq!(ours.hidden(&hidden), hidden);
    }
}
