/* Paper 3 from C: every node adds its number to a sum in shared memory, under a lock; node 0 prints
 * it.
 *
 *     cc shared_sum.c $(pkg-config --cflags --libs kyocho-dsm) -o shared_sum
 *     kyocho dsm run -n 4 ./shared_sum
 */
#include <kyocho-dsm.h>
#include <stdio.h>

int main(void) {
    void *memory;
    long *sum;
    char why[200];
    if (kyocho_dsm_join(NULL) != 0 ||
        kyocho_dsm_allocate(&memory, sizeof *sum, KYOCHO_DSM_CYCLIC, 0) != 0) {
        kyocho_dsm_error(why, sizeof why);
        fprintf(stderr, "shared_sum: %s\n", why);
        return 1;
    }
    sum = memory;
    kyocho_dsm_acquire(0, KYOCHO_DSM_EXCLUSIVE);
    *sum += kyocho_dsm_rank() + 1;
    kyocho_dsm_release(0);
    kyocho_dsm_barrier(KYOCHO_DSM_ORDINARY);
    if (kyocho_dsm_rank() == 0) printf("%u nodes, sum %ld\n", (unsigned)kyocho_dsm_nodes(), *sum);
    return kyocho_dsm_leave();
}
