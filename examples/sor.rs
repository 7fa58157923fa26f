//! Red-black successive over-relaxation on shared memory (paper 3, figure 5). Each node has a part
//! of the rows and reads the border rows of its neighbours.
//!
//! ```text
//! kyocho dsm run -n 2 sor [ROWS COLUMNS ROUNDS ordinary|single]
//! ```
//! Every node also computes the whole grid alone, and compares both results bit for bit: each
//! element is computed from the same values in the same order.
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use core::cell::Cell;
use core::error::Error;
use core::ops::Range;
use core::time::Duration;
use std::time::Instant;

use kyocho::dsm::{BarrierKind, Dsm, Placement, Settings, SharedArray, Statistics};
use kyocho_sys::clock::process_cpu_ns;

type Grid<'a> = &'a [Cell<f32>];

/// Half a round: computes the elements of one colour in `rows`, each from its four neighbours.
///
/// A row of a colour holds every second element. Those of row R begin one place further to the
/// right if R and the colour differ in parity.
fn sweep(colour: usize, to: Grid<'_>, from: Grid<'_>, rows: Range<usize>, columns: usize) {
    for row in rows {
        let line = |row: usize| &from[row * columns..][..columns];
        let (above, same, below) = (line(row - 1), line(row), line(row + 1));
        let out = &to[row * columns..][..columns];
        let shift = (row + colour) % 2;
        for place in 1 - shift..columns - shift {
            let (left, right) = (&same[place + shift - 1], &same[place + shift]);
            let sum = above[place].get() + below[place].get() + left.get() + right.get();
            out[place].set(sum / 4.0);
        }
    }
}

/// The upper border is hot. The inside has a temperature that differs from place to place.
fn heat(grid: Grid<'_>, rows: Range<usize>, columns: usize) {
    let places = rows.start * columns..rows.end * columns;
    for (place, element) in places.clone().zip(&grid[places]) {
        let noise = (place * 7919 % 1009) as f32 / 1009.0;
        element.set(if place < columns { 1.0 } else { noise });
    }
}

/// The sequential program: both grids after some rounds, and the time that this took.
fn sequential(rows: usize, columns: usize, rounds: usize) -> ([Vec<Cell<f32>>; 2], Duration) {
    let [red, black] = [(); 2].map(|()| vec![Cell::new(0.0); rows * columns]);
    [&red, &black].into_iter().for_each(|grid| heat(grid, 0..rows, columns));
    let begun = Instant::now();
    for _ in 0..rounds {
        sweep(0, &red, &black, 1..rows - 1, columns);
        sweep(1, &black, &red, 1..rows - 1, columns);
    }
    let time = begun.elapsed();
    ([red, black], time)
}

/// The share of write traps in the time that a node spent outside of its program's own code.
fn share_of_traps(before: &Statistics, after: &Statistics) -> f64 {
    let traps = after.noting - before.noting;
    let outside = |all: &Statistics| all.detecting() + all.fetching + all.locking + all.at_barriers;
    traps.as_secs_f64() / (outside(after) - outside(before)).as_secs_f64()
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |place: usize, usual: usize| words.get(place).map_or(Ok(usual), |word| word.parse());
    let (rows, columns, rounds) = (number(0, 1024)?, number(1, 1536)? / 2, number(2, 20)?);
    let kind = match words.get(3).map(String::as_str) {
        Some("ordinary") => BarrierKind::Ordinary,
        _ => BarrierKind::SingleReadWrite,
    };
    let elements = rows * columns;

    let ([red, black], alone) = sequential(rows, columns, rounds);

    let mut dsm = Dsm::join(Settings { memory_bytes: 8 * elements + (1 << 20), locks: 1 })?;
    let shared_red = dsm.allocate::<f32>(elements, Placement::Blocks)?;
    let shared_black = dsm.allocate::<f32>(elements, Placement::Blocks)?;
    let processor_ns = dsm.allocate::<u64>(dsm.nodes().into(), Placement::Blocks)?;
    let (me, nodes) = (usize::from(dsm.rank()), usize::from(dsm.nodes()));
    let part = rows * me / nodes..rows * (me + 1) / nodes;
    for grid in [&shared_red, &shared_black] {
        heat(dsm.cells(grid), part.clone(), columns);
    }
    dsm.barrier(kind)?;
    let mine = part.start.max(1)..part.end.min(rows - 1);
    let before = dsm.statistics();
    let (begun, begun_ns) = (Instant::now(), process_cpu_ns());
    let mut barriers = Vec::new();
    for _ in 0..rounds {
        for (colour, to, from) in [(0, &shared_red, &shared_black), (1, &shared_black, &shared_red)]
        {
            sweep(colour, dsm.cells(to), dsm.cells(from), mine.clone(), columns);
            let here = Instant::now();
            dsm.barrier(kind)?;
            barriers.push(here.elapsed());
        }
    }
    let (together, after) = (begun.elapsed(), dsm.statistics());
    dsm.cells(&processor_ns)[me].set(process_cpu_ns() - begun_ns);
    dsm.barrier(BarrierKind::Ordinary)?;
    let equal = |shared: &SharedArray<f32>, own: &[Cell<f32>]| {
        let pairs = dsm.cells(shared).iter().zip(own);
        pairs.into_iter().all(|(one, other)| one.get().to_bits() == other.get().to_bits())
    };
    if !(equal(&shared_red, &red) && equal(&shared_black, &black)) {
        return Err("the shared grid differs from the sequential one".into());
    }
    if me == 0 {
        let share = (after.detecting() - before.detecting()).as_secs_f64() / together.as_secs_f64();
        let processor_ns: u64 = dsm.cells(&processor_ns).iter().map(Cell::get).sum();
        barriers.sort();
        println!(
            "sor {rows}x{} on {nodes} nodes, {} barrier, writes by {}: {:.2} times as fast as one, {:.1} us a round, {:.1} us of processor time a round, {:.1} us a barrier (median), {} messages, {} bytes, {:.1} % noticing writes, {:.1} % of the time outside of its own code in traps, equal bit for bit",
            2 * columns,
            if kind == BarrierKind::Ordinary { "ordinary" } else { "single-read-write" },
            dsm.detection(),
            alone.as_secs_f64() / together.as_secs_f64(),
            together.as_secs_f64() * 1e6 / rounds as f64,
            processor_ns as f64 / 1e3 / rounds as f64,
            barriers.get(rounds).map_or(0.0, |barrier| barrier.as_secs_f64() * 1e6),
            after.traffic.messages_sent - before.traffic.messages_sent,
            after.traffic.bytes_sent - before.traffic.bytes_sent,
            100.0 * share,
            100.0 * share_of_traps(&before, &after),
        );
    }
    dsm.leave()?;
    Ok(())
}
