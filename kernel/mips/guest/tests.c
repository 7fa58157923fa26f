// SPDX-License-Identifier: MIT OR Apache-2.0
/* All tests of /dev/tst; exits with 1 if one failed. */
#include <sys/mman.h>
#include <unistd.h>

#include "suites.h"
#include "tst.h"

int main(void)
{
	int failed;

	need(tst_open() == 0, "mapping /dev/tst");
	failed = run_tests(contract_tests) + run_tests(exception_tests) +
		 run_tests(offender_tests) + run_tests(mapping_tests) +
		 run_tests(module_in_use_tests);
	need(munmap(tst_page, getpagesize()) == 0, "munmap");
	failed += run_tests(module_tests);
	return failed > 0;
}
