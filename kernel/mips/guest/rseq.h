/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The three operations as Linux's restartable sequences: the kernel sends a
 * sequence back when its thread was preempted or got a signal. On a machine
 * of one CPU "per CPU" excludes everybody. area is the calling thread's.
 */
#ifndef RSEQ_H
#define RSEQ_H

struct rseq;

int rseq_tst_by(struct rseq *area, volatile int *word);
int rseq_cas_by(struct rseq *area, volatile int *word, int expected, int new);
int rseq_fetch_add_by(struct rseq *area, volatile int *word, int increment);

#endif
