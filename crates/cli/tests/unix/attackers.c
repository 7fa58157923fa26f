/* Attacks on the UNIX server from inside. An attack prints `held` if every attempt failed with the
 * expected error. */
#define _GNU_SOURCE
#include "attack.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define LAUNCHER 0x10000ul

/* Ends the threads of an attack. */
static volatile int stop;

#include "attack_limits.h"

static void forbidden_calls(void) {
    char buffer[256] = {0};
    /* System calls that do not exist inside. */
    static const int absent[] = {SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_mount, SYS_umount2,
                                 SYS_pivot_root, SYS_chroot, SYS_unshare, SYS_setns, SYS_bpf, SYS_perf_event_open,
                                 SYS_userfaultfd, SYS_open_by_handle_at, SYS_name_to_handle_at, SYS_keyctl, SYS_add_key,
                                 SYS_init_module, SYS_reboot, SYS_swapon, SYS_sethostname, SYS_pidfd_getfd, SYS_kcmp,
                                 SYS_remap_file_pages, SYS_io_setup, 425 /* io_uring_setup */, SYS_iopl, SYS_ioperm, SYS_acct,
                                 SYS_quotactl, SYS_seccomp, SYS_move_pages, SYS_process_madvise, SYS_mbind, SYS_syslog,
                                 SYS_get_robust_list, SYS_fanotify_init, SYS_clock_settime, SYS_settimeofday, SYS_migrate_pages,
                                 442 /* mount_setattr */, 429 /* move_mount */, 430 /* fsopen */, 444 /* landlock_create_ruleset */,
                                 447 /* memfd_secret */, 462 /* mseal */};
    for (unsigned i = 0; i < sizeof absent / sizeof *absent; i++)
        REFUSED_AS(ENOSYS, syscall(absent[i], 1, buffer, buffer, buffer, 0, 0));
    REFUSED_AS(ESRCH, syscall(SYS_pidfd_open, 1, 0));
    REFUSED_AS(EINVAL, syscall(SYS_pidfd_open, 1, buffer));
    REFUSED_AS(EBADF, syscall(SYS_pidfd_send_signal, 0, 0, 0, 0));
    REFUSED_AS(EINVAL, syscall(SYS_pidfd_send_signal, 0, 0, 0, 1));
    REFUSED_AS(ESRCH, syscall(SYS_rt_sigqueueinfo, 1, 0, buffer));
    REFUSED_AS(EPERM, syscall(SYS_rt_tgsigqueueinfo, 1, 1, 0, buffer));
    REFUSED_AS(EPERM, syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
    REFUSED_AS(ENOSYS, syscall(SYS_clone3, buffer, 88));
    REFUSED_AS(EPERM, fcntl(0, F_SETOWN, 1));
    REFUSED_AS(EPERM, fcntl(0, F_SETOWN, -1));
    REFUSED_AS(EINVAL, fcntl(0, F_SETSIG, SIGKILL));
    REFUSED_AS(ENOTTY, ioctl(0, TIOCSTI, "x"));
    REFUSED_AS(EINVAL, prctl(PR_SET_DUMPABLE, 0));
    REFUSED_AS(EINVAL, prctl(PR_SET_SECCOMP, 1));
    REFUSED_AS(EPERM, mknod("device", S_IFCHR | 0600, 0x0101));
    REFUSED_AS(EPERM, setxattr("/tmp", "security.capability", buffer, 20, 0));
    REFUSED_AS(EPERM, setxattr("/tmp", "trusted.name", buffer, 1, 0));
    REFUSED_AS(ENODATA, getxattr("/tmp", "trusted.name", buffer, sizeof buffer));
    REFUSED_AS(EACCES, inotify_add_watch(inotify_init(), "/dev", IN_CREATE));
    REFUSED_AS(EAFNOSUPPORT, socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT));
    REFUSED_AS(EAFNOSUPPORT, socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT));
    REFUSED_AS(EAFNOSUPPORT, socket(AF_PACKET, SOCK_RAW, 0));
    /* Requests to take the loopback interface down: alone, after a query, and as a bare message. */
    struct {
        struct nlmsghdr header;
        struct ifinfomsg message;
    } asks[2] = {{{sizeof *asks, RTM_GETLINK, NLM_F_REQUEST}}, {{sizeof *asks, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK}, {.ifi_index = 1, .ifi_change = IFF_UP}}};
    struct sockaddr_nl host = {.nl_family = AF_NETLINK};
    int netlink = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    REFUSED_AS(EPERM, sendto(netlink, &asks[1], sizeof *asks, 0, (void *)&host, sizeof host));
    REFUSED_AS(EPERM, sendto(netlink, asks, sizeof asks, 0, (void *)&host, sizeof host));
    REFUSED_AS(EINVAL, sendto(netlink, asks, 7, 0, (void *)&host, sizeof host));
    struct {
        struct nlmsghdr header;
        struct nlmsgerr error;
    } answer;
    if (write(netlink, &asks[1], sizeof *asks) < 0 || read(netlink, &answer, sizeof answer) < 0 || answer.error.error != -EPERM) exit(1);
}

