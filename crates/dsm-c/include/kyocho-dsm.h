/* kyocho-dsm.h: memory shared across nodes, for C.
 *
 * A program runs as N nodes: processes on one or several machines, which share memory at equal
 * addresses. Writes do not become visible at once. A node sees what was written under a lock when
 * it acquires that lock, and all writes after a barrier (entry consistency with implicit binding;
 * docs/dsm-model.md defines it). Two nodes may write neighbouring words of 4 bytes, but not parts
 * of one word.
 *
 *     #include <kyocho-dsm.h>
 *     #include <stdio.h>
 *
 *     int main(void) {
 *         void *memory;
 *         if (kyocho_dsm_join(NULL) != 0) return 1;
 *         if (kyocho_dsm_allocate(&memory, sizeof(long), KYOCHO_DSM_CYCLIC, 0) != 0) return 1;
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
 * A program that is started otherwise is a cluster of one node. Only the thread that joins uses
 * shared memory, or the threads with which it shares its node (kyocho_dsm_share). No other thread
 * may call these functions or access shared memory. A system call on shared memory (read, write)
 * fails with EFAULT if a page is absent: access the memory first, or copy it. If a page is lost
 * with its node, the program that accesses it ends with exit code 75.
 *
 * Errors. Functions that return `int` return 0 or an error number, and leave errno alone.
 * kyocho_dsm_error returns the message.
 *   ENOTCONN      this thread has not joined
 *   EINVAL        out of range: lock, node, bytes, the environment that the launcher has set
 *   EPERM         the lock is not held; or only the thread that joined may do this
 *                 (allocate, move, share, leave)
 *   EDEADLK       the lock is held already
 *   EHOSTDOWN     a node is dead: save and exit
 *   EPROTO        a node broke the protocol: save and exit
 *   ESHUTDOWN     a node that is needed has left, for example at a barrier: save and exit
 *   ECANCELED     the nodes do not create the same region: no node has it
 *   ENOTRECOVERABLE  an internal error of this library; details are on standard error
 */
#ifndef KYOCHO_DSM_H
#define KYOCHO_DSM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Joining and leaving --------------------------------------------------------------------- */

/* The same on all nodes. */
typedef struct {
    size_t memory_bytes; /* shared memory, at most half of the host's, divided among its nodes */
    uint32_t locks;      /* number of locks, which are numbered from 0 */
} kyocho_dsm_settings_t;

/* Joins the cluster that `kyocho dsm run` has started, and waits until all nodes have joined. NULL:
 * 64 MiB, 4096 locks. EISCONN: this thread has joined already. EHOSTUNREACH: not all nodes have
 * joined. ENOMEM: too much memory. */
int kyocho_dsm_join(const kyocho_dsm_settings_t *settings);

/* Crosses a last barrier and leaves. If other nodes cross more barriers, their calls that need this
 * node fail with ESHUTDOWN. A node that ends without leaving counts as dead. */
int kyocho_dsm_leave(void);

/* Lets 1 to 32767 kernel threads of this process share the node in place of this thread. The node
 * has one slot for each; a thread takes one with kyocho_dsm_attach_thread. Each thread acquires
 * locks, waits, crosses barriers and fetches pages by itself. A lock has at most one holder among
 * them. A barrier waits for all slots of all nodes that were not given back. Each thread sees the
 * writes of the others at once. Calls of this thread fail with EBUSY until kyocho_dsm_unshare. */
int kyocho_dsm_share(uint32_t threads);
/* Takes a slot for this thread. EAGAIN: none is left. EISCONN: the thread has a slot or a node. */
int kyocho_dsm_attach_thread(void);
/* Gives this thread's slot back. Release all locks first: a lock that is still held stays held. */
int kyocho_dsm_detach_thread(void);
/* Makes this thread the node's only one again, and removes slots that were not taken.
 * EBUSY: a thread still has its slot. EAGAIN: there are no slots. */
int kyocho_dsm_unshare(void);

/* This node's number, from 0, and the number of nodes; both 0 if this thread has not joined. */
uint32_t kyocho_dsm_rank(void);
uint32_t kyocho_dsm_nodes(void);

/* Writes the message of this thread's last error to `text`, truncated to `bytes` including the
 * terminating 0. Returns the length of the whole message. */
