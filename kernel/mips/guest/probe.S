/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* See probe.h. Registers in and out as for C functions; k1 is nobody's. */
#include <regdef.h>

#include "probe.h"
#include "slots.h"

	.set	noreorder
	.set	noat
	.text

	.macro	function name
	.globl	\name
	.type	\name, @function
\name:
	.endm

	.macro	return_k1
	jr	ra
	 move	v0, k1
	.endm

function k1_after_nothing
	li	k1, PROBE_K1
	return_k1

function k1_after_load
	li	k1, PROBE_K1
	lw	t0, (a0)
	return_k1

function k1_after_store
	li	k1, PROBE_K1
	sw	zero, (a0)
	return_k1

function k1_after_unaligned_load
	li	k1, PROBE_K1
	lw	t0, 1(a0)
	return_k1

function k1_after_system_call
	li	v0, 4020		/* getpid */
	li	k1, PROBE_K1
	syscall
	return_k1

function k1_after_interrupt
	li	t0, PROBE_K1
	move	k1, t0
1:	beq	k1, t0, 1b
	 nop
	return_k1

	/* a0 commit, a1 word, a2 argument, a3 new, 16(sp) k1 */
function enter_at_commit_with
	b	1f
	 lw	t1, 16(sp)
function enter_at_commit
	move	t1, a1
1:	move	t9, a0
	move	a0, a1
	move	a1, a2
	move	a2, a3
	move	t0, a3
	li	v0, PROBE_RESULT
	jr	t9
	 move	k1, t1

	/*
	 * At the offset of tst in its page: a kernel that restarted any page
	 * would go on in tst with a0, and return.
	 */
	.balign	4096
	.org	. + TST_SLOT
function store_to_magic
	li	t0, ACCESS_MAGIC
	jr	ra
	 sw	zero, (t0)

	.section .note.GNU-stack, "", @progbits
