/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The page of /dev/tst: test-and-set, compare-and-swap and fetch-and-add that
 * start again when an exception interrupts them.
 *
 *	slot		k1 := word			an exception sets k1 := MAGIC
 *	  |		old := *word			  |
 *	  |		k1 == word, or start again	  |
 *	  v		*k1 := new; return old		  v  the store faults; the kernel
 *							     goes back to the slot's start
 *
 * A slot keeps three promises (the paper, section 2.3). Each can be broken on
 * request, for the tests:
 *
 *	it leaves its arguments alone up to the store	(FLAW_CLOBBER)
 *	it ends within its slot				(FLAW_OVERLONG)
 *	its one store goes through k1			(FLAW_PLAIN)
 *
 * The test of k1 before the store (the paper's figure 11) only saves the fault
 * where the exception came from the load, as the first use of a page does.
 * The store sits in the delay slot of the return: nothing comes after it.
 *
 * Arguments and result as for C functions: word in a0, then a1, a2; old in v0.
 */
#include <asm/asm.h>
#include <asm/regdef.h>

#include "slots.h"

#ifdef FLAW_PLAIN
#define COMMIT_BASE	a0
#else
#define COMMIT_BASE	k1
#endif

	.set	noreorder
	.set	noat

	/* Ends the slot that began at \start. */
	.macro	end_slot start
#ifndef FLAW_OVERLONG
	.if	(. - \start) > TST_SLOT_BYTES
	.error	"the procedure is longer than its slot"
	.endif
#endif
	.balign	TST_SLOT_BYTES
	.endm

	/* Returns old in v0, with \new stored at the word. */
	.macro	commit start, new
#ifdef FLAW_OVERLONG
	.fill	TST_SLOT_BYTES / 4, 4, 0
#endif
#ifdef FLAW_CLOBBER
	addiu	a0, a0, 4
#endif
\start\()_commit:
	jr	ra
	 sw	\new, (COMMIT_BASE)
	.endm

	.section .rodata
	.balign	TST_SLOT_BYTES
	.globl	tst_page_start
tst_page_start:

	/* int tst(int *word): if *word is 0 it becomes 1. */
tst:
	move	k1, a0
	lw	v0, (a0)
	bnez	v0, 1f
	 li	t0, 1
	bne	k1, a0, tst
	 nop
	commit	tst, t0
1:	jr	ra
	 nop
	end_slot tst

	/* int tst_cas(int *word, int expected, int new): if *word is expected it becomes new. */
tst_cas:
	move	k1, a0
	lw	v0, (a0)
	bne	v0, a1, 1f
	 nop
	bne	k1, a0, tst_cas
	 nop
	commit	tst_cas, a2
1:	jr	ra
	 nop
	end_slot tst_cas

	/* int tst_fetch_add(int *word, int increment): *word grows by increment. */
tst_fetch_add:
	move	k1, a0
	lw	v0, (a0)
	bne	k1, a0, tst_fetch_add
	 addu	t0, v0, a1
	commit	tst_fetch_add, t0
	end_slot tst_fetch_add

	.globl	tst_page_end
tst_page_end:

#ifndef FLAW_OVERLONG
	.if	tst_commit != tst + TST_COMMIT || tst_cas_commit != tst_cas + TST_CAS_COMMIT || \
		tst_fetch_add_commit != tst_fetch_add + TST_FETCH_ADD_COMMIT
#ifndef FLAW_CLOBBER
	.error	"slots.h tells other places of the stores"
#endif
	.endif
#endif
