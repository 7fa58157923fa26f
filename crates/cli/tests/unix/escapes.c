/* Attempts to escape from an instance: by memory below the guard, other processes' clocks, running
 * programs, inherited descriptors, and terminals. */
#define _GNU_SOURCE
#include "attack.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define BASE 0x10000ul
#define GUARD 0x200000ul

static int is_below_guard(void *page) { return (unsigned long)page >= BASE && (unsigned long)page < GUARD; }

/* Checks in the host's list of mappings that no byte between the launcher's first page and the
 * guard is free. */
static void must_be_full(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    unsigned long at = BASE, from, to;
    while (at < GUARD && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx", &from, &to) != 2 || to <= at) continue;
        if (from > at) {
            printf("free below the guard: %lx-%lx\n", at, from < GUARD ? from : GUARD);
            exit(1);
        }
        at = to;
    }
    fclose(maps);
}

/* Tries to map there by a hint, by moving with a hint, and by using up all other memory. */
static void below_guard(void) {
    const int readable = PROT_READ | PROT_WRITE | PROT_EXEC, anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
    for (unsigned long hint = 4096; hint < GUARD; hint += 4096) {
        void *page = mmap((void *)hint, 4096, readable, anonymous, -1, 0);
        MUST(page != MAP_FAILED);
        if (is_below_guard(page)) {
            printf("mapped at %p by a hint\n", page);
            exit(1);
        }
        munmap(page, 4096);
    }
    for (unsigned long hint = 4096; hint < GUARD; hint += 4096) {
        void *page = mmap(0, 4096, readable, anonymous, -1, 0);
        errno = 0;
        void *moved = mremap(page, 4096, 4096, MREMAP_MAYMOVE | 4 /* MREMAP_DONTUNMAP */, hint);
        if (moved == MAP_FAILED && errno == EINVAL) {
            munmap(page, 4096);
            continue;
        }
        if (is_below_guard(moved)) {
            printf("moved to %p by a hint\n", moved);
            exit(1);
        }
        munmap(page, 4096), munmap(moved, 4096);
    }
    void *low = mmap(0, 4096, readable, anonymous | MAP_32BIT, -1, 0);
    MUST(low != MAP_FAILED && (unsigned long)low >= GUARD);
    must_be_full();
    /* Maps all other free memory, in ever smaller pieces. The last ones would have to be placed
     * below the guard. */
    for (unsigned long bytes = 1ul << 46; bytes >= 4096; bytes >>= 1) {
        void *piece;
        while ((piece = mmap(0, bytes, PROT_NONE, anonymous | MAP_NORESERVE, -1, 0)) != MAP_FAILED)
            if (is_below_guard(piece)) {
                printf("mapped at %p for want of room\n", piece);
                exit(1);
            }
    }
}

/* Numbers of processes outside of the instance: of its starter, its server, and the host's first
 * process. */
