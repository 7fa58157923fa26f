/* kyocho.h: microprocesses for C and C++.
 *
 * A microprocess is a thread that a user-level runtime schedules in cooperation with the kernel.
 * Creating, switching, joining and synchronising take tens of nanoseconds. If a microprocess blocks
 * in the kernel (usleep, a blocking library call, a page fault), the others keep running. Code that
 * never calls the runtime is preempted.
 *
 *     #include <kyocho.h>
 *     #include <stdio.h>
 *
 *     static void *work(void *argument) { return argument; }
 *
 *     static void *start(void *argument) {
 *         kyocho_t worker;
 *         void *result = NULL;
 *         if (kyocho_spawn(&worker, NULL, work, argument) == 0)
 *             kyocho_join(worker, &result);
 *         return result;
 *     }
 *
 *     int main(void) {
 *         char text[] = "hello";
 *         void *result;
 *         int error = kyocho_run(0, NULL, start, text, &result);
 *         if (error == 0) puts(result);
 *         return error;
 *     }
 *
 *     cc hello.c $(pkg-config --cflags --libs kyocho)
 *
 * Names, arguments and errors are those of pthreads, if pthreads have them.
 *
 * Errors. Functions that return `int` return 0 or an error number (EINVAL, EBUSY, ...), as pthreads
 * do. Functions that return `int64_t` return a count, or a negated error number. No function uses
 * `errno`: it belongs to a kernel thread, but a microprocess may continue on another kernel thread
 * after any call that waits, and compilers keep the address of `errno` within a function. For the
 * same reason, keep no data in `__thread` variables across calls that wait: use keys.
 *
 * EINVAL: a null pointer, or an object that is not initialised or was destroyed.
 * EPERM: the function needs a microprocess, and the caller is a plain kernel thread. Kernel threads
 * may call the functions marked "from anywhere".
 * ENOTRECOVERABLE: a bug in this library. A message is on standard error.
 *
 * Objects must not be moved or copied while in use. No function may be called from a signal
 * handler.
 */
#ifndef KYOCHO_H
#define KYOCHO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KYOCHO_VERSION_MAJOR 0
#define KYOCHO_VERSION_MINOR 1

#if defined(__GNUC__)
#define KYOCHO_NORETURN __attribute__((__noreturn__))
#else
#define KYOCHO_NORETURN
#endif

/* From <time.h>, <sys/socket.h> and <poll.h>: include these to pass such a structure. */
struct timespec;
struct sockaddr;
struct pollfd;

/* ---- The runtime ----------------------------------------------------------------------------- */

/* Number of a microprocess; never 0. It is not reused during a run. */
typedef uint64_t kyocho_t;

/* Attributes of a new microprocess. */
typedef struct {
    uint32_t magic;
    uint32_t detached;
    uint64_t state[7];
} kyocho_attr_t;

/* Runs start(argument) as the first microprocess, on `virtual_processors` virtual processors (0:
 * as many as the process has CPUs), with `attributes` (NULL: 8 MiB of stack). Returns when the
 * first microprocess has ended; others that still run are abandoned. *result (unless `result` is
 * NULL) is what it returned or passed to kyocho_exit. EBUSY: a run is under way in this process.
 * EDEADLK: no microprocess was runnable and no event pending; standard error says which
 * microprocess waited for what. EAGAIN: no memory for the first microprocess. ENOTRECOVERABLE: no
 * memory or no kernel threads for the virtual processors. */
int kyocho_run(unsigned virtual_processors, const kyocho_attr_t *attributes,
               void *(*start)(void *), void *argument, void **result);

/* Announces that a kernel thread outside of the runtime will wake a microprocess (post, signal,
 * send ...). A wait for that is not a deadlock until kyocho_outside_forget was called as often,
 * from anywhere. EPERM: no run is under way, or forget was called more often than expect. */
int kyocho_outside_expect(void);
int kyocho_outside_forget(void);

/* ---- Microprocesses -------------------------------------------------------------------------- */

/* Priorities, 0 to 63: the microprocess with the highest priority always runs first. */
#define KYOCHO_PRIORITY_LOWEST 0
#define KYOCHO_PRIORITY_NORMAL 31
#define KYOCHO_PRIORITY_HIGHEST 63

#define KYOCHO_CREATE_JOINABLE 0
#define KYOCHO_CREATE_DETACHED 1

/* The result of a microprocess that was killed. */
#define KYOCHO_CANCELED ((void *)-1)

