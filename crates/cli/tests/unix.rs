//! `kyocho unix`: real programs behave inside as they do outside.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

#[path = "unix/support.rs"]
mod support;

use std::process::Stdio;
use support::{Folder, inside, is_installed, is_permitted, output_of, same_inside};

const FILES: &str = "
    echo hi > a; cat a; cp a b; mv b c; ln -s a l; cat l; readlink l; ln c d; mkdir -p x/y/z; cd x/y; cd ../..
    ls -l | wc -l; rm -rf x; chmod 600 a; ls -l a | cut -c 1-10; touch -t 200101010000 a; find . | sort
    umask; touch m; ls -l m | cut -c 1-10; (umask 077; echo z > q); ls -l q | cut -c 1-10; test -w a && echo writable; ls nothing 2>/dev/null || echo $?
    echo ok > /dev/null; cat < /dev/null; head -c 3 /dev/zero | wc -c; rmdir x 2>/dev/null || echo gone; cat l/x 2>&1 | wc -l
    ln -s a/ slash; cat slash 2>/dev/null || echo no directory; ln -s slash twice; cat twice 2>/dev/null || echo neither; readlink slash
    mkdir y; ln -s y/ to; echo t > to/t; cat y/t; ls to";

const COREUTILS: &str = "
    exec 2>&1; export LC_ALL=C TZ=UTC
    seq 1 300 > n; dd if=n of=d bs=100 count=2 skip=1 status=none; cksum d; sha256sum < n; split -l 100 n part.; ls part.*; tac part.aa | head -n 2
    mkdir -p t/u; ln -s t/u far; echo x > far/f; realpath --relative-to=. far/f far/../u/f; readlink -f far/none | tail -c 9; readlink -e far/none || echo $?
    cp -a t copy; cmp t/u/f copy/u/f && echo same; install -m 751 n bin; stat -c '%a %s %F %N' bin far t; mv -T copy moved; du -a --apparent-size moved | wc -l
    mkfifo p; (echo through > p &); cat p; truncate -s 10000 n; stat -c %s n; touch -d @86400 n; date -r n +%F; ln n hard; stat -c %h n; unlink hard
    mktemp -d made.XXXXXX | wc -c; timeout 0.01 sleep 100; echo $?; env -i A=b env; nice -n 1 nice; nproc --all | wc -l; df . > /dev/null && echo space
    chmod -R a-w t; touch -c t/u/f; chmod -R u+w t; rm -r t; cat far/f; test -L far && echo dangling; pwd -P | wc -l; shuf -i 1-9 | sort | tr -d '\\n'; tee a b < part.ac | wc -l";

const PROCESSES: &str = "
    printf '#!/bin/sh\\necho script $0 $*\\n' > s; chmod +x s; ./s 1 2; env ./s 3; sleep 0.01 & wait; kill -0 $$; (exit 7); echo $?
    sh -c 'kill -TERM $$'; echo $?; ./nothing 2>/dev/null; echo $?; echo text > t; ./t 2>/dev/null; echo $?
    seq 1 2000 | sort -rn | head -1; x=$(echo one; echo two >&2) 2>&1; echo $x; trap 'echo trapped' USR1; kill -USR1 $$; cat /proc/self/comm
    ls /proc/self/fd | wc -l; readlink /proc/self/exe; exec 3> three; echo 3 >&3; exec 3>&-; cat three; ulimit -n > /dev/null; cat <<E
    here
E";

#[test]
fn a_shell_uses_files_as_outside() {
    if !is_permitted("a_shell_uses_files_as_outside") {
        return;
    }
    same_inside(&["sh"], FILES);
}

#[test]
fn nothing_is_limited_that_was_not_asked_for() {
    if !is_permitted("nothing_is_limited_that_was_not_asked_for") {
        return;
    }
    same_inside(&["sh"], "ulimit -v; ulimit -n; ulimit -u; ulimit -f; ulimit -d");
}

