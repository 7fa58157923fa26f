//! Molecules of water, in the shape of SPLASH's WATER (paper 3, figure 4). Each node computes the
//! forces between its molecules and half of all others, nine distances for each pair. It adds them
//! up under a lock for each molecule, and moves its own molecules.
//!
//! ```text
//! kyocho dsm run -n 2 water [MOLECULES STEPS]
//! ```
//! Node 0 also computes the result alone, and with a kernel thread for each node, and compares. The
//! order of additions to a force differs from run to run, so forces are fixed-point numbers: all
//! results are equal bit for bit.
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use core::error::Error;
use core::ops::Range;
use core::time::Duration;
use std::sync::{Barrier, Mutex, PoisonError, RwLock};
use std::time::Instant;

use kyocho::dsm::{BarrierKind, Dsm, LockId, Mode, NodeId, Placement, Settings};
use kyocho_sys::clock::process_cpu_ns;

/// Positions of a molecule's oxygen and two hydrogens, as fractions of the box; or their speeds, as
/// fractions of the box a step.
type Atoms = [[f64; 3]; 3];
/// The force on each atom, in multiples of 2^-40.
type Force = [[i64; 3]; 3];

const SCALE: f64 = 1_099_511_627_776.0;
const CHARGES: [f64; 3] = [-0.8, 0.4, 0.4];
/// Positions of the atoms, relative to the oxygen.
const SHAPE: Atoms = [[0.0, 0.0, 0.0], [0.012, 0.009, 0.0], [-0.012, 0.009, 0.0]];
/// Pairs of atoms of a molecule that keep their distance, and that distance.
const BONDS: [(usize, usize, f64); 3] = [(0, 1, 0.015), (0, 2, 0.015), (1, 2, 0.024)];

/// The initial position of a molecule: on a lattice, with a small displacement.
fn begin(index: usize, molecules: usize) -> Atoms {
    let side = (molecules as f64).cbrt().ceil() as usize;
    let place = |axis: usize| {
        let noise = ((index * 3 + axis) * 7919 % 1009) as f64 / 1009.0;
        ((index / side.pow(axis as u32) % side) as f64 + 0.5 + 0.2 * noise) / side as f64
    };
    SHAPE.map(|atom| [0, 1, 2].map(|axis| place(axis) + atom[axis]))
}

/// The forces between two molecules, across the nearest border of the box.
fn pair(one: &Atoms, other: &Atoms) -> [Force; 2] {
    let around = [0, 1, 2].map(|axis| (one[0][axis] - other[0][axis]).round());
    let mut forces = [[[0; 3]; 3]; 2];
    for (a, from) in one.iter().enumerate() {
        for (b, to) in other.iter().enumerate() {
            let between = [0, 1, 2].map(|axis| from[axis] - to[axis] - around[axis]);
            let square = between.iter().map(|part| part * part).sum::<f64>() + 1e-4;
            let distance = square.sqrt();
            let mut strength = 1e-6 * CHARGES[a] * CHARGES[b] / (square * distance);
            if (a, b) == (0, 0) {
                strength += 1e-2 * (-50.0 * distance).exp() / distance;
            }
            for axis in 0..3 {
                let part = (strength * between[axis] * SCALE) as i64;
                forces[0][a][axis] += part;
                forces[1][b][axis] -= part;
            }
        }
    }
    forces
}

fn add(to: &mut Force, what: &Force) {
    to.iter_mut().flatten().zip(what.iter().flatten()).for_each(|(sum, part)| *sum += part);
}

/// The forces between each of `mine` and the half of all molecules that follows it.
fn forces(at: impl Fn(usize) -> Atoms, molecules: usize, mine: Range<usize>) -> Vec<Force> {
    let mut sums = vec![Force::default(); molecules];
    for one in mine {
        let here = at(one);
        let half = molecules / 2 - usize::from(molecules.is_multiple_of(2) && one >= molecules / 2);
        for other in (1..=half).map(|step| (one + step) % molecules) {
            let [on_one, on_other] = pair(&here, &at(other));
            add(&mut sums[one], &on_one);
            add(&mut sums[other], &on_other);
        }
    }
    sums
}

/// Moves a molecule by one step.
fn step(atoms: Atoms, speeds: &mut Atoms, sum: &Force) -> Atoms {
    let mut pull = sum.map(|atom| atom.map(|part| part as f64 / SCALE));
    for (a, b, length) in BONDS {
        let between = [0, 1, 2].map(|axis| atoms[b][axis] - atoms[a][axis]);
        let distance = between.iter().map(|part| part * part).sum::<f64>().sqrt();
        for axis in 0..3 {
            let part = 1e-3 * (distance - length) * between[axis] / distance;
            pull[a][axis] += part;
            pull[b][axis] -= part;
        }
    }
    let speed = |atom: usize, axis: usize| speeds[atom][axis] + pull[atom][axis];
    *speeds = [0, 1, 2].map(|atom| [0, 1, 2].map(|axis| speed(atom, axis)));
    let moved = [0, 1, 2].map(|atom| [0, 1, 2].map(|axis| atoms[atom][axis] + speeds[atom][axis]));
    // The position of a molecule is that of its oxygen.
    moved.map(|atom| [0, 1, 2].map(|axis| atom[axis] - moved[0][axis].floor()))
}

/// The molecules of worker `which` among `of` workers.
fn part(which: usize, of: usize, molecules: usize) -> Range<usize> {
    molecules * which / of..molecules * (which + 1) / of
}

/// All molecules, beginning with `first`. Workers begin at different places, so they rarely wait
/// for each other's locks.
fn all_from(first: usize, molecules: usize) -> impl Iterator<Item = usize> {
    (0..molecules).map(move |step| (first + step) % molecules)
}

