/* kyocho.h: microprocesses for C and C++.
 *
 * A microprocess is a thread that a user-level runtime schedules together with the kernel: created, switched, joined and
 * synchronised in tens of nanoseconds. A raw sleep in the kernel (usleep, a blocking library call, a page fault) holds up
 * nobody else; code that never calls the runtime is preempted.
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
 * The names, arguments and errors are those of pthreads where pthreads have them.
 *
 * Errors. Functions that return `int` return 0 or an error number (EINVAL, EBUSY, ...), as pthreads do; those that return
 * `int64_t` a count, or a negated error number. None uses `errno`: that belongs to a kernel thread, a microprocess may go on
 * on another one after any call that waits, and compilers keep the address of `errno` within a function. For the same reason
 * keep nothing in `__thread` variables across calls that wait: use keys.
 *
 * EINVAL: a null pointer, or an object that was not initialised or was destroyed.
 * EPERM: the caller is no microprocess (it is a kernel thread that called neither kyocho_run nor was spawned) and the
 * function needs one. Kernel threads may call what is marked "from anywhere".
 * ENOTRECOVERABLE: a bug in this library; a message is on standard error.
 *
 * Objects must not be moved or copied while in use. All functions may be called from signal handlers: none.
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

/* From <time.h>, <sys/socket.h> and <poll.h>, which who passes one includes. */
struct timespec;
struct sockaddr;
struct pollfd;

/* ---- The runtime ------------------------------------------------------------------------------------------------------ */

/* Names a microprocess; never 0. Another one gets the same name only in a later run. */
typedef uint64_t kyocho_t;

/* How a microprocess is created. */
typedef struct {
    uint32_t magic;
    uint32_t detached;
    uint64_t state[7];
} kyocho_attr_t;

/* Runs start(argument) as the first microprocess, on `virtual_processors` virtual processors (0: as many as the process has
 * CPUs), with `attributes` (NULL: 8 MiB of stack). Returns when it has ended; others that have not are abandoned.
 * *result (unless `result` is NULL) is what it returned or passed to kyocho_exit.
 * EBUSY: a run is under way in this process. EDEADLK: nothing was runnable and nothing pending; who waited for what is told
 * on standard error. EAGAIN: no memory or no kernel threads to start with. */
int kyocho_run(unsigned virtual_processors, const kyocho_attr_t *attributes,
               void *(*start)(void *), void *argument, void **result);

/* Says that a kernel thread outside will wake somebody (post, signal, send ...): waiting for that is no deadlock until as many
 * calls of kyocho_outside_forget, from anywhere. EPERM: no run is under way; more forgotten than expected. */
int kyocho_outside_expect(void);
int kyocho_outside_forget(void);

/* ---- Microprocesses --------------------------------------------------------------------------------------------------- */

/* Priorities, 0 to 63: who is more urgent always runs first. */
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
/* For reports and tools; the first 39 bytes are kept. EINVAL: not UTF-8. */
int kyocho_attr_setname(kyocho_attr_t *attributes, const char *name);

/* Creates a microprocess that runs start(argument). `attributes` may be NULL. EAGAIN: no memory for a stack. */
int kyocho_spawn(kyocho_t *microprocess, const kyocho_attr_t *attributes,
                 void *(*start)(void *), void *argument);
/* Waits for its end. `result` may be NULL. ESRCH: there is none of this name (any more). EINVAL: it is detached, or somebody
 * else joins it. EDEADLK: it is the caller. */
int kyocho_join(kyocho_t microprocess, void **result);
/* Nobody will join it. Errors as for kyocho_join, except EDEADLK. From anywhere. */
int kyocho_detach(kyocho_t microprocess);
/* The caller; 0 if it is no microprocess. From anywhere. */
kyocho_t kyocho_self(void);
/* Ends the caller; frames of C++ and Rust on its stack are not unwound, so not from what kyocho_once or a destructor calls.
 * Aborts when the caller is no microprocess of kyocho_run or kyocho_spawn. */
KYOCHO_NORETURN void kyocho_exit(void *result);
/* Lets others of the caller's priority, and above, run first. */
int kyocho_yield(void);
/* Others run meanwhile. (A raw usleep holds up nobody either, but costs a kernel thread for as long.) */
int kyocho_nanosleep(uint64_t nanoseconds);
int kyocho_usleep(uint64_t microseconds);
/* Ends it, whatever it is doing: asleep, waiting, running. It is gone when it next calls a function that may wait, or is in one;
 * a raw sleep in the kernel is interrupted. Its values are destroyed, its mutexes stay locked, its result is KYOCHO_CANCELED.
 * Returns before it has ended. ESRCH. From anywhere. */
