/* Programs in the manner of UnixBench and of paper 2's table 4. `lines LINE COUNT` performs one
 * operation COUNT times, checks it, and prints the nanoseconds of one repetition: real time, then
 * user and system time of this process and its children. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                  \
    do {                                                                  \
        if (!(condition)) {                                               \
            fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #condition); \
            exit(1);                                                      \
        }                                                                 \
    } while (0)

static long count;
static char **words;

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

struct processor {
    double user_ns, system_ns;
};

/* Of this process and of the children that it has waited for. */
static struct processor used(void) {
    struct rusage own, children;
    CHECK(getrusage(RUSAGE_SELF, &own) == 0 && getrusage(RUSAGE_CHILDREN, &children) == 0);
    return (struct processor){
        (own.ru_utime.tv_sec + children.ru_utime.tv_sec) * 1e9 + (own.ru_utime.tv_usec + children.ru_utime.tv_usec) * 1e3,
        (own.ru_stime.tv_sec + children.ru_stime.tv_sec) * 1e9 + (own.ru_stime.tv_usec + children.ru_stime.tv_usec) * 1e3,
    };
}

static void scall(void) {
    pid_t own = getpid();
    for (long i = 0; i < count; i++) CHECK(syscall(SYS_getpid) == own);
}

static void mix(void) {
    for (long i = 0; i < count; i++) {
        int copy = dup(0);
        CHECK(copy > 0 && close(copy) == 0);
        syscall(SYS_getpid);
        syscall(SYS_getuid);
        umask(022);
    }
}

static void pipes(void) {
    char block[512] = {0};
    int ends[2];
    CHECK(pipe(ends) == 0);
    for (long i = 0; i < count; i++)
        CHECK(write(ends[1], block, sizeof block) == sizeof block && read(ends[0], block, sizeof block) == sizeof block);
}

static void context(void) {
    int there[2], back[2], token = 0, status;
    CHECK(pipe(there) == 0 && pipe(back) == 0);
    pid_t other = fork();
    if (other == 0) {
        close(there[1]);
        while (read(there[0], &token, sizeof token) == sizeof token) {
            token++;
            CHECK(write(back[1], &token, sizeof token) == sizeof token);
        }
        _exit(0);
    }
    for (int i = 0; i < count; i++) {
        CHECK(write(there[1], &i, sizeof i) == sizeof i && read(back[0], &token, sizeof token) == sizeof token);
        CHECK(token == i + 1);
    }
    close(there[1]);
    CHECK(waitpid(other, &status, 0) == other && status == 0);
}

static void spawn(void) {
    for (long i = 0; i < count; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) _exit(7);
        CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
    }
}

/* Executes itself. The third argument counts how often, the fourth is the start time. */
static double execl_began(void) {
    char done[24], began[40];
    long times = words[3] ? atol(words[3]) : 0;
    double start_ns = words[3] ? strtod(words[4], 0) : now_ns();
    if (times == count) return start_ns;
    snprintf(done, sizeof done, "%ld", times + 1);
    snprintf(began, sizeof began, "%.0f", start_ns);
    execl(words[0], words[0], words[1], words[2], done, began, (char *)0);
    CHECK(!"execl returns");
    return 0;
}

enum { FILE_BLOCKS = 500 };

static int scratch(const char *name) {
    int file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0 && unlink(name) == 0);
    return file;
}

static void copy(size_t bytes) {
    char *block = malloc(bytes);
    memset(block, 'x', bytes);
    int from = scratch("copy-from"), to = scratch("copy-to");
    for (int i = 0; i < FILE_BLOCKS; i++) CHECK(write(from, block, bytes) == (ssize_t)bytes);
    for (long i = 0; i < count; i++) {
        if (i % FILE_BLOCKS == 0) CHECK(lseek(from, 0, SEEK_SET) == 0 && lseek(to, 0, SEEK_SET) == 0);
        CHECK(read(from, block, bytes) == (ssize_t)bytes && write(to, block, bytes) == (ssize_t)bytes);
    }
}

static void dwrite(void) {
    char block[1024] = {0};
    int file = scratch("dwrite");
    for (long i = 0; i < count; i++) CHECK(pwrite(file, block, sizeof block, i % FILE_BLOCKS * sizeof block) == sizeof block);
}

