/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * See rseq.h.
 *
 *	begin	area->rseq_cs := descriptor
 *	start	old := *word ... *word := new	sent to abort when interrupted here
 *	end
 *	abort	begin again
 */
#include <regdef.h>

#define RSEQ_CS		8		/* offset in struct rseq; its high half stays 0 */
#define RSEQ_SIGNATURE	0x0350000d	/* what libc registered: RSEQ_SIG */

	.set	noreorder

	.macro	begin name
	.section __rseq_cs, "aw"
	.balign	32
\name\()_descriptor:
	.word	0, 0			/* version, flags */
	.word	\name\()_start, 0
	.word	\name\()_end - \name\()_start, 0
	.word	\name\()_abort, 0
	.text
	.globl	\name
	.type	\name, @function
\name:
	la	t0, \name\()_descriptor
	sw	t0, RSEQ_CS(a0)
\name\()_start:
	.endm

	.macro	commit name, new
	sw	\new, (a1)
\name\()_end:
1:	jr	ra
	 nop
	.word	RSEQ_SIGNATURE
\name\()_abort:
	b	\name
	 nop
	.endm

begin rseq_tst_by
	lw	v0, (a1)
	bnez	v0, 1f
	 li	t1, 1
commit rseq_tst_by, t1

begin rseq_cas_by
	lw	v0, (a1)
	bne	v0, a2, 1f
	 nop
commit rseq_cas_by, a3

begin rseq_fetch_add_by
	lw	v0, (a1)
	nop
	addu	t1, v0, a2
commit rseq_fetch_add_by, t1

	.section .note.GNU-stack, "", @progbits
