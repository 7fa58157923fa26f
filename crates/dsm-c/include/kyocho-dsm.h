/* kyocho-dsm.h: memory shared across nodes, for C.
 *
 * A program runs as N nodes, processes on one or several machines, which share memory at equal addresses. There is no coherence
 * at every write: what one node writes, another sees when it acquires the lock it was written under, and everybody after a
 * barrier (entry consistency with implicit binding; docs/dsm-model.md says what may be relied on). Words of 4 bytes are what two
 * nodes may write side by side.
 *
 *     #include <kyocho-dsm.h>
 *     #include <stdio.h>
 *
 *     int main(void) {
 *         void *memory;
 *         if (kyocho_dsm_join(NULL) || kyocho_dsm_allocate(&memory, sizeof(long), KYOCHO_DSM_CYCLIC, 0)) return 1;
 *         long *sum = memory;
 *         kyocho_dsm_acquire(0, KYOCHO_DSM_EXCLUSIVE);
 *         *sum += kyocho_dsm_rank() + 1;
 *         kyocho_dsm_release(0);
 *         kyocho_dsm_barrier(KYOCHO_DSM_ORDINARY);
 *         if (kyocho_dsm_rank() == 0) printf("%ld\n", *sum);
 *         return kyocho_dsm_leave();
 *     }
 *
 *     cc sum.c $(pkg-config --cflags --libs kyocho-dsm) -o sum
 *     kyocho dsm run -n 4 ./sum
 *
 * Started otherwise, a program is a cluster of one. The thread that joins works with shared memory, or others that it shares its
 * node with (kyocho_dsm_share); no other thread may call or touch it. Shared memory passed to a system call (read, write) fails with EFAULT where a page is not here: touch it first, or copy.
 * A page that is lost with its node ends the program that touches it, with exit code 75.
 *
 * Errors. Functions that return `int` return 0 or an error number; errno is not touched. kyocho_dsm_error has its words.
 *   ENOTCONN      this thread has not joined              EINVAL      out of range: lock, node, bytes, what the launcher said
 *   EPERM         the lock is not held                    EDEADLK     it is held already
 *   EPERM also    this is for the thread that joined: allocate, move, share, leave
 *   EHOSTDOWN     a node is dead: save and exit           EPROTO      a node broke the protocol: the same
 *   ESHUTDOWN     a node has left that is needed, as for a barrier: the same
 *   ECANCELED     nodes do not make the same region: nobody has it
 *   ENOTRECOVERABLE  a defect of this library; a message is on standard error
 */
#ifndef KYOCHO_DSM_H
#define KYOCHO_DSM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Taking part ------------------------------------------------------------------------------------------------------ */

/* The same on all nodes. */
typedef struct {
    size_t memory_bytes; /* of shared memory, at most half of the host's */
    uint32_t locks;      /* their numbers are 0 to this less one */
} kyocho_dsm_settings_t;

/* Takes the place that `kyocho dsm run` gave the program (NULL: 64 MiB, 4096 locks), and waits until all nodes are there.
 * EISCONN: joined already. EHOSTUNREACH: the nodes did not come together. ENOMEM: too much memory. */
int kyocho_dsm_join(const kyocho_dsm_settings_t *settings);

/* Crosses a last barrier and leaves, when all others do; who goes on gets ESHUTDOWN where it needs this node. A node that ends otherwise counts as dead. */
int kyocho_dsm_leave(void);

/* Lets so many threads of this process share the node in this thread's place, 1 to 32767: kernel threads, each after kyocho_dsm_sit. They
 * take locks, wait, cross barriers and fetch pages each by itself; a lock has one holder among them, and a barrier waits for all seats of all
 * nodes that are not given back. What one writes the others see at once. This thread stands aside (EBUSY) until kyocho_dsm_unshare. */
int kyocho_dsm_share(uint32_t threads);
/* Takes a seat for this thread. EAGAIN: none is left. EISCONN: it has one, or a node. */
int kyocho_dsm_sit(void);
/* Gives it back, with no lock held: one that is held stays taken. */
int kyocho_dsm_rise(void);
/* Makes this thread the node's only one again; seats that nobody took are gone. EBUSY: a thread still has its seat. EAGAIN: there are none. */
int kyocho_dsm_unshare(void);

