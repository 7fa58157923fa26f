// SPDX-License-Identifier: MIT OR Apache-2.0
/* What the three procedures do, whatever state the word's page is in. */
#include <limits.h>
#include <stddef.h>

#include "pages.h"
#include "suites.h"
#include "tst.h"

static const char *test_and_set(void)
{
	for (int state = 0; state < PAGE_STATES; state++) {
		volatile int *word = word_in(state);
		int first = tst(word), second = tst(word);

		if (first != 0 || second != 1 || *word != 1)
			return because("%s page: returned %d, %d, left %d",
				       page_state_name[state], first, second, *word);
		*word = 5;
		if (tst(word) != 5 || *word != 5)
			return because("a word that is 5 was changed");
	}
	return NULL;
}

static const char *compare_and_swap(void)
{
	for (int state = 0; state < PAGE_STATES; state++) {
		volatile int *word = word_in(state);
		int first = tst_cas(word, 0, 7), second = tst_cas(word, 0, 9);

		if (first != 0 || second != 7 || *word != 7)
			return because("%s page: returned %d, %d, left %d",
				       page_state_name[state], first, second, *word);
	}
	return NULL;
}

static const char *fetch_and_add(void)
{
	for (int state = 0; state < PAGE_STATES; state++) {
		volatile int *word = word_in(state);
		int first = tst_fetch_add(word, 3), second = tst_fetch_add(word, -5);

		if (first != 0 || second != 3 || *word != -2)
			return because("%s page: returned %d, %d, left %d",
				       page_state_name[state], first, second, *word);
		*word = INT_MAX;
		if (tst_fetch_add(word, 1) != INT_MAX || *word != INT_MIN)
			return because("does not wrap");
	}
	return NULL;
}

const struct test contract_tests[] = {
	{ "test_and_set_sets_a_zero_and_returns_what_was_there", test_and_set },
	{ "compare_and_swap_changes_the_expected_value_only", compare_and_swap },
	{ "fetch_and_add_adds_and_wraps", fetch_and_add },
	{ NULL, NULL },
};