/* Joinable, no name, the spawner's priority, 64 KiB of stack. */
int kyocho_attr_init(kyocho_attr_t *attributes);
int kyocho_attr_destroy(kyocho_attr_t *attributes);
/* Rounded up to 64 KiB, 256 KiB, 1 MiB or 8 MiB. EINVAL: 0, or more than that. */
int kyocho_attr_setstacksize(kyocho_attr_t *attributes, size_t bytes);
int kyocho_attr_getstacksize(const kyocho_attr_t *attributes, size_t *bytes);
/* EINVAL: not 0 to 63. */
int kyocho_attr_setpriority(kyocho_attr_t *attributes, int priority);
/* KYOCHO_CREATE_JOINABLE or KYOCHO_CREATE_DETACHED. */
int kyocho_attr_setdetachstate(kyocho_attr_t *attributes, int state);
int kyocho_attr_getdetachstate(const kyocho_attr_t *attributes, int *state);
/* A name for reports and tools; the first 39 bytes are used. EINVAL: not UTF-8. */
int kyocho_attr_setname(kyocho_attr_t *attributes, const char *name);

/* Creates a microprocess that runs start(argument). `attributes` may be NULL. EAGAIN: no memory
 * for a stack. */
int kyocho_spawn(kyocho_t *microprocess, const kyocho_attr_t *attributes,
                 void *(*start)(void *), void *argument);
/* Waits until the microprocess has ended. `result` may be NULL. ESRCH: there is none with this
 * number (any more). EINVAL: it is detached, or another microprocess joins it. EDEADLK: it is
 * the caller. */
int kyocho_join(kyocho_t microprocess, void **result);
/* Declares that the microprocess will not be joined. Errors as for kyocho_join, except EDEADLK.
 * From anywhere. */
int kyocho_detach(kyocho_t microprocess);
/* The number of the caller; 0 if it is not a microprocess. From anywhere. */
kyocho_t kyocho_self(void);
/* Ends the caller. Frames of C++ and Rust on its stack are not unwound, so do not call it in a
 * function that kyocho_once or a destructor calls. Aborts if the caller was not made by
 * kyocho_run or kyocho_spawn. */
KYOCHO_NORETURN void kyocho_exit(void *result);
/* Lets other microprocesses of the caller's priority or a higher one run first. */
int kyocho_yield(void);
/* Sleeps while other microprocesses run. (They also run during a raw usleep, which occupies a
 * kernel thread meanwhile.) */
int kyocho_nanosleep(uint64_t nanoseconds);
int kyocho_usleep(uint64_t microseconds);
/* Ends the microprocess in any state: asleep, waiting, running. It ends at its next call of a
 * function that may wait, or at once if it is in one; a raw sleep in the kernel is interrupted.
 * Its specific values are destroyed, its mutexes stay locked, its result is KYOCHO_CANCELED.
 * A loop that calls no function of this library loses its virtual processor for good after some
 * time slices; its specific values are not destroyed then. Returns without waiting for the end.
 * ESRCH. From anywhere. */
int kyocho_kill(kyocho_t microprocess);
/* Suspends the microprocess, at once or when it returns from the kernel; lets it run again.
 * ESRCH. From anywhere. */
int kyocho_suspend(kyocho_t microprocess);
int kyocho_resume(kyocho_t microprocess);
/* A microprocess that is runnable or waits is queued anew; one that runs may be preempted. Takes
 * effect at once, or at the next scheduling point of another virtual processor. EINVAL: not 0 to
 * 63. ESRCH. From anywhere. */
int kyocho_setpriority(kyocho_t microprocess, int priority);
int kyocho_getpriority(kyocho_t microprocess, int *priority);

/* ---- Mutexes --------------------------------------------------------------------------------- */

typedef struct {
    uint32_t magic;
    uint32_t kind;
    uint64_t state[14];
} kyocho_mutex_t;

/* If the holder locks it again: waits for ever, counts, or fails with EDEADLK. */
#define KYOCHO_MUTEX_NORMAL 0
#define KYOCHO_MUTEX_RECURSIVE 1
#define KYOCHO_MUTEX_ERRORCHECK 2

#define KYOCHO_MUTEX_INITIALIZER {0x6b796d75u, KYOCHO_MUTEX_NORMAL, {0}}
#define KYOCHO_RECURSIVE_MUTEX_INITIALIZER {0x6b796d75u, KYOCHO_MUTEX_RECURSIVE, {0}}
#define KYOCHO_ERRORCHECK_MUTEX_INITIALIZER {0x6b796d75u, KYOCHO_MUTEX_ERRORCHECK, {0}}

