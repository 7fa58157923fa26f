// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Processes and threads contend for three words while a more urgent process
 * interrupts them at random moments.
 *
 *	stress METHOD REPEATS	METHOD: tst, rseq
 *
 * Each repeat runs the same shape on plain loads and stores. It counts only
 * if those are caught: or the interrupts did not come where they matter.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "operations.h"
#include "random.h"

#define PROCESSES	3
#define THREADS		2	/* in each process */
#define WORKERS		(PROCESSES * THREADS)
#define INTERRUPTS	1500
#define PAUSE_MIN_NS	20000
#define PAUSE_SPAN_NS	100000
#define HELD_LOOKS	6

/* Each word on a line of its own pages is not needed: there is one CPU. */
struct shared {
	volatile int stop;
	volatile int lock, owner, inside;
	volatile int swapped, added;
	struct {
		int intrusions;
		int locked, swapped, added;
	} worker[WORKERS];
};

static struct shared *shared;
static const struct operations *operations;

static void hold_lock(int me)
{
	while (operations->tst(&shared->lock) != 0)
		sched_yield();
	if (shared->owner != 0)
		shared->worker[me].intrusions++;
	shared->owner = me + 1;
	shared->inside++;
	for (int i = 0; i < HELD_LOOKS; i++)
		if (shared->owner != me + 1)
			shared->worker[me].intrusions++;
	shared->owner = 0;
	shared->worker[me].locked++;
	shared->lock = 0;
}

static void *work(void *argument)
{
	int me = (long)argument, seen;

	while (!shared->stop) {
		hold_lock(me);
		do
			seen = shared->swapped;
		while (operations->cas(&shared->swapped, seen, seen + 1) != seen);
		shared->worker[me].swapped++;
		operations->fetch_add(&shared->added, 1);
		shared->worker[me].added++;
	}
	return NULL;
}

static void run_process(int first)
{
	struct sched_param ordinary = { 0 };
	pthread_t thread;

	need(sched_setscheduler(0, SCHED_OTHER, &ordinary) == 0, "sched_setscheduler");
	need(pthread_create(&thread, NULL, work, (void *)(long)(first + 1)) == 0, "a thread");
	work((void *)(long)first);
	pthread_join(thread, NULL);
	_exit(0);
}

/* More urgent than the workers: each time it wakes, it interrupts one, and another goes on. */
static void interrupt_workers(void)
{
	struct timespec pause = { 0, 0 };

	for (int i = 0; i < INTERRUPTS; i++) {
		pause.tv_nsec = PAUSE_MIN_NS + next_random() % PAUSE_SPAN_NS;
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
}

/* How often the operations failed their contract. */
static int count_violations(void)
{
	int intrusions = 0, locked = 0, swapped = 0, added = 0;

	for (int i = 0; i < WORKERS; i++) {
		intrusions += shared->worker[i].intrusions;
		locked += shared->worker[i].locked;
		swapped += shared->worker[i].swapped;
		added += shared->worker[i].added;
	}
	return intrusions + abs(locked - shared->inside) + abs(swapped - shared->swapped) +
	       abs(added - shared->added);
}

static int contend(const struct operations *chosen)
{
	pid_t children[PROCESSES];
	int status;

	memset(shared, 0, sizeof(*shared));
	operations = chosen;
	for (int i = 0; i < PROCESSES; i++) {
		children[i] = fork();
		need(children[i] >= 0, "fork");
		if (children[i] == 0)
			run_process(i * THREADS);
	}
	interrupt_workers();
	shared->stop = 1;
	for (int i = 0; i < PROCESSES; i++)
		need(waitpid(children[i], &status, 0) == children[i] && status == 0, "a worker");
	return count_violations();
}

/* Faults that the kernel turned into restarts; -1 where it does not count. */
static int restarts_so_far(void)
{
	FILE *file = fopen("/sys/module/k1magic/parameters/restarts", "r");
	int count = -1;

	if (!file)
		return -1;
	if (fscanf(file, "%d", &count) != 1)
		count = -1;
	fclose(file);
	return count;
}

int main(int count, char **arguments)
{
	struct sched_param urgent = { .sched_priority = 1 };
	const struct operations *method = count > 1 && strcmp(arguments[1], "rseq") == 0 ?
					  &rseq_operations : &page_operations;
	int repeats = count > 2 ? atoi(arguments[2]) : 1, violations = 0, caught = 0;

	need(method->open() == 0, "opening the method");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	need(shared != MAP_FAILED, "mmap");
	need(sched_setscheduler(0, SCHED_FIFO, &urgent) == 0, "sched_setscheduler");
	for (int i = 1; i <= repeats; i++) {
		int restarts = restarts_so_far();
		int found = contend(method), operated = shared->added;
		int control;

		restarts = restarts_so_far() - restarts;
		control = contend(&plain_operations);
		violations += found;
		caught += control > 0;
		printf("NOTE stress %s %d: %d rounds, %d restarts by fault, %d violations; control %d\n",
		       method->name, i, operated, restarts, found, control);
		fflush(stdout);
	}
	if (violations == 0 && caught == repeats)
		printf("PASS stress_%s: %d repeats, 0 violations, %d controls caught\n",
		       method->name, repeats, caught);
	else
		printf("FAIL stress_%s: %d violations, %d of %d controls caught\n", method->name,
		       violations, caught, repeats);
	return violations > 0 || caught < repeats;
}