int kyocho_kill(kyocho_t microprocess);
/* It stands still from now on, or when it comes back from the kernel; and goes on. ESRCH. From anywhere. */
int kyocho_suspend(kyocho_t microprocess);
int kyocho_resume(kyocho_t microprocess);
/* From the next time it becomes runnable. EINVAL: not 0 to 63. ESRCH. From anywhere. */
int kyocho_setpriority(kyocho_t microprocess, int priority);
int kyocho_getpriority(kyocho_t microprocess, int *priority);

/* ---- Mutexes ---------------------------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t magic;
    uint32_t kind;
    uint64_t state[14];
} kyocho_mutex_t;

/* Locking one again that one holds waits for ever, counts, or is the error EDEADLK. */
#define KYOCHO_MUTEX_NORMAL 0
#define KYOCHO_MUTEX_RECURSIVE 1
#define KYOCHO_MUTEX_ERRORCHECK 2

#define KYOCHO_MUTEX_INITIALIZER {0x6b796d75u, KYOCHO_MUTEX_NORMAL, {0}}
#define KYOCHO_RECURSIVE_MUTEX_INITIALIZER {0x6b796d75u, KYOCHO_MUTEX_RECURSIVE, {0}}
#define KYOCHO_ERRORCHECK_MUTEX_INITIALIZER {0x6b796d75u, KYOCHO_MUTEX_ERRORCHECK, {0}}

/* EINVAL: no such kind. */
int kyocho_mutex_init(kyocho_mutex_t *mutex, int kind);
/* EBUSY: somebody holds it. From anywhere. */
int kyocho_mutex_destroy(kyocho_mutex_t *mutex);
/* Released, it goes to the first waiter: highest priority first, first come first served among equals. */
int kyocho_mutex_lock(kyocho_mutex_t *mutex);
/* EBUSY: somebody holds it. EAGAIN: locked too often. */
int kyocho_mutex_trylock(kyocho_mutex_t *mutex);
/* Until CLOCK_REALTIME reads *deadline. ETIMEDOUT. EINVAL: no such time. */
int kyocho_mutex_timedlock(kyocho_mutex_t *mutex, const struct timespec *deadline);
/* EPERM: the caller does not hold it; so it is for every kind. */
int kyocho_mutex_unlock(kyocho_mutex_t *mutex);

/* ---- Condition variables ---------------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t magic;
    uint32_t unused;
    uint64_t state[7];
} kyocho_cond_t;

#define KYOCHO_COND_INITIALIZER {0x6b79636fu, 0, {0}}

int kyocho_cond_init(kyocho_cond_t *condition);
int kyocho_cond_destroy(kyocho_cond_t *condition);
/* Unlocks, waits for a signal and locks again, the first two in one step. EPERM: the caller does not hold the mutex. */
int kyocho_cond_wait(kyocho_cond_t *condition, kyocho_mutex_t *mutex);
/* Until CLOCK_REALTIME reads *deadline. ETIMEDOUT: the mutex is locked again then, too. */
int kyocho_cond_timedwait(kyocho_cond_t *condition, kyocho_mutex_t *mutex, const struct timespec *deadline);
/* From anywhere. */
int kyocho_cond_signal(kyocho_cond_t *condition);
int kyocho_cond_broadcast(kyocho_cond_t *condition);

/* ---- Reader-writer locks ---------------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t magic;
    uint32_t unused;
    uint64_t state[15];
} kyocho_rwlock_t;

#define KYOCHO_RWLOCK_INITIALIZER {0x6b797277u, 0, {0}}

int kyocho_rwlock_init(kyocho_rwlock_t *lock);
/* EBUSY: somebody is inside. From anywhere. */
int kyocho_rwlock_destroy(kyocho_rwlock_t *lock);
/* A writer that waits holds back later readers. EDEADLK: the caller is inside for writing. */
int kyocho_rwlock_rdlock(kyocho_rwlock_t *lock);
int kyocho_rwlock_wrlock(kyocho_rwlock_t *lock);
/* EBUSY: it would have to wait. */
int kyocho_rwlock_tryrdlock(kyocho_rwlock_t *lock);
int kyocho_rwlock_trywrlock(kyocho_rwlock_t *lock);
/* Until CLOCK_REALTIME reads *deadline. ETIMEDOUT. */
int kyocho_rwlock_timedrdlock(kyocho_rwlock_t *lock, const struct timespec *deadline);
int kyocho_rwlock_timedwrlock(kyocho_rwlock_t *lock, const struct timespec *deadline);
/* EPERM: nobody is inside for reading, nor the caller for writing. */
int kyocho_rwlock_unlock(kyocho_rwlock_t *lock);

