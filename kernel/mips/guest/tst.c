// SPDX-License-Identifier: MIT OR Apache-2.0
/* Maps the page of /dev/tst as the paper has it: open, read the address, mmap, close. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tst.h"

char *tst_page;

int tst_open(void)
{
	char text[16] = "";
	void *page = MAP_FAILED;
	int device = open("/dev/tst", O_RDONLY | O_CLOEXEC);

	if (device < 0)
		return -1;
	if (read(device, text, sizeof(text) - 1) > 0)
		page = mmap((void *)strtoul(text, NULL, 10), getpagesize(), PROT_EXEC,
			    MAP_PRIVATE, device, 0);
	close(device);
	if (page == MAP_FAILED)
		return -1;
	tst_page = page;
	return 0;
}
