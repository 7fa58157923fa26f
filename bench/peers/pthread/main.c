// The thread workloads on kernel threads (pthread), pinned to one CPU.
#define _GNU_SOURCE
#include "../report.h"
#include "channel.h"
#include "space.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/resource.h>

typedef void *body(void *);

static pthread_t spawn(body *run, void *with) {
    static pthread_attr_t attributes;
    static bool ready;
    if (!ready) {
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, 64 * 1024);
        ready = true;
    }
    pthread_t thread;
    int error = pthread_create(&thread, &attributes, run, with);
    check(error == 0, "pthread_create: %s", strerror(error));
    return thread;
}

static void join(pthread_t thread) { pthread_join(thread, NULL); }

// Repeats an interrupted wait.
static void down(sem_t *semaphore) {
    while (sem_wait(semaphore) != 0 && errno == EINTR) {}
}

// ---- spawn_join

static size_t ran;

static void *count_itself(void *with) {
    (void)with;
    ran++;
    return NULL;
}

static void spawn_join(size_t iters) {
    for (size_t i = 0; i < iters / 10; i++) join(spawn(count_itself, NULL));
    ran = 0;
    uint64_t start = now_ns();
    for (size_t i = 0; i < iters; i++) join(spawn(count_itself, NULL));
    uint64_t elapsed = now_ns() - start;
    check(ran == iters, "%zu of %zu threads ran", ran, iters);
    char more[64];
    snprintf(more, sizeof more, "\"check\":\"%zu threads ran\"", ran);
    emit("spawn_join", (double)elapsed / (double)iters, "ns", more);
}

// ---- yield

static atomic_size_t last, turns;
static size_t yields_each;

static void *yield_often(void *with) {
    size_t me = (size_t)with;
    for (size_t i = 0; i < yields_each; i++) {
        if (atomic_load_explicit(&last, memory_order_relaxed) != me) {
            atomic_store_explicit(&last, me, memory_order_relaxed);
            atomic_fetch_add_explicit(&turns, 1, memory_order_relaxed);
        }
        sched_yield();
    }
    return NULL;
}

static void yield_two(size_t each) {
    yields_each = each;
    pthread_t first = spawn(yield_often, (void *)1), second = spawn(yield_often, (void *)2);
    join(first);
    join(second);
}

static void yield(size_t iters) {
    yield_two(iters / 10);
    turns = 0;
    uint64_t start = now_ns();
    yield_two(iters);
    uint64_t elapsed = now_ns() - start;
    char more[96];
    snprintf(more, sizeof more, "\"turns_per_yield\":%g,\"check\":\"%zu turns\"",
             (double)turns / (double)(2 * iters), (size_t)turns);
    emit("yield", (double)elapsed / (double)(2 * iters), "ns", more);
}

// ---- rendezvous

static channel *there, *back;

static void *echo(void *rounds) {
    for (size_t i = 0; i < (size_t)rounds; i++) send_to(back, receive(there) + 1);
    return NULL;
}

static void rendezvous(size_t iters) {
    as_messages = true;
    there = new_channel();
    back = new_channel();
    pthread_t other = spawn(echo, (void *)(iters / 10 + iters));
    size_t n = 0, counts[] = {iters / 10, iters};
    uint64_t elapsed = 0;
    for (int round = 0; round < 2; round++) {
        n = 0;
        uint64_t start = now_ns();
        for (size_t i = 0; i < counts[round]; i++) {
            send_to(there, n);
            n = receive(back);
        }
        elapsed = now_ns() - start;
    }
    join(other);
    check(n == iters, "the echo counted to %zu, not %zu", n, iters);
    char more[64];
    snprintf(more, sizeof more, "\"check\":\"%zu round trips\"", n);
    emit("rendezvous", (double)elapsed / (double)iters, "ns", more);
}

// ---- sieve: one source, one filter a prime; the caller receives the primes. 0 ends a stream

