// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The first process: mounts what is needed, loads the module, runs one
 * program and stops the machine. Words that the kernel does not know on its
 * command line become our environment:
 *
 *	load=tst.ko run=stress,tst,10	the module, if any; the program and its arguments
 *
 * The last line on the console is "EXIT status".
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define ARGUMENTS_MAX	8

static void stop(int status)
{
	printf("EXIT %d\n", status);
	fflush(stdout);
	tcdrain(STDOUT_FILENO);
	reboot(RB_AUTOBOOT);
}

static void need(int done, const char *what)
{
	if (done)
		return;
	printf("init: %s: %s\n", what, strerror(errno));
	stop(1);
}

static void load(const char *module)
{
	int file = open(module, O_RDONLY | O_CLOEXEC);

	need(file >= 0, module);
	need(syscall(SYS_finit_module, file, "", 0) == 0, module);
	close(file);
}

static int run(char *command)
{
	char *arguments[ARGUMENTS_MAX + 1] = { NULL };
	int count = 0, status;
	pid_t child;

	for (char *word = strtok(command, ","); word && count < ARGUMENTS_MAX;
	     word = strtok(NULL, ","))
		arguments[count++] = word;
	child = fork();
	need(child >= 0, "fork");
	if (child == 0) {
		execv(arguments[0], arguments);
		printf("init: %s: %s\n", arguments[0], strerror(errno));
		_exit(127);
	}
	need(waitpid(child, &status, 0) == child, "waitpid");
	if (WIFSIGNALED(status))
		printf("init: killed by signal %d\n", WTERMSIG(status));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

int main(void)
{
	char *module = getenv("load"), *command = getenv("run");

	need(mount("none", "/dev", "devtmpfs", 0, NULL) == 0, "/dev");
	need(mount("none", "/proc", "proc", 0, NULL) == 0, "/proc");
	need(mount("none", "/sys", "sysfs", 0, NULL) == 0, "/sys");
	need(command != NULL, "no run= on the command line");
	if (module)
		load(module);
	stop(run(command));
}
