/* All of the first half of kyocho-dsm.h, on any number of nodes. */
#include "check.h"
#include <errno.h>
#include <kyocho-dsm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 4096

static void mistakes(void) {
    char words[60], few[5];
    void *nowhere;
    CHECK(kyocho_dsm_join(NULL) == EISCONN);
    CHECK(kyocho_dsm_release(3) == EPERM);
    CHECK(kyocho_dsm_publish(3) == EPERM);
    CHECK(kyocho_dsm_error(words, sizeof words) == strlen("lock 3 is not held: acquire it first"));
    CHECK(strcmp(words, "lock 3 is not held: acquire it first") == 0);
    CHECK(kyocho_dsm_error(few, sizeof few) == strlen(words) && strcmp(few, "lock") == 0);
    CHECK(kyocho_dsm_acquire(8, KYOCHO_DSM_EXCLUSIVE) == EINVAL);
    CHECK(kyocho_dsm_acquire(3, 7) == EINVAL);
    CHECK(kyocho_dsm_barrier(9) == EINVAL);
    CHECK(kyocho_dsm_fetch(words, 1) == EINVAL);
    CHECK(kyocho_dsm_allocate(NULL, 1, KYOCHO_DSM_CYCLIC, 0) == EINVAL);
    CHECK(kyocho_dsm_statistics(NULL) == EINVAL);
    CHECK(kyocho_dsm_move_lock(3, 70000) == EINVAL);
    CHECK(kyocho_dsm_allocate(&nowhere, 1, KYOCHO_DSM_ON, 9) == EINVAL);
}

static void count(long *sum) {
    uint32_t round;
    for (round = 0; round < 20; round++) {
        CHECK(kyocho_dsm_acquire(1, KYOCHO_DSM_EXCLUSIVE) == 0);
        *sum += kyocho_dsm_rank() + 1;
        CHECK(kyocho_dsm_release(1) == 0);
    }
}

static void wait_for_all(uint32_t *there) {
    CHECK(kyocho_dsm_acquire(2, KYOCHO_DSM_EXCLUSIVE) == 0);
    CHECK(kyocho_dsm_acquire(2, KYOCHO_DSM_EXCLUSIVE) == EDEADLK);
    ++*there;
    while (*there < kyocho_dsm_nodes()) CHECK(kyocho_dsm_wait(2, 5) == 0);
    CHECK(kyocho_dsm_release(2) == 0);
    CHECK(kyocho_dsm_signal(2, 4) == 0);
    CHECK(kyocho_dsm_broadcast(2, 5) == 0);
}

/* Memory far away is as all other; what cannot be is refused on all nodes alike. */
static void regions(void) {
    kyocho_dsm_region_t wanted = {2 * 4096, KYOCHO_DSM_BLOCKS, 0, (uint64_t)1 << 60, (void *)0x0c0000000000};
    uint32_t number = 9, rank = kyocho_dsm_rank(), nodes = kyocho_dsm_nodes(), *words;
    void *memory;
    char said[200];
    CHECK(kyocho_dsm_region(&number, NULL) == EINVAL && kyocho_dsm_region(NULL, &wanted) == EINVAL);
    CHECK(kyocho_dsm_region_allocate(1, &memory, 1) == EINVAL);
    CHECK(kyocho_dsm_region(&number, &wanted) == 0 && number == 1);
    CHECK(kyocho_dsm_region_allocate(1, &memory, 4096 + 4) == 0 && memory == wanted.here);
    CHECK(kyocho_dsm_region_allocate(1, &memory, 1) == ENOMEM);
    CHECK(kyocho_dsm_region_allocate(1, NULL, 1) == EINVAL);
    words = wanted.here;
    words[rank] = rank + 7;
    CHECK(kyocho_dsm_move_pages(words, 4096, 0) == 0);
    CHECK(kyocho_dsm_barrier(KYOCHO_DSM_ORDINARY) == 0);
    CHECK(kyocho_dsm_fetch(words, 2 * 4096) == 0 && kyocho_dsm_fetch(words, 2 * 4096 + 1) == EINVAL);
    CHECK(words[nodes - 1] == nodes - 1 + 7 && words[1024] == 0);
    CHECK(kyocho_dsm_region(&number, &wanted) == EINVAL);
    CHECK(kyocho_dsm_error(said, sizeof said) > 0 && strstr(said, "it overlaps another region"));
    wanted.address = KYOCHO_DSM_ANYWHERE;
    CHECK(kyocho_dsm_region(&number, &wanted) == EEXIST);
    wanted.here = NULL;
    wanted.bytes = 4096 * (1 + (rank == 0));
    CHECK(kyocho_dsm_region(&number, &wanted) == (nodes > 1 ? ECANCELED : 0));
    wanted.bytes = 0;
    CHECK(kyocho_dsm_region(&number, &wanted) == EINVAL);
    wanted.bytes = 1, wanted.address = 1;
    CHECK(kyocho_dsm_region(&number, &wanted) == EINVAL);
    wanted.address = 0, wanted.placement = 5;
    CHECK(kyocho_dsm_region(&number, &wanted) == EINVAL);
    wanted.address = KYOCHO_DSM_ANYWHERE, wanted.placement = KYOCHO_DSM_CYCLIC, wanted.bytes = (size_t)1 << 50;
    CHECK(kyocho_dsm_region(&number, &wanted) == ENOMEM);
    wanted.bytes = 5;
    CHECK(kyocho_dsm_region(&number, &wanted) == 0 && number == (nodes > 1 ? 2 : 3));
}

