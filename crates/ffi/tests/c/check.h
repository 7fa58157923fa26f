/* Helpers of the tests in C. */
#ifndef CHECK_H
#define CHECK_H

#define _DEFAULT_SOURCE

#include <errno.h>
#include <kyocho.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Ends the program with file and line, unless `condition` holds. */
#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);       \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

/* The time `ms` milliseconds from now, by the calendar clock. */
static inline struct timespec after_ms(long ms) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec += ms / 1000;
    now.tv_nsec += ms % 1000 * 1000000;
    if (now.tv_nsec >= 1000000000) {
        now.tv_nsec -= 1000000000;
        now.tv_sec += 1;
    }
    return now;
}

/* Runs start() on one virtual processor, then on two. */
static inline void on_processors(void *(*start)(void *)) {
    unsigned count;
    for (count = 1; count <= 2; count += 1) {
        void *result = NULL;
        CHECK(kyocho_run(count, NULL, start, NULL, &result) == 0);
        CHECK(result == NULL);
    }
}

#endif
