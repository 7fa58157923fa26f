// SPDX-License-Identifier: MIT OR Apache-2.0
#include "sync.h"

#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* On one CPU nobody leaves while the caller runs. */
static void __attribute__((noinline)) acquire_taken(volatile int *guard)
{
	do
		sched_yield();
	while (test_and_set(guard) != 0);
}

static inline void acquire(volatile int *guard)
{
	if (__builtin_expect(test_and_set(guard) != 0, 0))
		acquire_taken(guard);
}

/* One CPU: a store is enough, if the compiler keeps it last. */
static void release(volatile int *guard)
{
	__asm__ volatile("" ::: "memory");
	*guard = 0;
}

int mutex_trylock(struct mutex *mutex)
{
	return test_and_set(&mutex->taken);
}

void semaphore_init(struct semaphore *semaphore, int value)
{
	semaphore->guard = 0;
	semaphore->value = value;
	semaphore->first = NULL;
	semaphore->last = &semaphore->first;
}

static void sleep_until_woken(struct waiter *waiter)
{
	while (!waiter->woken)
		syscall(SYS_futex, &waiter->woken, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

/* Called with the guard taken and no unit there; returns with the guard taken, and how many there are. */
static int __attribute__((noinline)) wait_for_unit(struct semaphore *semaphore)
{
	do {
		struct waiter me = { NULL, 0 };

		*semaphore->last = &me;
		semaphore->last = &me.next;
		release(&semaphore->guard);
		sleep_until_woken(&me);
		acquire(&semaphore->guard);
	} while (semaphore->value == 0);
	return semaphore->value;
}

void semaphore_wait(struct semaphore *semaphore)
{
	int taken = test_and_set(&semaphore->guard);
	/* Read before the guard is known to be ours: that fills the delay slot of the branch. */
	int value = semaphore->value;

	if (__builtin_expect(taken, 0)) {
		acquire_taken(&semaphore->guard);
		value = semaphore->value;
	}
	if (value == 0)
		value = wait_for_unit(semaphore);
	semaphore->value = value - 1;
	release(&semaphore->guard);
}

/* Its record is gone once woken is set; the futex then wakes nobody, or somebody for nothing. */
static void __attribute__((noinline)) wake(struct waiter *waiter)
{
	waiter->woken = 1;
	syscall(SYS_futex, &waiter->woken, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void semaphore_post(struct semaphore *semaphore)
{
	struct waiter *waiter;

	acquire(&semaphore->guard);
	semaphore->value++;
	waiter = semaphore->first;
	if (waiter) {
		semaphore->first = waiter->next;
		if (!semaphore->first)
			semaphore->last = &semaphore->first;
	}
	release(&semaphore->guard);
	if (waiter)
		wake(waiter);
}
