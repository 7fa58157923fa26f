// SPDX-License-Identifier: MIT OR Apache-2.0
#include "pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

#ifndef MADV_COLD
#define MADV_COLD 20
#endif

/* More pages than any TLB here has entries for: changing them empties it. */
#define MANY_PAGES	1024

const char *const page_state_name[PAGE_STATES] = {
	"warm", "flushed", "cold", "clean", "untouched", "shared zero",
};

/* A TLB entry maps two pages: a word gets the first two of four to itself. */
static char *map_pages(int sharing)
{
	int page_bytes = getpagesize();
	char *pages = mmap(NULL, 4 * page_bytes, PROT_READ | PROT_WRITE,
			   sharing | MAP_ANONYMOUS, -1, 0);

	need(pages != MAP_FAILED, "mmap of a test page");
	return (char *)(((unsigned long)pages + 2 * page_bytes - 1) & -(2UL * page_bytes));
}

/* The kernel drops all entries of a process rather than so many single ones. */
static void flush_tlb(void)
{
	static char *pages;
	int page_bytes = getpagesize();

	if (!pages) {
		pages = mmap(NULL, MANY_PAGES * page_bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		need(pages != MAP_FAILED, "mmap of many pages");
	}
	for (int i = 0; i < MANY_PAGES; i++)
		pages[i * page_bytes] = 1;
	need(mprotect(pages, MANY_PAGES * page_bytes, PROT_READ) == 0, "mprotect");
	need(mprotect(pages, MANY_PAGES * page_bytes, PROT_READ | PROT_WRITE) == 0, "mprotect");
}

volatile int *word_in(enum page_state state)
{
	int sharing = state == PAGE_SHARED_ZERO ? MAP_PRIVATE : MAP_SHARED;
	volatile int *word = (volatile int *)map_pages(sharing);

	switch (state) {
	case PAGE_WARM:
		*word = 0;
		break;
	case PAGE_FLUSHED:
		*word = 0;
		flush_tlb();
		break;
	case PAGE_COLD:
		*word = 0;
		need(madvise((void *)word, getpagesize(), MADV_COLD) == 0, "madvise");
		/* The entry comes into the TLB as the other half of this one. */
		((volatile char *)word)[getpagesize()] = 1;
		break;
	case PAGE_CLEAN:
	case PAGE_SHARED_ZERO:
		(void)*word;
		break;
	default:
		break;
	}
	return word;
}
