//! What does a cell cache gain over one request per cell (paper 4: table 1, figures 3 and 4)?
//!
//! Baseline in the same run: no cache. Unit: milliseconds, median of the repeats with the spread.
//! The output of each run is compared with that of the first before its time counts.
#![expect(clippy::print_stdout, reason = "a bench reports on its output")]

use kyocho_deep::{Options, SystemCallStatistics, run};
use kyocho_heap::heap::CellCache;

const REPEATS: usize = 15;
const PROGRAMS: [(&str, &str, f64); 2] = [
    ("ackermann", include_str!("../../../bench/lisp/deep/ack.scm"), 5.512_369 / 1.414_618),
    ("quicksort", include_str!("../../../bench/lisp/deep/qs72.scm"), 3.524_985 / 0.496_792),
];
const SIZES: [u32; 11] = [1, 2, 4, 8, 16, 32, 64, 100, 256, 1024, 4096];

fn once(
    source: &str,
    cell_cache: CellCache,
    expected: &mut Option<Vec<u8>>,
) -> SystemCallStatistics {
    let mut output = Vec::new();
    let options = Options { cell_cache, ..Options::default() };
    let outcome = run(source, "bench", &options, &mut output).expect("the program starts");
    outcome.value.expect("the program ends without an error");
    assert_eq!(*expected.get_or_insert_with(|| output.clone()), output, "another result");
    outcome.statistics
}

fn main() {
    for (name, source, published) in PROGRAMS {
        let mut expected = None;
        let mut policies = vec![CellCache::Off];
        policies.extend(SIZES.map(CellCache::Fixed));
        policies.push(CellCache::Auto);
        // The policies take turns in each round, so that a slow moment of the host affects all of
        // them.
        let mut samples: Vec<Vec<SystemCallStatistics>> = vec![Vec::new(); policies.len()];
        for _ in 0..REPEATS {
            for (samples, &policy) in samples.iter_mut().zip(&policies) {
                samples.push(once(source, policy, &mut expected));
            }
        }
        println!(
            "{name}: cache, cells, messages, user + system = real ms (least..most), speed-up over off"
        );
        let mut off_ms = None;
        for samples in &mut samples {
            samples.sort_by_key(|sample| sample.real);
            let ms = |duration: core::time::Duration| duration.as_secs_f64() * 1e3;
            let [least, middle, most] = [0, REPEATS / 2, REPEATS - 1].map(|i| samples[i]);
            let off_ms = *off_ms.get_or_insert(ms(middle.real));
            println!(
                "  {:>4} {:6} {:6} {:8.3} + {:7.3} = {:7.3} ({:.3}..{:.3}) {:6.2}",
                middle.cell_cache.to_string(),
                middle.cells,
                middle.messages,
                ms(middle.user),
                ms(middle.system),
                ms(middle.real),
                ms(least.real),
                ms(most.real),
                off_ms / ms(middle.real),
            );
        }
        println!("  published speed-up: {published:.2}");
    }
}