static void dread(void) {
    char block[1024] = {1};
    int file = scratch("dread");
    for (int i = 0; i < FILE_BLOCKS; i++) CHECK(write(file, block, sizeof block) == sizeof block);
    for (long i = 0; i < count; i++) CHECK(pread(file, block, sizeof block, i % FILE_BLOCKS * sizeof block) == sizeof block);
}

/* Opens files and reads their attributes, as compilers and version control do. */
static void opens(void) {
    struct stat status;
    for (long i = 0; i < count; i++) {
        int file = open("/etc/passwd", O_RDONLY);
        CHECK(file >= 0 && fstat(file, &status) == 0 && close(file) == 0 && stat("/etc/passwd", &status) == 0);
    }
}

static __attribute__((noinline)) long callee(long a, long b, long c) {
    __asm__ volatile("" : "+r"(a));
    return a + b - c;
}

static void fcall(void) {
    long sum = 0;
    for (long i = 0; i < count; i++) sum = callee(sum, 1, 0);
    CHECK(sum == count);
}

/* Assignments around a call, like paper 2's fcalla. */
static void fcalla(void) {
    volatile long a, b, c, sum = 0;
    for (long i = 0; i < count; i++) {
        a = sum;
        b = i;
        c = i - 1;
        sum = callee(a, b, c);
    }
    CHECK(sum == count);
}

static void sieve(void) {
    enum { LAST = 8190 };
    static char crossed[LAST + 1];
    for (long i = 0; i < count; i++) {
        int primes = 0;
        memset(crossed, 0, sizeof crossed);
        for (int n = 2; n <= LAST; n++) {
            if (crossed[n]) continue;
            primes++;
            for (int k = 2 * n; k <= LAST; k += n) crossed[k] = 1;
        }
        CHECK(primes == 1027);
    }
}

/* The operations of Dhrystone: records, strings, branches, integer arithmetic. */
static void records(void) {
    struct record {
        struct record *next;
        int kind, number;
        char text[32];
    } one = {0, 1, 40, "a string of thirty characters"}, two = {&one, 2, 0, ""};
    volatile int different = 0;
    for (long i = 0; i < count; i++) {
        struct record *at = &two;
        memcpy(at->text, at->next->text, sizeof at->text);
        at->text[i & 15] ^= 1;
        different += strcmp(at->text, at->next->text) != 0;
        at->number = at->kind > at->next->kind ? at->next->number * 3 / 7 + (int)(i % 11) : 0;
        at->next->number = at->number % 50 + 1;
    }
    CHECK(different == count);
}

static void sh(void) {
    for (long i = 0; i < count; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            execl("/bin/sh", "sh", words[3], (char *)0);
            _exit(127);
        }
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
}

int main(int given, char **arguments) {
    words = arguments;
    const char *line = given > 2 ? words[1] : "";
    count = given > 2 ? atol(words[2]) : 0;
    double start_ns = now_ns();
    /* A process that executes itself keeps its times: `execl` counts all of them. */
    struct processor start = strcmp(line, "execl") ? used() : (struct processor){0, 0};
    if (!strcmp(line, "scall")) scall();
    else if (!strcmp(line, "mix")) mix();
    else if (!strcmp(line, "pipes")) pipes();
    else if (!strcmp(line, "context")) context();
    else if (!strcmp(line, "spawn")) spawn();
    else if (!strcmp(line, "execl")) start_ns = execl_began();
    else if (!strcmp(line, "copy256")) copy(256);
    else if (!strcmp(line, "copy1024")) copy(1024);
    else if (!strcmp(line, "copy4096")) copy(4096);
    else if (!strcmp(line, "dwrite")) dwrite();
    else if (!strcmp(line, "dread")) dread();
    else if (!strcmp(line, "opens")) opens();
    else if (!strcmp(line, "fcall")) fcall();
    else if (!strcmp(line, "fcalla")) fcalla();
    else if (!strcmp(line, "sieve")) sieve();
    else if (!strcmp(line, "records")) records();
    else if (!strcmp(line, "sh")) sh();
    else {
        fprintf(stderr, "usage: lines LINE COUNT\n");
        return 2;
    }
    double real_ns = now_ns() - start_ns;
    struct processor end = used();
    printf("%.3f %.3f %.3f\n", real_ns / count, (end.user_ns - start.user_ns) / count, (end.system_ns - start.system_ns) / count);
    return 0;
}