static void strangers_numbers(void) {
    pid_t others[] = {getppid(), atoi(getenv("KYOCHO_TEST_PARENT")), 1};
    struct timespec time;
    cpu_set_t set;
    struct sched_param parameter;
    char attributes[64];
    for (int i = 0; i < 3; i++) {
        int of_process = ~others[i] << 3 | 2, of_thread = of_process | 4;
        timer_t timer;
        REFUSED_AS(EINVAL, syscall(SYS_clock_gettime, of_process, &time));
        REFUSED_AS(EINVAL, syscall(SYS_clock_gettime, of_process & ~2, &time));
        REFUSED_AS(EINVAL, syscall(SYS_clock_gettime, of_thread, &time));
        REFUSED_AS(EINVAL, syscall(SYS_clock_getres, of_process, &time));
        REFUSED_AS(EINVAL, syscall(SYS_timer_create, of_process, 0, &timer));
        time = (struct timespec){0, 1};
        REFUSED_AS(EINVAL, syscall(SYS_clock_nanosleep, of_process, 0, &time, 0));
        REFUSED_AS(ESRCH, syscall(SYS_sched_getaffinity, others[i], sizeof set, &set));
        REFUSED_AS(ESRCH, syscall(SYS_sched_getscheduler, others[i]));
        REFUSED_AS(ESRCH, syscall(SYS_sched_getparam, others[i], &parameter));
        REFUSED_AS(ESRCH, syscall(SYS_sched_getattr, others[i], attributes, sizeof attributes, 0));
        REFUSED_AS(ESRCH, syscall(SYS_sched_rr_get_interval, others[i], &time));
        REFUSED_AS(ESRCH, getpriority(PRIO_PROCESS, others[i]));
        REFUSED_AS(ESRCH, getpgid(others[i]));
        REFUSED_AS(ESRCH, getsid(others[i]));
    }
    REFUSED_AS(EINVAL, syscall(SYS_clock_gettime, ~0 << 3 | 3, &time));
    /* Its own clock, and its child's. */
    int ends[2];
    char byte;
    MUST(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        while (clock() < CLOCKS_PER_SEC / 100) {
        }
        write(ends[1], "x", 1);
        for (;;) pause();
    }
    MUST(read(ends[0], &byte, 1) == 1);
    clockid_t clock;
    MUST(clock_getcpuclockid(child, &clock) == 0 && clock_gettime(clock, &time) == 0 && time.tv_nsec + time.tv_sec > 0);
    MUST(getpgid(child) == getpgrp() && getsid(child) == getsid(0) && sched_getaffinity(child, sizeof set, &set) == 0);
    MUST(sched_getscheduler(child) == SCHED_OTHER && getpriority(PRIO_PROCESS, child) == getpriority(PRIO_PROCESS, 0));
    MUST(getpgid(getpid()) == getpgrp() && getsid(getpid()) >= 0 && sched_getaffinity(getpid(), sizeof set, &set) == 0);
    MUST(pthread_getcpuclockid(pthread_self(), &clock) == 0 && clock_gettime(clock, &time) == 0);
    MUST(clock_getcpuclockid(0, &clock) == 0 && clock_gettime(clock, &time) == 0);
    kill(child, SIGKILL);
    waitpid(child, 0, 0);
}

static void must_be_busy(const char *path) {
    REFUSED_AS(ETXTBSY, open(path, O_WRONLY));
    REFUSED_AS(ETXTBSY, open(path, O_RDWR));
    REFUSED_AS(ETXTBSY, open(path, O_RDONLY | O_TRUNC));
    REFUSED_AS(ETXTBSY, open(path, O_WRONLY | O_TRUNC | O_CREAT, 0700));
    REFUSED_AS(ETXTBSY, creat(path, 0700));
    REFUSED_AS(ETXTBSY, truncate(path, 0));
    MUST(access(path, R_OK | W_OK | X_OK) == 0);
    int file = open(path, O_RDONLY);
    MUST(file >= 0);
    char descriptor_path[64];
    snprintf(descriptor_path, sizeof descriptor_path, "/proc/self/fd/%d", file);
    REFUSED_AS(ETXTBSY, open(descriptor_path, O_WRONLY));
    REFUSED_AS(ETXTBSY, truncate(descriptor_path, 0));
    close(file);
}