static atomic_size_t messages;
static size_t sieve_limit;

static void send_counted(channel *to, size_t n) {
    atomic_fetch_add_explicit(&messages, 1, memory_order_relaxed);
    send_to(to, n);
}

static void *source(void *with) {
    channel *to = with;
    for (size_t n = 2; n <= sieve_limit; n++) send_counted(to, n);
    send_counted(to, 0);
    return NULL;
}

typedef struct {
    channel *from, *to;
    size_t prime;
} filter;

static void *pass_on(void *with) {
    filter *me = with;
    for (;;) {
        size_t n = receive(me->from);
        if (n == 0 || n % me->prime != 0) send_counted(me->to, n);
        if (n == 0) return NULL;
    }
}

static size_t sieve_run(size_t limit) {
    pthread_t *threads = allocate(limit + 1, sizeof *threads);
    filter *filters = allocate(limit + 1, sizeof *filters);
    size_t primes = 0, prime;
    messages = 0;
    sieve_limit = limit;
    channel *first = new_channel(), *from = first;
    threads[0] = spawn(source, first);
    while ((prime = receive(from)) != 0) {
        filter *made = &filters[primes++];
        *made = (filter){from, new_channel(), prime};
        from = made->to;
        threads[primes] = spawn(pass_on, made);
    }
    for (size_t i = 0; i <= primes; i++) join(threads[i]);
    for (size_t i = 0; i < primes; i++) free(filters[i].to);
    free(first);
    free(filters);
    free(threads);
    return primes;
}

static void sieve(const char *bench, size_t limit) {
    as_messages = strcmp(bench, "sieve_messages") == 0;
    sieve_run(limit);
    uint64_t start = now_ns();
    size_t primes = sieve_run(limit);
    emit_sieve(bench, limit, now_ns() - start, primes, messages);
}

// ---- semaphores: a bounded buffer

static struct {
    sem_t empty, full;
    pthread_mutex_t guard;
    uint64_t ring[SLOTS], head, tail;
    size_t producers;
    uint64_t start, limit_ns;
    atomic_bool stop;
    atomic_ulong produced, consumed, items;
} buffer = {.guard = PTHREAD_MUTEX_INITIALIZER};

static void put(uint64_t item) {
    down(&buffer.empty);
    pthread_mutex_lock(&buffer.guard);
    buffer.ring[buffer.head++ % SLOTS] = item;
    pthread_mutex_unlock(&buffer.guard);
    sem_post(&buffer.full);
}

static uint64_t get(void) {
    down(&buffer.full);
    pthread_mutex_lock(&buffer.guard);
    uint64_t item = buffer.ring[buffer.tail++ % SLOTS];
    pthread_mutex_unlock(&buffer.guard);
    sem_post(&buffer.empty);
    return item;
}

static void *produce(void *first) {
    uint64_t item = (uint64_t)first, sum = 0;
    for (size_t n = 1; !buffer.stop; n++) {
        put(item);
        sum += item;
        item += buffer.producers;
        if (n % 64 == 0 && now_ns() - buffer.start >= buffer.limit_ns) buffer.stop = true;
    }
    buffer.produced += sum;
    return NULL;
}

static void *consume(void *with) {
    (void)with;
    uint64_t sum = 0, count = 0, item;
    while ((item = get()) != 0) {
        sum += item;
        count++;
    }
    buffer.consumed += sum;
    buffer.items += count;
    return NULL;
}

static void semaphores(size_t producers, size_t consumers, size_t limit_ms) {
    sem_init(&buffer.empty, 0, SLOTS);
    sem_init(&buffer.full, 0, 0);
    buffer.producers = producers;
    buffer.limit_ns = limit_ms * 1000000;
    pthread_t *makers = allocate(producers, sizeof *makers), *takers = allocate(consumers, sizeof *takers);
    buffer.start = now_ns();
    for (size_t i = 0; i < producers; i++) makers[i] = spawn(produce, (void *)(i + 1));
    for (size_t i = 0; i < consumers; i++) takers[i] = spawn(consume, NULL);
    for (size_t i = 0; i < producers; i++) join(makers[i]);
    for (size_t i = 0; i < consumers; i++) put(0);
    for (size_t i = 0; i < consumers; i++) join(takers[i]);
    emit_semaphores(producers, consumers, now_ns() - buffer.start, buffer.produced, buffer.consumed,
                    buffer.items);
    free(makers);
    free(takers);
}

