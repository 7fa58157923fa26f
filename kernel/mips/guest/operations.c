// SPDX-License-Identifier: MIT OR Apache-2.0
#include "operations.h"

#include <sys/rseq.h>

#include "rseq.h"
#include "tst.h"

static int page_tst(volatile int *word)
{
	return tst(word);
}

static int page_cas(volatile int *word, int expected, int new)
{
	return tst_cas(word, expected, new);
}

static int page_fetch_add(volatile int *word, int increment)
{
	return tst_fetch_add(word, increment);
}

const struct operations page_operations = {
	"tst", tst_open, page_tst, page_cas, page_fetch_add,
};

/* libc registers one for each thread. */
static struct rseq *my_rseq(void)
{
	return (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

static int rseq_open(void)
{
	return __rseq_size > 0 && (int)my_rseq()->cpu_id >= 0 ? 0 : -1;
}

static int rseq_tst(volatile int *word)
{
	return rseq_tst_by(my_rseq(), word);
}

static int rseq_cas(volatile int *word, int expected, int new)
{
	return rseq_cas_by(my_rseq(), word, expected, new);
}

static int rseq_fetch_add(volatile int *word, int increment)
{
	return rseq_fetch_add_by(my_rseq(), word, increment);
}

const struct operations rseq_operations = {
	"rseq", rseq_open, rseq_tst, rseq_cas, rseq_fetch_add,
};

static int plain_open(void)
{
	return 0;
}

static int plain_tst(volatile int *word)
{
	int old = *word;

	if (old == 0)
		*word = 1;
	return old;
}

static int plain_cas(volatile int *word, int expected, int new)
{
	int old = *word;

	if (old == expected)
		*word = new;
	return old;
}

static int plain_fetch_add(volatile int *word, int increment)
{
	int old = *word;

	*word = old + increment;
	return old;
}

const struct operations plain_operations = {
	"plain", plain_open, plain_tst, plain_cas, plain_fetch_add,
};
