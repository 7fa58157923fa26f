/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The paper's ways to test and set, behind one pointer. */
#ifndef METHODS_H
#define METHODS_H

/* By the method that was chosen. 0 if the word was free and is the caller's now. */
extern int (*test_and_set)(volatile int *word);

/* Chooses a method, once in a process, and makes it ready. 0, or -1: there is no such method. */
int method_open(const char *name);
/* Every thread calls it first. */
void method_enter(void);

int syscall_tst(volatile int *word);
int llsc_tst(volatile int *word);

void lamport_open(void);
void lamport_enter(void);
int lamport_tst(volatile int *word);

#endif
