/* Asks for a process's number in every way and in every kind of process. Each process must get its
 * own number, although answers are cached. Prints `rewritten` or `native`, then `held`. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Asks the host in any case: no pattern matches this code. */
static long host(long number) {
    long answer;
    __asm__ volatile("syscall" : "=a"(answer) : "a"(number) : "rcx", "r11", "memory");
    return answer;
}

static void check(const char *where) {
    for (int i = 0; i < 3; i++) {
        long own = host(SYS_getpid);
        if (getpid() != own || syscall(SYS_getpid) != own) {
            printf("%s: %d instead of %ld\n", where, getpid(), own);
            fflush(stdout);
            _exit(9);
        }
    }
}

static void must_end_well(const char *who, pid_t child) {
    int status = -1;
    if (child < 0 || waitpid(child, &status, 0) != child || status) {
        printf("%s: %d, status %x, %s\n", who, child, status, strerror(errno));
        exit(1);
    }
}

static int body(void *where) {
    check(where);
    return 0;
}

static void owners(void) {
    if (getuid() != host(SYS_getuid) || geteuid() != host(SYS_geteuid) || getgid() != host(SYS_getgid) || getegid() != host(SYS_getegid)) exit(2);
    if (syscall(SYS_getuid) != host(SYS_getuid) || syscall(SYS_geteuid) != host(SYS_geteuid)) exit(2);
    if (syscall(SYS_getgid) != host(SYS_getgid) || syscall(SYS_getegid) != host(SYS_getegid)) exit(2);
    /* Calls with six arguments are passed on unchanged, the last one from the stack. */
    char *page = (char *)syscall(SYS_mmap, 0L, 4096L, 3L, 0x22L, -1L, 0L);
    if (page == (void *)-1) exit(2);
    *page = 1;
    if (syscall(SYS_mmap, 0L, 4096L, 3L, 0x22L, -1L, 1L) != -1 || errno != EINVAL) exit(2);
}

static void forks(void) {
    pid_t child = fork();
    if (child == 0) {
        check("fork");
        pid_t second = fork();
        if (second == 0) {
            check("fork of a fork");
            _exit(0);
        }
        must_end_well("fork of a fork", second);
        check("fork again");
        _exit(0);
    }
    must_end_well("fork", child);
    child = syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
    if (child == 0) {
        check("clone by its number");
        _exit(0);
    }
    must_end_well("clone by its number", child);
    check("behind fork");
}

/* Children that share their parent's memory, made by the C library. */
static void vforks(void) {
    char *stack = malloc(65536);
    for (int i = 0; i < 3; i++) {
        pid_t child = vfork();
        if (child == 0) {
            check("vfork");
            _exit(0);
        }
        must_end_well("vfork", child);
        check("behind vfork");
        must_end_well("clone", clone(body, stack + 65536, CLONE_VM | CLONE_VFORK | SIGCHLD, "clone"));
        check("behind clone");
    }
    char *words[] = {"true", 0};
    pid_t child;
    if (posix_spawnp(&child, "true", 0, 0, words, 0)) exit(3);
    must_end_well("posix_spawn", child);
    child = vfork();
    if (child == 0) {
        execv("/nowhere", words);
        check("execv that fails");
        execvp("true", words);
        _exit(1);
    }
    must_end_well("execvp", child);
    check("behind execvp");
}

/* A child that shares it without the C library's knowledge, and one that runs concurrently. */
static void strangers(void) {
    long child = host(SYS_vfork);
    if (child == 0) {
        check("vfork of its own");
        _exit(0);
    }
    must_end_well("vfork of its own", child);
    check("behind a vfork of its own");
    child = clone(body, (char *)malloc(65536) + 65536, CLONE_VM | SIGCHLD, "clone beside");
    for (int i = 0; i < 1000; i++) check("beside a clone");
    must_end_well("clone beside", child);
    child = fork();
    if (child == 0) {
        check("fork behind that");
        _exit(0);
    }
    must_end_well("fork behind that", child);
}

static void *thread(void *unused) {
    for (int i = 0; i < 1000; i++) check("thread");
    pid_t child = fork();
    if (child == 0) {
        check("fork of a thread");
        _exit(0);
    }
    must_end_well("fork of a thread", child);
    child = vfork();
    if (child == 0) {
        check("vfork of a thread");
        _exit(0);
    }
    must_end_well("vfork of a thread", child);
    return 0;
}

static volatile int steps, fork_at, is_child;

static void at_a_step(int signal) {
    if (steps++ != fork_at) return;
    pid_t child = fork();
    if (child == 0) is_child = 1;
    else must_end_well("fork at a step", child);
}

/* A handler forks at each instruction of an answer in turn, and returns in both processes. */
static void steps_of_an_answer(void) {
    struct sigaction action = {.sa_handler = at_a_step};
    sigaction(SIGTRAP, &action, 0);
    for (fork_at = 0, steps = 1; fork_at < steps; fork_at++) {
        int ends[2];
        if (pipe(ends)) exit(4);
        pid_t asking = fork();
        if (asking == 0) {
            /* Nothing is cached yet. */
            steps = 0;
            __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
            getpid();
            __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
            check(is_child ? "fork at a step" : "around a fork");
            int taken = steps;
            if (!is_child && write(ends[1], &taken, sizeof taken) != sizeof taken) _exit(1);
            _exit(0);
        }
        must_end_well("a program of steps", asking);
        int taken;
        if (read(ends[0], &taken, sizeof taken) != sizeof taken) exit(4);
        steps = taken;
        close(ends[0]);
        close(ends[1]);
    }
    if (steps < 5) exit(5);
}

int main(void) {
    puts(*(unsigned char *)getpid == 0xb9 ? "rewritten" : "native");
    fflush(stdout);
    check("first");
    owners();
    forks();
    vforks();
    steps_of_an_answer();
    pthread_t other;
    pthread_create(&other, 0, thread, 0);
    thread(0);
    pthread_join(other, 0);
    strangers();
    puts("held");
}
