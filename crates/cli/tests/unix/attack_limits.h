/* Attacks on an instance's limits: descriptors, memory, memory files, tasks and processor time. A
 * part of attackers.c. */
/* The limit is 64. */
static void few_descriptors(void) {
    for (int round = 0; round < 3; round++) {
        int last, first = open("/dev/null", O_RDONLY);
        while ((last = open("/dev/null", O_RDONLY)) >= 0) {
        }
        if (first < 0 || errno != EMFILE) {
            printf("round %d: %s\n", round, strerror(errno));
            exit(1);
        }
        REFUSED_AS(EMFILE, chdir("/"));
        for (int number = 3; number < 64; number++)
            close(number);
    }
    if (chdir("/")) exit(1);
    REFUSED_AS(EPERM, setrlimit(RLIMIT_NOFILE, &(struct rlimit){128, 128}));
}

static void exhaustion(void) {
    struct rlimit limit = {64, 64};
    setrlimit(RLIMIT_NOFILE, &limit);
    few_descriptors();
}

static void memory(void) {
    REFUSED_AS(ENOMEM, mmap(0, 256ul << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    REFUSED_AS(EPERM, setrlimit(RLIMIT_AS, &limit));
}

/* Writes to `file` until ENOSPC. Returns the number of bytes, which must be at most twice the
 * limit. */
static long fill(int file) {
    static char block[1 << 20];
    memset(block, 1, sizeof block);
    long all = 0, written;
    while ((written = write(file, block, sizeof block)) > 0 && all < 128l << 20) all += written;
    if (written < 0 && errno != ENOSPC) exit(1);
    return all;
}

/* The limit is 64 MiB. Memory files and the files of /dev/shm count together. */
static void memory_files(void) {
    const long most = 64l << 20, page = 4096;
    int memory = memfd_create("first", MFD_CLOEXEC);
    if (memory < 0 && errno == ENOSYS) {
        /* The host permits no file system for memory files, so there are none. */
        REFUSED_AS(EROFS, open("/dev/shm/file", O_CREAT | O_RDWR, 0600));
        REFUSED_AS(ENOMEM, mmap(0, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
        puts("none");
        exit(0);
    }
    char text[64] = "", link[64];
    MUST(memory >= 0 && fcntl(memory, F_GETFD) == FD_CLOEXEC);
    snprintf(link, sizeof link, "/proc/self/fd/%d", memory);
    MUST(readlink(link, text, sizeof text) > 0);
    MUST(!strcmp(text, "/memfd:first (deleted)"));
    int second = memfd_create("first", 0), file = open("/dev/shm/file", O_CREAT | O_RDWR, 0600);
    MUST(second >= 0 && fcntl(second, F_GETFD) == 0 && file >= 0);
    long in_memory = fill(memory);
    MUST(in_memory > most - 64 * page && in_memory <= most);
    MUST(fill(second) <= 64 * page && fill(file) <= 64 * page);
    /* Closing a memory file releases its memory. Removing a file of /dev/shm does so, too. */
    close(memory);
    long in_file = fill(file);
    MUST(in_file > most / 2 && in_file <= most);
    MUST(fill(second) <= 64 * page);
    MUST(unlink("/dev/shm/file") == 0 && close(file) == 0 && fill(second) > most / 2);
    /* A second process does not increase the limit. */
    pid_t child = fork();
    if (!child) _exit(fill(memfd_create("third", 0)) > 64 * page);
    int status;
    MUST(waitpid(child, &status, 0) == child && status == 0);
    close(second);
    /* Shared memory without a file counts completely while any part of it is mapped. A store beyond
     * the limit is a SIGBUS. */
    child = fork();
    if (!child) {
        for (int round = 0; round < 8; round++) {
            char *part = mmap(0, 32 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
            if (part == MAP_FAILED) _exit(1);
            memset(part, 1, 32 << 20);
            munmap(part + page, (32 << 20) - page);
        }
        _exit(0);
    }
    MUST(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    int next = dup(0), device = open("/dev/zero", O_RDWR);
    volatile char *shared = mmap(0, 2 * page + 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    MUST(shared != MAP_FAILED && shared[2 * page] == 0 && device >= 0);
    child = fork();
    if (!child) _exit((shared[3 * page - 1] = 7) != 7);
    MUST(waitpid(child, &status, 0) == child && status == 0 && shared[3 * page - 1] == 7);
    MUST(mmap((void *)(1ul << 40), page, PROT_READ, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == (void *)(1ul << 40));
    REFUSED_AS(EPERM, mmap((void *)LAUNCHER, page, PROT_READ, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    REFUSED_AS(EINVAL, mmap(0, 0, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    REFUSED_AS(ENOMEM, mmap(0, -1ul, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    REFUSED_AS(ENOMEM, mmap(0, page, PROT_READ, MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0));
    REFUSED_AS(EACCES, mmap(0, page, PROT_READ | PROT_WRITE, MAP_SHARED, device, 0));
    REFUSED_AS(EACCES, open("/dev/zero", O_WRONLY));
    char *private = mmap(0, page, PROT_READ | PROT_WRITE, MAP_PRIVATE, device, 0);
    MUST(private != MAP_FAILED && (private[0] = 1));
    /* None of these mappings holds a descriptor. */
    MUST(close(device) == 0 && close(next) == 0 && dup(0) == next && close(next) == 0);
    /* Empty files take memory, too. */
    int many = 0;
    for (char path[64]; many < 10000; many++) {
        snprintf(path, sizeof path, "/dev/shm/%d", many);
        int empty = open(path, O_CREAT | O_WRONLY, 0600);
        if (empty < 0) break;
        close(empty);
    }
    MUST(many > 1000 && many < 10000);
    REFUSED_AS(ENOSPC, memfd_create("full", 0));
    MUST(unlink("/dev/shm/0") == 0 && (memory = memfd_create("again", 0)) >= 0);
    MUST(fcntl(memory, F_GET_SEALS) == F_SEAL_SEAL);
    MUST(close(memory) == 0 && (memory = memfd_create("dir/../name", 0)) >= 0);
    REFUSED_AS(EINVAL, memfd_create("sealed", MFD_ALLOW_SEALING));
    REFUSED_AS(EINVAL, memfd_create("huge", MFD_HUGETLB));
    REFUSED_AS(EFAULT, memfd_create((char *)1, 0));
    char name[251] = "";
    memset(name, 'n', 250);
    REFUSED_AS(EINVAL, memfd_create(name, 0));
}

/* Processes that are hard to end: in sessions of their own, with all signals ignored, without
 * parents, and one that replaces itself by a child again and again. They hold standard output. */
static void outlive(void) {
    for (int kind = 0; kind < 10; kind++) {
        pid_t next;
        if (fork()) continue;
        if (kind & 1) setsid();
        if (kind & 2)
            for (int signal = 1; signal < 32; signal++) sigaction(signal, &(struct sigaction){.sa_handler = SIG_IGN}, 0);
        if (kind & 4 && fork()) _exit(0);
        while (kind & 8 && (next = fork()) >= 0)
            if (next > 0) _exit(0);
        for (;;) pause();
    }
}

static void stay(void) {
    outlive();
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}

static void *wait_for_stop(void *unused) {
    while (!stop) usleep(1000);
    return 0;
}

/* Makes as many tasks as the limit permits, and more once those have ended. */
static void task_bomb(void) {
    for (int round = 0; round < 3; round++) {
        pid_t children[64];
        int made = 0, threads = 0, status;
        while (made < 64 && (children[made] = fork()) > 0) made++;
        if (children[made] == 0)
            for (;;) pause();
        if (errno != EAGAIN || made < 4 || made > 16) {
            printf("round %d: %d processes, %s\n", round, made, strerror(errno));
            exit(1);
        }
        while (made > 0) {
            kill(children[--made], SIGKILL);
            waitpid(children[made], &status, 0);
        }
        pthread_t thread[64];
        stop = 0;
        while (threads < 64 && (status = pthread_create(&thread[threads], 0, wait_for_stop, 0)) == 0) threads++;
        if (status != EAGAIN || threads < 4 || threads > 16) {
            printf("round %d: %d threads, %s\n", round, threads, strerror(status));
            exit(1);
        }
        stop = 1;
        while (threads > 0) pthread_join(thread[--threads], 0);
    }
}

static void spin(void) {
    for (;;) {
    }
}

/* Uses some processor time in a new process, repeatedly: one whose parent ignores its end, or one
 * without a parent. */
static void spin_in_others(int orphans) {
    signal(SIGCHLD, orphans ? SIG_DFL : SIG_IGN);
    for (;;) {
        int ends[2];
        char byte;
        if (pipe(ends)) exit(1);
        if (fork() == 0) {
            if (orphans && fork()) _exit(0);
            while (clock() < CLOCKS_PER_SEC / 8) {
            }
            _exit(0);
        }
        close(ends[1]);
        read(ends[0], &byte, 1);
        close(ends[0]);
        if (orphans) wait(0);
    }
}
