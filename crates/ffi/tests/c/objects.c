/* Synchronisation objects, statically and dynamically initialised. */
#include "check.h"

#include <limits.h>
#include <pthread.h>
#include <unistd.h>

static kyocho_mutex_t normal = KYOCHO_MUTEX_INITIALIZER;
static kyocho_mutex_t recursive = KYOCHO_RECURSIVE_MUTEX_INITIALIZER;
static kyocho_mutex_t strict = KYOCHO_ERRORCHECK_MUTEX_INITIALIZER;
static kyocho_cond_t changed = KYOCHO_COND_INITIALIZER;
static kyocho_rwlock_t shared = KYOCHO_RWLOCK_INITIALIZER;
static kyocho_once_t once = KYOCHO_ONCE_INIT;

static int inside, total, initialised;

static void *adds(void *argument) {
    int i;
    for (i = 0; i < 100; i += 1) {
        CHECK(kyocho_mutex_lock((kyocho_mutex_t *)argument) == 0);
        CHECK(inside == 0);
        inside = 1;
        if (i % 3 == 0) kyocho_yield();
        total += 1;
        inside = 0;
        CHECK(kyocho_mutex_unlock((kyocho_mutex_t *)argument) == 0);
    }
    return NULL;
}

static void excludes(kyocho_mutex_t *mutex) {
    kyocho_t all[8];
    int i;
    total = 0;
    for (i = 0; i < 8; i += 1) CHECK(kyocho_spawn(&all[i], NULL, adds, mutex) == 0);
    for (i = 0; i < 8; i += 1) CHECK(kyocho_join(all[i], NULL) == 0);
    CHECK(total == 800);
}

static void *tries(void *argument) {
    struct timespec soon = after_ms(2), past = {0, 0}, wrong = {0, 1000000000};
    kyocho_mutex_t *mutex = (kyocho_mutex_t *)argument;
    CHECK(kyocho_mutex_trylock(mutex) == EBUSY);
    CHECK(kyocho_mutex_timedlock(mutex, &soon) == ETIMEDOUT);
    CHECK(kyocho_mutex_timedlock(mutex, &past) == ETIMEDOUT);
    CHECK(kyocho_mutex_timedlock(mutex, &wrong) == EINVAL);
    CHECK(kyocho_mutex_timedlock(mutex, NULL) == EINVAL);
    CHECK(kyocho_mutex_unlock(mutex) == EPERM);
    CHECK(kyocho_mutex_destroy(mutex) == EBUSY);
    return NULL;
}

static void is_refused_to_others(kyocho_mutex_t *mutex) {
    kyocho_t one;
    CHECK(kyocho_spawn(&one, NULL, tries, mutex) == 0);
    CHECK(kyocho_join(one, NULL) == 0);
}

static void *mutexes(void *argument) {
    kyocho_mutex_t made;
    struct timespec soon = after_ms(1000);
    (void)argument;
    excludes(&normal);
    excludes(&recursive);
    excludes(&strict);
    CHECK(kyocho_mutex_unlock(&normal) == EPERM);
    CHECK(kyocho_mutex_lock(&normal) == 0);
    is_refused_to_others(&normal);
    CHECK(kyocho_mutex_unlock(&normal) == 0);
    CHECK(kyocho_mutex_lock(&recursive) == 0 && kyocho_mutex_trylock(&recursive) == 0);
    CHECK(kyocho_mutex_timedlock(&recursive, &soon) == 0);
    CHECK(kyocho_mutex_unlock(&recursive) == 0 && kyocho_mutex_unlock(&recursive) == 0);
    is_refused_to_others(&recursive);
    CHECK(kyocho_mutex_unlock(&recursive) == 0 && kyocho_mutex_unlock(&recursive) == EPERM);
    CHECK(kyocho_mutex_lock(&strict) == 0);
    CHECK(kyocho_mutex_lock(&strict) == EDEADLK && kyocho_mutex_trylock(&strict) == EBUSY);
    CHECK(kyocho_mutex_unlock(&strict) == 0);
    memset(&made, 0, sizeof made);
    CHECK(kyocho_mutex_lock(&made) == EINVAL && kyocho_mutex_lock(NULL) == EINVAL);
    CHECK(kyocho_mutex_init(&made, 3) == EINVAL && kyocho_mutex_init(NULL, 0) == EINVAL);
    CHECK(kyocho_mutex_init(&made, KYOCHO_MUTEX_ERRORCHECK) == 0);
    CHECK(kyocho_mutex_timedlock(&made, &soon) == 0);
    CHECK(kyocho_mutex_unlock(&made) == 0 && kyocho_mutex_destroy(&made) == 0);
    CHECK(kyocho_mutex_lock(&made) == EINVAL);
    CHECK(kyocho_cond_signal((kyocho_cond_t *)(void *)&normal) == EINVAL);
    return NULL;
}

