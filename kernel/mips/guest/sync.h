/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A try-mutex and a blocking semaphore in the manner of LinuxThreads: a word
 * taken by test-and-set guards the rest; who must wait queues and sleeps.
 */
#ifndef SYNC_H
#define SYNC_H

#include "methods.h"

struct mutex {
	volatile int guard;
	int taken;
};

struct waiter {
	struct waiter *next;
	volatile int woken;
};

struct semaphore {
	volatile int guard;
	int value;
	struct waiter *first, **last;
};

/* 0 if it was free. */
int mutex_trylock(const struct method *method, struct mutex *mutex);
void mutex_unlock(const struct method *method, struct mutex *mutex);

void semaphore_init(struct semaphore *semaphore, int value);
/* Blocks until there is a unit. Who is woken tries again, so a runner may come first. */
void semaphore_wait(const struct method *method, struct semaphore *semaphore);
void semaphore_post(const struct method *method, struct semaphore *semaphore);

#endif
