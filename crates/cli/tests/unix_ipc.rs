//! Communication between programs under `kyocho unix` works as outside, and reaches no program
//! outside.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

#[path = "unix/compiled.rs"]
mod compiled;
#[path = "unix/support.rs"]
mod support;

use compiled::compiled;
use kyocho_sys::sysv::{self, Kind};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use support::{inside, is_installed, is_permitted, output_of, same_inside};

/// Python with a function that all scripts below use: the number of the error, if a call fails, in
/// place of its result.
fn same_in_python(test: &str, script: &str) {
    if !(is_permitted(test) && is_installed(test, "python3")) {
        return;
    }
    let script = format!(
        "python3 -c '
import ctypes, os, signal, socket, struct, threading
def tried(call):
    try: return call()
    except OSError as error: return error.errno
{script}'"
    );
    same_inside(&["sh"], &script);
}

/// Whether the host has System V objects. Otherwise the test is reported as skipped.
fn has_system_v(test: &str) -> bool {
    let tried = sysv::make(Kind::Semaphores, 1, 0o600);
    match tried {
        Ok(number) => sysv::remove(Kind::Semaphores, number).unwrap(),
        Err(errno) => kyocho_sys::skip::skip(test, &format!("no objects of System V: {errno}")),
    }
    tried.is_ok()
}