static void strangers(void) {
    char path[64];
    pid_t server = getppid(), stranger = atoi(getenv("KYOCHO_TEST_PARENT"));
    pid_t others[] = {server, stranger, 1};
    for (int i = 0; i < 3; i++) {
        REFUSED_AS(ESRCH, kill(others[i], 0));
        REFUSED_AS(ESRCH, syscall(SYS_tkill, others[i], 0));
        REFUSED_AS(ESRCH, syscall(SYS_tgkill, others[i], others[i], 0));
        REFUSED_AS(EPERM, setpriority(PRIO_PROCESS, others[i], 19));
        REFUSED_AS(EPERM, prlimit(others[i], RLIMIT_NOFILE, 0, 0));
        static const char *names[] = {"mem", "maps", "root", "root/etc/passwd", "cwd", "fd/0", "environ", "status"};
        for (unsigned k = 0; k < sizeof names / sizeof *names; k++) {
            snprintf(path, sizeof path, "/proc/%d/%s", others[i], names[k]);
            REFUSED_AS(ENOENT, open(path, O_RDONLY));
        }
    }
    REFUSED_AS(ENOENT, open("/proc/self/mem", O_RDWR));
    REFUSED_AS(EROFS, open("/proc/sys/kernel/hostname", O_WRONLY));
    REFUSED_AS(ENOENT, open("/proc/sysrq-trigger", O_WRONLY));
    REFUSED_AS(ENOENT, open("/dev/mem", O_RDONLY));
    REFUSED_AS(ENOENT, open("/dev/kmsg", O_RDONLY));
    REFUSED_AS(ENOENT, open("/proc/self/root/proc/1/root/etc/passwd", O_RDONLY));
}

static void launcher_mappings(void) {
    void *launcher = (void *)LAUNCHER;
    REFUSED_AS(EPERM, munmap(launcher, 4096));
    REFUSED_AS(EPERM, munmap(0, 1ul << 46));
    REFUSED_AS(EPERM, mprotect(launcher, 4096, PROT_READ | PROT_WRITE | PROT_EXEC));
    REFUSED_AS(EPERM, mmap(launcher, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    REFUSED_AS(EINVAL, mremap(launcher, 4096, 8192, MREMAP_MAYMOVE));
    void *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REFUSED_AS(EINVAL, mremap(page, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, launcher));
    REFUSED_AS(EINVAL, madvise(launcher, 4096, MADV_DONTNEED));
    /* The host itself executes nothing but the launcher. */
    REFUSED_AS(ENOENT, execve("/no/such/program", 0, 0));
}

static void descriptors(void) {
    char byte;
    /* Leaves the descriptors that the program was started with. */
    close_range(3, ~0u, 0);
    for (int number = 3; number < 4096; number++) {
        REFUSED_AS(EBADF, read(number, &byte, 1));
        REFUSED_AS(EBADF, fcntl(number, F_GETFL));
    }
    REFUSED_AS(EBADF, openat(77, "x", O_RDONLY));
    REFUSED_AS(EBADF, fchmod(77, 0));
    REFUSED_AS(EBADF, openat(-5, "x", O_RDONLY));
}

static void pointers(void) {
    char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page + 4096, 4096);
    memset(page, 'a', 4096);
    struct stat status;
    REFUSED_AS(EFAULT, open((char *)-1, O_RDONLY));
    REFUSED_AS(EFAULT, open((char *)8, O_RDONLY));
    REFUSED_AS(EFAULT, open(page + 4000, O_RDONLY));
    REFUSED_AS(EFAULT, stat("/", (struct stat *)8));
    REFUSED_AS(EFAULT, syscall(SYS_execve, "/bin/true", 8, 0));
    REFUSED_AS(EFAULT, readlink("/proc/self/exe", (char *)8, 100));
    REFUSED_AS(EFAULT, connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)8, 16));
    char *deep = malloc(100000);
    memset(deep, '/', 99999);
    deep[99999] = 0;
    REFUSED_AS(ENAMETOOLONG, open(deep, O_RDONLY));
    REFUSED_AS(ENOENT, open("", O_RDONLY));
    /* A path that ends exactly at the end of a mapping. */
    strcpy(page + 4096 - 10, "/dev/null");
    if (open(page + 4096 - 10, O_RDONLY) < 0) exit(1);
}

