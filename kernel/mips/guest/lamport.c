// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Test-and-set by Lamport's fast mutual exclusion (the paper's figure 7): the
 * three shared variables make any load and store of a word one step.
 *
 * With one CPU a wait gives it away. A thread that dies inside leaves x, y and
 * b behind it; the daemon cleans up after it (daemon.c).
 */
#define _GNU_SOURCE
#include "lamport.h"

#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "methods.h"

/* Rounds of waiting between two requests to check the other participant. */
#define ROUNDS_PER_REQUEST	1000

struct lamport *lamport;
static int requests;
static __thread int self;

/* The daemon is a process of its own, which ends after the last participant. */
void lamport_open(void)
{
	int ends[2];
	pid_t daemon;

	lamport = mmap(NULL, sizeof(*lamport), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (lamport == MAP_FAILED || pipe(ends) != 0)
		abort();
	daemon = fork();
	if (daemon < 0)
		abort();
	if (daemon == 0) {
		close(ends[1]);
		lamport_serve(lamport, ends[0]);
		_exit(0);
	}
	close(ends[0]);
	requests = ends[1];
}

static void ask(int thread, int suspect)
{
	struct lamport_request request = { thread, suspect };

	if (write(requests, &request, sizeof(request)) != sizeof(request))
		abort();
}

static int slot_of(int thread)
{
	for (int i = 1; i <= LAMPORT_SLOTS; i++)
		if (lamport->owner[i] == thread)
			return i;
	return 0;
}

/* Waits for a slot. If all are taken by living threads, until one of them ends. */
void lamport_enter(void)
{
	int thread = syscall(SYS_gettid), answers = lamport->answers;

	ask(thread, 0);
	while ((self = slot_of(thread)) == 0) {
		syscall(SYS_futex, &lamport->answers, FUTEX_WAIT, answers, NULL, NULL, 0);
		answers = lamport->answers;
	}
}

static void wait_for(int suspect, int *rounds)
{
	sched_yield();
	if (++*rounds % ROUNDS_PER_REQUEST == 0 && suspect)
		ask(0, suspect);
}

static void await_free(void)
{
	int rounds = 0;

	while (lamport->y != 0)
		wait_for(lamport->y, &rounds);
}

/*
 * Others came at the same time: all of them must have seen y. One that gets a
 * slot above the highest one later sees y before it wants anything.
 */
static int won_against_others(int i)
{
	int rounds = 0, highest = lamport->highest;

	lamport->b[i] = 0;
	for (int j = 1; j <= highest; j++)
		while (lamport->b[j])
			wait_for(j, &rounds);
	return lamport->y == i;
}

static inline void enter(struct lamport *shared, int i)
{
	for (;;) {
		shared->b[i] = 1;
		shared->x = i;
		if (shared->y != 0) {
			shared->b[i] = 0;
			await_free();
			continue;
		}
		shared->y = i;
		if (shared->x == i || won_against_others(i))
			return;
		await_free();
	}
}

static inline void leave(struct lamport *shared, int i)
{
	shared->y = 0;
	shared->b[i] = 0;
}

void lamport_begin(void)
{
	enter(lamport, self);
}

void lamport_end(void)
{
	leave(lamport, self);
}

int lamport_tst(volatile int *word)
{
	struct lamport *shared = lamport;
	int i = self, old;

	enter(shared, i);
	old = *word;
	if (old == 0)
		*word = 1;
	leave(shared, i);
	return old;
}
