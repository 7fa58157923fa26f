// What the peers written in C and C++ share: arguments, the clock, memory, the result line.
//
// A peer prints one JSON line a workload and exits 1 when its own check fails; what each
// workload measures is written in bench/README.md.
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 128 };
static const uint64_t SPIN_NS = 1000000000;
static const uint64_t NAP_NS = 5000000;
static const uint64_t TICK_NS = 1000000;

static inline void usage(void) {
    fprintf(stderr,
            "usage: PROG spawn_join|address_space|yield|rendezvous|sieve|sieve_messages|semaphores|parked|blocked|"
            "page_fault|preempted|urgent|priorities [ARGS]\n");
    exit(2);
}

static inline size_t number(int argc, char **argv, int at, size_t otherwise) {
    if (at >= argc) return otherwise;
    char *end;
    unsigned long n = strtoul(argv[at], &end, 10);
    if (*end != 0 || n == 0) usage();
    return n;
}

__attribute__((format(printf, 2, 3))) static inline void check(bool holds, const char *complaint, ...) {
    if (holds) return;
    va_list more;
    va_start(more, complaint);
    vfprintf(stderr, complaint, more);
    va_end(more);
    fputc('\n', stderr);
    exit(1);
}

static inline void emit(const char *bench, double value, const char *unit, const char *more) {
    printf("{\"bench\":\"%s\",\"value\":%g,\"unit\":\"%s\",%s}\n", bench, value, unit, more);
}

static inline void unsupported(const char *bench, const char *why) {
    printf("{\"bench\":\"%s\",\"unsupported\":\"%s\"}\n", bench, why);
}

static inline uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Resident memory and its page tables.
static inline size_t memory_bytes(void) {
    FILE *status = fopen("/proc/self/status", "r");
    check(status != NULL, "/proc/self/status cannot be read");
    char line[256];
    size_t kib = 0, n;
    while (fgets(line, sizeof line, status))
        if (sscanf(line, "VmRSS: %zu", &n) == 1 || sscanf(line, "VmPTE: %zu", &n) == 1) kib += n;
    fclose(status);
    return kib * 1024;
}

// Sleeps 10 ms in the kernel by a system call that no runtime sees.
static inline void raw_nanosleep(void) {
    struct timespec request = {0, 10000000};
    syscall(SYS_nanosleep, &request, NULL);
}

// Checks one run of the sieve and prints its line. A number passes one channel a prime up to its
// smallest factor, the end mark passes every channel.
static inline void emit_sieve(const char *bench, size_t limit, uint64_t elapsed_ns, size_t primes, size_t messages) {
    size_t *known = (size_t *)malloc((limit + 1) * sizeof *known), count = 0, sent = 0;
    check(known != NULL, "out of memory");
    for (size_t n = 2; n <= limit; n++) {
        size_t k = 0;
        while (k < count && n % known[k] != 0) k++;
        sent += k + 1;
        if (k == count) known[count++] = n;
    }
    sent += count + 1;
    free(known);
    check(primes == count && messages == sent, "%zu primes, %zu messages; expected %zu and %zu", primes,
          messages, count, sent);
    char more[256];
    snprintf(more, sizeof more,
             "\"args\":[%zu],\"primes\":%zu,\"threads\":%zu,\"messages\":%zu,"
             "\"check\":\"%zu threads, %zu messages\"",
             limit, primes, primes + 1, messages, primes + 1, messages);
    emit(bench, (double)elapsed_ns / 1e6, "ms", more);
}

static inline void emit_semaphores(size_t producers, size_t consumers, uint64_t elapsed_ns,
                                   uint64_t produced, uint64_t consumed, uint64_t items) {
    check(produced == consumed, "produced %lu, consumed %lu", produced, consumed);
    char more[128];
    snprintf(more, sizeof more, "\"args\":[%zu,%zu],\"check\":\"%lu items\"", producers, consumers, items);
    emit("semaphores", (double)items / ((double)elapsed_ns / 1e9) / 1e6, "M items/s", more);
}

static inline void emit_parked(size_t count, size_t before, size_t after) {
    size_t grown = after > before ? after - before : 0;
    char more[128];
    snprintf(more, sizeof more, "\"args\":[%zu],\"total_bytes\":%zu,\"check\":\"%zu threads released\"",
             count, grown, count);
    emit("parked", (double)grown / (double)count, "B", more);
}

