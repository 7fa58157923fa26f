/* Several threads of each node: each takes locks, waits, crosses barriers and touches pages by
 * itself. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <kyocho-dsm.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 4
#define ROUNDS 200

static long *sum;
static uint32_t *cells, *turn;

static void *work(void *argument) {
    uint32_t me = *(uint32_t *)argument, nodes, rank, all, i;
    kyocho_dsm_statistics_t counted;
    CHECK(kyocho_dsm_barrier(KYOCHO_DSM_ORDINARY) == ENOTCONN);
    CHECK(kyocho_dsm_detach_thread() == ENOTCONN);
    CHECK(kyocho_dsm_attach_thread() == 0);
    CHECK(kyocho_dsm_attach_thread() == EISCONN);
    nodes = kyocho_dsm_nodes(), rank = kyocho_dsm_rank(), all = nodes * THREADS;
    CHECK(kyocho_dsm_leave() == EPERM);
    CHECK(kyocho_dsm_move_lock(1, 0) == EPERM);
    for (i = 0; i < ROUNDS; i++) {
        CHECK(kyocho_dsm_acquire(1, KYOCHO_DSM_EXCLUSIVE) == 0);
        ++*sum;
        CHECK(kyocho_dsm_release(1) == 0);
    }
    /* In turn, threads of all nodes. */
    CHECK(kyocho_dsm_acquire(2, KYOCHO_DSM_EXCLUSIVE) == 0);
    CHECK(kyocho_dsm_acquire(2, KYOCHO_DSM_EXCLUSIVE) == EDEADLK);
    while (*turn != me * nodes + rank) CHECK(kyocho_dsm_wait(2, 0) == 0);
    ++*turn;
    CHECK(kyocho_dsm_release(2) == 0);
    CHECK(kyocho_dsm_broadcast(2, 0) == 0);
    cells[1024 * (rank * THREADS + me)] = me + 100;
    CHECK(kyocho_dsm_barrier(KYOCHO_DSM_ORDINARY) == 0);
    for (i = 0; i < all; i++) CHECK(cells[1024 * i] == i % THREADS + 100);
    CHECK(*sum == (long)all * ROUNDS && *turn == all);
    CHECK(kyocho_dsm_fetch(cells, 4096) == 0);
    CHECK(kyocho_dsm_statistics(&counted) == 0 && counted.locks > 0);
    /* The last one crosses for all that are left. */
    if (me > 0) {
        CHECK(kyocho_dsm_barrier(KYOCHO_DSM_SINGLE_READ_WRITE) == 0);
    }
    CHECK(kyocho_dsm_detach_thread() == 0);
    CHECK(kyocho_dsm_release(1) == ENOTCONN);
    return NULL;
}

static pthread_barrier_t both;

/* Has a slot until the main thread signals. */
static void *stay(void *argument) {
    CHECK(kyocho_dsm_attach_thread() == 0);
    pthread_barrier_wait(&both);
    pthread_barrier_wait(&both);
    CHECK(kyocho_dsm_detach_thread() == 0);
    return argument;
}

int main(void) {
    pthread_t threads[THREADS];
    uint32_t numbers[THREADS], i;
    void *memory;
    CHECK(kyocho_dsm_share(2) == ENOTCONN && kyocho_dsm_attach_thread() == EAGAIN && kyocho_dsm_unshare() == ENOTCONN);
    CHECK(kyocho_dsm_join(NULL) == 0);
    CHECK(kyocho_dsm_allocate(&memory, 4096, KYOCHO_DSM_ON, 0) == 0);
    sum = memory, turn = (uint32_t *)memory + 8;
    CHECK(kyocho_dsm_allocate(&memory, 4096 * THREADS * kyocho_dsm_nodes(), KYOCHO_DSM_CYCLIC, 0) == 0);
    cells = memory;
    CHECK(kyocho_dsm_share(0) == EINVAL && kyocho_dsm_share(40000) == EINVAL && kyocho_dsm_unshare() == EAGAIN);
    CHECK(kyocho_dsm_share(THREADS) == 0);
    CHECK(kyocho_dsm_share(1) == EBUSY && kyocho_dsm_barrier(KYOCHO_DSM_ORDINARY) == EBUSY);
    CHECK(kyocho_dsm_attach_thread() == EISCONN && kyocho_dsm_leave() == EBUSY);
    for (i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
    }
    for (i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(kyocho_dsm_unshare() == 0);
    CHECK(kyocho_dsm_barrier(KYOCHO_DSM_ORDINARY) == 0);
    /* A slot that no thread takes delays no barrier. */
    CHECK(kyocho_dsm_share(3) == 0 && kyocho_dsm_unshare() == 0);
    /* One that a thread has does. */
    CHECK(pthread_barrier_init(&both, NULL, 2) == 0 && kyocho_dsm_share(2) == 0);
    CHECK(pthread_create(&threads[0], NULL, stay, NULL) == 0);
    pthread_barrier_wait(&both);
    CHECK(kyocho_dsm_unshare() == EBUSY && kyocho_dsm_barrier(KYOCHO_DSM_ORDINARY) == EBUSY);
    pthread_barrier_wait(&both);
    CHECK(pthread_join(threads[0], NULL) == 0 && kyocho_dsm_unshare() == 0);
    CHECK(kyocho_dsm_barrier(KYOCHO_DSM_ORDINARY) == 0);
    CHECK(kyocho_dsm_leave() == 0);
    puts("as promised");
    return 0;
}
