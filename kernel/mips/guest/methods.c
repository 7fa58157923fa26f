// SPDX-License-Identifier: MIT OR Apache-2.0
#include "methods.h"

#include <string.h>

#include "tst.h"

int (*test_and_set)(volatile int *word);

static const struct method {
	const char *name;
	int (*test_and_set)(volatile int *word);
} methods[] = {
	{ "ll/sc", llsc_tst },
	{ "lamport", lamport_tst },
	{ "system-call", syscall_tst },
};

int method_open(const char *name)
{
	if (tst_open() != 0)
		return -1;
	if (strcmp(name, "k1/magic") == 0)
		test_and_set = (int (*)(volatile int *))(tst_page + TST_SLOT);
	for (unsigned int i = 0; i < sizeof(methods) / sizeof(*methods); i++)
		if (strcmp(methods[i].name, name) == 0)
			test_and_set = methods[i].test_and_set;
	if (test_and_set == lamport_tst)
		lamport_open();
	return test_and_set ? 0 : -1;
}

void method_enter(void)
{
	if (test_and_set == lamport_tst)
		lamport_enter();
}
