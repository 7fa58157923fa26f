// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The daemon of Lamport's algorithm: gives slots to threads, and cleans up
 * after participants that died (the paper's §1.3, table 1).
 *
 * It cannot know where a dead participant stopped, and need not: a dead
 * participant is a very slow one. So the daemon finishes the algorithm for it,
 * with steps that are legal wherever it stopped:
 *
 *   b = 0		its next step, or its last one when it leaves
 *   y is another one	it had not set y yet, or y was overwritten: done
 *   y is the dead one	it may be inside, or before the test of x. The slow path
 *			is always allowed: wait until no other one wants; if y
 *			is still the dead one, it has entered, and leaves: y = 0
 *
 * crates/tst/tests/lamport_model.rs visits every order of these steps. A slot
 * is given away again only after that. The daemon alone writes owners, so it
 * needs no exclusion of its own.
 */
#include "lamport.h"

#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_NS	10000000L

static struct lamport *shared;
/* When the owner of each slot started: numbers of threads are reused. */
static unsigned long long started[LAMPORT_SLOTS + 1];

/* The start of a thread in ticks, which is not 0; 0 if it has ended. */
static unsigned long long start_of(int thread)
{
	char path[32], text[512] = "", *word;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", thread);
	file = fopen(path, "r");
	if (!file)
		return 0;
	word = fgets(text, sizeof(text), file);
	fclose(file);
	/* "number (name) state ...", of which the 22nd is the start. The name may have any characters. */
	word = word ? strrchr(text, ')') : NULL;
	if (!word || word[1] == 0 || strchr("ZX", word[2]))
		return 0;
	for (int i = 2; i < 22 && word; i++)
		word = strchr(word + 1, ' ');
	return word ? strtoull(word, NULL, 10) + 1 : 0;
}

static int is_dead(int i)
{
	return shared->owner[i] != 0 && start_of(shared->owner[i]) != started[i];
}

/* Others that want to enter may be dead, too: then the first step of their clean-up is due. */
static void await_others(int dead)
{
	for (int j = 1; j <= LAMPORT_SLOTS; j++)
		while (j != dead && shared->b[j]) {
			sched_yield();
			if (is_dead(j))
				shared->b[j] = 0;
		}
}

static void clean_up(int i)
{
	int engaged = shared->b[i] != 0 || shared->y == i;

	shared->b[i] = 0;
	if (shared->y == i) {
		await_others(i);
		if (shared->y == i)
			shared->y = 0;
	}
	shared->owner[i] = 0;
	shared->cleaned += engaged;
}

static void check(int i)
{
	if (i >= 1 && i <= LAMPORT_SLOTS && is_dead(i))
		clean_up(i);
}

static int free_slot(void)
{
	for (int i = 1; i <= LAMPORT_SLOTS; i++)
		if (shared->owner[i] == 0)
			return i;
	return 0;
}

/* Waits, if all slots belong to living threads. 0 if the thread ends meanwhile. */
static int await_free_slot(int thread, unsigned long long start)
{
	struct timespec pause = { 0, PAUSE_NS };
	int slot;

	while ((slot = free_slot()) == 0) {
		for (int i = 1; i <= LAMPORT_SLOTS; i++)
			check(i);
		if (free_slot() != 0)
			continue;
		if (start_of(thread) != start)
			return 0;
		nanosleep(&pause, NULL);
	}
	return slot;
}

static void give_slot(int thread)
{
	unsigned long long start = start_of(thread);
	int i;

	if (start == 0)
		return;
	i = await_free_slot(thread, start);
	if (i == 0)
		return;
	started[i] = start;
	if (i > shared->highest)
		shared->highest = i;
	shared->owner[i] = thread;
	shared->answers++;
	syscall(SYS_futex, &shared->answers, FUTEX_WAKE, LAMPORT_SLOTS, NULL, NULL, 0);
}

void lamport_serve(struct lamport *area, int requests)
{
	struct lamport_request request;

	shared = area;
	while (read(requests, &request, sizeof(request)) == sizeof(request)) {
		if (request.thread)
			give_slot(request.thread);
		else
			check(request.suspect);
	}
}
