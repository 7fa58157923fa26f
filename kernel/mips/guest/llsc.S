/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* int llsc_tst(volatile int *word): the paper's figure 4. The only ll and sc among our objects. */
#include <regdef.h>

	.set	noreorder
	.text
	.globl	llsc_tst
	.type	llsc_tst, @function
llsc_tst:
	ll	v0, (a0)
	bnez	v0, 1f
	 li	t0, 1
	sc	t0, (a0)
	beqz	t0, llsc_tst
	 nop
1:	jr	ra
	 nop

	.section .note.GNU-stack, "", @progbits
