// SPDX-License-Identifier: MIT OR Apache-2.0
#include "methods.h"

#include <stddef.h>
#include <string.h>

#include "tst.h"

static struct method methods[] = {
	{ "k1/magic", NULL },	/* where the page is, is known once it is mapped */
	{ "ll/sc", llsc_tst },
	{ "lamport", lamport_tst },
	{ "system-call", syscall_tst },
};

const struct method *method_open(const char *name, int threads)
{
	if (tst_open() != 0)
		return NULL;
	methods[0].tst = (int (*)(volatile int *))(tst_page + TST_SLOT);
	lamport_open(threads);
	for (unsigned int i = 0; i < sizeof(methods) / sizeof(*methods); i++)
		if (strcmp(methods[i].name, name) == 0)
			return &methods[i];
	return NULL;
}

void method_enter(int thread)
{
	lamport_enter(thread);
}
