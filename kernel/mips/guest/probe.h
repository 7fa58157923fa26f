/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Puts exceptions at chosen places, and reads k1 after them (probe.S). */
#ifndef PROBE_H
#define PROBE_H

#define ACCESS_MAGIC	(-4)

/* What k1 holds before the exception; what a slot's result register holds. */
#define PROBE_K1	0x1234
#define PROBE_RESULT	0x5a5a

#ifndef __ASSEMBLER__
/* k1 after one instruction that began with PROBE_K1 in k1. */
int k1_after_nothing(void);
int k1_after_load(volatile int *word);
int k1_after_store(volatile int *word);
int k1_after_unaligned_load(volatile int *word);
int k1_after_system_call(void);
/* Spins until k1 changes. */
int k1_after_interrupt(void);

/*
 * Goes on at the store of a slot (commit), as if the loads before it had been
 * done and new were to be stored at word. PROBE_RESULT: it was stored without
 * a restart. Else what the restarted slot returns for (word, argument, new).
 */
int enter_at_commit(const void *commit, volatile int *word, int argument, int new);
/* The same, with another address in k1. */
int enter_at_commit_with(const void *commit, volatile int *word, int argument, int new,
			 volatile int *k1);
/* Stores to ACCESS_MAGIC, outside of the page of /dev/tst. */
void store_to_magic(volatile int *word_of_a_restart);
#endif

#endif