// ---- parked

static sem_t gate, waiting;

static void *wait_at_gate(void *with) {
    (void)with;
    sem_post(&waiting);
    down(&gate);
    return NULL;
}

// The kernel's own stacks (16 KiB a thread) are not in the resident memory of the process.
static void parked(size_t count) {
    sem_init(&gate, 0, 0);
    sem_init(&waiting, 0, 0);
    size_t before = memory_bytes();
    pthread_t *threads = allocate(count, sizeof *threads);
    for (size_t i = 0; i < count; i++) threads[i] = spawn(wait_at_gate, NULL);
    for (size_t i = 0; i < count; i++) down(&waiting);
    size_t after = memory_bytes();
    for (size_t i = 0; i < count; i++) sem_post(&gate);
    for (size_t i = 0; i < count; i++) join(threads[i]);
    emit_parked(count, before, after);
}

// ---- blocked

static void *sleep_raw(void *with) {
    (void)with;
    raw_nanosleep();
    return NULL;
}

static atomic_bool stop;
static uint64_t gap_ns;
static size_t ticks;

static void nap(uint64_t ns) {
    struct timespec request = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &request, NULL);
}

static void *tick(void *with) {
    uint64_t before = now_ns();
    sem_post(with);
    while (!stop) {
        nap(TICK_NS);
        uint64_t now = now_ns();
        if (now - before > gap_ns) gap_ns = now - before;
        before = now;
        ticks++;
    }
    return NULL;
}

static void blocked(size_t count) {
    sem_t started;
    sem_init(&started, 0, 0);
    pthread_t ticker = spawn(tick, &started);
    down(&started);
    pthread_t *threads = allocate(count, sizeof *threads);
    uint64_t start = now_ns();
    for (size_t i = 0; i < count; i++) threads[i] = spawn(sleep_raw, NULL);
    for (size_t i = 0; i < count; i++) join(threads[i]);
    uint64_t elapsed = now_ns() - start;
    stop = true;
    join(ticker);
    free(threads);
    emit_blocked(count, elapsed, gap_ns, ticks);
}

// ---- page_fault

static void *see_all(void *with) {
    while (!stall_see(with)) sched_yield();
    return NULL;
}

static void page_fault(size_t pages) {
    static struct stall stall;
    if (!stall_begin(&stall, pages)) return;
    pthread_t neighbour = spawn(see_all, &stall);
    for (size_t page = 0; page < pages; page++) {
        stall_touch(&stall, page);
        while (stall.began_ns != 0) sched_yield();
    }
    join(neighbour);
    emit_stall(&stall);
}

// ---- preempted, urgent

static atomic_ulong spins;

static void *spin(void *with) {
    (void)with;
    uint64_t start = now_ns();
    while (!stop && now_ns() - start < SPIN_NS) spins++;
    stop = true;
    return NULL;
}

static void overshoot(const char *bench, size_t samples, const char *means) {
    double *overshoot_ms = allocate(samples, sizeof *overshoot_ms);
    pthread_t hog = spawn(spin, NULL);
    size_t count = 0;
    while (count < samples && !stop) {
        uint64_t before = now_ns();
        nap(NAP_NS);
        overshoot_ms[count++] = (double)(now_ns() - before - NAP_NS) / 1e6;
    }
    stop = true;
    join(hog);
    emit_overshoot(bench, overshoot_ms, count, means);
    free(overshoot_ms);
}

