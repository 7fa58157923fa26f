//! The hash function: maps a number to one of 2^k buckets.
//!
//! Numbers that differ in their lowest k bits only go to different buckets, neighbours to
//! neighbours. The bits above shift them by a pseudo-random distance. So a dense address space
//! fills the buckets without collisions, and its look-ups stay close together; distant islands are
//! spread as at random.

/// The bucket of `number` among `buckets`, a power of two.
#[inline]
pub(crate) fn bucket_of(number: u64, buckets: usize) -> usize {
    debug_assert!(buckets.is_power_of_two(), "{buckets} buckets");
    let bits = buckets.trailing_zeros();
    // Fibonacci hashing: each bit of the factor influences the uppermost 24 bits of the product.
    let mixed = (number >> bits).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (number.wrapping_add(mixed >> 40) as usize) & (buckets - 1)
}

#[cfg(test)]
mod tests {
    use super::bucket_of;

    /// Length of the longest chain if `count` numbers, `stride` apart, hash to `count` buckets.
    fn longest(count: u64, stride: u64) -> usize {
        let mut chains = vec![0; count as usize];
        (0..count).for_each(|i| chains[bucket_of(i * stride, count as usize)] += 1);
        chains.into_iter().max().unwrap()
    }

    #[test]
    fn neighbours_never_collide() {
        assert_eq!(longest(1 << 12, 1), 1);
    }

    #[test]
    fn no_regular_distance_makes_long_chains() {
        for shift in 1..36 {
            for odd in [1, 3, 513] {
                let longest = longest(1 << 12, odd << shift);
                assert!(longest <= 12, "{longest} numbers {odd} << {shift} apart share a bucket");
            }
        }
    }
}