/// Computes with kernel threads of this process. Returns the positions and the time it took.
fn by_threads(threads: usize, molecules: usize, steps: usize) -> (Vec<Atoms>, Duration) {
    let places =
        RwLock::new((0..molecules).map(|index| begin(index, molecules)).collect::<Vec<_>>());
    let totals: Vec<_> = (0..molecules).map(|_| Mutex::new(Force::default())).collect();
    let total = |index: usize| totals[index].lock().unwrap_or_else(PoisonError::into_inner);
    let all = Barrier::new(threads);
    let work = |which: usize| {
        let mine = part(which, threads, molecules);
        let mut speeds = vec![Atoms::default(); molecules];
        for _ in 0..steps {
            let sums = {
                let places = places.read().unwrap_or_else(PoisonError::into_inner);
                forces(|index| places[index], molecules, mine.clone())
            };
            all_from(mine.start, molecules).for_each(|index| add(&mut total(index), &sums[index]));
            all.wait();
            let mut places = places.write().unwrap_or_else(PoisonError::into_inner);
            for index in mine.clone() {
                let sum = core::mem::take(&mut *total(index));
                places[index] = step(places[index], &mut speeds[index], &sum);
            }
            drop(places);
            all.wait();
        }
    };
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let work = &work;
        (0..threads).for_each(|which| drop(scope.spawn(move || work(which))));
    });
    let time = begun.elapsed();
    (places.into_inner().unwrap_or_else(PoisonError::into_inner), time)
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |place: usize, usual: usize| words.get(place).map_or(Ok(usual), |word| word.parse());
    let (molecules, steps) = (number(0, 1728)?, number(1, 3)?);

    let mut dsm =
        Dsm::join(Settings { memory_bytes: 150 * molecules + (1 << 20), locks: molecules as u32 })?;
    let shared = dsm.allocate::<Atoms>(molecules, Placement::Blocks)?;
    let totals = dsm.allocate::<Force>(molecules, Placement::Blocks)?;
    let processor_ns = dsm.allocate::<u64>(dsm.nodes().into(), Placement::Blocks)?;
    let (me, nodes) = (usize::from(dsm.rank()), usize::from(dsm.nodes()));
    // The others wait at the barrier below.
    let alone =
        (me == 0).then(|| [by_threads(1, molecules, steps), by_threads(nodes, molecules, steps)]);
    let mine = part(me, nodes, molecules);
    let mut speeds = vec![Atoms::default(); molecules];
    for index in mine.clone() {
        dsm.cells(&shared)[index].set(begin(index, molecules));
        // The node that moves a molecule manages its lock, so it needs no message.
        dsm.move_lock(LockId(index as u32), NodeId(dsm.rank()))?;
    }
    dsm.barrier(BarrierKind::Ordinary)?;
    let before = dsm.statistics();
    let (begun, begun_ns) = (Instant::now(), process_cpu_ns());
    for _ in 0..steps {
        // Adds up the forces of this node first, so it locks each molecule once a step, as WATER
        // does.
        let places = dsm.cells(&shared);
        let sums = forces(|index| places[index].get(), molecules, mine.clone());
        for index in all_from(mine.start, molecules).filter(|index| sums[*index] != [[0; 3]; 3]) {
            dsm.acquire(LockId(index as u32), Mode::Exclusive)?;
            let total = &dsm.cells(&totals)[index];
            let mut sum = total.get();
            add(&mut sum, &sums[index]);
            total.set(sum);
            dsm.release(LockId(index as u32))?;
        }
        dsm.barrier(BarrierKind::Ordinary)?;
        let (places, totals) = (dsm.cells(&shared), dsm.cells(&totals));
        for index in mine.clone() {
            let sum = totals[index].replace(Force::default());
            places[index].set(step(places[index].get(), &mut speeds[index], &sum));
        }
        dsm.barrier(BarrierKind::Ordinary)?;
    }
    let (together, counted) = (begun.elapsed(), dsm.statistics());
    dsm.cells(&processor_ns)[me].set(process_cpu_ns() - begun_ns);
    dsm.barrier(BarrierKind::Ordinary)?;
    if let Some([(expected, one), (by_threads, threads)]) = alone {
        let bits = |atoms: &Atoms| atoms.map(|atom| atom.map(f64::to_bits));
        let found = dsm.cells(&shared).iter().map(|atoms| bits(&atoms.get()));
        if !found.eq(expected.iter().map(bits))
            || !by_threads.iter().map(bits).eq(expected.iter().map(bits))
        {
            return Err("the molecules are not where the sequential program has them".into());
        }
        let processor_ns: u64 = dsm.cells(&processor_ns).iter().map(|spent| spent.get()).sum();
        println!(
            "water, {molecules} molecules, {steps} steps on {nodes} nodes, writes by {}: {:.2} times as fast as one, {:.2} times as fast as {nodes} kernel threads, {:.1} us a step, {:.1} us of processor time a step, {} messages, {} bytes, {} locks, {:.1} % noticing writes, equal bit for bit",
            dsm.detection(),
            one.as_secs_f64() / together.as_secs_f64(),
            threads.as_secs_f64() / together.as_secs_f64(),
            together.as_secs_f64() * 1e6 / steps as f64,
            processor_ns as f64 / 1e3 / steps as f64,
            counted.traffic.messages_sent,
            counted.traffic.bytes_sent,
            counted.locks,
            100.0 * (counted.detecting() - before.detecting()).as_secs_f64()
                / together.as_secs_f64(),
        );
    }
    dsm.leave()?;
    Ok(())
}