static char shared_path[4096];
static const char *secret;

static void *scribble(void *unused) {
    while (!stop) {
        strcpy(shared_path, "/jail/inside");
        strcpy(shared_path, secret);
    }
    return 0;
}

static void *swap_links(void *unused) {
    while (!stop) {
        symlink("/", "/jail/turn");
        unlink("/jail/turn");
        mkdir("/jail/turn", 0700);
        rmdir("/jail/turn");
        symlink("../../../../../../..", "/jail/turn");
        unlink("/jail/turn");
    }
    return 0;
}

/* The secret lies outside of the mounts. While the server resolves a path, it is changed, and links
 * and directories replace each other. */
static void races(void) {
    pthread_t threads[2];
    char through[4096];
    REFUSED_AS(ENOENT, open(secret, O_RDONLY));
    snprintf(through, sizeof through, "/jail/turn%s", secret);
    pthread_create(&threads[0], 0, scribble, 0);
    pthread_create(&threads[1], 0, swap_links, 0);
    for (int i = 0; i < 300; i++) {
        REFUSED(open(shared_path, O_RDONLY));
        REFUSED(open(through, O_RDONLY));
        REFUSED(open("/jail/../../../../../../../../../root/secret", O_RDONLY));
    }
    stop = 1;
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
}

static struct sockaddr_in address(const char *text, int port) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, text, &name.sin_addr);
    return name;
}

static void no_network(void) {
    REFUSED_AS(EAFNOSUPPORT, socket(AF_INET, SOCK_STREAM, 0));
    REFUSED_AS(EAFNOSUPPORT, socket(AF_INET6, SOCK_DGRAM, 0));
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || write(pair[0], "x", 1) != 1) exit(1);
    struct ifreq first = {.ifr_ifindex = 1};
    REFUSED_AS(ENODEV, ioctl(pair[0], SIOCGIFNAME, &first));
}

static void loopback(void) {
    struct sockaddr_in own = address("127.0.0.1", 0), far = address("192.0.2.1", 9);
    socklen_t length = sizeof own;
    int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(server, (void *)&own, length) || listen(server, 1) || getsockname(server, (void *)&own, &length) ||
        connect(client, (void *)&own, length)) {
        perror("loopback");
        exit(1);
    }
    int other = socket(AF_INET, SOCK_STREAM, 0), datagrams = socket(AF_INET, SOCK_DGRAM, 0);
    REFUSED_AS(EPERM, setsockopt(datagrams, SOL_SOCKET, SO_BINDTODEVICE, "", 0));
    REFUSED_AS(EPERM, setsockopt(datagrams, SOL_SOCKET, SO_BINDTODEVICE, "eth0", 5));
    fcntl(other, F_SETFL, O_NONBLOCK);
    REFUSED_AS(ENETUNREACH, connect(other, (void *)&far, sizeof far));
    REFUSED_AS(EPERM, socket(AF_INET, SOCK_RAW, 1));
    /* A packet that names another interface. */
    struct {
        struct cmsghdr header;
        struct in_pktinfo information;
    } control = {{sizeof control.header + sizeof control.information, IPPROTO_IP, IP_PKTINFO}, {.ipi_ifindex = 2}};
    struct iovec part = {"x", 1};
    struct msghdr message = {&own, sizeof own, &part, 1, &control, sizeof control};
    REFUSED_AS(EINVAL, sendmsg(datagrams, &message, 0));
    REFUSED_AS(EAFNOSUPPORT, socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
}