/* EINVAL: no such kind. */
int kyocho_mutex_init(kyocho_mutex_t *mutex, int kind);
/* EBUSY: it is locked. From anywhere. */
int kyocho_mutex_destroy(kyocho_mutex_t *mutex);
/* Waits in order of priority; among equal priorities, in order of arrival. An unlock passes the
 * mutex to the first waiter if that is more urgent than the unlocker or has waited for long.
 * Otherwise the mutex becomes free, and the first waiter is woken to compete for it. */
int kyocho_mutex_lock(kyocho_mutex_t *mutex);
/* EBUSY: it is locked. EAGAIN: locked recursively too often. */
int kyocho_mutex_trylock(kyocho_mutex_t *mutex);
/* Waits until CLOCK_REALTIME reads *deadline: ETIMEDOUT. EINVAL: not a valid time. */
int kyocho_mutex_timedlock(kyocho_mutex_t *mutex, const struct timespec *deadline);
/* EPERM: the caller does not hold it. This holds for every kind. */
int kyocho_mutex_unlock(kyocho_mutex_t *mutex);

/* ---- Condition variables --------------------------------------------------------------------- */

typedef struct {
    uint32_t magic;
    uint32_t unused;
    uint64_t state[7];
} kyocho_cond_t;

#define KYOCHO_COND_INITIALIZER {0x6b79636fu, 0, {0}}

int kyocho_cond_init(kyocho_cond_t *condition);
int kyocho_cond_destroy(kyocho_cond_t *condition);
/* Unlocks the mutex and waits for a signal, atomically; then locks the mutex again. EPERM: the
 * caller does not hold it. */
int kyocho_cond_wait(kyocho_cond_t *condition, kyocho_mutex_t *mutex);
/* Waits until CLOCK_REALTIME reads *deadline: ETIMEDOUT, with the mutex locked again. */
int kyocho_cond_timedwait(kyocho_cond_t *condition, kyocho_mutex_t *mutex,
                          const struct timespec *deadline);
/* From anywhere. */
int kyocho_cond_signal(kyocho_cond_t *condition);
int kyocho_cond_broadcast(kyocho_cond_t *condition);

/* ---- Reader-writer locks --------------------------------------------------------------------- */

typedef struct {
    uint32_t magic;
    uint32_t unused;
    uint64_t state[15];
} kyocho_rwlock_t;

#define KYOCHO_RWLOCK_INITIALIZER {0x6b797277u, 0, {0}}

int kyocho_rwlock_init(kyocho_rwlock_t *lock);
/* EBUSY: it is locked. From anywhere. */
int kyocho_rwlock_destroy(kyocho_rwlock_t *lock);
/* A waiting writer keeps later readers of its priority out. EDEADLK: the caller holds it for
 * writing. */
int kyocho_rwlock_rdlock(kyocho_rwlock_t *lock);
int kyocho_rwlock_wrlock(kyocho_rwlock_t *lock);
/* EBUSY: the call would wait. */
int kyocho_rwlock_tryrdlock(kyocho_rwlock_t *lock);
int kyocho_rwlock_trywrlock(kyocho_rwlock_t *lock);
/* Waits until CLOCK_REALTIME reads *deadline: ETIMEDOUT. */
int kyocho_rwlock_timedrdlock(kyocho_rwlock_t *lock, const struct timespec *deadline);
int kyocho_rwlock_timedwrlock(kyocho_rwlock_t *lock, const struct timespec *deadline);
/* EPERM: it is not locked for reading, and the caller does not hold it for writing. */
int kyocho_rwlock_unlock(kyocho_rwlock_t *lock);

/* ---- Semaphores ------------------------------------------------------------------------------ */

typedef struct {
    uint32_t magic;
    uint32_t unused;
    uint64_t state[7];
} kyocho_sem_t;

/* EINVAL: too many permits. */
int kyocho_sem_init(kyocho_sem_t *semaphore, unsigned permits);
int kyocho_sem_destroy(kyocho_sem_t *semaphore);
int kyocho_sem_wait(kyocho_sem_t *semaphore);
/* EAGAIN: no permit is left. From anywhere. */
int kyocho_sem_trywait(kyocho_sem_t *semaphore);
/* Waits until CLOCK_REALTIME reads *deadline: ETIMEDOUT. */
int kyocho_sem_timedwait(kyocho_sem_t *semaphore, const struct timespec *deadline);
/* From anywhere. EOVERFLOW: there are INT_MAX permits. */
int kyocho_sem_post(kyocho_sem_t *semaphore);
/* From anywhere. */
int kyocho_sem_getvalue(kyocho_sem_t *semaphore, int *permits);