static int status_of(char **words) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        execv(words[0], words);
        _exit(100 + errno % 100);
    }
    MUST(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* The program's own file cannot be written while it runs, by any name. It can be replaced. */
static void own_program(char *path) {
    char link_path[512], symbolic[512], other[512];
    snprintf(link_path, sizeof link_path, "%s.link", path);
    snprintf(symbolic, sizeof symbolic, "%s.symbolic", path);
    snprintf(other, sizeof other, "%s.other", path);
    MUST(link(path, link_path) == 0 && symlink(link_path, symbolic) == 0);
    must_be_busy(path);
    must_be_busy(link_path);
    must_be_busy(symbolic);
    must_be_busy("/proc/self/exe");
    /* Also while children run it that were made by fork, by thread calls and by vfork. */
    int ends[2];
    char byte;
    MUST(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        must_be_busy(path);
        char *words[] = {"/bin/sh", "-c", "read line; exit 0", 0};
        dup2(ends[0], 0), close(ends[1]);
        execv(words[0], words);
    }
    close(ends[0]);
    must_be_busy(path);
    close(ends[1]);
    MUST(waitpid(child, 0, 0) == child);
    /* A copy cannot be written while it runs, and can be written afterwards. */
    char *copying[] = {"/bin/cp", path, other, 0}, *waiting[] = {other, "wait", 0};
    MUST(status_of(copying) == 0);
    int file = open(other, O_WRONLY);
    MUST(file >= 0);
    MUST(status_of(waiting) == 100 + ETXTBSY);
    close(file);
    MUST(pipe(ends) == 0);
    int replies[2];
    MUST(pipe(replies) == 0);
    if ((child = fork()) == 0) {
        dup2(ends[0], 0), dup2(replies[1], 1);
        close(ends[1]), close(replies[0]);
        execv(other, waiting);
    }
    MUST(read(replies[0], &byte, 1) == 1);
    must_be_busy(other);
    MUST(rename(other, symbolic) == 0);
    must_be_busy(symbolic);
    close(ends[0]), close(ends[1]);
    MUST(waitpid(child, 0, 0) == child);
    MUST((file = open(symbolic, O_WRONLY | O_TRUNC)) >= 0);
    close(file);
    MUST(unlink(symbolic) == 0 && unlink(link_path) == 0 && chmod(path, 0711) == 0);
}

/* Prints a line, and runs until its standard input ends. */
static void wait_for_end(void) {
    char byte;
    write(1, "x", 1);
    while (read(0, &byte, 1) > 0) {
    }
    _exit(0);
}

/* The host's root is mounted at /host. Its /proc is not there, and other file systems that
 * configure the kernel are read-only. */
static void raw_files(const char *link_path) {
    static const char *paths[] = {"/host/proc", "/host/proc/", "/host/proc/self", "/host/proc/self/mem", "/host/proc/self/maps", "/host/proc/self/environ",
                                  "/host/proc/1/root/etc/passwd", "/host/proc/thread-self/mem", "/host/proc/sys/kernel/core_pattern", "/host/proc/sysrq-trigger",
                                  "/host/proc/../proc/self/mem", "/host/tmp/../proc/self/fd/0"};
    struct stat status;
    int root = open("/host", O_RDONLY | O_DIRECTORY);
    MUST(root >= 0 && symlink("/host/proc/self/mem", link_path) == 0);
    for (unsigned i = 0; i < sizeof paths / sizeof *paths; i++) {
        REFUSED_AS(ENOENT, open(paths[i], O_RDONLY));
        REFUSED_AS(ENOENT, open(paths[i], O_RDWR));
        REFUSED_AS(ENOENT, open(paths[i], O_PATH));
        REFUSED_AS(ENOENT, stat(paths[i], &status));
        REFUSED_AS(ENOENT, truncate(paths[i], 0));
        REFUSED_AS(ENOENT, openat(root, paths[i] + 6, O_RDWR));
    }
    REFUSED_AS(ENOENT, chdir("/host/proc"));
    REFUSED_AS(ENOENT, open(link_path, O_RDWR));
    MUST(unlink(link_path) == 0);
    if (stat("/host/sys/kernel", &status) == 0) {
        REFUSED_AS(EROFS, mkdir("/host/sys/kernel/new", 0700));
        REFUSED_AS(EROFS, chmod("/host/sys/kernel", 0700));
    }
    if (stat("/host/sys/fs/cgroup/cgroup.procs", &status) == 0) REFUSED_AS(EROFS, open("/host/sys/fs/cgroup/cgroup.procs", O_WRONLY));
    if (stat("/host/sys/fs/cgroup/unified/cgroup.procs", &status) == 0) REFUSED_AS(EROFS, open("/host/sys/fs/cgroup/unified/cgroup.procs", O_WRONLY));
    /* Ordinary files are there, and so are the instance's own processes in /proc. */
    MUST(stat("/host/etc/passwd", &status) == 0 && open("/proc/self/status", O_RDONLY) >= 0);
}

static char *descriptor_path(pid_t process, int number) {
    static char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", process, number);
    return path;
}

/* Descriptors that lead outside: 7 for reading, 8 for writing, 9 a directory. Files can be made in
 * /jail, which is on the same file system. */
static void inherited(void) {
    int ends[2];
    char byte;
    MUST(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[1]);
        read(ends[0], &byte, 1);
        _exit(0);
    }
    pid_t holders[] = {getpid(), child};
    for (int i = 0; i < 2; i++) {
        REFUSED_AS(EACCES, open(descriptor_path(holders[i], 7), O_WRONLY));
        REFUSED_AS(EACCES, open(descriptor_path(holders[i], 7), O_RDWR));
        REFUSED_AS(EACCES, open(descriptor_path(holders[i], 7), O_RDONLY | O_TRUNC));
        REFUSED_AS(EACCES, truncate(descriptor_path(holders[i], 7), 0));
        REFUSED_AS(EACCES, chmod(descriptor_path(holders[i], 7), 0777));
        REFUSED_AS(EACCES, linkat(AT_FDCWD, descriptor_path(holders[i], 7), AT_FDCWD, "/jail/stolen", AT_SYMLINK_FOLLOW));
        REFUSED_AS(EACCES, open(descriptor_path(holders[i], 8), O_RDONLY));
        REFUSED_AS(EACCES, open(descriptor_path(holders[i], 8), O_RDWR));
        REFUSED_AS(EPERM, linkat(AT_FDCWD, descriptor_path(holders[i], 8), AT_FDCWD, "/jail/stolen", AT_SYMLINK_FOLLOW));
        REFUSED_AS(EPERM, chmod(descriptor_path(holders[i], 8), 0777));
        REFUSED_AS(EACCES, open(descriptor_path(holders[i], 9), O_TMPFILE | O_RDWR, 0600));
        MUST(open(descriptor_path(holders[i], 7), O_RDONLY) >= 0 && open(descriptor_path(holders[i], 8), O_WRONLY) >= 0);
    }
    REFUSED_AS(EACCES, linkat(7, "", AT_FDCWD, "/jail/stolen", AT_EMPTY_PATH));
    REFUSED_AS(EPERM, linkat(8, "", AT_FDCWD, "/jail/stolen", AT_EMPTY_PATH));
    REFUSED_AS(EACCES, fchmod(7, 0777));
    REFUSED_AS(EPERM, fchmod(8, 0777));
    REFUSED_AS(EACCES, fchown(7, -1, -1));
    REFUSED_AS(EACCES, futimens(7, 0));
    REFUSED_AS(EACCES, fsetxattr(7, "user.mine", "x", 1, 0));
    REFUSED_AS(EACCES, syscall(SYS_execveat, 8, "", 0, 0, AT_EMPTY_PATH));
    REFUSED_AS(ENOENT, openat(9, "secret", O_RDONLY));
    REFUSED_AS(ENOENT, open("/proc/self/fd/9/secret", O_RDONLY));
    int naming = open("/proc/self/fd/7", O_PATH);
    MUST(naming >= 0);
    REFUSED_AS(EACCES, open(descriptor_path(getpid(), naming), O_RDONLY));
    REFUSED_AS(EACCES, open(descriptor_path(getpid(), naming), O_WRONLY));
    /* What belongs to the program itself: files without a name, in memory, in a pipe, removed. */
    int unnamed = open("/jail", O_TMPFILE | O_RDWR, 0600), memory = memfd_create("memory", 0), removed = open("/jail/removed", O_CREAT | O_RDWR, 0600);
    MUST(unnamed >= 0 && memory >= 0 && removed >= 0 && unlink("/jail/removed") == 0 && fchmod(removed, 0640) == 0 && fchmod(unnamed, 0640) == 0);
    MUST(open(descriptor_path(getpid(), memory), O_RDWR) >= 0 && open(descriptor_path(getpid(), memory), O_RDONLY) >= 0);
    MUST(open(descriptor_path(getpid(), removed), O_RDWR) >= 0 && open(descriptor_path(getpid(), ends[0]), O_RDONLY) >= 0);
    REFUSED_AS(EACCES, open(descriptor_path(getpid(), ends[0]), O_WRONLY));
    MUST(linkat(AT_FDCWD, descriptor_path(getpid(), unnamed), AT_FDCWD, "/jail/made", AT_SYMLINK_FOLLOW) == 0);
    int made = open("/jail/made", O_RDONLY);
    MUST(made >= 0 && open(descriptor_path(getpid(), made), O_RDWR) >= 0 && unlink("/jail/made") == 0);
    close(ends[1]);
    MUST(waitpid(child, 0, 0) == child);
}

