/* Ways out of an instance that are not there: memory below the guard, other processes' clocks, running programs, inherited descriptors, terminals. */
#define _GNU_SOURCE
#include "attack.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define BASE 0x10000ul
#define GUARD 0x200000ul

static int is_below_guard(void *page) { return (unsigned long)page >= BASE && (unsigned long)page < GUARD; }

/* Whether any byte between the launcher's first page and the guard is free, by the host's own list. */
static void must_be_full(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    unsigned long at = BASE, from, to;
    while (at < GUARD && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx", &from, &to) != 2 || to <= at) continue;
        if (from > at) {
            printf("free below the guard: %lx-%lx\n", at, from < GUARD ? from : GUARD);
            exit(1);
        }
        at = to;
    }
    fclose(maps);
}

/* Maps by a hint, by a move with a hint, and by leaving no room elsewhere. */
static void below_guard(void) {
    const int readable = PROT_READ | PROT_WRITE | PROT_EXEC, anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
    for (unsigned long hint = 4096; hint < GUARD; hint += 4096) {
        void *page = mmap((void *)hint, 4096, readable, anonymous, -1, 0);
        MUST(page != MAP_FAILED);
        if (is_below_guard(page)) {
            printf("mapped at %p by a hint\n", page);
            exit(1);
        }
        munmap(page, 4096);
    }
    for (unsigned long hint = 4096; hint < GUARD; hint += 4096) {
        void *page = mmap(0, 4096, readable, anonymous, -1, 0);
        errno = 0;
        void *moved = mremap(page, 4096, 4096, MREMAP_MAYMOVE | 4 /* MREMAP_DONTUNMAP */, hint);
        if (moved == MAP_FAILED && errno == EINVAL) {
            munmap(page, 4096);
            continue;
        }
        if (is_below_guard(moved)) {
            printf("moved to %p by a hint\n", moved);
            exit(1);
        }
        munmap(page, 4096), munmap(moved, 4096);
    }
    void *low = mmap(0, 4096, readable, anonymous | MAP_32BIT, -1, 0);
    MUST(low != MAP_FAILED && (unsigned long)low >= GUARD);
    must_be_full();
    /* All that is free elsewhere, in ever smaller pieces: the last ones would come to lie below. */
    for (unsigned long bytes = 1ul << 46; bytes >= 4096; bytes >>= 1) {
        void *piece;
        while ((piece = mmap(0, bytes, PROT_NONE, anonymous | MAP_NORESERVE, -1, 0)) != MAP_FAILED)
            if (is_below_guard(piece)) {
                printf("mapped at %p for want of room\n", piece);
                exit(1);
            }
    }
}

/* Numbers of processes that are not the instance's: of the one that started it, of its own server's, and of the host's first. */
static void strangers_numbers(void) {
    pid_t others[] = {getppid(), atoi(getenv("KYOCHO_TEST_PARENT")), 1};
    struct timespec time;
    cpu_set_t set;
    struct sched_param parameter;
    char attributes[64];
    for (int i = 0; i < 3; i++) {
        int of_process = ~others[i] << 3 | 2, of_thread = of_process | 4;
        timer_t timer;
        REFUSED_AS(EINVAL, syscall(SYS_clock_gettime, of_process, &time));
        REFUSED_AS(EINVAL, syscall(SYS_clock_gettime, of_process & ~2, &time));
        REFUSED_AS(EINVAL, syscall(SYS_clock_gettime, of_thread, &time));
        REFUSED_AS(EINVAL, syscall(SYS_clock_getres, of_process, &time));
        REFUSED_AS(EINVAL, syscall(SYS_timer_create, of_process, 0, &timer));
        time = (struct timespec){0, 1};
        REFUSED_AS(EINVAL, syscall(SYS_clock_nanosleep, of_process, 0, &time, 0));
        REFUSED_AS(ESRCH, syscall(SYS_sched_getaffinity, others[i], sizeof set, &set));
        REFUSED_AS(ESRCH, syscall(SYS_sched_getscheduler, others[i]));
        REFUSED_AS(ESRCH, syscall(SYS_sched_getparam, others[i], &parameter));
        REFUSED_AS(ESRCH, syscall(SYS_sched_getattr, others[i], attributes, sizeof attributes, 0));
        REFUSED_AS(ESRCH, syscall(SYS_sched_rr_get_interval, others[i], &time));
        REFUSED_AS(ESRCH, getpriority(PRIO_PROCESS, others[i]));
        REFUSED_AS(ESRCH, getpgid(others[i]));
        REFUSED_AS(ESRCH, getsid(others[i]));
    }
    REFUSED_AS(EINVAL, syscall(SYS_clock_gettime, ~0 << 3 | 3, &time));
    /* Its own, and its child's. */
    int ends[2];
    char byte;
    MUST(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        while (clock() < CLOCKS_PER_SEC / 100) {
        }
        write(ends[1], "x", 1);
        for (;;) pause();
    }
    MUST(read(ends[0], &byte, 1) == 1);
    clockid_t clock;
    MUST(clock_getcpuclockid(child, &clock) == 0 && clock_gettime(clock, &time) == 0 && time.tv_nsec + time.tv_sec > 0);
    MUST(getpgid(child) == getpgrp() && getsid(child) == getsid(0) && sched_getaffinity(child, sizeof set, &set) == 0);
    MUST(sched_getscheduler(child) == SCHED_OTHER && getpriority(PRIO_PROCESS, child) == getpriority(PRIO_PROCESS, 0));
    MUST(getpgid(getpid()) == getpgrp() && getsid(getpid()) >= 0 && sched_getaffinity(getpid(), sizeof set, &set) == 0);
    MUST(pthread_getcpuclockid(pthread_self(), &clock) == 0 && clock_gettime(clock, &time) == 0);
    MUST(clock_getcpuclockid(0, &clock) == 0 && clock_gettime(clock, &time) == 0);
    kill(child, SIGKILL);
    waitpid(child, 0, 0);
}

