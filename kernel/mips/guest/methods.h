/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The paper's ways to test and set, behind one pointer each. */
#ifndef METHODS_H
#define METHODS_H

struct method {
	const char *name;
	int (*tst)(volatile int *word);
};

/* Makes everything ready for that many threads. NULL: there is no such method. */
const struct method *method_open(const char *name, int threads);
/* Every thread calls it first, with a number of its own from 0. */
void method_enter(int thread);

int syscall_tst(volatile int *word);
int llsc_tst(volatile int *word);

void lamport_open(int threads);
void lamport_enter(int thread);
int lamport_tst(volatile int *word);

#endif