int main(void) {
    kyocho_dsm_settings_t settings = {1 << 20, 8};
    kyocho_dsm_statistics_t counted;
    void *memory = NULL;
    uint32_t *words, rank, nodes;
    long *sum;
    CHECK(kyocho_dsm_nodes() == 0 && kyocho_dsm_barrier(KYOCHO_DSM_ORDINARY) == ENOTCONN);
    CHECK(kyocho_dsm_join(&settings) == 0);
    rank = kyocho_dsm_rank(), nodes = kyocho_dsm_nodes();
    CHECK(rank < nodes);
    mistakes();
    CHECK(kyocho_dsm_allocate(&memory, 2 << 20, KYOCHO_DSM_CYCLIC, 0) == ENOMEM);
    CHECK(kyocho_dsm_allocate(&memory, sizeof *sum, KYOCHO_DSM_ON, nodes - 1) == 0);
    sum = memory;
    CHECK(kyocho_dsm_allocate(&memory, WORDS * sizeof *words, KYOCHO_DSM_BLOCKS, 0) == 0);
    words = memory;
    CHECK(*sum == 0 && words[WORDS - 1] == 0);
    regions();
    count(sum);
    wait_for_all(&words[WORDS - 1]);
    words[rank] = rank + 100;
    CHECK(kyocho_dsm_move_pages(words, WORDS * sizeof *words, 0) == 0);
    CHECK(kyocho_dsm_move_lock(1, nodes - 1) == 0);
    CHECK(kyocho_dsm_barrier(KYOCHO_DSM_SINGLE_READ_WRITE) == 0);
    CHECK(kyocho_dsm_fetch(words, WORDS * sizeof *words) == 0);
    CHECK(words[nodes - 1] == nodes - 1 + 100 && words[WORDS - 1] == nodes);
    CHECK(*sum == 20 * (long)(nodes * (nodes + 1) / 2));
    CHECK(kyocho_dsm_acquire(1, KYOCHO_DSM_NON_EXCLUSIVE) == 0 && kyocho_dsm_release(1) == 0);
    CHECK(kyocho_dsm_barrier(KYOCHO_DSM_ORDINARY) == 0);
    if (rank == 0) CHECK(kyocho_dsm_acquire(1, KYOCHO_DSM_EXCLUSIVE) == 0);
    CHECK(kyocho_dsm_barrier(KYOCHO_DSM_ORDINARY) == 0);
    if (rank > 0) {
        CHECK(kyocho_dsm_try_acquire(1, KYOCHO_DSM_EXCLUSIVE) == EBUSY);
        CHECK(kyocho_dsm_acquire_within(1, KYOCHO_DSM_EXCLUSIVE, 1000000) == ETIMEDOUT);
    }
    CHECK(kyocho_dsm_barrier(KYOCHO_DSM_ORDINARY) == 0);
    if (rank == 0) CHECK(kyocho_dsm_release(1) == 0);
    CHECK(kyocho_dsm_statistics(&counted) == 0);
    CHECK(counted.barriers >= 5 && (nodes == 1) == (counted.messages_sent == 0));
    CHECK(kyocho_dsm_leave() == 0);
    CHECK(kyocho_dsm_leave() == ENOTCONN);
    puts("as promised");
    return 0;
}