/* A terminal that is gone, when another one outside has got its number. */
static void gone_terminal(void) {
    char name[64], byte;
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY), locked = 0, number;
    MUST(master >= 0 && ioctl(master, TIOCSPTLCK, &locked) == 0 && ioctl(master, TIOCGPTN, &number) == 0);
    snprintf(name, sizeof name, "/dev/pts/%d", number);
    int slave = open(name, O_RDWR | O_NOCTTY), naming = open(name, O_PATH);
    MUST(slave >= 0 && naming >= 0 && isatty(slave));
    close(slave);
    close(master);
    printf("%d\n", number);
    fflush(stdout);
    MUST(read(0, &byte, 1) == 1);
    REFUSED_AS(EACCES, open(name, O_RDONLY | O_NOCTTY | O_NONBLOCK));
    REFUSED_AS(EACCES, open(name, O_RDWR | O_NOCTTY));
    REFUSED_AS(EACCES, open(descriptor_path(getpid(), naming), O_RDWR | O_NOCTTY));
}

static volatile sig_atomic_t arrivals;

static void count_arrival(int signal) { arrivals++; }

/* Signals about a terminal's input go to the process that asked for them, and not to the foreground
 * group. */
static void async_terminal(void) {
    int locked = 0, number, ends[2];
    char name[64], byte;
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    MUST(master >= 0 && ioctl(master, TIOCSPTLCK, &locked) == 0 && ioctl(master, TIOCGPTN, &number) == 0 && pipe(ends) == 0);
    snprintf(name, sizeof name, "/dev/pts/%d", number);
    pid_t child = fork();
    if (child == 0) {
        setsid();
        int own = open(name, O_RDWR);
        ioctl(own, TIOCSCTTY, 0);
        tcsetpgrp(own, getpid());
        write(ends[1], "x", 1);
        for (;;) pause();
    }
    MUST(read(ends[0], &byte, 1) == 1);
    signal(SIGIO, count_arrival);
    for (int way = 0; way < 2; way++) {
        int terminal = open(name, O_RDWR | O_NOCTTY), on = 1, off = 0;
        MUST(terminal >= 0);
        if (way) MUST(ioctl(terminal, FIOASYNC, &on) == 0);
        else MUST(fcntl(terminal, F_SETFL, O_ASYNC) == 0);
        arrivals = 0;
        MUST(write(master, "key\n", 4) == 4);
        while (!arrivals && waitpid(child, 0, WNOHANG) == 0) usleep(1000);
        MUST(arrivals > 0 && kill(child, 0) == 0);
        MUST(fcntl(terminal, F_GETFL) & O_ASYNC && fcntl(terminal, F_GETOWN) == getpid());
        MUST(ioctl(terminal, FIOASYNC, &off) == 0 && !(fcntl(terminal, F_GETFL) & O_ASYNC));
        close(terminal);
    }
    kill(child, SIGKILL);
    MUST(waitpid(child, 0, 0) == child);
}