#[test]
fn coreutils_do_as_outside() {
    if !is_permitted("coreutils_do_as_outside") {
        return;
    }
    if is_installed("coreutils_do_as_outside", "shuf") {
        same_inside(&["sh"], COREUTILS);
    }
}

#[test]
fn a_shell_uses_processes_as_outside() {
    if !is_permitted("a_shell_uses_processes_as_outside") {
        return;
    }
    same_inside(&["sh"], PROCESSES);
}

#[test]
fn other_shells_run_scripts() {
    if !is_permitted("other_shells_run_scripts") {
        return;
    }
    for shell in [&["bash"][..], &["busybox", "sh"], &["dash"]] {
        if is_installed("other_shells_run_scripts", shell[0]) {
            same_inside(shell, FILES);
            same_inside(
                shell,
                "echo a | sed s/a/b/ | tr b c; for i in 1 2 3; do echo $i; done | wc -l",
            );
        }
    }
}

#[test]
fn git_keeps_and_clones_a_history() {
    if !is_permitted("git_keeps_and_clones_a_history") {
        return;
    }
    if is_installed("git_keeps_and_clones_a_history", "git") {
        let script = "export GIT_CONFIG_NOSYSTEM=1 HOME=$PWD; git init -q r 2>/dev/null; cd r; git config user.email a@b; git config user.name n
            echo 1 > f; git add f; git commit -qm one; git log --format=%s; cd ..; git clone -q r s; cat s/f; git -C s status -s | wc -l";
        same_inside(&["sh"], script);
    }
}

#[test]
fn a_c_program_is_built_and_runs() {
    if !is_permitted("a_c_program_is_built_and_runs") {
        return;
    }
    if is_installed("a_c_program_is_built_and_runs", "make") {
        let script = "printf '#include <stdio.h>\\nint main(){puts(\"made\");}\\n' > a.c; printf 'a: a.c\\n\\tcc -o a a.c\\n' > Makefile
            make -s; ./a; make -q a; echo $?";
        same_inside(&["sh"], script);
    }
}

#[test]
fn sqlite_stores_rows() {
    if !is_permitted("sqlite_stores_rows") {
        return;
    }
    if is_installed("sqlite_stores_rows", "sqlite3") {
        same_inside(
            &["sh"],
            "sqlite3 x.db 'create table t(a); insert into t values(1),(2);'; sqlite3 x.db 'select sum(a) from t'",
        );
    }
}

