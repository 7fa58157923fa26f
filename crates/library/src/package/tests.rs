use super::{BYTES_MAX, FILES_MAX, Package, PackageError};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::{any, proptest};
use std::io::Write;
use std::path::Path;
use tar::{Builder, EntryType, Header};

const MANIFEST: &str = "(package (name \"p\") (version \"1.0\")
    (library (name (p one)) (path \"p/one.sld\") (depends (scheme base)))
    (library (name (p two 3)) (path \"./p/two.sld\")))";
const ONE: &str =
    "(define-library (p one) (export f) (import (scheme base)) (include \"one.scm\"))";
const TWO: &str = "(define-library (p two 3) (export g) (import (scheme base) (p one))
    (begin (define (g) (* 2 (f)))))";

/// An archive, built entry by entry. The tar library refuses to write the invalid entries that
/// these tests need.
struct Archive(Builder<Vec<u8>>);

impl Archive {
    fn new() -> Self {
        Self(Builder::new(Vec::new()))
    }

    fn entry(mut self, kind: EntryType, name: &str, text: &[u8]) -> Self {
        let mut header = Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(kind);
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        self.0.append(&header, text).unwrap();
        self
    }

    fn file(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        self.entry(EntryType::Regular, name, text.as_ref())
    }

    fn packed(self) -> Vec<u8> {
        packed(&self.0.into_inner().unwrap())
    }
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn good() -> Archive {
    Archive::new()
        .entry(EntryType::Directory, "p-1.0/", b"")
        .file("p-1.0/package.scm", MANIFEST)
        .file("p-1.0/p/one.sld", ONE)
        .file("p-1.0/p/one.scm", "(define (f) 21)")
        .file("p-1.0/p/two.sld", TWO)
        .file("p-1.0/binary", [0xff, 0xfe])
}

fn read(archive: &[u8]) -> Result<Package, PackageError> {
    super::read(archive, Path::new("/there/p.tgz"))
}

#[test]
fn a_package_has_its_libraries_and_files() {
    let package = read(&good().packed()).unwrap();
    let names: Vec<String> = package
        .definitions
        .iter()
        .map(|form| form.elements().nth(1).unwrap().to_string())
        .collect();
    assert_eq!(names, ["(p one)", "(p two 3)"]);
    let file = package.files.get(Path::new("/there/p.tgz/p-1.0/p/one.scm")).unwrap();
    assert_eq!(file, b"(define (f) 21)");
}

#[test]
fn a_manifest_may_be_at_the_top() {
    let archive = Archive::new()
        .file("./package.scm", "(package (library (name (a)) (path \"a.sld\")))")
        .file("./a.sld", "(define-library (a))");
    assert_eq!(read(&archive.packed()).unwrap().definitions.len(), 1);
}

#[test]
fn names_that_lead_out_of_the_archive_are_refused() {
    for name in ["../x", "/etc/x", "p-1.0/../../x", "p-1.0/p/.."] {
        let error = read(&good().file(name, "x").packed()).unwrap_err();
        assert!(matches!(error, PackageError::Name(_)), "{name}: {error}");
    }
    let error = read(&good().file("p-1.0/./binary", "again").packed()).unwrap_err();
    assert!(matches!(error, PackageError::Name(_)), "{error}");
    let outside = Archive::new()
        .file("package.scm", "(package (library (name (a)) (path \"../a.sld\")))")
        .file("a.sld", "(define-library (a))");
    assert!(matches!(read(&outside.packed()).unwrap_err(), PackageError::Name(_)));
}

#[test]
fn links_and_devices_are_refused() {
    for kind in [EntryType::Symlink, EntryType::Link, EntryType::Char, EntryType::Fifo] {
        let error = read(&good().entry(kind, "p-1.0/odd", b"").packed()).unwrap_err();
        assert!(matches!(error, PackageError::Kind(_)), "{kind:?}: {error}");
    }
}

#[test]
fn large_archives_are_refused_before_they_fill_memory() {
    let zeros = packed(&vec![0; BYTES_MAX as usize + 1024]);
    let mut long = Header::new_gnu();
    long.set_path("p-1.0/long").unwrap();
    long.set_size(BYTES_MAX * 1000);
    long.set_cksum();
    let mut giant = long.as_bytes().to_vec();
    giant.resize(BYTES_MAX as usize + 1024, b'x');
    for archive in [zeros, packed(&giant)] {
        let error = read(&archive).unwrap_err();
        assert!(matches!(error, PackageError::TooLarge | PackageError::Manifest), "{error}");
    }
    assert!(matches!(read(&packed(&giant)).unwrap_err(), PackageError::TooLarge));
    let many = (0..=FILES_MAX).fold(Archive::new(), |all, i| all.file(&format!("f{i}"), ""));
    assert!(matches!(read(&many.packed()).unwrap_err(), PackageError::TooLarge));
}

#[test]
fn a_size_beyond_the_end_of_the_archive_is_refused() {
    let mut header = Header::new_gnu();
    header.set_path("package.scm").unwrap();
    header.set_size(1 << 60);
    header.set_cksum();
    let error = read(&packed(header.as_bytes())).unwrap_err();
    assert!(matches!(error, PackageError::Unreadable(_)), "{error}");
}

#[test]
fn a_file_that_is_not_an_archive_is_an_error() {
    let whole = good().packed();
    for length in [0, 1, 10, whole.len() / 2, whole.len() - 9] {
        let error = read(&whole[..length]).unwrap_err();
        assert!(matches!(error, PackageError::Unreadable(_)), "{length}: {error}");
    }
    for bytes in [&b"no gzip at all"[..], &packed(b"no tar, though it is long enough to be one")] {
        assert!(matches!(read(bytes).unwrap_err(), PackageError::Unreadable(_)));
    }
    assert!(matches!(read(&packed(&[0; 1024])).unwrap_err(), PackageError::Manifest));
    let error = super::open(Path::new("/no/such/file")).unwrap_err();
    assert!(matches!(error, PackageError::Unreadable(_)));
}

#[test]
fn errors_of_invalid_manifests_say_why() {
    let with = |manifest: &str| {
        let archive = Archive::new().file("package.scm", manifest);
        read(&archive.file("a.sld", "(define-library (a)) 5").packed()).unwrap_err().to_string()
    };
    for (manifest, part) in [
        ("", "must be one package.scm"),
        ("(package) (package)", "must be one package.scm"),
        ("(packet)", "no package"),
        ("5", "no package"),
        ("(package (library))", "without name or path"),
        ("(package (library (name (a)) (path 5)))", "without name or path"),
        ("(package (name \"p\"))", "without a library"),
        ("(package (library (name (a)) (path \"b.sld\")))", "has no b.sld"),
        ("(package (library (name (b)) (path \"a.sld\")))", "does not define (b)"),
        ("(package (library (name (a", "p.tgz/package.scm:1:"),
    ] {
        let error = with(manifest);
        assert!(error.contains(part), "{manifest}: {error}");
    }
    let two = Archive::new().file("a/package.scm", "(package)").file("b/package.scm", "(package)");
    assert!(matches!(read(&two.packed()).unwrap_err(), PackageError::Manifest));
    let error = read(&Archive::new().file("package.scm", [0xff]).packed()).unwrap_err();
    assert!(error.to_string().contains("not UTF-8"), "{error}");
}

proptest! {
    #[test]
    fn damaged_archives_are_read_without_a_panic(at in any::<proptest::sample::Index>(), byte in any::<u8>()) {
        let mut tar = good().0.into_inner().unwrap();
        let at = at.index(tar.len());
        tar[at] = byte;
        let _ = read(&packed(&tar));
    }
}
