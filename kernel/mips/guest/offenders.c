// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The three conditions of a restart: a store, to ACCESS_MAGIC, from the page.
 * Where one does not hold, the offender gets its signal and nobody else notices.
 */
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "pages.h"
#include "probe.h"
#include "suites.h"
#include "tst.h"

/* Some kernel address: as forbidden as ACCESS_MAGIC, and not it. */
#define KERNEL_WORD	((volatile int *)0x80000000)
#define MAGIC_WORD	((volatile int *)ACCESS_MAGIC)

static void store(void *word)
{
	*(volatile int *)word = 1;
}

static void test_and_set(void *word)
{
	tst(word);
}

static void store_to_magic_from_here(void *word)
{
	store_to_magic(word);
}

/* Often enough that one try is not interrupted, which would change k1. */
static void store_to_kernel_from_the_page(void *word)
{
	for (int i = 0; i < 20; i++) {
		tst_cas(word, 1, 1);	/* now the page is in the TLB */
		enter_at_commit_with(tst_page + TST_SLOT + TST_COMMIT, word, 0, 1, KERNEL_WORD);
	}
}

/*
 * The usual signal of a forbidden address; where the processor keeps the page
 * from being read, the kernel cannot look at the instruction and says SIGILL.
 */
static const char *expect_signal(void (*offence)(void *), volatile void *argument)
{
	int usual = signal_of(store, (void *)KERNEL_WORD);
	int got = signal_of(offence, (void *)argument);

	if (usual != SIGBUS && usual != SIGSEGV)
		return because("a forbidden store is signal %d", usual);
	return got == usual || got == SIGILL ? NULL : because("signal %d, not %d", got, usual);
}

/* Condition 1: a load of ACCESS_MAGIC, made by the page, is an error of its caller. */
static const char *load_of_magic(void)
{
	return expect_signal(test_and_set, MAGIC_WORD);
}

/* Condition 2: the page stores to another forbidden address. */
static const char *store_elsewhere_from_page(void)
{
	return expect_signal(store_to_kernel_from_the_page, word_in(PAGE_WARM));
}

/* Condition 3: a store to ACCESS_MAGIC from outside of the page. */
static const char *store_to_magic_from_elsewhere(void)
{
	return expect_signal(store_to_magic_from_here, word_in(PAGE_WARM));
}

static const char *only_the_offender(void)
{
	volatile int *word = word_in(PAGE_WARM);	/* shared with the offenders */

	for (int i = 0; i < 20; i++) {
		int before = tst_fetch_add(word, 1);

		if (signal_of(store, (void *)MAGIC_WORD) == 0)
			return because("an offender lives");
		if (before != i || *word != i + 1)
			return because("the count is %d, not %d", *word, i + 1);
	}
	return NULL;
}

static const char *bad_words(void)
{
	if (signal_of(test_and_set, NULL) != SIGSEGV)
		return because("no SIGSEGV for a null pointer");
	return expect_signal(test_and_set, KERNEL_WORD);
}

const struct test offender_tests[] = {
	{ "a_load_of_the_magic_address_is_not_restarted", load_of_magic },
	{ "a_store_of_the_page_to_another_address_is_not_restarted", store_elsewhere_from_page },
	{ "a_store_to_the_magic_address_from_elsewhere_is_not_restarted",
	  store_to_magic_from_elsewhere },
	{ "a_store_to_the_magic_address_kills_only_the_offender", only_the_offender },
	{ "a_word_that_is_no_memory_is_an_ordinary_fault", bad_words },
	{ NULL, NULL },
};