/* ---- Barriers -------------------------------------------------------------------------------- */

typedef struct {
    uint32_t magic;
    uint32_t unused;
    uint64_t state[7];
} kyocho_barrier_t;

/* Returned by kyocho_barrier_wait to one of the parties; the others get 0. */
#define KYOCHO_BARRIER_SERIAL (-1)

/* EINVAL: `parties` is 0. */
int kyocho_barrier_init(kyocho_barrier_t *barrier, unsigned parties);
int kyocho_barrier_destroy(kyocho_barrier_t *barrier);
int kyocho_barrier_wait(kyocho_barrier_t *barrier);

/* ---- Once ------------------------------------------------------------------------------------ */

typedef struct {
    uint32_t magic;
    uint32_t unused;
    uint64_t state[14];
} kyocho_once_t;

#define KYOCHO_ONCE_INIT {0x6b796f6eu, 0, {0}}

/* Calls initialise() unless it was called before; returns once it has returned. If the
 * microprocess that calls it is killed meanwhile, the others wait for ever. */
int kyocho_once(kyocho_once_t *once, void (*initialise)(void));

/* ---- Microprocess-specific values ------------------------------------------------------------ */

typedef uint32_t kyocho_key_t;

/* When a microprocess made by kyocho_spawn or kyocho_run ends, `destructor` (unless it is NULL)
 * is called with each value that is not NULL, in up to four rounds. EAGAIN: there are 1,024
 * keys. From anywhere. */
int kyocho_key_create(kyocho_key_t *key, void (*destructor)(void *));
/* No destructor is called. EINVAL: no such key. From anywhere. */
int kyocho_key_delete(kyocho_key_t key);
/* EINVAL: no such key. */
int kyocho_setspecific(kyocho_key_t key, const void *value);
/* NULL: never set, no such key, or the caller is not a microprocess. */
void *kyocho_getspecific(kyocho_key_t key);

/* ---- Channels -------------------------------------------------------------------------------- */

typedef struct kyocho_channel kyocho_channel_t;

/* Send larger items as pointers. */
#define KYOCHO_CHANNEL_ITEM_MAX 64
#define KYOCHO_CHANNEL_UNBOUNDED SIZE_MAX

/* A channel of items of `item_bytes` (1 to KYOCHO_CHANNEL_ITEM_MAX), which are copied. It
 * buffers up to `items_max` items; if that is 0, a send waits until its item is received.
 * EINVAL: other sizes, or more than 16,777,216 items. From anywhere. */
int kyocho_channel_create(kyocho_channel_t **channel, size_t item_bytes, size_t items_max);
/* The channel must not be in use. From anywhere. */
int kyocho_channel_destroy(kyocho_channel_t *channel);
/* Sends fail from now on; items that were sent can still be received. Waiting senders and
 * receivers return. From anywhere. */
int kyocho_channel_close(kyocho_channel_t *channel);
/* EPIPE: it is closed. */
int kyocho_channel_send(kyocho_channel_t *channel, const void *item);
/* EPIPE: it is closed, and no item is left. */
int kyocho_channel_recv(kyocho_channel_t *channel, void *item);
/* EAGAIN: the call would wait. From anywhere. */
int kyocho_channel_trysend(kyocho_channel_t *channel, const void *item);
int kyocho_channel_tryrecv(kyocho_channel_t *channel, void *item);
/* Waits until CLOCK_REALTIME reads *deadline: ETIMEDOUT. */
int kyocho_channel_timedsend(kyocho_channel_t *channel, const void *item,
                             const struct timespec *deadline);
int kyocho_channel_timedrecv(kyocho_channel_t *channel, void *item,
                             const struct timespec *deadline);

/* One operation of a select: sends *item, or receives into it. */
typedef struct kyocho_arm {
    kyocho_channel_t *channel;
    void *item;
    int operation;
} kyocho_arm_t;
#define KYOCHO_ARM_SEND 1
#define KYOCHO_ARM_RECV 2
#define KYOCHO_ARMS_MAX 64