static inline void emit_blocked(size_t count, uint64_t elapsed_ns, uint64_t gap_ns, size_t ticks) {
    char more[160];
    snprintf(more, sizeof more,
             "\"args\":[%zu],\"gap_ms\":%g,\"ticks\":%zu,\"check\":\"%zu sleepers joined\"", count,
             (double)gap_ns / 1e6, ticks, count);
    emit("blocked", (double)elapsed_ns / 1e6, "ms", more);
}

static inline int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// ---- page_fault: see report/src/stall.rs

enum { PAGE_BYTES = 4096 };

struct stall {
    char *pages;
    size_t count, seen;
    int descriptor;
    volatile uint64_t began_ns;
    double *samples_us;
};

// Fills each requested page after two milliseconds, on a kernel thread that may use any CPU.
static inline void *fill_late(void *with) {
    struct stall *stall = (struct stall *)with;
    cpu_set_t all;
    memset(&all, -1, sizeof all);
    sched_setaffinity(0, sizeof all, &all);
    struct uffd_msg message;
    while (read(stall->descriptor, &message, sizeof message) > 0) {
        struct timespec late = {0, 2000000};
        nanosleep(&late, NULL);
        struct uffdio_zeropage zero = {{message.arg.pagefault.address & ~(uint64_t)(PAGE_BYTES - 1), PAGE_BYTES}, 0, 0};
        check(ioctl(stall->descriptor, UFFDIO_ZEROPAGE, &zero) == 0, "a page cannot be filled");
    }
    return NULL;
}

// Returns false, with a message, if the host does not permit it.
static inline bool stall_begin(struct stall *stall, size_t count) {
    memset(stall, 0, sizeof *stall);
    stall->count = count;
    stall->samples_us = (double *)calloc(count, sizeof(double));
    stall->descriptor = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    if (stall->descriptor < 0) {
        unsupported("page_fault", "userfaultfd is not permitted here");
        return false;
    }
    size_t bytes = count * PAGE_BYTES;
    stall->pages = (char *)mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(stall->samples_us != NULL && stall->pages != MAP_FAILED, "no memory");
    madvise(stall->pages, bytes, MADV_NOHUGEPAGE);
    struct uffdio_api api = {UFFD_API, 0, 0};
    struct uffdio_register range = {{(uint64_t)(uintptr_t)stall->pages, bytes}, UFFDIO_REGISTER_MODE_MISSING, 0};
    check(ioctl(stall->descriptor, UFFDIO_API, &api) == 0 && ioctl(stall->descriptor, UFFDIO_REGISTER, &range) == 0,
          "userfaultfd does not serve");
    pthread_t thread;
    check(pthread_create(&thread, NULL, fill_late, stall) == 0, "no thread");
    return true;
}

static inline void stall_touch(struct stall *stall, size_t page) {
    stall->began_ns = now_ns();
    check(*(volatile char *)(stall->pages + page * PAGE_BYTES) == 0, "a page that came is zero");
}

// The neighbour runs; whether all faults were seen.
static inline bool stall_see(struct stall *stall) {
    uint64_t began = stall->began_ns;
    if (began != 0) {
        stall->samples_us[stall->seen++] = (double)(now_ns() - began) / 1e3;
        stall->began_ns = 0;
    }
    return stall->seen >= stall->count;
}

static inline void emit_stall(struct stall *stall) {
    check(stall->seen == stall->count, "a fault was not seen");
    qsort(stall->samples_us, stall->count, sizeof(double), by_value);
    char more[160];
    snprintf(more, sizeof more, "\"args\":[%zu],\"p99_us\":%g,\"check\":\"%zu faults\"", stall->count,
             stall->samples_us[(size_t)(0.99 * (double)(stall->count - 1))], stall->count);
    emit("page_fault", stall->samples_us[(stall->count - 1) / 2], "us", more);
}

// By how much naps lasted too long.
static inline void emit_overshoot(const char *bench, double *samples_ms, size_t count, const char *means) {
    check(count > 0, "no nap ended");
    qsort(samples_ms, count, sizeof *samples_ms, by_value);
    size_t p99 = (size_t)(0.99 * (double)count);
    char more[256];
    snprintf(more, sizeof more, "\"p99_ms\":%g,\"samples\":%zu,\"means\":\"%s\",\"check\":\"%zu samples\"",
             samples_ms[p99 < count ? p99 : count - 1], count, means, count);
    emit(bench, samples_ms[count / 2], "ms", more);
}