/* ---- Semaphores ------------------------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t magic;
    uint32_t unused;
    uint64_t state[7];
} kyocho_sem_t;

int kyocho_sem_init(kyocho_sem_t *semaphore, unsigned permits);
int kyocho_sem_destroy(kyocho_sem_t *semaphore);
int kyocho_sem_wait(kyocho_sem_t *semaphore);
/* EAGAIN: there is no permit. From anywhere. */
int kyocho_sem_trywait(kyocho_sem_t *semaphore);
/* Until CLOCK_REALTIME reads *deadline. ETIMEDOUT. */
int kyocho_sem_timedwait(kyocho_sem_t *semaphore, const struct timespec *deadline);
/* From anywhere. EOVERFLOW: there are INT_MAX permits. */
int kyocho_sem_post(kyocho_sem_t *semaphore);
/* From anywhere. */
int kyocho_sem_getvalue(kyocho_sem_t *semaphore, int *permits);

/* ---- Barriers --------------------------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t magic;
    uint32_t unused;
    uint64_t state[7];
} kyocho_barrier_t;

/* What one of the parties gets from kyocho_barrier_wait; the others get 0. */
#define KYOCHO_BARRIER_SERIAL (-1)

/* EINVAL: no parties. */
int kyocho_barrier_init(kyocho_barrier_t *barrier, unsigned parties);
int kyocho_barrier_destroy(kyocho_barrier_t *barrier);
int kyocho_barrier_wait(kyocho_barrier_t *barrier);

/* ---- Once ------------------------------------------------------------------------------------------------------------- */

typedef struct {
    uint32_t magic;
    uint32_t unused;
    uint64_t state[14];
} kyocho_once_t;

#define KYOCHO_ONCE_INIT {0x6b796f6eu, 0, {0}}

/* Calls initialise() unless that was done before; returns when it has been. Who is killed in it leaves others waiting. */
int kyocho_once(kyocho_once_t *once, void (*initialise)(void));

/* ---- Values of a microprocess's own ----------------------------------------------------------------------------------- */

typedef uint32_t kyocho_key_t;

/* At the end of a microprocess that kyocho_spawn or kyocho_run made, `destructor` (which may be NULL) gets each value that is
 * not NULL, in up to four rounds. EAGAIN: there are 1,024 keys. From anywhere. */
int kyocho_key_create(kyocho_key_t *key, void (*destructor)(void *));
/* No destructor is called. EINVAL: no such key. From anywhere. */
int kyocho_key_delete(kyocho_key_t key);
/* EINVAL: no such key. */
int kyocho_setspecific(kyocho_key_t key, const void *value);
/* NULL: never set, no such key, or no microprocess. */
void *kyocho_getspecific(kyocho_key_t key);

/* ---- Channels --------------------------------------------------------------------------------------------------------- */

typedef struct kyocho_channel kyocho_channel_t;

/* Larger items go as pointers. */
#define KYOCHO_CHANNEL_ITEM_MAX 64
#define KYOCHO_CHANNEL_UNBOUNDED SIZE_MAX

/* A channel of items of `item_bytes` (1 to KYOCHO_CHANNEL_ITEM_MAX), which are copied. It holds up to `items_max`; with 0 a send
 * waits until its item is received. EINVAL: other sizes, or more than 16,777,216 items. From anywhere. */
int kyocho_channel_create(kyocho_channel_t **channel, size_t item_bytes, size_t items_max);
/* Nobody uses it any more. From anywhere. */
int kyocho_channel_destroy(kyocho_channel_t *channel);
/* Nothing goes in any more; what was sent can be received. Who waits is told. From anywhere. */
int kyocho_channel_close(kyocho_channel_t *channel);
/* EPIPE: it is closed. */
int kyocho_channel_send(kyocho_channel_t *channel, const void *item);
/* EPIPE: it is closed, and nothing is left. */
int kyocho_channel_recv(kyocho_channel_t *channel, void *item);
/* EAGAIN: it would have to wait. From anywhere. */
int kyocho_channel_trysend(kyocho_channel_t *channel, const void *item);
int kyocho_channel_tryrecv(kyocho_channel_t *channel, void *item);
/* Until CLOCK_REALTIME reads *deadline. ETIMEDOUT. */
int kyocho_channel_timedsend(kyocho_channel_t *channel, const void *item, const struct timespec *deadline);
int kyocho_channel_timedrecv(kyocho_channel_t *channel, void *item, const struct timespec *deadline);