#[test]
fn python_uses_threads_processes_and_sockets() {
    if !is_permitted("python_uses_threads_processes_and_sockets") {
        return;
    }
    if is_installed("python_uses_threads_processes_and_sockets", "python3") {
        let script = "python3 -c '
import os, subprocess, threading, socket
print(subprocess.check_output([\"echo\", \"x\"]))
t = threading.Thread(target=lambda: print(\"thread\")); t.start(); t.join()
s = socket.create_server((\"127.0.0.1\", 0)); c = socket.create_connection(s.getsockname())
print(s.accept()[0].send(b\"x\"), c.recv(1)); u = socket.socket(socket.AF_UNIX); u.bind(\"sock\"); u.listen()
v = socket.socket(socket.AF_UNIX); v.connect(\"sock\"); print(u.accept()[0].send(b\"yz\"), v.recv(2), os.path.exists(\"sock\"))
os.kill(os.getpid(), 15)'; echo $?";
        same_inside(&["sh"], script);
    }
}

#[test]
fn bytes_pass_between_host_and_client() {
    if !is_permitted("bytes_pass_between_host_and_client") {
        return;
    }
    let mut child = inside(&["cat"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let bytes: Vec<u8> = (0..1_000_000_u32).map(|n| n as u8).collect();
    let sent = bytes.clone();
    let writer = std::thread::spawn(move || std::io::Write::write_all(&mut input, &sent));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    assert!(output.stdout == bytes, "{} bytes came back", output.stdout.len());
}

#[test]
fn what_cannot_run_is_reported_in_one_line() {
    if !is_permitted("what_cannot_run_is_reported_in_one_line") {
        return;
    }
    let folder = Folder::new();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        path.to_str().unwrap().to_owned()
    };
    let program = std::fs::read("/proc/self/exe").unwrap();
    let mut foreign = program[..4096].to_vec();
    foreign[18] = 0xb7;
    for (program, status, says) in [
        ("no-such-program".to_owned(), 127, "not found"),
        ("/etc/passwd".to_owned(), 126, "Permission denied"),
        ("/etc".to_owned(), 126, "Permission denied"),
        (file("cut", &program[..100]), 126, "cut off"),
        (file("foreign", &foreign), 126, "another kind of processor"),
        (file("text", b"hello"), 126, "neither an ELF program nor a script"),
        (file("lost", b"#!/no/such/interpreter\n"), 127, "not found"),
    ] {
        let (code, text) = output_of(&mut inside(&[&program]));
        assert_eq!((code, text.contains(says)), (Some(status), true), "{program}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

#[test]
fn statuses_and_signals_are_a_shells() {
    if !is_permitted("statuses_and_signals_are_a_shells") {
        return;
    }
    let status = |words: &[&str]| inside(words).stderr(Stdio::null()).status().unwrap().code();
    assert_eq!(status(&["true"]), Some(0));
    assert_eq!(status(&["sh", "-c", "exit 9"]), Some(9));
    assert_eq!(status(&["sh", "-c", "kill -KILL $$"]), Some(137));
}

#[test]
fn the_trace_shows_which_side_answered_and_how_often() {
    if !is_permitted("the_trace_shows_which_side_answered_and_how_often") {
        return;
    }
    let (status, text) =
        output_of(&mut inside(&["--trace", "--", "sh", "-c", "cat /etc/hostname; echo $$"]));
    assert_eq!(status, Some(0), "{text}");
    assert!(
        text.lines()
            .any(|line| line.contains("[server] openat(") && line.contains("\"/etc/hostname\"")),
        "{text}"
    );
    assert!(text.lines().any(|line| line.contains("[local] read(")), "{text}");
    assert!(text.contains("calls  by       name"), "{text}");
}

#[test]
fn files_are_watched_and_have_attributes() {
    let test = "files_are_watched_and_have_attributes";
    if !(is_permitted(test) && is_installed(test, "python3")) {
        return;
    }
    let script = "python3 -c '
import ctypes, os, struct
open(\"f\", \"w\").close(); os.symlink(\"f\", \"l\"); os.mkdir(\"d\")
def tried(call):
    try: return call()
    except OSError as error: return error.errno
print(tried(lambda: os.setxattr(\"f\", \"user.a\", b\"one\")), tried(lambda: os.getxattr(\"l\", \"user.a\")), tried(lambda: os.listxattr(\"f\")))
print(tried(lambda: os.setxattr(\"f\", \"user.a\", b\"\", os.XATTR_CREATE)), tried(lambda: os.getxattr(\"f\", \"user.none\")), tried(lambda: os.getxattr(\"l\", \"user.a\", follow_symlinks=False)))
with open(\"f\") as f: print(tried(lambda: os.setxattr(f.fileno(), \"user.b\", b\"two\")), tried(lambda: os.getxattr(f.fileno(), \"user.b\")))
print(tried(lambda: os.removexattr(\"f\", \"user.a\")), tried(lambda: sorted(os.listxattr(\"f\"))), tried(lambda: os.listxattr(\"nothing\")))
libc = ctypes.CDLL(None, use_errno=True)
queue = libc.inotify_init1(os.O_NONBLOCK)
def watch(path, mask): return libc.inotify_add_watch(queue, path, mask) > 0 or ctypes.get_errno()
print(watch(b\"d\", 0x100), watch(b\"nothing\", 0x100), watch(b\"f\", 0x1000000 | 0x100), watch(b\"l\", 0x2000000 | 0x400), watch(b\"f\", 8))
open(\"d/new\", \"w\").close(); open(\"f\", \"w\").close(); os.unlink(\"l\")
data, events = os.read(queue, 4096), []
while data:
    _, mask, _, length = struct.unpack(\"iIII\", data[:16])
    events.append((mask, data[16:16 + length].rstrip(bytes(1)))); data = data[16 + length:]
print(events)'";
    same_inside(&["sh"], script);
}

#[test]
fn names_and_paths_are_as_long_as_outside() {
    let test = "names_and_paths_are_as_long_as_outside";
    if !(is_permitted(test) && is_installed(test, "python3")) {
        return;
    }
    let script = "python3 -c '
import os, shutil
def tried(call):
    try: return call()
    except OSError as error: return error.errno
name, deep = \"n\" * 255, \"/\".join([\"d\" * 250] * 15)
last = deep + \"/\" + \"f\" * (4095 - len(deep) - 1)
print(tried(lambda: os.mkdir(name)), tried(lambda: os.mkdir(name + \"n\")), tried(lambda: os.rename(name, name + \"n\")), os.path.isdir(name))
print(tried(lambda: os.symlink(\"x\" * 4095, \"l\")), tried(lambda: os.symlink(\"x\" * 4096, \"m\")), len(os.readlink(\"l\")), tried(lambda: os.stat(\"l\")))
print(tried(lambda: os.makedirs(deep)), tried(lambda: os.mkfifo(last + \"f\")), tried(lambda: os.open(deep + \"/f\", os.O_CREAT)) > 2, tried(lambda: os.stat(last)), tried(lambda: os.stat(last + \"f\")))
print(tried(lambda: shutil.rmtree(\"d\" * 250)), sorted(os.listdir(\".\")))'";
    same_inside(&["sh"], script);
}

#[test]
fn sockets_have_the_names_that_programs_gave_them() {
    let test = "sockets_have_the_names_that_programs_gave_them";
    if !(is_permitted(test) && is_installed(test, "python3")) {
        return;
    }
    // Natively, socket names without a file belong to the whole host. With the process's number in
    // them, no other process uses them.
    let script = "python3 -c '
import os, socket
def tried(call):
    try: return call()
    except OSError as error: return error.errno
def server(name):
    s = socket.socket(socket.AF_UNIX); s.bind(name); s.listen(); return s
def client(name):
    c = socket.socket(socket.AF_UNIX); c.connect(name); return c
name, path = \"\\0kyocho-%d\" % os.getpid(), os.getcwd() + \"/sock\"
for given in [name.encode(), path]:
    s = server(given); c = client(given); a, _ = s.accept()
    print([x == given for x in (s.getsockname(), a.getsockname(), c.getpeername())], c.getsockname(), a.getpeername())
    print(a.send(b\"xyz\"), c.recv(3), tried(lambda: server(given)))
s = socket.socket(socket.AF_UNIX); s.bind(\"\"); print(len(s.getsockname())); s.listen()
print(tried(lambda: client(s.getsockname()).getpeername() == s.getsockname()), tried(lambda: client(name + \"none\")), tried(s.getpeername))
print(socket.create_server((\"127.0.0.1\", 0)).getsockname()[0], socket.if_indextoname(socket.if_nametoindex(\"lo\")))
'";
    same_inside(&["sh"], script);
}

#[test]
fn names_without_a_file_belong_to_the_instance() {
    let test = "names_without_a_file_belong_to_the_instance";
    if !(is_permitted(test) && is_installed(test, "python3")) {
        return;
    }
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};
    let name = format!("kyocho-unix-{}", std::process::id());
    let _of_host =
        UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    // The name is in use outside, where a connection would succeed. Inside it is free.
    let script = format!(
        "import socket; s = socket.socket(socket.AF_UNIX); print(s.connect_ex(chr(0) + '{name}')); s.bind(chr(0) + '{name}')"
    );
    let (status, text) = output_of(&mut inside(&["python3", "-c", &script]));
    assert_eq!(
        (status, text),
        (Some(0), format!("{}\n", rustix::io::Errno::CONNREFUSED.raw_os_error()))
    );
}
