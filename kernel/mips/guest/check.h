/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Runs tests, each in a process of its own under a watchdog, and prints
 * "PASS name" or "FAIL name: why".
 */
#ifndef CHECK_H
#define CHECK_H

/* A test returns NULL, or why it failed, or skip(why). */
struct test {
	const char *name;
	const char *(*run)(void);
};

const char *skip(const char *why);
/* Formats a reason; the text lives until the next one. */
const char *because(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The number of failed tests. */
int run_tests(const struct test *tests);
/* Runs it in a child; returns the signal that ended the child, 0 if none did. */
int signal_of(void (*run)(void *), void *argument);
/* Gives up, naming what could not be done, when a step of the set-up fails. */
void need(int done, const char *what);

#endif
