//! Table 1: bytes of code of each method, from the sizes of the program's symbols.

use std::path::Path;
use std::process::Command;

/// A method's code, in bytes.
#[derive(Debug)]
pub struct Footprint {
    /// Name of the method for readers.
    pub method: &'static str,
    /// Its test-and-set.
    pub library: u64,
    /// What its support code does; empty if it has none.
    pub support_does: &'static str,
    /// Its support code.
    pub support: u64,
}

/// Of a method: its name, the symbols of its test-and-set, what its support code does, and prefixes
/// of the symbols of that.
type Symbols = (&'static str, &'static [&'static str], &'static str, &'static [&'static str]);

const METHODS: [Symbols; 6] = [
    (
        "restartable",
        &["footprint_restartable", "kyocho_test_and_set"],
        "part of the preemption handler",
        &["footprint_restartable_handler"],
    ),
    (
        "rseq",
        &["footprint_rseq", "kyocho_rseq_test_and_set"],
        "registration of a thread",
        &[
            "footprint_rseq_registration",
            "kyocho_sys::rseq::register_own",
            "kyocho_sys::rseq::registrar",
        ],
    ),
    ("atomics", &["footprint_atomics"], "", &[]),
    ("signals-blocked", &["footprint_signals_blocked"], "", &[]),
    (
        "lamport",
        &["footprint_lamport", "kyocho_tst::lamport::Lamport::try_to_enter"],
        "slots, and clean-up after dead participants: the counterpart of the paper's daemon",
        &[
            "kyocho_tst::lamport::Lamport::find_or_take",
            "kyocho_tst::lamport::Lamport::finish_if_dead",
            "kyocho_sys::task::life::",
        ],
    ),
    ("system-call", &["footprint_system_call"], "", &[]),
];

/// Reads them.
///
/// # Errors
/// `nm` is missing, or a method's test-and-set is not in the program.
pub fn read(program: &Path) -> Result<Vec<Footprint>, String> {
    let output = Command::new("nm").args(["-S", "-C"]).arg(program).output();
    let output = output.map_err(|failure| format!("nm: {failure}"))?;
    let symbols = String::from_utf8_lossy(&output.stdout).into_owned();
    // Address, size, kind, name; code is of kind t or T.
    let code: Vec<(u64, &str)> = symbols
        .lines()
        .filter_map(|line| {
            let mut words = line.splitn(4, ' ');
            let (size, kind) = (words.nth(1)?, words.next()?);
            let is_code = kind.eq_ignore_ascii_case("t");
            Some((u64::from_str_radix(size, 16).ok()?, words.next()?)).filter(|_| is_code)
        })
        .collect();
    METHODS
        .iter()
        .map(|&(method, library, support_does, support)| {
            let exact = |symbol: &&str| code.iter().find(|(_, name)| name == symbol);
            let found: Vec<u64> = library.iter().filter_map(exact).map(|(size, _)| *size).collect();
            if found.len() < library.len() {
                return Err(format!("{method}: {library:?} are not all in {}", program.display()));
            }
            // Inlined code has no symbol: it is counted in its caller.
            let is_support = |name: &str| support.iter().any(|start| name.starts_with(start));
            let support = code.iter().filter(|(_, name)| is_support(name)).map(|(size, _)| size);
            Ok(Footprint {
                method,
                library: found.iter().sum(),
                support_does,
                support: support.sum(),
            })
        })
        .collect()
}
