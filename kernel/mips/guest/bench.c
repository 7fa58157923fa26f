// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The paper's figures 12 and 13 for one method:
 *
 *	bench METHOD 12 RUNS	FIGURE 12 method operation picoseconds
 *	bench METHOD 13 RUNS	FIGURE 13 method producers items-per-second
 *
 * one line a run. Time is the emulator's: it counts instructions.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "sync.h"

#define LOOPS		20000
#define RUN_MS		300
#define PRODUCERS_MAX	64
#define BUFFER_ITEMS	128

static const char *method;

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Figure 12: nobody else runs. Each operation takes its successful path. */
static void loop_tst(void)
{
	volatile int word = 0;
	int failed = 0;

	for (int i = 0; i < LOOPS; i++) {
		failed |= test_and_set(&word);
		word = 0;
	}
	need(!failed, "tst");
}

static void loop_trylock(void)
{
	struct mutex mutex = { 0 };
	int failed = 0;

	for (int i = 0; i < LOOPS; i++) {
		failed |= mutex_trylock(&mutex);
		mutex.taken = 0;
	}
	need(!failed, "trylock");
}

static void loop_wait(void)
{
	struct semaphore semaphore;

	semaphore_init(&semaphore, LOOPS);
	for (int i = 0; i < LOOPS; i++)
		semaphore_wait(&semaphore);
	need(semaphore.value == 0, "semaphore");
}

static void run_figure_12(const char *operation, void (*loop)(void))
{
	long long start = now_ns();

	loop();
	printf("FIGURE 12 %s %s %lld\n", method, operation,
	       (now_ns() - start) * 1000 / LOOPS);
}

/* Figure 13: a bounded buffer between as many producers as consumers. */
struct exchange {
	struct semaphore space, items, turn;
	int buffer[BUFFER_ITEMS];
	unsigned int put, got;
	volatile long long sum_put, sum_got;
	volatile unsigned int consumed;
	/* All threads are there, and known to the method. */
	pthread_barrier_t ready;
};

static struct exchange *exchange;

static void *produce(void *argument)
{
	method_enter();
	pthread_barrier_wait(&exchange->ready);
	for (int item = 1;; item++) {
		semaphore_wait(&exchange->space);
		semaphore_wait(&exchange->turn);
		exchange->buffer[exchange->put++ % BUFFER_ITEMS] = item;
		exchange->sum_put += item;
		semaphore_post(&exchange->turn);
		semaphore_post(&exchange->items);
	}
	return NULL;
}

static void *consume(void *argument)
{
	method_enter();
	pthread_barrier_wait(&exchange->ready);
	for (;;) {
		semaphore_wait(&exchange->items);
		semaphore_wait(&exchange->turn);
		exchange->sum_got += exchange->buffer[exchange->got++ % BUFFER_ITEMS];
		exchange->consumed++;
		semaphore_post(&exchange->turn);
		semaphore_post(&exchange->space);
	}
	return NULL;
}

static void start(void *(*run)(void *))
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 64 << 10);
	need(pthread_create(&thread, &attributes, run, NULL) == 0, "a thread");
}

/* What was put and is not consumed lies in the buffer; anything else was lost. */
static int is_consistent(void)
{
	long long waiting = 0;

	for (unsigned int i = exchange->got; i != exchange->put; i++)
		waiting += exchange->buffer[i % BUFFER_ITEMS];
	return exchange->put - exchange->got <= BUFFER_ITEMS &&
	       exchange->sum_put == exchange->sum_got + waiting;
}

/* In a process of its own, that ends with its threads wherever they are. */
static void run_figure_13(int producers)
{
	struct timespec run = { 0, RUN_MS * 1000000L };
	long long start_ns, consumed;

	need(method_open(method) == 0, "opening the method");
	method_enter();
	need(pthread_barrier_init(&exchange->ready, NULL, 2 * producers + 1) == 0, "a barrier");
	semaphore_init(&exchange->space, BUFFER_ITEMS);
	semaphore_init(&exchange->items, 0);
	semaphore_init(&exchange->turn, 1);
	for (int i = 0; i < producers; i++) {
		start(produce);
		start(consume);
	}
	pthread_barrier_wait(&exchange->ready);
	start_ns = now_ns();
	exchange->consumed = 0;
	nanosleep(&run, NULL);
	consumed = exchange->consumed;
	printf("FIGURE 13 %s %d %lld\n", method, producers,
	       consumed * 1000000000LL / (now_ns() - start_ns));
	fflush(stdout);
	semaphore_wait(&exchange->turn);
	need(is_consistent(), "items were lost");
	_exit(0);
}

static int figure_13(int runs)
{
	int status;

	for (int producers = 2; producers <= PRODUCERS_MAX; producers *= 2)
		for (int i = 0; i < runs; i++) {
			pid_t child = fork();

			need(child >= 0, "fork");
			if (child == 0)
				run_figure_13(producers);
			need(waitpid(child, &status, 0) == child && status == 0, "a run");
		}
	return 0;
}

int main(int count, char **arguments)
{
	static struct exchange memory;
	int runs;

	need(count == 4, "usage: bench METHOD 12|13 RUNS");
	runs = atoi(arguments[3]);
	method = arguments[1];
	exchange = &memory;
	if (strcmp(arguments[2], "13") == 0)
		return figure_13(runs);
	need(method_open(method) == 0, "opening the method");
	method_enter();
	for (int i = 0; i < runs; i++) {
		run_figure_12("tst", loop_tst);
		run_figure_12("trylock", loop_trylock);
		run_figure_12("sem_wait", loop_wait);
	}
	return 0;
}
