//! How long does the world stand still for a collection, with so much alive?
//!
//! `cargo bench -p kyocho-lisp --bench pauses [-- MIB]`: fills a system's heap with vectors in a list, up to 1,024 MiB unless told otherwise,
//! and asks for collections. Baseline in the same run: an eighth and half as much. Unit: milliseconds; all pauses of the
//! largest heap should be below 10 at the 99th percentile.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a bench reports, and may fail")]

use kyocho_lisp::system::{Options, System};

const MIB: usize = 1024;
const COLLECTIONS: usize = 100;
/// A pair, and a vector of six elements with its header, in bytes.
const ITEM_BYTES: usize = 16 + 64;

fn main() {
    let mib = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(MIB);
    let options = Options { memory_max_bytes: (4 * mib).max(64) << 20, ..Options::default() };
    let system = System::boot(options, &mut |_| {}).unwrap();
    let mut session = system.session();
    for mib in [mib / 8, mib / 2, mib] {
        let items = (mib << 20) / ITEM_BYTES;
        let fill = format!(
            "(define live (let loop ((i 0) (l '())) (if (< i {items}) (loop (+ i 1) (cons (make-vector 6 i) l)) l)))"
        );
        session.eval("(define live #f)", "bench").unwrap();
        session.eval(&fill, "bench").unwrap();
        let mut pauses_ms = Vec::new();
        for _ in 0..COLLECTIONS {
            session.eval("(gc)", "bench").unwrap();
            let last = system.statistics();
            assert!(last.live_bytes >= mib << 20, "everything is alive: {last:?}");
            pauses_ms.push(last.pause.as_secs_f64() * 1e3);
        }
        pauses_ms.sort_by(f64::total_cmp);
        let at = |part: f64| pauses_ms[((COLLECTIONS - 1) as f64 * part) as usize];
        println!("{mib} MiB alive: p50 {:.1} ms, p99 {:.1} ms", at(0.5), at(0.99));
    }
}
