/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * int syscall_tst(volatile int *word): the test-and-set that Linux/MIPS has
 * had for processors without ll and sc, sysmips(MIPS_ATOMIC_SET, word, 1).
 */
#include <regdef.h>

#define SYS_SYSMIPS	4149
#define MIPS_ATOMIC_SET	2001

	.set	noreorder
	.text
	.globl	syscall_tst
	.type	syscall_tst, @function
syscall_tst:
	move	a1, a0
	li	a0, MIPS_ATOMIC_SET
	li	a2, 1
	li	v0, SYS_SYSMIPS
	syscall
	jr	ra
	 nop

	.section .note.GNU-stack, "", @progbits
