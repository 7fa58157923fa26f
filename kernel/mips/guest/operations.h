/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The three operations, by methods that keep their contract and one that does not. */
#ifndef OPERATIONS_H
#define OPERATIONS_H

struct operations {
	const char *name;
	/* 0, or -1 when this machine has not got it. */
	int (*open)(void);
	int (*tst)(volatile int *word);
	int (*cas)(volatile int *word, int expected, int new);
	int (*fetch_add)(volatile int *word, int increment);
};

extern const struct operations page_operations;		/* /dev/tst */
extern const struct operations rseq_operations;		/* Linux's own restartable sequences */
extern const struct operations plain_operations;	/* loads and stores, not atomic */

#endif
