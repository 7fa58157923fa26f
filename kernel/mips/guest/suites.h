/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The tests of /dev/tst, one file a concern. */
#ifndef SUITES_H
#define SUITES_H

#include "check.h"

extern const struct test contract_tests[];
extern const struct test exception_tests[];
extern const struct test offender_tests[];
extern const struct test mapping_tests[];
/* The first with the page mapped, the second without. */
extern const struct test module_in_use_tests[];
extern const struct test module_tests[];

#endif
