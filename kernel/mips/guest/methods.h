/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The paper's ways to test and set, behind one pointer. */
#ifndef METHODS_H
#define METHODS_H

/* By the method that was chosen. 0 if the word was free and is the caller's now. */
extern int (*test_and_set)(volatile int *word);

/* Chooses a method, once in a process, and makes it ready for that many threads. 0, or -1: there is no such method. */
int method_open(const char *name, int threads);
/* Every thread calls it first, with a number of its own from 0. */
void method_enter(int thread);

int syscall_tst(volatile int *word);
int llsc_tst(volatile int *word);

void lamport_open(int threads);
void lamport_enter(int thread);
int lamport_tst(volatile int *word);

#endif