/* The arguments are numbers of objects of the host: a segment, a set of semaphores, a queue. */
static void objects(char **numbers) {
    int memory = atoi(numbers[0]), semaphores = atoi(numbers[1]), messages = atoi(numbers[2]);
    long buffer[64] = {1};
    struct sembuf up = {0, 1, IPC_NOWAIT};
    REFUSED_AS(EINVAL, shmat(memory, 0, 0));
    REFUSED_AS(EINVAL, semop(semaphores, &up, 1));
    REFUSED_AS(EINVAL, msgsnd(messages, buffer, 8, IPC_NOWAIT));
    REFUSED_AS(EINVAL, msgrcv(messages, buffer, 8, 0, IPC_NOWAIT));
    static const int commands[] = {IPC_RMID, IPC_STAT, IPC_SET, IPC_INFO, SHM_STAT, SHM_INFO, SEM_STAT, SEM_INFO, MSG_STAT, MSG_INFO, GETALL, SETALL, 15, 20};
    for (unsigned i = 0; i < sizeof commands / sizeof *commands; i++) {
        REFUSED_AS(EINVAL, shmctl(memory, commands[i], (void *)buffer));
        REFUSED_AS(EINVAL, semctl(semaphores, 0, commands[i], buffer));
        REFUSED_AS(EINVAL, msgctl(messages, commands[i], (void *)buffer));
    }
    /* Segments of its own: mapped onto the launcher, too many, and used as another kind of object.
     * */
    int own = shmget(IPC_PRIVATE, 4096, 0600), made = 0, set[1024];
    if (own < 0) exit(1);
    REFUSED_AS(EINVAL, shmat(own, (void *)LAUNCHER, SHM_REMAP));
    REFUSED_AS(EINVAL, shmat(own, (void *)(LAUNCHER + 1), SHM_REMAP | SHM_RND));
    REFUSED_AS(EINVAL, shmdt((void *)LAUNCHER));
    REFUSED_AS(EFAULT, shmctl(own, IPC_STAT, (void *)8));
    while (made < 1024 && (set[made] = semget(IPC_PRIVATE, 1, 0600)) >= 0) made++;
    if (made == 1024 || errno != ENOSPC) exit(1);
    REFUSED_AS(EINVAL, msgsnd(set[0] == own ? set[1] : set[0], buffer, 8, IPC_NOWAIT));
    while (made > 0)
        if (semctl(set[--made], 0, IPC_RMID)) exit(1);
    if (semget(IPC_PRIVATE, 1, 0600) < 0) exit(1);
}

static struct msghdr racing;
static struct sockaddr_un raced;

static void *turn(void *unused) {
    while (!stop) {
        racing.msg_name = &raced;
        raced.sun_path[1] = '-';
        racing.msg_name = 0;
        raced.sun_path[1] = secret[0];
    }
    return 0;
}

/* The name is that of a socket of the host. */
static void datagrams(void) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t length = 3 + strlen(secret), own_length = sizeof raced;
    strcpy(name.sun_path + 1, secret);
    int from = socket(AF_UNIX, SOCK_DGRAM, 0), pair[2];
    struct iovec part = {"x", 1};
    length--;
    struct msghdr message = {.msg_name = &name, .msg_namelen = length, .msg_iov = &part, .msg_iovlen = 1};
    struct mmsghdr many = {message};
    REFUSED_AS(ECONNREFUSED, sendto(from, "x", 1, 0, (void *)&name, length));
    REFUSED_AS(ECONNREFUSED, sendmsg(from, &message, 0));
    REFUSED_AS(ECONNREFUSED, sendmmsg(from, &many, 1, 0));
    REFUSED_AS(ECONNREFUSED, connect(from, (void *)&name, length));
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair)) exit(1);
    REFUSED_AS(ECONNREFUSED, sendmsg(pair[0], &message, 0));
    /* Invalid bytes in place of a message. */
    struct msghdr bad = message;
    REFUSED_AS(EFAULT, sendmsg(from, (void *)8, 0));
    bad.msg_iov = (void *)8;
    REFUSED_AS(EFAULT, sendmsg(from, &bad, 0));
    bad = message, bad.msg_iovlen = 1ul << 40;
    REFUSED_AS(EMSGSIZE, sendmsg(from, &bad, 0));
    struct iovec long_parts[2] = {{"x", ~0ul >> 1}, {"x", ~0ul >> 1}};
    bad = message, bad.msg_name = 0, bad.msg_iov = long_parts, bad.msg_iovlen = 2;
    REFUSED_AS(EINVAL, sendmsg(pair[0], &bad, 0));
    bad = message, bad.msg_name = 0, bad.msg_control = "1234567890123456", bad.msg_controllen = 16;
    REFUSED_AS(EINVAL, sendmsg(pair[0], &bad, 0));
    bad.msg_controllen = 1ul << 40;
    REFUSED_AS(ENOBUFS, sendmsg(pair[0], &bad, 0));
    bad = message, bad.msg_namelen = ~0u;
    REFUSED_AS(EINVAL, sendmsg(from, &bad, 0));
    /* A message whose name changes while the server reads it. */
    raced = name, racing = message;
    pthread_t thread;
    pthread_create(&thread, 0, turn, 0);
    for (int i = 0; i < 2000; i++) REFUSED(sendmsg(from, &racing, MSG_DONTWAIT));
    stop = 1;
    pthread_join(thread, 0);
}

static void must_be(long answer, const struct stat *status, const struct stat *expected) {
    if (answer || status->st_ino != expected->st_ino || status->st_dev != expected->st_dev || status->st_mode != expected->st_mode) {
        printf("another file: %ld %s\n", answer, strerror(errno));
        exit(1);
    }
}

