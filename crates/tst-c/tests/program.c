/* Uses every function of tst.h, on threads where threads matter. Prints "ok" and exits with 0, or
 * names the line that failed. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "tst.h"

#define CHECK(condition)                                                          \
    do {                                                                          \
        if (!(condition)) {                                                       \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);       \
            exit(1);                                                              \
        }                                                                         \
    } while (0)

enum { THREADS = 4, ROUNDS = 20000, SLOTS = 3 };

static const struct timespec passed = {1, 0};
static const struct timespec wrong = {1, 1000000000};

static tst_mutex_t mutex = TST_MUTEX_INITIALIZER;
static tst_sem_t free_slots = TST_SEM_INITIALIZER(SLOTS), full_slots = TST_SEM_INITIALIZER(0);
static tst_rwlock_t rwlock = TST_RWLOCK_INITIALIZER;
static tst_counter_t *counter;
static long total, items, pair[2];

static void *work(void *unused) {
    for (int n = 0; n < ROUNDS; n++) {
        CHECK(tst_mutex_lock(&mutex) == 0);
        total++;
        CHECK(tst_mutex_unlock(&mutex) == 0);
        CHECK(tst_rwlock_rdlock(&rwlock) == 0);
        CHECK(pair[0] == pair[1]);
        CHECK(tst_rwlock_unlock(&rwlock) == 0);
        if (n % 16 == 0) {
            CHECK(tst_rwlock_wrlock(&rwlock) == 0);
            pair[0]++;
            pair[1]++;
            CHECK(tst_rwlock_unlock(&rwlock) == 0);
        }
        CHECK(tst_counter_add(counter, 2) == 0);
    }
    return unused;
}

static void *produce(void *unused) {
    for (int n = 0; n < ROUNDS; n++) {
        CHECK(tst_sem_wait(&free_slots) == 0);
        CHECK(tst_mutex_lock(&mutex) == 0);
        CHECK(++items <= SLOTS);
        CHECK(tst_mutex_unlock(&mutex) == 0);
        CHECK(tst_sem_post(&full_slots) == 0);
    }
    return unused;
}

static void *consume(void *unused) {
    for (int n = 0; n < ROUNDS; n++) {
        CHECK(tst_sem_wait(&full_slots) == 0);
        CHECK(tst_mutex_lock(&mutex) == 0);
        CHECK(--items >= 0);
        CHECK(tst_mutex_unlock(&mutex) == 0);
        CHECK(tst_sem_post(&free_slots) == 0);
    }
    return unused;
}

static void run(void *(*bodies[])(void *), int kinds) {
    pthread_t threads[2 * THREADS];
    for (int n = 0; n < kinds * THREADS; n++)
        CHECK(pthread_create(&threads[n], NULL, bodies[n % kinds], NULL) == 0);
    for (int n = 0; n < kinds * THREADS; n++) CHECK(pthread_join(threads[n], NULL) == 0);
}

static void one_thread(void) {
    tst_mutex_t m;
    CHECK(tst_mutex_init(&m) == 0);
    CHECK(tst_mutex_unlock(&m) == EPERM);
    CHECK(tst_mutex_trylock(&m) == 0);
    CHECK(tst_mutex_trylock(&m) == EBUSY);
    CHECK(tst_mutex_timedlock(&m, &passed) == ETIMEDOUT);
    CHECK(tst_mutex_timedlock(&m, &wrong) == EINVAL);
    CHECK(tst_mutex_unlock(&m) == 0);
    CHECK(tst_mutex_lock(NULL) == EINVAL);

    tst_sem_t s;
    unsigned value = 99;
    CHECK(tst_sem_init(&s, TST_SEM_VALUE_MAX + 1u) == EINVAL);
    CHECK(tst_sem_init(&s, TST_SEM_VALUE_MAX) == 0);
    CHECK(tst_sem_post(&s) == EOVERFLOW);
    CHECK(tst_sem_init(&s, 1) == 0);
    CHECK(tst_sem_trywait(&s) == 0);
    CHECK(tst_sem_trywait(&s) == EBUSY);
    CHECK(tst_sem_timedwait(&s, &passed) == ETIMEDOUT);
    CHECK(tst_sem_post(&s) == 0);
    CHECK(tst_sem_getvalue(&s, &value) == 0 && value == 1);
    CHECK(tst_sem_getvalue(&s, NULL) == EINVAL);

    tst_rwlock_t l;
    CHECK(tst_rwlock_init(&l) == 0);
    CHECK(tst_rwlock_unlock(&l) == EPERM);
    CHECK(tst_rwlock_tryrdlock(&l) == 0);
    CHECK(tst_rwlock_timedrdlock(&l, &passed) == 0);
    CHECK(tst_rwlock_trywrlock(&l) == EBUSY);
    CHECK(tst_rwlock_timedwrlock(&l, &passed) == ETIMEDOUT);
    CHECK(tst_rwlock_unlock(&l) == 0 && tst_rwlock_unlock(&l) == 0);
    CHECK(tst_rwlock_trywrlock(&l) == 0);
    CHECK(tst_rwlock_tryrdlock(&l) == EBUSY);
    CHECK(tst_rwlock_timedrdlock(&l, &passed) == ETIMEDOUT);
    CHECK(tst_rwlock_unlock(&l) == 0);
}

int main(void) {
    one_thread();
    CHECK(tst_counter_create(&counter) == 0);
    void *(*workers[])(void *) = {work};
    run(workers, 1);
    CHECK(total == THREADS * ROUNDS);
    CHECK(pair[0] == THREADS * ROUNDS / 16);
    size_t sum = 0;
    CHECK(tst_counter_sum(counter, &sum) == 0 && sum == 2 * THREADS * ROUNDS);
    CHECK(tst_counter_destroy(counter) == 0);
    CHECK(tst_counter_create(NULL) == EINVAL);
    void *(*sides[])(void *) = {produce, consume};
    run(sides, 2);
    CHECK(items == 0);
    puts("ok");
    return 0;
}
