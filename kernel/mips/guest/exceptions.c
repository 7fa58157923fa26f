// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Every return to user mode leaves ACCESS_MAGIC in k1, and a slot that met an
 * exception at its store starts again.
 */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/time.h>

#include "pages.h"
#include "probe.h"
#include "suites.h"
#include "tst.h"

/* How often something is tried that a timer interrupt could disturb. */
#define ATTEMPTS	20

static const char *k1_is_kept(void)
{
	for (int i = 0; i < ATTEMPTS; i++)
		if (k1_after_nothing() == PROBE_K1)
			return NULL;
	return because("k1 changes without an exception");
}

static const char *expect_magic(int k1, const char *exception)
{
	return k1 == ACCESS_MAGIC ? NULL : because("%s leaves %#x in k1", exception, k1);
}

/* Each time: a timer interrupt beside the exception could hide that the exception does not set k1. */
static const char *expect_magic_after(int (*probe)(volatile int *), enum page_state state,
				      const char *exception)
{
	const char *why = NULL;

	for (int i = 0; i < ATTEMPTS && !why; i++)
		why = expect_magic(probe(word_in(state)), exception);
	return why;
}

static const char *k1_after_refill(void)
{
	return expect_magic_after(k1_after_load, PAGE_FLUSHED, "TLB refill");
}

static const char *k1_after_invalid_load(void)
{
	return expect_magic_after(k1_after_load, PAGE_COLD, "TLB load");
}

static const char *k1_after_invalid_store(void)
{
	return expect_magic_after(k1_after_store, PAGE_COLD, "TLB store");
}

static const char *k1_after_modify(void)
{
	return expect_magic_after(k1_after_store, PAGE_CLEAN, "TLB modify");
}

static const char *k1_after_page_fault(void)
{
	const char *why = expect_magic_after(k1_after_load, PAGE_UNTOUCHED, "page fault");

	if (!why)
		why = expect_magic_after(k1_after_store, PAGE_SHARED_ZERO, "copy on write");
	return why;
}

static const char *k1_after_emulation(void)
{
	return expect_magic(k1_after_unaligned_load(word_in(PAGE_WARM)), "an emulated load");
}

static const char *k1_after_call(void)
{
	return expect_magic(k1_after_system_call(), "a system call");
}

static const char *k1_after_timer(void)
{
	return expect_magic(k1_after_interrupt(), "the timer interrupt");
}

static void do_nothing(int signal)
{
}

static const char *k1_after_signal(void)
{
	struct itimerval often = { { 0, 100 }, { 0, 100 } };

	signal(SIGVTALRM, do_nothing);
	need(setitimer(ITIMER_VIRTUAL, &often, NULL) == 0, "setitimer");
	return expect_magic(k1_after_interrupt(), "return from a signal handler");
}

/* Each slot, about to store a value that is not the right one any more. */
static const struct slot {
	const char *name;
	int commit, argument, stale;
	int left;	/* by the restarted slot, in a word that was 0 */
} slots[] = {
	{ "tst", TST_SLOT + TST_COMMIT, 0, 77, 1 },
	{ "tst_cas", TST_CAS_SLOT + TST_CAS_COMMIT, 0, 9, 9 },
	{ "tst_fetch_add", TST_FETCH_ADD_SLOT + TST_FETCH_ADD_COMMIT, 3, 77, 3 },
	{ NULL, 0, 0, 0, 0 },
};

static const char *restarts_from(enum page_state state)
{
	for (const struct slot *slot = slots; slot->name; slot++) {
		volatile int *word = word_in(state);
		int result = enter_at_commit(tst_page + slot->commit, word, slot->argument,
					     slot->stale);

		if (result != 0 || *word != slot->left)
			return because("%s: returned %#x, left %d", slot->name, result, *word);
	}
	return NULL;
}

static const char *restart_after_refill(void)
{
	return restarts_from(PAGE_FLUSHED);
}

static const char *restart_after_invalid_store(void)
{
	return restarts_from(PAGE_COLD);
}

static const char *restart_after_modify(void)
{
	return restarts_from(PAGE_CLEAN);
}

static const char *restart_after_page_fault(void)
{
	const char *why = restarts_from(PAGE_UNTOUCHED);

	return why ? why : restarts_from(PAGE_SHARED_ZERO);
}

/* Or the tests above would show nothing. */
static const char *no_restart_without_exception(void)
{
	for (const struct slot *slot = slots; slot->name; slot++) {
		int result = 0;

		for (int i = 0; i < ATTEMPTS && result != PROBE_RESULT; i++) {
			volatile int *word = word_in(PAGE_WARM);

			tst_cas(word, 1, 1);	/* the page of the slots is in the TLB, too */
			result = enter_at_commit(tst_page + slot->commit, word,
						 slot->argument, slot->stale);
			if (result == PROBE_RESULT && *word != slot->stale)
				return because("%s left %d", slot->name, *word);
		}
		if (result != PROBE_RESULT)
			return because("%s always restarts", slot->name);
	}
	return NULL;
}

const struct test exception_tests[] = {
	{ "k1_is_kept_without_an_exception", k1_is_kept },
	{ "k1_is_magic_after_a_refill", k1_after_refill },
	{ "k1_is_magic_after_a_load_of_an_invalid_page", k1_after_invalid_load },
	{ "k1_is_magic_after_a_store_to_an_invalid_page", k1_after_invalid_store },
	{ "k1_is_magic_after_a_store_to_a_clean_page", k1_after_modify },
	{ "k1_is_magic_after_a_page_fault", k1_after_page_fault },
	{ "k1_is_magic_after_an_emulated_instruction", k1_after_emulation },
	{ "k1_is_magic_after_a_system_call", k1_after_call },
	{ "k1_is_magic_after_an_interrupt", k1_after_timer },
	{ "k1_is_magic_after_a_signal_handler", k1_after_signal },
	{ "no_slot_restarts_without_an_exception", no_restart_without_exception },
	{ "every_slot_restarts_after_a_refill_at_its_store", restart_after_refill },
	{ "every_slot_restarts_after_an_invalid_page_at_its_store", restart_after_invalid_store },
	{ "every_slot_restarts_after_a_clean_page_at_its_store", restart_after_modify },
	{ "every_slot_restarts_after_a_page_fault_at_its_store", restart_after_page_fault },
	{ NULL, NULL },
};