static void *ask(void *unused) {
    struct stat status;
    for (int i = 0; i < 200; i++) REFUSED_AS(EBADF, fstat(999, &status));
    return 0;
}

/* Calls `fstat` many times, and executes code that looks like it. Then it makes a call whose
 * instructions have the same bytes: in private memory, and in mapped memory of a file. */
static void sites(void) {
    struct stat root, here, status;
    int file = open("/", O_RDONLY);
    pthread_t thread;
    if (stat("/", &root) || stat(".", &here)) exit(1);
    for (int i = 0; i < 300; i++) {
        must_be(fstat(file, &status), &status, &root);
        must_be(fstatat(file, "", &status, AT_EMPTY_PATH), &status, &root);
        must_be(fstatat(AT_FDCWD, "", &status, AT_EMPTY_PATH), &status, &here);
        must_be(fstatat(file, ".", &status, AT_EMPTY_PATH), &status, &root);
        if (i == 100) {
            pid_t child = fork();
            if (child == 0) _exit(fstat(file, &status) || status.st_ino != root.st_ino);
            int ended;
            if (waitpid(child, &ended, 0) != child || ended) exit(1);
        }
    }
    REFUSED_AS(EBADF, fstat(-1, &status));
    REFUSED_AS(EBADF, fstat(999, &status));
    REFUSED_AS(EFAULT, fstat(file, (void *)8));
    REFUSED_AS(ENOENT, fstatat(file, "", &status, 0));
    REFUSED_AS(ENOTDIR, fstatat(open("/etc/passwd", O_RDONLY), "x", &status, AT_EMPTY_PATH));
    for (int i = 0; i < 3; i++) {
        pthread_create(&thread, 0, ask, 0);
        ask(0);
        pthread_join(thread, 0);
    }
    static const unsigned char site[] = {0x41, 0x89, 0xca, 0xb8, 0x06, 0x01, 0, 0, 0x0f, 0x05, 0x3d, 0x00, 0xf0, 0xff, 0xff, 0x77, 0x00, 0xc3};
    for (int kind = 0; kind < 2; kind++) {
        int backing = memfd_create("code", 0), flags = kind ? MAP_SHARED : MAP_PRIVATE;
        if (ftruncate(backing, 4096)) exit(1);
        if (pwrite(backing, site, sizeof site, 0) != sizeof site) exit(1);
        unsigned char *code = mmap(0, 4096, PROT_READ | PROT_EXEC, flags, backing, 0);
        for (int i = 0; i < 3; i++) must_be(((int (*)(int, const char *, struct stat *, int))code)(file, "", &status, AT_EMPTY_PATH), &status, &root);
    }
}

int main(int count, char **words) {
    const char *attack = words[1];
    secret = words[2];
    if (!strcmp(attack, "forbidden-calls")) forbidden_calls();
    else if (!strcmp(attack, "strangers")) strangers();
    else if (!strcmp(attack, "launcher-mappings")) launcher_mappings();
    else if (!strcmp(attack, "descriptors")) descriptors();
    else if (!strcmp(attack, "exhaustion")) exhaustion();
    else if (!strcmp(attack, "few-descriptors")) few_descriptors();
    else if (!strcmp(attack, "pointers")) pointers();
    else if (!strcmp(attack, "races")) races();
    else if (!strcmp(attack, "no-network")) no_network();
    else if (!strcmp(attack, "loopback")) loopback();
    else if (!strcmp(attack, "objects")) objects(words + 2);
    else if (!strcmp(attack, "datagrams")) datagrams();
    else if (!strcmp(attack, "sites")) sites();
    else if (!strcmp(attack, "memory")) memory();
    else if (!strcmp(attack, "memory-files")) memory_files();
    else if (!strcmp(attack, "outlive")) outlive();
    else if (!strcmp(attack, "stay")) stay();
    else if (!strcmp(attack, "task-bomb")) task_bomb();
    else if (!strcmp(attack, "spin")) spin();
    else if (!strcmp(attack, "spin-in-children")) spin_in_others(0);
    else if (!strcmp(attack, "spin-in-orphans")) spin_in_others(1);
    else if (!strcmp(attack, "load")) syscall(0x0b590001, 0, 0);
    else if (!strcmp(attack, "return")) syscall(0x0b590002, 0, 0);
    else if (!strcmp(attack, "jump-into-launcher")) ((void (*)(void))(LAUNCHER + 0x110))();
    else if (!strcmp(attack, "int80")) __asm__ volatile("int $0x80" : : "a"(20));
    else return 2;
    puts("held");
    return 0;
}