size_t kyocho_dsm_error(char *text, size_t bytes);

/* ---- Memory ---------------------------------------------------------------------------------- */

#define KYOCHO_DSM_ON 0     /* one node manages all pages */
#define KYOCHO_DSM_BLOCKS 1 /* each node manages an equal part of consecutive pages */
#define KYOCHO_DSM_CYCLIC 2 /* round robin */

/* Allocates zeroed memory, on pages of its own, at the same address on all nodes. All nodes make
 * the same calls in the same order. Crosses a barrier. `node` matters for KYOCHO_DSM_ON only.
 * ENOMEM: the memory that the program joined with is used up. */
int kyocho_dsm_allocate(void **memory, size_t bytes, int placement, uint32_t node);

#define KYOCHO_DSM_ANYWHERE UINT64_MAX

/* A region: more shared memory, in a space of 2^64 bytes. The space between regions costs
 * nothing. */
typedef struct {
    size_t bytes;     /* rounded up to pages of 4096 bytes */
    int placement;    /* the first managers of its pages */
    uint32_t node;    /* for KYOCHO_DSM_ON */
    uint64_t address; /* in that space, a multiple of 4096; KYOCHO_DSM_ANYWHERE: the first free range */
    void *here;       /* in this process, a multiple of 4096; NULL: any, it may differ by node */
} kyocho_dsm_region_t;

/* Creates a region. The first one has number 1; region 0 is the memory that the program joined
 * with. All nodes, and all slots of a node, make the same calls (except for `here`) in the same
 * order. Crosses a barrier. A region stays until the program ends.
 * EINVAL: it cannot be there, or there are 1024 regions.
 * If one node cannot create it, or does not, no node has it, and the call fails on all nodes.
 * ECANCELED: the nodes differ. Otherwise it is the error of that node's host, such as ENOMEM, or
 * EEXIST if `here` is in use. */
int kyocho_dsm_region(uint32_t *number, const kyocho_dsm_region_t *region);

/* Allocates zeroed memory of a region, on pages of its own, with the managers of the region. All
 * nodes make the same calls in the same order, by one slot of each. Waits for no other node. The
 * address is the same on all nodes if all gave the same `here`. ENOMEM: the region is used up. */
int kyocho_dsm_region_allocate(uint32_t number, void **memory, size_t bytes);

/* Moves the pages of some bytes to another manager at the next barrier. */
int kyocho_dsm_move_pages(const void *memory, size_t bytes, uint32_t node);

/* Fetches the pages of some bytes. Until the next barrier, accesses to them do not wait. */
int kyocho_dsm_fetch(const void *memory, size_t bytes);

/* ---- Locks ----------------------------------------------------------------------------------- */

#define KYOCHO_DSM_EXCLUSIVE 0     /* one node at a time */
#define KYOCHO_DSM_NON_EXCLUSIVE 1 /* sees what the last exclusive holder released */

int kyocho_dsm_acquire(uint32_t lock, int mode);
/* EBUSY: the lock is held. */
int kyocho_dsm_try_acquire(uint32_t lock, int mode);
/* ETIMEDOUT: the lock was not released in time. */
int kyocho_dsm_acquire_within(uint32_t lock, int mode, uint64_t limit_ns);
int kyocho_dsm_release(uint32_t lock);

/* Adds all writes since the last barrier that this node knows, by any node, to an exclusive lock
 * that it holds: the next holder sees them. The cost is that of sending them with the lock. */
int kyocho_dsm_publish(uint32_t lock);

/* Releases an exclusive lock, waits for a signal, and acquires the lock again. A signalling thread
 * need not hold the lock. */
int kyocho_dsm_wait(uint32_t lock, uint32_t condition);
int kyocho_dsm_signal(uint32_t lock, uint32_t condition);
int kyocho_dsm_broadcast(uint32_t lock, uint32_t condition);

/* Moves a lock to another manager at the next barrier. */
int kyocho_dsm_move_lock(uint32_t lock, uint32_t node);

/* ---- Barriers -------------------------------------------------------------------------------- */

#define KYOCHO_DSM_ORDINARY 0
/* If all nodes ask for this, a page with one writer stays with that node, and its writes are not
 * watched. */
#define KYOCHO_DSM_SINGLE_READ_WRITE 1

