/* Locks and semaphores for kernel threads, shaped like those of POSIX. Part of Kyocho.
 *
 * Link with libkyocho_tst_c.so, or with libkyocho_tst_c.a and -lpthread -ldl -lm.
 *
 * Every function returns 0 or an error number; errno is not changed:
 *   EINVAL     a null pointer, or a value out of range
 *   EBUSY      the object is taken (functions with "try")
 *   ETIMEDOUT  the deadline has passed (functions with "timed")
 *   EPERM      the lock is not taken, so it cannot be released
 *   EOVERFLOW  the semaphore has its largest value, TST_SEM_VALUE_MAX
 * Deadlines are times of CLOCK_MONOTONIC. Functions that lock or wait block the kernel thread,
 * except those with "try". The others do not block.
 * An object is one word and needs no destruction. It must not be moved or copied while in use,
 * and serves the threads of one process.
 */
#ifndef TST_H
#define TST_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A mutex: not recursive; any thread may unlock it. */
typedef struct { uint64_t tst_word; } tst_mutex_t;
#define TST_MUTEX_INITIALIZER { 1 }

int tst_mutex_init(tst_mutex_t *mutex);
int tst_mutex_lock(tst_mutex_t *mutex);
int tst_mutex_trylock(tst_mutex_t *mutex);
int tst_mutex_timedlock(tst_mutex_t *mutex, const struct timespec *deadline);
int tst_mutex_unlock(tst_mutex_t *mutex);

/* A counting semaphore. */
typedef struct { uint64_t tst_word; } tst_sem_t;
#define TST_SEM_VALUE_MAX 0x7fffffff
#define TST_SEM_INITIALIZER(value) { (value) }

int tst_sem_init(tst_sem_t *semaphore, unsigned value);
int tst_sem_wait(tst_sem_t *semaphore);
int tst_sem_trywait(tst_sem_t *semaphore);
int tst_sem_timedwait(tst_sem_t *semaphore, const struct timespec *deadline);
int tst_sem_post(tst_sem_t *semaphore);
int tst_sem_getvalue(const tst_sem_t *semaphore, unsigned *value);

/* A readers-writer lock: a waiting writer keeps further readers out. */
typedef struct { uint64_t tst_word; } tst_rwlock_t;
#define TST_RWLOCK_INITIALIZER { 0 }

int tst_rwlock_init(tst_rwlock_t *lock);
int tst_rwlock_rdlock(tst_rwlock_t *lock);
int tst_rwlock_tryrdlock(tst_rwlock_t *lock);
int tst_rwlock_timedrdlock(tst_rwlock_t *lock, const struct timespec *deadline);
int tst_rwlock_wrlock(tst_rwlock_t *lock);
int tst_rwlock_trywrlock(tst_rwlock_t *lock);
int tst_rwlock_timedwrlock(tst_rwlock_t *lock, const struct timespec *deadline);
int tst_rwlock_unlock(tst_rwlock_t *lock);

/* A counter with a piece for each CPU: an addition moves no cache line between CPUs, and needs no
 * atomic instruction if the kernel has rseq. It wraps. */
typedef struct tst_counter tst_counter_t;

int tst_counter_create(tst_counter_t **counter);
int tst_counter_add(tst_counter_t *counter, size_t addend);
int tst_counter_sum(const tst_counter_t *counter, size_t *sum);
int tst_counter_destroy(tst_counter_t *counter);

#ifdef __cplusplus
}
#endif

#endif