static void must_be_busy(const char *path) {
    REFUSED_AS(ETXTBSY, open(path, O_WRONLY));
    REFUSED_AS(ETXTBSY, open(path, O_RDWR));
    REFUSED_AS(ETXTBSY, open(path, O_RDONLY | O_TRUNC));
    REFUSED_AS(ETXTBSY, open(path, O_WRONLY | O_TRUNC | O_CREAT, 0700));
    REFUSED_AS(ETXTBSY, creat(path, 0700));
    REFUSED_AS(ETXTBSY, truncate(path, 0));
    MUST(access(path, R_OK | W_OK | X_OK) == 0);
    int file = open(path, O_RDONLY);
    MUST(file >= 0);
    char shown[64];
    snprintf(shown, sizeof shown, "/proc/self/fd/%d", file);
    REFUSED_AS(ETXTBSY, open(shown, O_WRONLY));
    REFUSED_AS(ETXTBSY, truncate(shown, 0));
    close(file);
}

static int status_of(char **words) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        execv(words[0], words);
        _exit(100 + errno % 100);
    }
    MUST(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* This program's own file cannot be written while it runs, by whatever name; it can be replaced. */
static void own_program(char *path) {
    char link_path[512], symbolic[512], other[512];
    snprintf(link_path, sizeof link_path, "%s.link", path);
    snprintf(symbolic, sizeof symbolic, "%s.symbolic", path);
    snprintf(other, sizeof other, "%s.other", path);
    MUST(link(path, link_path) == 0 && symlink(link_path, symbolic) == 0);
    must_be_busy(path);
    must_be_busy(link_path);
    must_be_busy(symbolic);
    must_be_busy("/proc/self/exe");
    /* While children run it, which were made by fork, by threads' calls, by vfork. */
    int ends[2];
    char byte;
    MUST(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        must_be_busy(path);
        char *words[] = {"/bin/sh", "-c", "read line; exit 0", 0};
        dup2(ends[0], 0), close(ends[1]);
        execv(words[0], words);
    }
    close(ends[0]);
    must_be_busy(path);
    close(ends[1]);
    MUST(waitpid(child, 0, 0) == child);
    /* A copy: while it runs, and no longer. */
    char *copying[] = {"/bin/cp", path, other, 0}, *waiting[] = {other, "wait", 0};
    MUST(status_of(copying) == 0);
    int file = open(other, O_WRONLY);
    MUST(file >= 0);
    MUST(status_of(waiting) == 100 + ETXTBSY);
    close(file);
    MUST(pipe(ends) == 0);
    int told[2];
    MUST(pipe(told) == 0);
    if ((child = fork()) == 0) {
        dup2(ends[0], 0), dup2(told[1], 1);
        close(ends[1]), close(told[0]);
        execv(other, waiting);
    }
    MUST(read(told[0], &byte, 1) == 1);
    must_be_busy(other);
    MUST(rename(other, symbolic) == 0);
    must_be_busy(symbolic);
    close(ends[0]), close(ends[1]);
    MUST(waitpid(child, 0, 0) == child);
    MUST((file = open(symbolic, O_WRONLY | O_TRUNC)) >= 0);
    close(file);
    MUST(unlink(symbolic) == 0 && unlink(link_path) == 0 && chmod(path, 0711) == 0);
}

/* Says that it runs, until its standard input ends. */
static void wait_for_end(void) {
    char byte;
    write(1, "x", 1);
    while (read(0, &byte, 1) > 0) {
    }
    _exit(0);
}

int main(int count, char **words) {
    const char *attack = words[1];
    if (!strcmp(attack, "below-guard")) below_guard();
    else if (!strcmp(attack, "strangers-numbers")) strangers_numbers();
    else if (!strcmp(attack, "own-program")) own_program(words[0]);
    else if (!strcmp(attack, "wait")) wait_for_end();
    else return 2;
    puts("held");
    return 0;
}