/* Waits for all nodes. Afterwards every node sees everything that was written before. */
int kyocho_dsm_barrier(int kind);

/* ---- Counters of a node ---------------------------------------------------------------------- */

typedef struct {
    uint64_t messages_sent, bytes_sent, messages_received, bytes_received;
    uint64_t read_faults;    /* accesses that waited for a page */
    uint64_t write_faults;   /* writes that were a trap */
    uint64_t pages_compared; /* with their copies, to find written words */
    uint64_t words_written;  /* that were found */
    uint64_t locks, barriers;
    uint64_t detecting_ns, fetching_ns, locking_ns, at_barriers_ns;
} kyocho_dsm_statistics_t;

int kyocho_dsm_statistics(kyocho_dsm_statistics_t *statistics);

/* ---- Under the PARMACS macros (share/kyocho/parmacs.m4) -------------------------------------- */

/* A PARMACS program initialises in one process and creates copies of it. Here every node runs the
 * initialisation, which may depend only on arguments, files and standard input. At the first CREATE
 * only the writes of node 0 count. The K-th CREATE runs its function on node K, which ends
 * afterwards. Nodes other than 0 write nothing to standard output until then.
 * These functions cannot return errors: an error is printed on standard error and ends the node
 * with exit code 75, and the other nodes are notified. */

/* An object that is not initialised is zero. */
typedef struct { uint32_t number; } kyocho_dsm_lock_t;
typedef struct { uint32_t processes; } kyocho_dsm_barrier_t;
typedef struct { kyocho_dsm_lock_t lock; uint32_t set; } kyocho_dsm_flag_t;
typedef struct { kyocho_dsm_lock_t lock; uint32_t unused; long next; } kyocho_dsm_counter_t;
typedef struct { uint32_t number; kyocho_dsm_lock_t lock; } kyocho_dsm_condition_t;

/* Joins, with at least 64 MiB. */
void kyocho_dsm_start(size_t bytes);
/* Allocates zeroed memory, which is never freed. On any node. */
void *kyocho_dsm_malloc(size_t bytes);
void kyocho_dsm_create(void (*work)(void));
void kyocho_dsm_wait_for_end(void);
void kyocho_dsm_end(void);

/* Before the first CREATE there is only one process, and locking has no effect. */
void kyocho_dsm_lock_init(kyocho_dsm_lock_t *lock);
void kyocho_dsm_lock(const kyocho_dsm_lock_t *lock);
void kyocho_dsm_unlock(const kyocho_dsm_lock_t *lock);
/* Unlocks and publishes: the next holder sees all writes that this process knows, and not only
 * those made under the lock. */
void kyocho_dsm_unlock_all(const kyocho_dsm_lock_t *lock);

/* Waits for all processes. `processes` must be their number, or 0. */
void kyocho_dsm_barrier_of(long processes);

/* A word that processes wait for. After the wait a process sees all writes since the last barrier,
 * by any process, that were made before the flag was set. */
void kyocho_dsm_flag_init(kyocho_dsm_flag_t *flag);
void kyocho_dsm_flag_set(kyocho_dsm_flag_t *flag, uint32_t value);
void kyocho_dsm_flag_wait(kyocho_dsm_flag_t *flag, uint32_t value);

/* Releases the lock and publishes, waits for a signal, and acquires the lock again. While processes
 * wait on a condition variable, all of them use the same lock. */
void kyocho_dsm_condition_init(kyocho_dsm_condition_t *condition);
void kyocho_dsm_condition_wait(kyocho_dsm_condition_t *condition, const kyocho_dsm_lock_t *lock);
/* Wakes the process that has waited longest, or all. Has no effect unless the caller has held the
 * lock since they began to wait. */
void kyocho_dsm_condition_signal(const kyocho_dsm_condition_t *condition, int all);

/* Returns 0 to `last`, each once. Once all `processes` have asked for more, each gets -1, and the
 * next round begins. */
void kyocho_dsm_counter_init(kyocho_dsm_counter_t *counter);
long kyocho_dsm_counter_next(kyocho_dsm_counter_t *counter, long last, long processes);

/* Microseconds of calendar time. */
unsigned long kyocho_dsm_clock(void);

#ifdef __cplusplus
}
#endif

#endif
