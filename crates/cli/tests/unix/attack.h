/* Shared code of programs that attack the UNIX server from inside. Each prints `held` if every
 * attempt failed with the expected error. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A call that must fail. */
#define REFUSED(call)                                                     \
    do {                                                                  \
        errno = 0;                                                        \
        if ((long)(call) != -1) {                                         \
            printf("line %d: %s succeeded\n", __LINE__, #call);           \
            exit(1);                                                      \
        }                                                                 \
    } while (0)

/* A call that must fail with this error. */
#define REFUSED_AS(error, call)                                           \
    do {                                                                  \
        REFUSED(call);                                                    \
        if (errno != (error)) {                                           \
            printf("line %d: %s: %s\n", __LINE__, #call, strerror(errno)); \
            exit(1);                                                      \
        }                                                                 \
    } while (0)

/* A condition that must hold, of calls that must succeed. */
#define MUST(condition)                                                             \
    do {                                                                            \
        errno = 0;                                                                  \
        if (!(condition)) {                                                         \
            printf("line %d: not %s: %s\n", __LINE__, #condition, strerror(errno)); \
            exit(1);                                                                \
        }                                                                           \
    } while (0)