static int turn;

static void *takes_turns(void *argument) {
    int mine = (int)(intptr_t)argument, i;
    for (i = 0; i < 20; i += 1) {
        CHECK(kyocho_mutex_lock(&strict) == 0);
        while (turn % 3 != mine) CHECK(kyocho_cond_wait(&changed, &strict) == 0);
        turn += 1;
        CHECK(kyocho_cond_broadcast(&changed) == 0);
        CHECK(kyocho_mutex_unlock(&strict) == 0);
    }
    return NULL;
}

static void *conditions(void *argument) {
    kyocho_t all[3];
    kyocho_cond_t made;
    struct timespec soon = after_ms(2);
    int i;
    (void)argument;
    turn = 0;
    for (i = 0; i < 3; i += 1)
        CHECK(kyocho_spawn(&all[i], NULL, takes_turns, (void *)(intptr_t)i) == 0);
    for (i = 0; i < 3; i += 1) CHECK(kyocho_join(all[i], NULL) == 0);
    CHECK(turn == 60);
    CHECK(kyocho_cond_init(&made) == 0);
    CHECK(kyocho_cond_wait(&made, &strict) == EPERM);
    CHECK(kyocho_mutex_lock(&recursive) == 0 && kyocho_mutex_lock(&recursive) == 0);
    CHECK(kyocho_cond_timedwait(&made, &recursive, &soon) == ETIMEDOUT);
    CHECK(kyocho_cond_timedwait(&made, &recursive, NULL) == EINVAL);
    CHECK(kyocho_mutex_unlock(&recursive) == 0 && kyocho_mutex_unlock(&recursive) == 0);
    CHECK(kyocho_cond_signal(&made) == 0 && kyocho_cond_destroy(&made) == 0);
    CHECK(kyocho_cond_signal(&made) == EINVAL && kyocho_cond_broadcast(NULL) == EINVAL);
    return NULL;
}

static void *reads(void *argument) {
    struct timespec soon = after_ms(2);
    (void)argument;
    CHECK(kyocho_rwlock_tryrdlock(&shared) == 0);
    CHECK(kyocho_rwlock_rdlock(&shared) == 0);
    CHECK(kyocho_rwlock_trywrlock(&shared) == EBUSY);
    CHECK(kyocho_rwlock_timedwrlock(&shared, &soon) == ETIMEDOUT);
    CHECK(kyocho_rwlock_destroy(&shared) == EBUSY);
    CHECK(kyocho_rwlock_unlock(&shared) == 0 && kyocho_rwlock_unlock(&shared) == 0);
    return NULL;
}

static void *is_kept_out(void *argument) {
    struct timespec soon = after_ms(2);
    (void)argument;
    CHECK(kyocho_rwlock_tryrdlock(&shared) == EBUSY && kyocho_rwlock_trywrlock(&shared) == EBUSY);
    CHECK(kyocho_rwlock_timedrdlock(&shared, &soon) == ETIMEDOUT);
    CHECK(kyocho_rwlock_unlock(&shared) == EPERM);
    return NULL;
}

static void *locks(void *argument) {
    kyocho_t one;
    kyocho_rwlock_t made;
    struct timespec soon = after_ms(1000);
    (void)argument;
    CHECK(kyocho_rwlock_rdlock(&shared) == 0);
    CHECK(kyocho_spawn(&one, NULL, reads, NULL) == 0 && kyocho_join(one, NULL) == 0);
    CHECK(kyocho_rwlock_unlock(&shared) == 0 && kyocho_rwlock_unlock(&shared) == EPERM);
    CHECK(kyocho_rwlock_wrlock(&shared) == 0);
    CHECK(kyocho_rwlock_rdlock(&shared) == EDEADLK && kyocho_rwlock_wrlock(&shared) == EDEADLK);
    CHECK(kyocho_rwlock_tryrdlock(&shared) == EBUSY);
    CHECK(kyocho_spawn(&one, NULL, is_kept_out, NULL) == 0 && kyocho_join(one, NULL) == 0);
    CHECK(kyocho_rwlock_unlock(&shared) == 0);
    CHECK(kyocho_rwlock_timedwrlock(&shared, &soon) == 0 && kyocho_rwlock_unlock(&shared) == 0);
    CHECK(kyocho_rwlock_timedrdlock(&shared, &soon) == 0 && kyocho_rwlock_unlock(&shared) == 0);
    CHECK(kyocho_rwlock_init(&made) == 0 && kyocho_rwlock_destroy(&made) == 0);
    CHECK(kyocho_rwlock_rdlock(&made) == EINVAL);
    return NULL;
}

