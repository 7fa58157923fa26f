// SPDX-License-Identifier: MIT OR Apache-2.0
#include "check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WATCHDOG_S	5
#define REASON_BYTES	200

static char reason[REASON_BYTES];
static const char skipped[] = "skipped: ";

const char *because(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reason, sizeof(reason), format, arguments);
	va_end(arguments);
	return reason;
}

const char *skip(const char *why)
{
	return because("%s%s", skipped, why);
}

void need(int done, const char *what)
{
	if (done)
		return;
	printf("FAIL set-up: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* What the child wrote before it ended, and how it ended. */
static const char *outcome(int status, const char *text)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		return because("it hung");
	if (WIFSIGNALED(status))
		return because("killed by signal %d (%s)", WTERMSIG(status),
			       strsignal(WTERMSIG(status)));
	if (*text)
		return text;
	return WEXITSTATUS(status) ? because("exit status %d", WEXITSTATUS(status)) : NULL;
}

static int run_test(const struct test *test)
{
	char text[REASON_BYTES] = "";
	const char *why;
	int status, ends[2];
	pid_t child;

	need(pipe(ends) == 0, "pipe");
	fflush(stdout);
	child = fork();
	need(child >= 0, "fork");
	if (child == 0) {
		alarm(WATCHDOG_S);
		why = test->run();
		if (why && write(ends[1], why, strlen(why)) < 0)
			_exit(2);
		_exit(0);
	}
	close(ends[1]);
	need(waitpid(child, &status, 0) == child, "waitpid");
	if (read(ends[0], text, sizeof(text) - 1) < 0)
		text[0] = 0;
	close(ends[0]);
	why = outcome(status, text);
	if (!why)
		printf("PASS %s\n", test->name);
	else if (strncmp(why, skipped, strlen(skipped)) == 0)
		printf("SKIP %s: %s\n", test->name, why + strlen(skipped));
	else
		printf("FAIL %s: %s\n", test->name, why);
	return why && strncmp(why, skipped, strlen(skipped)) != 0;
}

int run_tests(const struct test *tests)
{
	int failed = 0;

	for (; tests->name; tests++)
		failed += run_test(tests);
	return failed;
}

int signal_of(void (*run)(void *), void *argument)
{
	int status;
	pid_t child = fork();

	need(child >= 0, "fork");
	if (child == 0) {
		alarm(WATCHDOG_S / 2);
		run(argument);
		_exit(0);
	}
	need(waitpid(child, &status, 0) == child, "waitpid");
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}
