// SPDX-License-Identifier: MIT OR Apache-2.0
/* The module goes when nobody uses it, and comes back. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pages.h"
#include "suites.h"
#include "tst.h"

#define MODULE		"tst"
#define MODULE_FILE	"/tst.ko"

static int unload(void)
{
	return syscall(SYS_delete_module, MODULE, O_NONBLOCK);
}

static int load(void)
{
	int file = open(MODULE_FILE, O_RDONLY | O_CLOEXEC);

	need(file >= 0, "opening " MODULE_FILE);
	return syscall(SYS_finit_module, file, "", 0);
}

static const char *kept_while_used(void)
{
	/* The program itself has the page mapped. */
	if (unload() == 0 || errno != EWOULDBLOCK)
		return because("it can be unloaded while a process has the page");
	return tst(word_in(PAGE_WARM)) == 0 ? NULL : because("the page does not work any more");
}

static const char *comes_and_goes(void)
{
	volatile int *word = word_in(PAGE_WARM);

	for (int i = 0; i < 3; i++) {
		if (unload() != 0)
			return because("it cannot be unloaded");
		if (tst_open() == 0)
			return because("the device is there without the module");
		need(load() == 0, "loading the module");
		if (tst_open() != 0 || tst_fetch_add(word, 1) != i)
			return because("it does not work when loaded again");
		need(munmap(tst_page, getpagesize()) == 0, "munmap");
	}
	return NULL;
}

const struct test module_in_use_tests[] = {
	{ "the_module_stays_while_a_process_has_the_page", kept_while_used },
	{ NULL, NULL },
};

const struct test module_tests[] = {
	{ "the_module_can_be_unloaded_and_loaded_again", comes_and_goes },
	{ NULL, NULL },
};