/* Clients are killed while they wait for the other end of a named pipe. */
static void killed_openers(const char *path) {
    enum { OPENERS = 48 };
    pid_t openers[OPENERS];
    char byte;
    MUST(mkfifo(path, 0600) == 0);
    for (int i = 0; i < OPENERS; i++)
        if ((openers[i] = fork()) == 0) _exit(open(path, i % 2 ? O_RDONLY : O_RDONLY | O_CLOEXEC) < 0);
    puts("open");
    fflush(stdout);
    MUST(read(0, &byte, 1) == 1);
    for (int i = 0; i < OPENERS; i++) MUST(kill(openers[i], SIGKILL) == 0 && waitpid(openers[i], 0, 0) == openers[i]);
    puts("killed");
    fflush(stdout);
    MUST(read(0, &byte, 1) == 1);
    /* Each of them counts as a reader until the server has given up its call. */
    int writer;
    while ((writer = open(path, O_WRONLY | O_NONBLOCK)) >= 0) close(writer);
    int refusal = errno;
    MUST(refusal == ENXIO);
    /* Then a client opens a pipe whose other end is opened. */
    pid_t reader = fork();
    if (reader == 0) _exit(read(open(path, O_RDONLY), &byte, 1) != 1 || byte != 'w');
    int status;
    writer = open(path, O_WRONLY);
    MUST(writer >= 0 && write(writer, "w", 1) == 1 && waitpid(reader, &status, 0) == reader && status == 0);
}

