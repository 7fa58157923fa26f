/* What programs check themselves by: one that finds something wrong ends, and says where. */
#include <kyocho-dsm.h>
#include <stdio.h>
#include <stdlib.h>

static void fail(int line, const char *what) {
    char words[200];
    kyocho_dsm_error(words, sizeof words);
    fprintf(stderr, "line %d: %s; the last error: %s\n", line, what, words);
    exit(1);
}

#define CHECK(holds) ((holds) ? (void)0 : fail(__LINE__, #holds))