/* One operation of a select: sends *item, or receives into it. */
typedef struct kyocho_arm {
    kyocho_channel_t *channel;
    void *item;
    int operation;
} kyocho_arm_t;
#define KYOCHO_ARM_SEND 1
#define KYOCHO_ARM_RECV 2
#define KYOCHO_ARMS_MAX 64

/* Waits for the first of 1 to KYOCHO_ARMS_MAX operations that can be done, and does that one alone; *selected is its index. Of several
 * that can be done at once each gets its turn. EPIPE: the channel of the selected one is closed, and nothing is left to receive.
 * EINVAL: another number, operation, or a null pointer. */
int kyocho_select(const kyocho_arm_t *arms, size_t count, size_t *selected);
/* EAGAIN: all would have to wait. From anywhere. */
int kyocho_tryselect(const kyocho_arm_t *arms, size_t count, size_t *selected);
/* Until CLOCK_REALTIME reads *deadline. ETIMEDOUT. */
int kyocho_timedselect(const kyocho_arm_t *arms, size_t count, size_t *selected, const struct timespec *deadline);

/* ---- Gates ------------------------------------------------------------------------------------------------------------ */

/* Calls between programs of this machine, through shared memory; a caller's microprocess waits, and the service runs at its priority.
 * Requests and replies are bytes. */
typedef struct kyocho_gate kyocho_gate_t;
typedef struct kyocho_gate_server kyocho_gate_server_t;
/* The longest request and reply. */
#define KYOCHO_GATE_BYTES_MAX 8064

/* Serves one call, in a microprocess of its own: reads the request, writes the reply, for which there are KYOCHO_GATE_BYTES_MAX bytes, and
 * returns its length; or a negated error number, which the caller gets. Calls come at the same time. */
typedef int64_t (*kyocho_gate_service_t)(void *argument, uint32_t method, const void *request, size_t request_bytes, void *reply);

/* Serves at `path`, which must not exist (EADDRINUSE), until destroyed; processes of the same user may connect. */
int kyocho_gate_serve(kyocho_gate_server_t **server, const char *path, kyocho_gate_service_t service, void *argument);
/* Clients are told that it is gone. Services that run end as they would have: what they use must stay. */
int kyocho_gate_server_destroy(kyocho_gate_server_t *server);

/* ENOENT, ECONNREFUSED: nobody serves there. EACCES: not for this user. EPROTO: it is no gate, or of another version. */
int kyocho_gate_connect(kyocho_gate_t **gate, const char *path);
/* No call may be under way. */
int kyocho_gate_destroy(kyocho_gate_t *gate);
/* The length of the reply, or a negated error number: -EPIPE the server is gone (the call may have been served), -EMSGSIZE request or reply is
 * too long, -EREMOTEIO the service failed, or what the service said. Several microprocesses may call at the same time. */
int64_t kyocho_gate_call(kyocho_gate_t *gate, uint32_t method, const void *request, size_t request_bytes, void *reply, size_t reply_bytes_max);
/* Until CLOCK_REALTIME reads *deadline. -ETIMEDOUT: the call may still be served. */
int64_t kyocho_gate_timedcall(kyocho_gate_t *gate, uint32_t method, const void *request, size_t request_bytes, void *reply,
                              size_t reply_bytes_max, const struct timespec *deadline);

/* ---- Input and output ------------------------------------------------------------------------------------------------- */

/* As the system calls of these names, on descriptors in blocking mode, but holding no kernel thread while they wait (io_uring,
 * where the host has it, which waits on non-blocking ones all the same). The count, or a negated error number: -EBADF, -EPIPE,
 * ... From anywhere: there they are the plain calls. kyocho_send never raises SIGPIPE. */
int64_t kyocho_read(int descriptor, void *buffer, size_t bytes);
int64_t kyocho_write(int descriptor, const void *buffer, size_t bytes);
int64_t kyocho_recv(int socket, void *buffer, size_t bytes, int flags);
int64_t kyocho_send(int socket, const void *buffer, size_t bytes, int flags);
/* The new descriptor, which programs that the process executes do not inherit. `address` and `address_bytes` may be NULL. */
int64_t kyocho_accept(int socket, struct sockaddr *address, uint32_t *address_bytes);
/* 0, or a negated error number. */
int64_t kyocho_connect(int socket, const struct sockaddr *address, uint32_t address_bytes);
/* How many of `count` descriptors are ready, after at most `timeout_ms`, for ever with a negative one. */
int64_t kyocho_poll(struct pollfd *descriptors, size_t count, int timeout_ms);

#ifdef __cplusplus
}
#endif

#endif
