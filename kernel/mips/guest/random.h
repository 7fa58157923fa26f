/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Random moments for tests. They must not fall into step with the loops that they interrupt. */
#ifndef RANDOM_H
#define RANDOM_H

/* Xorshift; the same numbers in each run. */
static inline unsigned int next_random(void)
{
	static unsigned int state = 2463534242u;

	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state;
}

#endif