#[test]
fn objects_of_system_v_are_shared_among_processes() {
    let test = "objects_of_system_v_are_shared_among_processes";
    if !(is_permitted(test) && has_system_v(test) && is_installed(test, "perl")) {
        return;
    }
    // The key is made from the folder, so natively no other program has it.
    let script = r#"perl -e '
use strict; use IPC::SysV qw(:all); $| = 1;
my $key = ftok(".") // die; my $new = 0600 | IPC_CREAT; my ($text, @numbers) = ("");
print 0 + (shmget($key, 0, 0) // -$!), "\n";
my $memory = shmget($key, 10000, $new); die $! unless defined $memory;
print shmget($key, 0, 0) == $memory ? "same" : "another", " ", 0 + (shmget($key, 20000, 0) // -$!), " ", 0 + (shmget($key, 1, $new | IPC_EXCL) // -$!), "\n";
my $semaphores = semget($key, 2, $new); my $messages = msgget($key, $new);
if (!fork) {
    shmwrite($memory, "from the child", 100, 14); msgsnd($messages, pack("l! a*", 7, "a message"), 0); semop($semaphores, pack("s!3", 1, 1, 0)); exit 3;
}
semop($semaphores, pack("s!3", 1, -1, 0)); wait; print $? >> 8, "\n";
shmread($memory, $text, 100, 14); print "$text\n"; msgrcv($messages, $text, 100, 7, 0); print substr($text, 8), "\n";
print semctl($semaphores, 0, SETVAL, 5), semctl($semaphores, 0, GETVAL, 0), "\n";
print 0 + (msgrcv($messages, $text, 100, 0, IPC_NOWAIT) // -$!), " ", 0 + (semop($semaphores, pack("s!3", 1, -1, IPC_NOWAIT)) // -$!), "\n";
my $status = ""; shmctl($memory, IPC_STAT, $status); my @words = unpack("l L5 S2 x4 Q2 Q Q Q Q l l Q", $status);
print $words[0] == $key ? "key" : "$words[0]", " ", $words[5] & 07777, " ", $words[10], " ", $words[14] == $$ ? "maker" : $words[14], " ", $words[16], "\n";
shmctl($memory, IPC_RMID, 0); semctl($semaphores, 0, IPC_RMID, 0); msgctl($messages, IPC_RMID, 0);
for my $gone (shmget($key, 0, 0), semget($key, 0, 0), msgget($key, 0)) { print defined $gone ? "there" : "gone", "\n"; }
print 0 + (semop($semaphores, pack("s!3", 1, 1, 0)) // -$!), "\n";
' 2>&1"#;
    same_inside(&["sh"], script);
}

/// A removed segment lives as long as it is mapped. A handled signal interrupts a waiting call.
#[test]
fn removed_segments_stay_while_they_are_mapped() {
    let test = "removed_segments_stay_while_they_are_mapped";
    if !has_system_v(test) {
        return;
    }
    let script = r#"
c = ctypes.CDLL(None, use_errno=True); c.shmat.restype = ctypes.c_void_p; c.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]; c.shmdt.argtypes = [ctypes.c_void_p]
n = c.shmget(0, 8192, 0o1600); a = c.shmat(n, None, 0); print(c.shmctl(n, 0, 0)); ctypes.memset(a, 65, 8192)
b = c.shmat(n, None, 0); print(ctypes.string_at(b + 8000, 3), a != b); print(c.shmdt(a), c.shmdt(b), c.shmdt(b), ctypes.get_errno())
print(c.shmat(n, None, 0) == 2 ** 64 - 1, ctypes.get_errno(), c.shmget(0, 2 ** 62, 0o1600), ctypes.get_errno())
s = c.semget(0, 1, 0o1600); signal.signal(signal.SIGALRM, lambda *_: print("handled")); signal.setitimer(signal.ITIMER_REAL, 0.01)
print(c.semop(s, struct.pack("HhH", 0, -1, 0), 1), ctypes.get_errno(), c.semctl(s, 0, 0))"#;
    same_in_python(test, script);
}

#[test]
fn semaphores_and_queues_go_with_the_instance() {
    let test = "semaphores_and_queues_go_with_the_instance";
    if !(is_permitted(test) && has_system_v(test) && is_installed(test, "perl")) {
        return;
    }
    let script = "use IPC::SysV qw(:all); print semget(IPC_PRIVATE, 1, 0600), \" \", msgget(IPC_PRIVATE, 0600)";
    let (status, text) = output_of(&mut inside(&["perl", "-e", script]));
    assert_eq!(status, Some(0), "{text}");
    let numbers: Vec<i32> = text.split(' ').map(|number| number.parse().unwrap()).collect();
    assert!(sysv::status(Kind::Semaphores, numbers[0]).is_err());
    assert!(sysv::status(Kind::Messages, numbers[1]).is_err());
}

#[test]
fn objects_of_the_host_are_out_of_reach() {
    let test = "objects_of_the_host_are_out_of_reach";
    if !(is_permitted(test) && has_system_v(test)) {
        return;
    }
    let kinds = [(Kind::Memory, 4096), (Kind::Semaphores, 1), (Kind::Messages, 0)];
    let numbers = kinds.map(|(kind, size)| sysv::make(kind, size, 0o666).unwrap());
    let words = numbers.map(|number| number.to_string());
    let attack =
        inside(&[compiled("attackers", &[]), "objects", &words[0], &words[1], &words[2]]).output();
    for (index, (kind, _)) in kinds.iter().enumerate() {
        sysv::remove(*kind, numbers[index]).unwrap();
    }
    assert_eq!(String::from_utf8(attack.unwrap().stdout).unwrap(), "held\n");
}

#[test]
fn datagrams_go_to_paths_and_names() {
    let script = r#"
kind = socket.SOCK_DGRAM
def made(name=None):
    s = socket.socket(socket.AF_UNIX, kind)
    if name is not None: s.bind(name)
    return s
os.mkdir("d"); a, b, c = made("a"), made("d/b"), made("\0kyocho-%d" % os.getpid())
print(a.sendto(b"one", "d/b"), b.recv(10), b.sendmsg([b"tw", b"o"], [], 0, "a"), a.recv(10), a.type == kind)
print(a.sendto(b"three", c.getsockname()), c.recv(10), c.sendmsg([b"four"], [], 0, os.getcwd() + "/a"), a.recv(10))
b.connect("a"); print(b.send(b"five"), a.recv(10), os.write(b.fileno(), b"six"), a.recv(10), os.path.basename(b.getpeername()))
print(c.sendto(b"answer", "a")); text, sender = a.recvfrom(10); print(text, a.sendto(b"back", sender), c.recv(10))
e = made("d/e"); e.sendto(b"named", "a"); text, sender = a.recvfrom(10); print(text, a.sendto(b"to e", sender), e.recv(10), oct(os.stat("d/e").st_mode))
print(tried(lambda: a.sendto(b"x", "nothing")), tried(lambda: a.sendto(b"x", "d")), tried(lambda: a.send(b"x")), tried(lambda: a.sendto(b"x", "\0none")))
x, y = socket.socketpair(socket.AF_UNIX, kind); print(x.send(b"1"), x.send(b"22"), y.recv(9), y.recv(9), x.type == kind)
r, w = os.pipe(); socket.send_fds(x, [b"pipe"], [w, r]); text, fds, _, _ = socket.recv_fds(y, 10, 2); os.write(fds[0], b"through"); print(text, os.read(fds[1], 10))
print(tried(lambda: x.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", 999))])), tried(lambda: x.sendmsg([b"x"], [(socket.SOL_SOCKET, 77, b"1234")])))
y.setblocking(False); x.setblocking(False); n = 0
while tried(lambda: x.sendmsg([b"m"])) == 1: n += 1
print(n > 0, tried(lambda: x.sendmsg([b"m"])))
x.setblocking(True); t = threading.Thread(target=lambda: print("sent", x.sendmsg([b"last"]))); t.start(); got = []
y.setblocking(True)
while not got or got[-1] != b"last": got.append(y.recv(10))
t.join(); print(len(got) == n + 1)"#;
    same_in_python("datagrams_go_to_paths_and_names", script);
}

#[test]
fn messages_on_streams_are_sent_whole() {
    let script = r#"
x, y = socket.socketpair(); data = os.urandom(1000003); got = []
def read():
    while sum(map(len, got)) < len(data): got.append(y.recv(70000))
t = threading.Thread(target=read); t.start(); print(x.sendmsg([data[:5], b"", data[5:700000], data[700000:]])); t.join(); print(b"".join(got) == data)
r, w = os.pipe(); socket.send_fds(x, [b"with"], [w]); text, fds, _, _ = socket.recv_fds(y, 10, 1); os.write(fds[0], b"!"); print(text, os.read(r, 1))
signal.signal(signal.SIGPIPE, lambda *_: print("broken")); y.close(); print(tried(lambda: x.sendmsg([b"x"]))); print(tried(lambda: x.sendmsg([b"x"], [], socket.MSG_NOSIGNAL)))
u, v = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in "ab"]; u.bind(("127.0.0.1", 0)); print(v.sendmsg([b"u", b"dp"], [], 0, u.getsockname()), u.recv(10))
print(tried(lambda: v.sendmsg([b"x" * 70000], [], 0, u.getsockname())), tried(lambda: v.sendmsg([b"x"])))
c = ctypes.CDLL(None, use_errno=True); x, y = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
part = ctypes.create_string_buffer(b"many"); vec = (ctypes.c_uint64 * 2)(ctypes.addressof(part), 4)
many = (ctypes.c_uint64 * 24)(*([0, 0, ctypes.addressof(vec), 1, 0, 0, 0, 0] * 3)); print(c.sendmmsg(x.fileno(), many, 3, 0), many[7], many[23], [y.recv(9) for _ in "123"])"#;
    same_in_python("messages_on_streams_are_sent_whole", script);
}

#[test]
fn datagrams_reach_no_socket_of_the_host() {
    if !is_permitted("datagrams_reach_no_socket_of_the_host") {
        return;
    }
    let name = format!("kyocho-unix-datagrams-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let of_host = UnixDatagram::bind_addr(&address).unwrap();
    of_host.set_nonblocking(true).unwrap();
    let (status, text) = output_of(&mut inside(&[compiled("attackers", &[]), "datagrams", &name]));
    assert_eq!((status, text.as_str()), (Some(0), "held\n"));
    assert!(of_host.recv(&mut [0; 9]).is_err());
}

#[test]
fn descriptors_for_naming_name_and_do_nothing_else() {
    let script = r#"
os.mkdir("d"); open("d/f", "w").write("text"); os.symlink("f", "d/l"); s = socket.socket(socket.AF_UNIX); s.bind("d/s"); os.mkfifo("d/p")
P = os.O_PATH; d = os.open("d", P | os.O_DIRECTORY); f = os.open("f", P, dir_fd=d); l = os.open("l", P | os.O_NOFOLLOW, dir_fd=d)
print(os.get_inheritable(d), os.fstat(f).st_size, os.fstat(l).st_mode == os.lstat("d/l").st_mode, os.readlink("", dir_fd=l), os.stat("f", dir_fd=d).st_size)
for name in ["s", "p", "l", "."]: n = os.open(name, P, dir_fd=d); print(oct(os.fstat(n).st_mode)); os.close(n)
print([tried(lambda: call(f)) for call in (lambda f: os.read(f, 1), lambda f: os.fchmod(f, 0o600), lambda f: os.ftruncate(f, 0), lambda f: os.fchown(f, -1, -1))], tried(lambda: os.listdir(d)))
print(open("/proc/self/fd/%d" % f).read(), os.open("/dev/fd/%d" % f, os.O_RDWR) > 0, tried(lambda: os.open("d/f", P | os.O_DIRECTORY)), tried(lambda: os.open("d/n", P)))
os.fchdir(d); print(os.path.basename(os.getcwd())); os.chdir(".."); x, y = socket.socketpair(); socket.send_fds(x, [b"."], [f]); _, fds, _, _ = socket.recv_fds(y, 1, 1); print(os.fstat(fds[0]).st_size, tried(lambda: os.read(fds[0], 1)))
c = ctypes.CDLL(None, use_errno=True); n = c.open(b"d", P); m = c.open(b"d", P | os.O_CLOEXEC); print(os.get_inheritable(n), os.get_inheritable(m))
import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (max(n, m) + 2, max(n, m) + 2)); print(tried(lambda: [os.open("d", P) for _ in range(9)])); os.closerange(3, m + 2); print(os.open("d", P) > 2)"#;
    same_in_python("descriptors_for_naming_name_and_do_nothing_else", script);
}

#[test]
fn directories_that_cannot_be_read_are_entered() {
    let test = "directories_that_cannot_be_read_are_entered";
    if rustix::process::geteuid().is_root() {
        return kyocho_sys::skip::skip(test, "root reads every directory");
    }
    same_in_python(
        test,
        r#"
os.makedirs("d/e"); os.chmod("d", 0o311); os.chdir("d"); print(os.path.basename(os.getcwd()), tried(lambda: os.listdir("."))); os.chdir("e"); print(os.getcwd()[-4:]); os.chmod("..", 0o700)"#,
    );
}

#[test]
fn processes_are_held_and_signalled_by_descriptor() {
    let script = r#"
ends = os.pipe(); child = os.fork()
if child == 0:
    signal.signal(signal.SIGUSR1, lambda *_: os._exit(7)); os.write(ends[1], b"x")
    while True: signal.pause()
os.read(ends[0], 1); h = os.pidfd_open(child); print(os.get_inheritable(h), tried(lambda: os.waitid(os.P_PIDFD, h, os.WEXITED | os.WNOHANG)))
signal.pidfd_send_signal(h, signal.SIGUSR1); print(os.waitid(os.P_PIDFD, h, os.WEXITED).si_status, tried(lambda: signal.pidfd_send_signal(h, 0)), tried(lambda: os.pidfd_open(child)))
print(tried(lambda: os.pidfd_open(-1)), tried(lambda: signal.pidfd_send_signal(0, 0)), tried(lambda: signal.pidfd_send_signal(999, 0)))
c = ctypes.CDLL(None, use_errno=True); signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2, signal.SIGRTMIN]); sigqueue = lambda p, n, w: c.sigqueue(p, n, ctypes.c_void_p(w)) or 0
print(sigqueue(os.getpid(), signal.SIGUSR2, 42)); i = signal.sigwaitinfo([signal.SIGUSR2]); print(i.si_code, i.si_pid == os.getpid())
me = os.getpid(); child = os.fork()
if child == 0: os._exit(sigqueue(me, signal.SIGRTMIN, 9) + 3)
i = signal.sigwaitinfo([signal.SIGRTMIN]); print(i.si_code, i.si_pid == child, os.waitpid(child, 0)[1] >> 8)"#;
    same_in_python("processes_are_held_and_signalled_by_descriptor", script);
}

#[test]
fn interfaces_are_listed_as_outside() {
    same_in_python(
        "interfaces_are_listed_as_outside",
        "print(socket.if_nameindex(), socket.getaddrinfo(\"127.0.0.1\", 80, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG))",
    );
}
