//! A cluster program: the nodes count primes together, in memory that they share.
//!
//! ```text
//! kyocho dsm run -n 3 shared_count [LIMIT]
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use core::error::Error;
use kyocho::dsm::{BarrierKind, Dsm, LockId, Mode, Placement, Settings};

fn is_prime(n: u64) -> bool {
    n > 1 && (2..).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d))
}

fn main() -> Result<(), Box<dyn Error>> {
    let limit = std::env::args().nth(1).map_or(Ok(10_000), |word| word.parse())?;
    let mut dsm = Dsm::join(Settings { memory_bytes: 1 << 20, locks: 1 })?;
    let total = dsm.allocate::<u64>(1, Placement::Blocks)?;

    // Each node takes every n-th number.
    let (me, nodes) = (u64::from(dsm.rank()), u64::from(dsm.nodes()));
    let mine = (0..=limit).filter(|n| n % nodes == me && is_prime(*n)).count() as u64;

    dsm.acquire(LockId(0), Mode::Exclusive)?;
    let sum = &dsm.cells(&total)[0];
    sum.set(sum.get() + mine);
    dsm.release(LockId(0))?;

    dsm.barrier(BarrierKind::Ordinary)?;
    if me == 0 {
        println!("{} primes up to {limit}, counted by {nodes} nodes", dsm.cells(&total)[0].get());
    }
    dsm.leave()?;
    Ok(())
}