// The sleeper gets a real-time class if that is permitted. The loop must not inherit it.
static void urgent(size_t samples) {
    struct sched_param fifo = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &fifo) == 0)
        overshoot("urgent", samples, "SCHED_FIFO");
    else if (setpriority(PRIO_PROCESS, 0, -20) == 0)
        unsupported("urgent", "a nice value passes to the threads that are created");
    else
        unsupported("urgent", "raising a priority is not permitted here");
}

static uint64_t cpu_ns(void) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

// Two processes on one CPU, of which one should win: see bench/peers/report/src/contest.rs. The
// other takes nice value 19, which needs no permission. A stock kernel offers no more, and the
// process cannot return to a lower value.
static void priorities(size_t ms) {
    uint64_t start = now_ns() + 500000000, end = start + ms * 1000000u;
    double used[2];
    int pipes[2][2];
    for (int is_other = 0; is_other < 2; is_other++) {
        check(pipe(pipes[is_other]) == 0, "pipe: %s", strerror(errno));
        pid_t half = fork();
        check(half >= 0, "fork: %s", strerror(errno));
        if (half > 0) continue;
        if (is_other) check(setpriority(PRIO_PROCESS, 0, 19) == 0, "setpriority: %s", strerror(errno));
        while (now_ns() < start) {}
        uint64_t before = cpu_ns();
        while (now_ns() < end) {}
        double ns = (double)(cpu_ns() - before);
        _exit(write(pipes[is_other][1], &ns, sizeof ns) == sizeof ns ? 0 : 1);
    }
    for (int i = 0; i < 2; i++)
        check(read(pipes[i][0], &used[i], sizeof used[i]) == sizeof used[i], "a half fails");
    char more[96];
    snprintf(more, sizeof more, "\"check\":\"%.3f s and %.3f s of processor time\"", used[0] / 1e9, used[1] / 1e9);
    emit("priorities", 100 * used[0] / (used[0] + used[1]), "%", more);
}

static void pin_to_this_cpu(void) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    check(sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity: %s", strerror(errno));
}

int main(int argc, char **argv) {
    if (argc < 2) usage();
    const char *bench = argv[1];
    pin_to_this_cpu();
    if (strcmp(bench, "spawn_join") == 0) spawn_join(number(argc, argv, 2, 20000));
    else if (strcmp(bench, "yield") == 0) yield(number(argc, argv, 2, 200000));
    else if (strcmp(bench, "rendezvous") == 0) rendezvous(number(argc, argv, 2, 50000));
    else if (strcmp(bench, "sieve") == 0 || strcmp(bench, "sieve_messages") == 0)
        sieve(bench, number(argc, argv, 2, 700));
    else if (strcmp(bench, "address_space") == 0) address_space(argv[0], number(argc, argv, 2, 2000));
    else if (strcmp(bench, "semaphores") == 0)
        semaphores(number(argc, argv, 2, 2), number(argc, argv, 3, 2), number(argc, argv, 4, 500));
    else if (strcmp(bench, "parked") == 0) parked(number(argc, argv, 2, 10000));
    else if (strcmp(bench, "blocked") == 0) blocked(number(argc, argv, 2, 1000));
    else if (strcmp(bench, "page_fault") == 0) page_fault(number(argc, argv, 2, 200));
    else if (strcmp(bench, "preempted") == 0)
        overshoot("preempted", number(argc, argv, 2, 100), "SCHED_OTHER");
    else if (strcmp(bench, "urgent") == 0) urgent(number(argc, argv, 2, 100));
    else if (strcmp(bench, "priorities") == 0) priorities(number(argc, argv, 2, 3000));
    else if (strcmp(bench, "priorities_alone") == 0) unsupported(bench, "all it has is the host's");
    else if (strcmp(bench, "priorities_plain") == 0) unsupported(bench, "who may not be raised is as plain as the other");
    else if (strcmp(bench, "version") == 0) printf("pthread\n");
    else usage();
}