/* This node's number, from 0, and how many there are; 0 where nothing was joined. */
uint32_t kyocho_dsm_rank(void);
uint32_t kyocho_dsm_nodes(void);

/* Writes the words of this thread's last error to `text`, cut to `bytes` with a closing 0. Returns their whole length. */
size_t kyocho_dsm_error(char *text, size_t bytes);

/* ---- Memory ----------------------------------------------------------------------------------------------------------- */

#define KYOCHO_DSM_ON 0     /* one node manages all pages */
#define KYOCHO_DSM_BLOCKS 1 /* each an equal part of neighbours: for data that is divided */
#define KYOCHO_DSM_CYCLIC 2 /* the pages go round */

/* Zeroed memory, on pages of its own, at one address on all nodes. All nodes call alike, in the same order; crosses a barrier.
 * `node` counts for KYOCHO_DSM_ON alone. ENOMEM: what was joined with is used up. */
int kyocho_dsm_allocate(void **memory, size_t bytes, int placement, uint32_t node);

#define KYOCHO_DSM_ANYWHERE UINT64_MAX

/* A region: more shared memory, in a space of 2^64 bytes. What lies between regions costs nothing. */
typedef struct {
    size_t bytes;     /* rounded up to pages of 4096 bytes */
    int placement;    /* who manages its pages at first */
    uint32_t node;    /* for KYOCHO_DSM_ON */
    uint64_t address; /* in that space, the begin of a page; KYOCHO_DSM_ANYWHERE: the first place where there is room */
    void *here;       /* in this process, the begin of a page; NULL: anywhere, on each node somewhere else */
} kyocho_dsm_region_t;

/* Makes a region; its number is 1 for the first one made, 0 for what was joined with. All nodes call alike (but for `here`), in the same order, all seats
 * of a node too; crosses a barrier. EINVAL: it cannot lie there, or one of 1024 is there. Where nobody has it, as some node could not make it, or did not,
 * this fails on all nodes alike: ECANCELED, nodes differ; what the host of that node said, as ENOMEM, or EEXIST: something lies at `here`. A region stays. */
int kyocho_dsm_region(uint32_t *number, const kyocho_dsm_region_t *region);

/* Zeroed memory of a region, on pages of its own, managed as the region is. All nodes call alike, in the same order, one seat of each; waits for nobody.
 * Where `here` was given, alike on all nodes, it lies at one address. ENOMEM: the region is used up. */
int kyocho_dsm_region_allocate(uint32_t number, void **memory, size_t bytes);

/* Gives the pages of some bytes another manager, from the next barrier on. */
int kyocho_dsm_move_pages(const void *memory, size_t bytes, uint32_t node);

/* Brings the pages of some bytes here, so that touching them waits for nobody until the next barrier. */
int kyocho_dsm_fetch(const void *memory, size_t bytes);

/* ---- Locks ------------------------------------------------------------------------------------------------------------ */

#define KYOCHO_DSM_EXCLUSIVE 0     /* one node at a time */
#define KYOCHO_DSM_NON_EXCLUSIVE 1 /* a view of what the last exclusive holder left; keeps nobody out */

int kyocho_dsm_acquire(uint32_t lock, int mode);
/* EBUSY: somebody has it. */
int kyocho_dsm_try_acquire(uint32_t lock, int mode);
/* ETIMEDOUT: somebody had it for so long. */
int kyocho_dsm_acquire_within(uint32_t lock, int mode, uint64_t limit_ns);
int kyocho_dsm_release(uint32_t lock);

/* Counts all that this node knows since the last barrier, whoever wrote it, as written under an exclusive lock that it holds: who takes the lock
 * next sees it. Costs as much as all that goes with the lock then. */
int kyocho_dsm_publish(uint32_t lock);

/* Gives an exclusive lock back, waits for a signal, and takes it again. Who signals need not hold it. */
int kyocho_dsm_wait(uint32_t lock, uint32_t condition);
int kyocho_dsm_signal(uint32_t lock, uint32_t condition);
int kyocho_dsm_broadcast(uint32_t lock, uint32_t condition);

/* Gives a lock another manager, from the next barrier on. */
int kyocho_dsm_move_lock(uint32_t lock, uint32_t node);

/* ---- Barriers --------------------------------------------------------------------------------------------------------- */