static void *wait_for_signal(void *unused) {
    *(volatile pid_t *)unused = syscall(SYS_gettid);
    while (!arrivals) usleep(1000);
    return 0;
}

/* A thread is named by its number alone: own threads are reached, others are not. */
static void threads(void) {
    volatile pid_t number = 0;
    pthread_t thread;
    signal(SIGUSR1, count_arrival);
    MUST(pthread_create(&thread, 0, wait_for_signal, (void *)&number) == 0);
    while (!number) usleep(1000);
    MUST(syscall(SYS_tkill, number, SIGUSR1) == 0 && pthread_join(thread, 0) == 0 && arrivals == 1);
    MUST(syscall(SYS_tkill, syscall(SYS_gettid), SIGUSR1) == 0 && arrivals == 2);
    MUST(syscall(SYS_tgkill, getpid(), getpid(), SIGUSR1) == 0 && arrivals == 3);
    REFUSED_AS(ESRCH, syscall(SYS_tkill, number, 0));
    REFUSED_AS(ESRCH, syscall(SYS_tkill, 1, 0));
    REFUSED_AS(ESRCH, syscall(SYS_tkill, atoi(getenv("KYOCHO_TEST_PARENT")), SIGKILL));
    REFUSED_AS(ESRCH, syscall(SYS_tgkill, getpid(), 1, 0));
    REFUSED_AS(EINVAL, syscall(SYS_tkill, syscall(SYS_gettid), 99));
}

/* Segments of shared memory, with a limit of 64 MiB for the instance. */
static void segments(void) {
    const size_t bytes = 40ul << 20;
    int first = shmget(IPC_PRIVATE, bytes, 0600);
    MUST(first >= 0);
    REFUSED_AS(ENOMEM, shmget(IPC_PRIVATE, bytes, 0600));
    REFUSED_AS(ENOMEM, shmget(77, 1ul << 62, IPC_CREAT | 0600));
    int small = shmget(IPC_PRIVATE, 4096, 0600);
    MUST(small >= 0 && shmctl(first, IPC_RMID, 0) == 0);
    MUST((first = shmget(IPC_PRIVATE, bytes, 0600)) >= 0);
    /* A mapped segment still counts after its removal. */
    void *mapped = shmat(small, 0, 0);
    MUST(mapped != (void *)-1 && shmctl(small, IPC_RMID, 0) == 0);
    REFUSED_AS(ENOMEM, shmget(IPC_PRIVATE, (64ul << 20) - bytes, 0600));
    MUST(shmdt(mapped) == 0 && shmget(IPC_PRIVATE, (64ul << 20) - bytes, 0600) >= 0);
}

int main(int count, char **words) {
    const char *attack = words[1];
    if (!strcmp(attack, "below-guard")) below_guard();
    else if (!strcmp(attack, "strangers-numbers")) strangers_numbers();
    else if (!strcmp(attack, "own-program")) own_program(words[0]);
    else if (!strcmp(attack, "raw-files")) raw_files(words[2]);
    else if (!strcmp(attack, "inherited")) inherited();
    else if (!strcmp(attack, "gone-terminal")) gone_terminal();
    else if (!strcmp(attack, "async-terminal")) async_terminal();
    else if (!strcmp(attack, "killed-openers")) killed_openers(words[2]);
    else if (!strcmp(attack, "threads")) threads();
    else if (!strcmp(attack, "segments")) segments();
    else if (!strcmp(attack, "wait")) wait_for_end();
    else return 2;
    puts("held");
    return 0;
}
