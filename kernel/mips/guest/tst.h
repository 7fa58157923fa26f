/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Test-and-set without ll/sc and without a system call, by /dev/tst.
 *
 * Between threads and processes of one CPU. A word must be aligned: an
 * unaligned one makes every attempt restart, for ever. A word that may not be
 * read and written ends in the signal of an ordinary access.
 */
#ifndef TST_H
#define TST_H

#include "slots.h"

extern char *tst_page;

/* Maps the page; once in a process, children of fork() have it. 0, or -1 and errno. */
int tst_open(void);

/* If *word is 0 it becomes 1. Returns what was there. */
static inline int tst(volatile int *word)
{
	return ((int (*)(volatile int *))(tst_page + TST_SLOT))(word);
}

/* If *word is expected it becomes new. Returns what was there. */
static inline int tst_cas(volatile int *word, int expected, int new)
{
	return ((int (*)(volatile int *, int, int))(tst_page + TST_CAS_SLOT))(word, expected, new);
}

/* *word grows by increment, modulo 2^32. Returns what was there. */
static inline int tst_fetch_add(volatile int *word, int increment)
{
	return ((int (*)(volatile int *, int))(tst_page + TST_FETCH_ADD_SLOT))(word, increment);
}

#endif
