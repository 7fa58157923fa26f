// SPDX-License-Identifier: MIT OR Apache-2.0
#include "sync.h"

#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

static void acquire(const struct method *method, volatile int *guard)
{
	while (method->tst(guard) != 0)
		sched_yield();
}

/* One CPU: a store is enough, if the compiler keeps it last. */
static void release(volatile int *guard)
{
	__asm__ volatile("" ::: "memory");
	*guard = 0;
}

int mutex_trylock(const struct method *method, struct mutex *mutex)
{
	int taken;

	acquire(method, &mutex->guard);
	taken = mutex->taken;
	mutex->taken = 1;
	release(&mutex->guard);
	return taken;
}

void mutex_unlock(const struct method *method, struct mutex *mutex)
{
	acquire(method, &mutex->guard);
	mutex->taken = 0;
	release(&mutex->guard);
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

/* Called with the guard taken and no unit there; returns with the guard taken. */
static void __attribute__((noinline)) wait_for_unit(const struct method *method,
						    struct semaphore *semaphore)
{
	do {
		struct waiter me = { NULL, 0 };

		*semaphore->last = &me;
		semaphore->last = &me.next;
		release(&semaphore->guard);
		sleep_until_woken(&me);
		acquire(method, &semaphore->guard);
	} while (semaphore->value == 0);
}

void semaphore_wait(const struct method *method, struct semaphore *semaphore)
{
	acquire(method, &semaphore->guard);
	if (semaphore->value == 0)
		wait_for_unit(method, semaphore);
	semaphore->value--;
	release(&semaphore->guard);
}

/* Its record is gone once woken is set; the futex then wakes nobody, or somebody for nothing. */
static void __attribute__((noinline)) wake(struct waiter *waiter)
{
	waiter->woken = 1;
	syscall(SYS_futex, &waiter->woken, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void semaphore_post(const struct method *method, struct semaphore *semaphore)
{
	struct waiter *waiter;

	acquire(method, &semaphore->guard);
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
