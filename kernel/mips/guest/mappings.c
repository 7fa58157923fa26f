// SPDX-License-Identifier: MIT OR Apache-2.0
/* One page, at one address, execute only: everything else is refused. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pages.h"
#include "suites.h"
#include "tst.h"

static int open_device(void)
{
	int device = open("/dev/tst", O_RDONLY);

	need(device >= 0, "opening /dev/tst");
	return device;
}

static const char *expect_refusal(void *got, int wanted_errno, const char *what)
{
	if (got != MAP_FAILED)
		return because("%s: allowed, at %p", what, got);
	return errno == wanted_errno ? NULL : because("%s: %s", what, strerror(errno));
}

static const char *device_tells_the_address(void)
{
	char text[32] = "";
	int device = open_device();
	ssize_t got = read(device, text, sizeof(text));

	if (got <= 0 || strtoul(text, NULL, 10) != (unsigned long)tst_page)
		return because("it reads \"%s\"", text);
	return read(device, text, sizeof(text)) == 0 ? NULL : because("it goes on");
}

static const char *other_rights(void)
{
	static const int rights[] = {
		PROT_NONE, PROT_READ, PROT_WRITE, PROT_READ | PROT_WRITE, PROT_READ | PROT_EXEC,
		PROT_WRITE | PROT_EXEC, PROT_READ | PROT_WRITE | PROT_EXEC,
	};
	int device = open_device();

	for (unsigned int i = 0; i < sizeof(rights) / sizeof(*rights); i++) {
		void *got = mmap(tst_page, getpagesize(), rights[i], MAP_PRIVATE, device, 0);
		const char *why = expect_refusal(got, EACCES, "mmap with other rights");

		if (why)
			return why;
		/* What was mapped there went first, as with any fixed address. */
		need(tst_open() == 0, "mapping the page again");
		if (mprotect(tst_page, getpagesize(), rights[i]) == 0 || errno != EACCES)
			return because("mprotect to %#x is not refused", rights[i]);
	}
	return tst(word_in(PAGE_WARM)) == 0 ? NULL : because("the page does not work any more");
}

static const char *other_places(void)
{
	int bytes = getpagesize(), device = open_device();
	const struct {
		char *address;
		int length, offset;
	} places[] = {
		{ NULL, bytes, 0 },
		{ tst_page - bytes, bytes, 0 },
		{ (char *)0x20000000, bytes, 0 },
		{ tst_page - bytes, 2 * bytes, 0 },
		{ tst_page, bytes, bytes },
	};

	for (unsigned int i = 0; i < sizeof(places) / sizeof(*places); i++) {
		void *got = mmap(places[i].address, places[i].length, PROT_EXEC, MAP_PRIVATE,
				 device, places[i].offset);
		const char *why = expect_refusal(got, EINVAL, "mmap at another place");

		if (why)
			return why;
	}
	return NULL;
}

static const char *moving(void)
{
	int bytes = getpagesize();
	char *free_place = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const char *why;

	need(free_place != MAP_FAILED, "mmap");
	why = expect_refusal(mremap(tst_page, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
				    free_place), EINVAL, "mremap");
	if (!why && tst(word_in(PAGE_WARM)) != 0)
		why = because("the page does not work any more");
	return why;
}

/* Whether or not the page is mapped. */
static const char *refuse_others_there(void)
{
	int bytes = getpagesize();
	int memory = shmget(IPC_PRIVATE, bytes, 0600);
	char *other = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const char *why;

	need(memory >= 0 && other != MAP_FAILED, "shmget, mmap");
	why = expect_refusal(mmap(tst_page, bytes, PROT_READ | PROT_EXEC,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			     EINVAL, "anonymous memory there");
	if (!why)
		why = expect_refusal(mmap(tst_page - bytes, 2 * bytes, PROT_READ,
					  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
				     EINVAL, "anonymous memory across it");
	if (!why)
		why = expect_refusal(shmat(memory, tst_page, SHM_REMAP), EINVAL,
				     "shared memory there");
	if (!why)
		why = expect_refusal(mremap(other, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
					    tst_page), EINVAL, "mremap there");
	shmctl(memory, IPC_RMID, NULL);
	return why;
}

static const char *nothing_else_there(void)
{
	const char *why = refuse_others_there();
	char *hinted;

	if (why)
		return why;
	need(munmap(tst_page, getpagesize()) == 0, "munmap");
	why = refuse_others_there();
	hinted = mmap(tst_page, getpagesize(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!why && hinted == tst_page)
		why = because("a hint leads there");
	return why;
}

static void call_the_page(void *word)
{
	tst(word);
}

static const char *unmapped_by_munmap(void)
{
	volatile int *word = word_in(PAGE_WARM);
	int got;

	need(munmap(tst_page, getpagesize()) == 0, "munmap");
	got = signal_of(call_the_page, (void *)word);
	if (got != SIGSEGV)
		return because("calling it is signal %d", got);
	need(tst_open() == 0, "mapping it again");
	return tst(word) == 0 ? NULL : because("it does not work when mapped again");
}

static const char *inherited_by_fork(void)
{
	volatile int *word = word_in(PAGE_WARM);

	if (signal_of(call_the_page, (void *)word) != 0 || *word != 1)
		return because("a child cannot use it");
	return NULL;
}

static void write_to(void *address)
{
	*(volatile char *)address = 0;
}

static void read_from(void *address)
{
	(void)*(volatile char *)address;
}

static const char *writing(void)
{
	int got = signal_of(write_to, tst_page);
	int memory = open("/proc/self/mem", O_RDWR);

	if (got != SIGSEGV)
		return because("a store into it is signal %d", got);
	need(memory >= 0, "opening /proc/self/mem");
	if (pwrite64(memory, "", 1, (long)tst_page) != -1)
		return because("it can be written through /proc/self/mem");
	return NULL;
}

/* Only some processors tell a load from an instruction fetch. */
static const char *reading(void)
{
	char line[256];
	int can = 0, got;
	FILE *file = fopen("/proc/cpuinfo", "r");

	need(file != NULL, "opening /proc/cpuinfo");
	while (fgets(line, sizeof(line), file))
		can |= strstr(line, "rixi") != NULL;
	if (!can)
		return skip("this processor cannot refuse loads (no RIXI)");
	got = signal_of(read_from, tst_page);
	return got == SIGSEGV ? NULL : because("a load is signal %d", got);
}

static const char *debugging(void)
{
	const char *why = NULL;
	int status;
	pid_t child = fork();

	need(child >= 0, "fork");
	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		_exit(0);
	}
	need(waitpid(child, &status, 0) == child && WIFSTOPPED(status), "stopping a child");
	if (ptrace(PTRACE_POKETEXT, child, tst_page, 0) == 0)
		why = because("a debugger can change it");
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return why;
}

const struct test mapping_tests[] = {
	{ "the_device_tells_the_address_once", device_tells_the_address },
	{ "other_rights_are_refused", other_rights },
	{ "other_places_are_refused", other_places },
	{ "moving_the_page_is_refused", moving },
	{ "nothing_else_can_be_mapped_there", nothing_else_there },
	{ "munmap_takes_it_away", unmapped_by_munmap },
	{ "a_child_inherits_it", inherited_by_fork },
	{ "writing_into_it_is_refused", writing },
	{ "reading_it_is_refused", reading },
	{ "a_debugger_cannot_change_it", debugging },
	{ NULL, NULL },
};
