// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Test-and-set by Lamport's fast mutual exclusion (the paper's figure 7): the
 * three shared variables make any load and store of a word one step.
 *
 * With one CPU a wait gives it away. A thread that dies inside leaves x, y and
 * b behind it; cleaning up after it is what the paper's daemon is for.
 */
#include <sched.h>

#include "methods.h"

#define THREADS_MAX	160

static volatile int b[THREADS_MAX + 1], x, y;
static int threads;
static __thread int self;	/* from 1: 0 in x and y means nobody */

void lamport_open(int count)
{
	threads = count < THREADS_MAX ? count : THREADS_MAX;
}

void lamport_enter(int thread)
{
	self = thread + 1;
}

static void await_free(void)
{
	while (y != 0)
		sched_yield();
}

/* Somebody else came at the same time: all who did must have seen y. */
static int won_against_others(int i)
{
	b[i] = 0;
	for (int j = 1; j <= threads; j++)
		while (b[j])
			sched_yield();
	return y == i;
}

static void enter(int i)
{
	for (;;) {
		b[i] = 1;
		x = i;
		if (y != 0) {
			b[i] = 0;
			await_free();
			continue;
		}
		y = i;
		if (x == i || won_against_others(i))
			return;
		await_free();
	}
}

int lamport_tst(volatile int *word)
{
	int i = self, old;

	enter(i);
	old = *word;
	if (old == 0)
		*word = 1;
	y = 0;
	b[i] = 0;
	return old;
}
