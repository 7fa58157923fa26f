// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Participants of Lamport's algorithm that die. Each test has a daemon of its
 * own. Exits with 1 if a test failed.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "lamport.h"
#include "methods.h"
#include "random.h"

#define WORKERS		3
#define KILLS		40
#define VISITS_PER_KILL	500	/* by each worker */
/* Of emulated time: half of the kills need a clean-up, which takes up to 0.2 s. */
#define WATCHDOG_S	20
#define LOOKS		6	/* in each visit, whether another one is inside */
#define PAUSE_MIN_NS	20000
#define PAUSE_SPAN_NS	100000

/* The word of an address that is not mapped: the participant dies inside. */
static void die_inside(void *argument)
{
	lamport_enter();
	lamport_tst(argument);
}

static const char *participant_that_dies_inside_is_cleaned_up_after(void)
{
	volatile int word = 0;

	lamport_open();
	lamport_enter();
	if (signal_of(die_inside, NULL) != SIGSEGV)
		return "it did not die inside";
	if (lamport->y == 0)
		return "it left the section";
	if (lamport_tst(&word) != 0 || lamport_tst(&word) != 1)
		return "the word is not as expected";
	return lamport->cleaned == 1 ? NULL : because("cleaned up after %d", lamport->cleaned);
}

static void set_once(void *argument)
{
	lamport_enter();
	lamport_tst(argument);
}

static const char *slots_of_the_dead_are_given_away_again(void)
{
	static volatile int word;

	lamport_open();
	for (int i = 0; i < 2 * LAMPORT_SLOTS; i++)
		if (signal_of(set_once, (void *)&word) != 0)
			return because("participant %d has no slot", i + 1);
	return lamport->highest == LAMPORT_SLOTS ? NULL : "not all slots were used";
}

static struct race {
	volatile int inside;		/* the worker that came in last */
	volatile int intrusions;
	volatile int due, visits[WORKERS];	/* since the start; a new worker continues */
} *race;

static void visit(int me)
{
	lamport_begin();
	race->inside = me;
	for (int i = 0; i < LOOKS; i++)
		if (race->inside != me)
			race->intrusions++;
	lamport_end();
}

static void __attribute__((noreturn)) run_worker(int me)
{
	struct sched_param ordinary = { 0 };

	need(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, "prctl");
	need(sched_setscheduler(0, SCHED_OTHER, &ordinary) == 0, "sched_setscheduler");
	lamport_enter();
	for (;;) {
		while (race->visits[me] == race->due)
			sched_yield();
		visit(me);
		race->visits[me]++;
	}
}

static pid_t start_worker(int me)
{
	pid_t child = fork();

	need(child >= 0, "fork");
	if (child == 0)
		run_worker(me);
	return child;
}

static long random_pause_ns(void)
{
	return PAUSE_MIN_NS + next_random() % PAUSE_SPAN_NS;
}

static void pause_ns(long ns)
{
	struct timespec pause = { 0, ns };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

/* The one that announced itself last, so it was probably running; else any. */
static int choose_victim(const pid_t *workers)
{
	for (int i = 0; i < WORKERS; i++)
		if (workers[i] == lamport->owner[lamport->x])
			return i;
	return next_random() % WORKERS;
}

static int all_are_done(void)
{
	for (int i = 0; i < WORKERS; i++)
		if (race->visits[i] < race->due)
			return 0;
	return 1;
}

/*
 * Suspends the running worker at a random moment, so that others come in
 * between, until all get to the end. The watchdog ends a wait that does not end.
 */
static void await_workers(const pid_t *workers)
{
	while (!all_are_done()) {
		pid_t suspended = workers[choose_victim(workers)];

		kill(suspended, SIGSTOP);
		pause_ns(random_pause_ns());
		kill(suspended, SIGCONT);
		pause_ns(random_pause_ns());
	}
}

/* This process is more urgent, so when it wakes it interrupts a worker between any two instructions. */
static const char *participants_killed_anywhere_let_one_in_and_block_none(void)
{
	struct sched_param urgent = { .sched_priority = 1 };
	pid_t workers[WORKERS];

	race = mmap(NULL, sizeof(*race), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(race != MAP_FAILED, "mmap");
	alarm(WATCHDOG_S);
	lamport_open();
	need(sched_setscheduler(0, SCHED_FIFO, &urgent) == 0, "sched_setscheduler");
	for (int i = 0; i < WORKERS; i++)
		workers[i] = start_worker(i);
	for (int i = 0; i < KILLS; i++) {
		int victim;

		race->due += VISITS_PER_KILL;
		pause_ns(random_pause_ns());
		victim = choose_victim(workers);
		kill(workers[victim], SIGKILL);
		/* Every other one stays a zombie until the others got on without it. */
		if (i % 2 == 0)
			waitpid(workers[victim], NULL, 0);
		workers[victim] = start_worker(victim);
		await_workers(workers);
	}
	for (int i = 0; i < WORKERS; i++)
		kill(workers[i], SIGKILL);
	printf("NOTE deaths: %d killed, %d of them engaged in the algorithm\n", KILLS, lamport->cleaned);
	fflush(stdout);
	if (race->intrusions > 0)
		return because("%d times another participant was inside", race->intrusions);
	return lamport->cleaned > 0 ? NULL : "no participant died where it was in the way";
}

static const struct test tests[] = {
	{ "participant_that_dies_inside_is_cleaned_up_after",
	  participant_that_dies_inside_is_cleaned_up_after },
	{ "slots_of_the_dead_are_given_away_again", slots_of_the_dead_are_given_away_again },
	{ "participants_killed_anywhere_let_one_in_and_block_none",
	  participants_killed_anywhere_let_one_in_and_block_none },
	{ NULL, NULL },
};

int main(void)
{
	return run_tests(tests) > 0;
}