/* Waits until one of 1 to KYOCHO_ARMS_MAX operations can be done, and does that one alone;
 * *selected is its index. If several are repeatedly possible at once, none is starved. EPIPE:
 * the channel of the selected one is closed, and no item is left to receive. EINVAL: another
 * count or operation, or a null pointer. */
int kyocho_select(const kyocho_arm_t *arms, size_t count, size_t *selected);
/* EAGAIN: every operation would wait. From anywhere. */
int kyocho_tryselect(const kyocho_arm_t *arms, size_t count, size_t *selected);
/* Waits until CLOCK_REALTIME reads *deadline: ETIMEDOUT. */
int kyocho_timedselect(const kyocho_arm_t *arms, size_t count, size_t *selected,
                       const struct timespec *deadline);

/* ---- Gates ----------------------------------------------------------------------------------- */

/* Calls between programs on this machine, through shared memory. The calling microprocess waits;
 * the service runs at its priority. Requests and replies are bytes. */
typedef struct kyocho_gate kyocho_gate_t;
typedef struct kyocho_gate_server kyocho_gate_server_t;
/* Largest length of a request and of a reply. */
#define KYOCHO_GATE_BYTES_MAX 8064

/* Serves one call, in a microprocess. Reads the request, writes the reply (at most
 * KYOCHO_GATE_BYTES_MAX bytes) and returns its length, or returns a negated error number, which
 * the caller gets. Runs concurrently for several calls. */
typedef int64_t (*kyocho_gate_service_t)(void *argument, uint32_t method, const void *request,
                                         size_t request_bytes, void *reply);

/* Serves at `path`, which must not exist (EADDRINUSE), until destroyed. Processes of the same
 * user and of the superuser may connect. */
int kyocho_gate_serve(kyocho_gate_server_t **server, const char *path,
                      kyocho_gate_service_t service, void *argument);
/* Closes all connections. Calls being served still finish: what the service uses must stay
 * valid. */
int kyocho_gate_server_destroy(kyocho_gate_server_t *server);

/* ENOENT, ECONNREFUSED: no server at `path`. EACCES: not for this user. EPIPE, EPROTO: not a
 * gate, or of another version. */
int kyocho_gate_connect(kyocho_gate_t **gate, const char *path);
/* No call may be in progress. */
int kyocho_gate_destroy(kyocho_gate_t *gate);
/* The length of the reply, or a negated error number. -EPIPE: the server is gone; it may have
 * served the call. -EMSGSIZE: request or reply is too long. -EREMOTEIO: the service failed.
 * Other numbers are the service's own. Several microprocesses may call concurrently. */
int64_t kyocho_gate_call(kyocho_gate_t *gate, uint32_t method, const void *request,
                         size_t request_bytes, void *reply, size_t reply_bytes_max);
/* Waits until CLOCK_REALTIME reads *deadline: -ETIMEDOUT; the call may still be served. */
int64_t kyocho_gate_timedcall(kyocho_gate_t *gate, uint32_t method, const void *request,
                              size_t request_bytes, void *reply, size_t reply_bytes_max,
                              const struct timespec *deadline);

/* ---- Input and output ------------------------------------------------------------------------ */

/* The system calls of these names, on descriptors in blocking mode, but without occupying a
 * kernel thread while they wait (with io_uring, if the host has it, which also waits on
 * non-blocking descriptors). They return the count, or a negated error number: -EBADF, -EPIPE,
 * ... From anywhere: on a kernel thread they are the plain calls. kyocho_send never raises
 * SIGPIPE. */
int64_t kyocho_read(int descriptor, void *buffer, size_t bytes);
int64_t kyocho_write(int descriptor, const void *buffer, size_t bytes);
int64_t kyocho_recv(int socket, void *buffer, size_t bytes, int flags);
int64_t kyocho_send(int socket, const void *buffer, size_t bytes, int flags);
/* The new descriptor, which is closed on exec. `address` and `address_bytes` may be NULL. */
int64_t kyocho_accept(int socket, struct sockaddr *address, uint32_t *address_bytes);
/* 0, or a negated error number. */
int64_t kyocho_connect(int socket, const struct sockaddr *address, uint32_t address_bytes);
/* The number of ready descriptors among `count`. Waits at most `timeout_ms`, or without limit if
 * it is negative. */
int64_t kyocho_poll(struct pollfd *descriptors, size_t count, int timeout_ms);

#ifdef __cplusplus
}
#endif

#endif
