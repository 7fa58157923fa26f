/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Words whose next access takes a chosen exception.
 *
 *	state		next load			next store
 *	PAGE_WARM	none				none
 *	PAGE_FLUSHED	TLB refill			TLB refill
 *	PAGE_COLD	TLB load			TLB store
 *	PAGE_CLEAN	none				TLB modify
 *	PAGE_UNTOUCHED	page fault			page fault
 *	PAGE_SHARED_ZERO none				page fault (copy on write)
 */
#ifndef PAGES_H
#define PAGES_H

enum page_state {
	PAGE_WARM,
	PAGE_FLUSHED,
	PAGE_COLD,
	PAGE_CLEAN,
	PAGE_UNTOUCHED,
	PAGE_SHARED_ZERO,
	PAGE_STATES
};

extern const char *const page_state_name[PAGE_STATES];

/* A word that is 0, alone on its pages. Never freed: a test's process is short. */
volatile int *word_in(enum page_state state);

#endif