#define KYOCHO_DSM_ORDINARY 0
#define KYOCHO_DSM_SINGLE_READ_WRITE 1 /* pages with one writer stay with it, unwatched, where all nodes ask for this */

/* Waits for all nodes; then everybody sees everything written before. */
int kyocho_dsm_barrier(int kind);

/* ---- What a node did and waited for ----------------------------------------------------------------------------------- */

typedef struct {
    uint64_t messages_sent, bytes_sent, messages_received, bytes_received;
    uint64_t read_faults;    /* accesses that waited for a page */
    uint64_t write_faults;   /* writes that were a trap */
    uint64_t pages_compared; /* with their copies, to find out what was written */
    uint64_t words_written;  /* found so */
    uint64_t locks, barriers;
    uint64_t detecting_ns, fetching_ns, locking_ns, at_barriers_ns;
} kyocho_dsm_statistics_t;

int kyocho_dsm_statistics(kyocho_dsm_statistics_t *statistics);

/* ---- Under the PARMACS macros (share/kyocho/parmacs.m4) --------------------------------------------------------------- */

/* A PARMACS program initialises on one process and creates others like it. Here every node runs the initialisation, which must
 * depend on nothing but arguments, files and standard input; at the first CREATE only what node 0 wrote counts. The K-th CREATE
 * runs its function on node K, and ends there. Nodes other than 0 write nothing to standard output until then.
 * These functions cannot fail: what goes wrong is said on standard error and ends the node with exit code 75, and the others
 * learn of it. */

/* Zeroed, like any object that was not initialised. */
typedef struct { uint32_t number; } kyocho_dsm_lock_t;
typedef struct { uint32_t processes; } kyocho_dsm_barrier_t;
typedef struct { kyocho_dsm_lock_t lock; uint32_t set; } kyocho_dsm_flag_t;
typedef struct { kyocho_dsm_lock_t lock; uint32_t unused; long next; } kyocho_dsm_counter_t;
typedef struct { uint32_t number; kyocho_dsm_lock_t lock; } kyocho_dsm_condition_t;

/* Joins, with at least 64 MiB. */
void kyocho_dsm_start(size_t bytes);
/* Zeroed memory; it is never given back. From any node. */
void *kyocho_dsm_malloc(size_t bytes);
void kyocho_dsm_create(void (*work)(void));
void kyocho_dsm_wait_for_end(void);
void kyocho_dsm_end(void);

/* Before the first CREATE, locking keeps nobody out, as nobody else is there. */
void kyocho_dsm_lock_init(kyocho_dsm_lock_t *lock);
void kyocho_dsm_lock(const kyocho_dsm_lock_t *lock);
void kyocho_dsm_unlock(const kyocho_dsm_lock_t *lock);
/* The same, publishing: who takes the lock next sees all that this process knows, and not only what was written under the lock. */
void kyocho_dsm_unlock_all(const kyocho_dsm_lock_t *lock);

/* Of all processes: `processes` (0: not said) must be their number. */
void kyocho_dsm_barrier_of(long processes);

/* A word that processes wait for. Who has waited sees what was written before it was set, since the last barrier and by whomever. */
void kyocho_dsm_flag_init(kyocho_dsm_flag_t *flag);
void kyocho_dsm_flag_set(kyocho_dsm_flag_t *flag, uint32_t value);
void kyocho_dsm_flag_wait(kyocho_dsm_flag_t *flag, uint32_t value);

/* Gives the lock back, publishing; waits for a signal; takes the lock again. One lock goes with a condition variable as long as somebody waits. */
void kyocho_dsm_condition_init(kyocho_dsm_condition_t *condition);
void kyocho_dsm_condition_wait(kyocho_dsm_condition_t *condition, const kyocho_dsm_lock_t *lock);
/* Wakes who has waited longest, or all. The caller has held the lock since they began to wait, or wakes nobody. */
void kyocho_dsm_condition_signal(const kyocho_dsm_condition_t *condition, int all);

/* 0 to `last`, each once; then, when all of `processes` have come for more, -1 for each, and the next round. */
void kyocho_dsm_counter_init(kyocho_dsm_counter_t *counter);
long kyocho_dsm_counter_next(kyocho_dsm_counter_t *counter, long last, long processes);

/* Microseconds of the calendar. */
unsigned long kyocho_dsm_clock(void);

#ifdef __cplusplus
}
#endif

#endif
