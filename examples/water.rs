//! Molecules that attract and repel each other, in the shape of SPLASH's WATER (paper 3, figure 4): each node computes the pairs of its
//! molecules with half of all others, adds forces up under a lock a molecule, and moves its own.
//!
//! ```text
//! kyocho dsm run -n 2 water [MOLECULES STEPS]
//! ```
//! The order of additions to a force differs from run to run, so forces are whole numbers (as fixed-point machines have them): the
//! result is that of the sequential program, bit for bit.
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use core::cell::Cell;
use core::error::Error;
use core::ops::Range;
use std::time::Instant;

use kyocho::dsm::{BarrierKind, Dsm, LockId, Mode, NodeId, Placement, Settings};

/// Position and velocity, in parts of the box and of a step.
type State = [f64; 6];
type Force = [i64; 3];
/// Forces are multiples of 2^-40.
const SCALE: f64 = 1_099_511_627_776.0;

/// Molecules on a lattice, a little out of place.
fn begin(index: usize, molecules: usize) -> State {
    let side = (molecules as f64).cbrt().ceil() as usize;
    let place = |axis: usize| {
        let noise = ((index * 3 + axis) * 7919 % 1009) as f64 / 1009.0;
        ((index / side.pow(axis as u32) % side) as f64 + 0.5 + 0.2 * noise) / side as f64
    };
    [place(0), place(1), place(2), 0.0, 0.0, 0.0]
}

/// What `other` does to `one`, through the nearest border of the box.
fn force(one: &State, other: &State) -> Force {
    let mut between = [0, 1, 2].map(|axis| one[axis] - other[axis]);
    between.iter_mut().for_each(|distance| *distance -= distance.round());
    let square = between.iter().map(|distance| distance * distance).sum::<f64>() + 0.01;
    let strength = 1e-6 / (square * square) - 1e-4 / square;
    between.map(|distance| (strength * distance * SCALE) as i64)
}

fn add(to: &Cell<Force>, what: Force, sign: i64) {
    let sum = to.get();
    to.set([0, 1, 2].map(|axis| sum[axis] + sign * what[axis]));
}

/// The forces of the pairs of `mine` with the half of all that follows each, into `sums`.
fn forces(states: &[Cell<State>], mine: Range<usize>, sums: &[Cell<Force>]) {
    let count = states.len();
    for one in mine {
        let here = states[one].get();
        let half = count / 2 - usize::from(count.is_multiple_of(2) && one >= count / 2);
        for other in (1..=half).map(|step| (one + step) % count) {
            let force = force(&here, &states[other].get());
            add(&sums[one], force, 1);
            add(&sums[other], force, -1);
        }
    }
}

fn step(states: &[Cell<State>], sums: &[Cell<Force>], mine: Range<usize>) {
    for molecule in mine {
        let (mut state, sum) = (states[molecule].get(), sums[molecule].replace([0; 3]));
        for axis in 0..3 {
            state[axis + 3] += sum[axis] as f64 / SCALE * 1e-3;
            state[axis] = (state[axis] + state[axis + 3]).rem_euclid(1.0);
        }
        states[molecule].set(state);
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |place: usize, usual: usize| words.get(place).map_or(Ok(usual), |word| word.parse());
    let (molecules, steps) = (number(0, 1728)?, number(1, 3)?);
    let all: Vec<_> = (0..molecules).map(|index| Cell::new(begin(index, molecules))).collect();
    let sums = vec![Cell::new([0; 3]); molecules];
    let begun = Instant::now();
    for _ in 0..steps {
        forces(&all, 0..molecules, &sums);
        step(&all, &sums, 0..molecules);
    }
    let alone = begun.elapsed();

    let mut dsm =
        Dsm::join(Settings { memory_bytes: 100 * molecules + (1 << 20), locks: molecules as u32 })?;
    let shared = dsm.allocate::<State>(molecules, Placement::Blocks)?;
    let totals = dsm.allocate::<Force>(molecules, Placement::Blocks)?;
    let (me, nodes) = (usize::from(dsm.rank()), usize::from(dsm.nodes()));
    let mine = molecules * me / nodes..molecules * (me + 1) / nodes;
    for index in mine.clone() {
        dsm.cells(&shared)[index].set(begin(index, molecules));
    }
    // Who moves a molecule takes its lock without a message.
    for index in mine.clone() {
        dsm.move_lock(LockId(index as u32), NodeId(dsm.rank()))?;
    }
    dsm.barrier(BarrierKind::Ordinary)?;
    let begun = Instant::now();
    for _ in 0..steps {
        // Sums of this node first: one lock a molecule and step, as WATER has it; each node begins with its own.
        let own = vec![Cell::new([0; 3]); molecules];
        forces(dsm.cells(&shared), mine.clone(), &own);
        let all = (0..molecules).map(|step| (mine.start + step) % molecules);
        for (index, sum) in all.map(|index| (index, &own[index])) {
            if sum.get() == [0; 3] {
                continue;
            }
            dsm.acquire(LockId(index as u32), Mode::Exclusive)?;
            add(&dsm.cells(&totals)[index], sum.get(), 1);
            dsm.release(LockId(index as u32))?;
        }
        dsm.barrier(BarrierKind::Ordinary)?;
        step(dsm.cells(&shared), dsm.cells(&totals), mine.clone());
        dsm.barrier(BarrierKind::Ordinary)?;
    }
    let (together, counted) = (begun.elapsed(), dsm.statistics());
    let bits = |state: State| state.map(f64::to_bits);
    if !dsm.cells(&shared).iter().zip(&all).all(|(one, other)| bits(one.get()) == bits(other.get()))
    {
        return Err("the molecules are not where the sequential program has them".into());
    }
    if me == 0 {
        println!(
            "water, {molecules} molecules, {steps} steps on {nodes} nodes, writes by {}: {:.2} times as fast as one, {} messages, {} bytes, {} locks, equal bit for bit",
            dsm.detection(),
            alone.as_secs_f64() / together.as_secs_f64(),
            counted.traffic.messages_sent,
            counted.traffic.bytes_sent,
            counted.locks,
        );
    }
    dsm.leave()?;
    Ok(())
}
