// The workload `address_space`: a new address space with one thread, which ends. Its program is
// child.c.
#pragma once

#include "../report.h"

#include <errno.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

// Starts the program with a number, and waits. The child's status must be what it makes of that.
static void visit_space(char *program, size_t round) {
    char word[24];
    snprintf(word, sizeof word, "%zu", round);
    char *arguments[] = {program, word, NULL};
    pid_t child;
    int status, error = posix_spawn(&child, program, NULL, NULL, arguments, environ);
    check(error == 0, "posix_spawn of %s: %s", program, strerror(error));
    check(waitpid(child, &status, 0) == child, "waitpid: %s", strerror(errno));
    int expected = (int)(round * 7 % 101 + 3);
    check(WIFEXITED(status) && WEXITSTATUS(status) == expected, "round %zu ended with %#x, not status %d", round,
          status, expected);
}

static void address_space(const char *self, size_t iters) {
    char program[4096];
    int length = snprintf(program, sizeof program, "%s-child", self);
    check(length > 0 && (size_t)length < sizeof program, "the path is too long");
    for (size_t i = 0; i < iters / 10; i++) visit_space(program, i);
    uint64_t start = now_ns();
    for (size_t i = 0; i < iters; i++) visit_space(program, i);
    uint64_t elapsed = now_ns() - start;
    char more[64];
    snprintf(more, sizeof more, "\"check\":\"%zu address spaces ended\"", iters);
    emit("address_space", (double)elapsed / 1e3 / (double)iters, "us", more);
}
