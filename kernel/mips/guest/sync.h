/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A try-mutex and a blocking semaphore in the manner of LinuxThreads without
 * compare-and-swap: the mutex is a word taken by test-and-set; such a word
 * guards the rest of the semaphore, and who must wait queues and sleeps.
 */
#ifndef SYNC_H
#define SYNC_H

#include "methods.h"

struct mutex {
	volatile int taken;
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

/* 0 if it was free. A store of 0 frees it. */
int mutex_trylock(struct mutex *mutex);

void semaphore_init(struct semaphore *semaphore, int value);
/* Blocks until there is a unit. Who is woken tries again, so a runner may come first. */
void semaphore_wait(struct semaphore *semaphore);
void semaphore_post(struct semaphore *semaphore);

#endif