static kyocho_sem_t permits;
static kyocho_barrier_t barrier;

static void *meets(void *argument) {
    int answer, i, led = 0;
    (void)argument;
    for (i = 0; i < 10; i += 1) {
        answer = kyocho_barrier_wait(&barrier);
        CHECK(answer == 0 || answer == KYOCHO_BARRIER_SERIAL);
        led += answer == KYOCHO_BARRIER_SERIAL;
    }
    return (void *)(intptr_t)led;
}

static void *counts(void *argument) {
    kyocho_t all[4];
    struct timespec soon = after_ms(2);
    int value, i;
    intptr_t led = 0;
    (void)argument;
    CHECK(kyocho_sem_init(&permits, (unsigned)INT_MAX + 1) == EINVAL);
    CHECK(kyocho_sem_init(&permits, 1) == 0);
    CHECK(kyocho_sem_wait(&permits) == 0 && kyocho_sem_trywait(&permits) == EAGAIN);
    CHECK(kyocho_sem_timedwait(&permits, &soon) == ETIMEDOUT);
    CHECK(kyocho_sem_getvalue(&permits, &value) == 0 && value == 0);
    CHECK(kyocho_sem_post(&permits) == 0 && kyocho_sem_getvalue(&permits, &value) == 0 && value == 1);
    CHECK(kyocho_sem_timedwait(&permits, &soon) == 0);
    CHECK(kyocho_sem_destroy(&permits) == 0 && kyocho_sem_wait(&permits) == EINVAL);
    CHECK(kyocho_sem_init(&permits, INT_MAX) == 0 && kyocho_sem_post(&permits) == EOVERFLOW);
    CHECK(kyocho_barrier_init(&barrier, 0) == EINVAL && kyocho_barrier_wait(NULL) == EINVAL);
    CHECK(kyocho_barrier_init(&barrier, 4) == 0);
    for (i = 0; i < 4; i += 1) CHECK(kyocho_spawn(&all[i], NULL, meets, NULL) == 0);
    for (i = 0; i < 4; i += 1) {
        void *times;
        CHECK(kyocho_join(all[i], &times) == 0);
        led += (intptr_t)times;
    }
    CHECK(led == 10 && kyocho_barrier_destroy(&barrier) == 0);
    return NULL;
}

static void initialise(void) {
    kyocho_yield();
    initialised += 1;
}

static void *needs_it(void *argument) {
    (void)argument;
    CHECK(kyocho_once(&once, initialise) == 0 && initialised == 1);
    return NULL;
}

static void *does_once(void *argument) {
    kyocho_t all[10];
    int i;
    (void)argument;
    CHECK(kyocho_once(&once, NULL) == EINVAL && kyocho_once(NULL, initialise) == EINVAL);
    for (i = 0; i < 10; i += 1) CHECK(kyocho_spawn(&all[i], NULL, needs_it, NULL) == 0);
    for (i = 0; i < 10; i += 1) CHECK(kyocho_join(all[i], NULL) == 0);
    return NULL;
}

/* A plain kernel thread may release, but must not wait. */
static void *from_outside(void *argument) {
    int value;
    (void)argument;
    CHECK(kyocho_sem_wait(&permits) == EPERM && kyocho_mutex_lock(&normal) == EPERM);
    CHECK(kyocho_mutex_trylock(&normal) == EPERM && kyocho_rwlock_rdlock(&shared) == EPERM);
    CHECK(kyocho_barrier_wait(&barrier) == EPERM && kyocho_self() == 0);
    CHECK(kyocho_sem_getvalue(&permits, &value) == 0 && kyocho_getspecific(0) == NULL);
    usleep(1000);
    CHECK(kyocho_sem_post(&permits) == 0 && kyocho_outside_forget() == 0);
    return NULL;
}

static void *waits_for_outside(void *argument) {
    pthread_t thread;
    (void)argument;
    CHECK(kyocho_sem_init(&permits, 0) == 0 && kyocho_barrier_init(&barrier, 1) == 0);
    CHECK(kyocho_outside_expect() == 0);
    CHECK(pthread_create(&thread, NULL, from_outside, NULL) == 0);
    CHECK(kyocho_sem_wait(&permits) == 0);
    pthread_join(thread, NULL);
    CHECK(kyocho_outside_forget() == EPERM);
    return NULL;
}

int main(void) {
    on_processors(mutexes);
    on_processors(conditions);
    on_processors(locks);
    on_processors(counts);
    on_processors(does_once);
    on_processors(waits_for_outside);
    puts("objects: as promised");
    return 0;
}
