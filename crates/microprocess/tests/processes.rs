//! Child processes: how they end, what they print, and that waiting for them delays no other
//! microprocess.
#![expect(clippy::excessive_nesting, reason = "a scenario nests: watchdog, runtime, microprocess")]
#![expect(clippy::unwrap_used, reason = "these are tests, helpers included")]

use core::time::Duration;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::ExitStatusExt;

use kyocho_microprocess::net::{TcpListener, TcpStream};
use kyocho_microprocess::process::{Command, Stdio};
use kyocho_microprocess::{Detection, Runtime, spawn, statistics, yield_now};

#[path = "support/watchdog.rs"]
mod watchdog;
use watchdog::under_watchdog;

/// A runtime in which a wait that blocks its kernel thread would hang.
fn on(virtual_processors: usize) -> Runtime {
    let builder = Runtime::builder().virtual_processors(virtual_processors);
    builder.detection(Detection::Off).build()
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

#[test]
fn status_reports_how_a_process_ended() {
    under_watchdog("status", || {
        let main = || {
            assert!(shell("exit 0").status().unwrap().success());
            assert_eq!(shell("exit 7").status().unwrap().code(), Some(7));
            assert_eq!(shell("kill -TERM $$").status().unwrap().signal(), Some(15));
            let missing = Command::new("/no/such/program").status().unwrap_err();
            assert_eq!(missing.kind(), ErrorKind::NotFound);
        };
        on(1).run(main).unwrap();
    });
}

#[test]
fn waiting_lets_microprocesses_run_that_end_the_process() {
    under_watchdog("waiting", || {
        for virtual_processors in [1, 2] {
            let main = || {
                let mut child =
                    shell("read word; exit $word").stdin(Stdio::piped()).spawn().unwrap();
                let mut stdin = child.stdin.take().unwrap();
                let waiting =
                    spawn(move || (child.wait().unwrap().code(), child.wait().unwrap().code()));
                yield_now();
                assert!(!waiting.is_finished());
                stdin.write_all(b"5\n").unwrap();
                assert_eq!(waiting.join().unwrap(), (Some(5), Some(5)));
            };
            on(virtual_processors).run(main).unwrap();
        }
    });
}

#[test]
fn many_are_waited_for_at_once_without_a_kernel_thread_each() {
    under_watchdog("many", || {
        let main = || {
            let blocked = statistics().blocked;
            let mut children: Vec<_> = (0..30)
                .map(|code| {
                    shell(&format!("read x; exit {code}")).stdin(Stdio::piped()).spawn().unwrap()
                })
                .collect();
            let inputs: Vec<_> = children.iter_mut().map(|child| child.stdin.take()).collect();
            let waiting: Vec<_> = children
                .into_iter()
                .map(|mut child| spawn(move || child.wait().unwrap().code()))
                .collect();
            yield_now();
            drop(inputs);
            for (code, wait) in waiting.into_iter().enumerate() {
                assert_eq!(wait.join().unwrap(), Some(code as i32));
            }
            assert_eq!(statistics().blocked, blocked);
        };
        on(1).run(main).unwrap();
    });
}

#[test]
fn output_of_both_streams_is_collected_however_much_it_is() {
    under_watchdog("output", || {
        let main = || {
            let script = "i=0; while [ $i -lt 5000 ]; do echo $i-0123456789012345678901234567890123456789; \
                          echo e$i-0123456789012345678901234567890123456789 >&2; i=$((i+1)); done";
            let output = shell(script).output().unwrap();
            assert!(output.status.success());
            for (bytes, first) in [(output.stdout, "0-0123"), (output.stderr, "e0-0123")] {
                let text = String::from_utf8(bytes).unwrap();
                assert!(text.starts_with(first) && text.lines().count() == 5000, "{}", text.len());
            }
            // Streams that were set are not changed, and a command can be used again.
            let mut command = shell("echo out; echo err >&2");
            for _ in 0..2 {
                let output = command.stderr(Stdio::null()).output().unwrap();
                assert_eq!((output.stdout.as_slice(), output.stderr.len()), (&b"out\n"[..], 0));
            }
        };
        on(1).run(main).unwrap();
    });
}

#[test]
fn environment_folder_and_arguments_arrive() {
    under_watchdog("environment", || {
        let main = || {
            let mut command = Command::new("/bin/sh");
            command.env_clear().env("ONE", "1").env("TWO", "2").env_remove("TWO");
            command.current_dir("/").arg("-c").arg("echo $ONE$TWO $PWD $1").args(["name", "a b"]);
            assert_eq!(command.output().unwrap().stdout, b"1 / a b\n");
        };
        on(1).run(main).unwrap();
    });
}

#[test]
fn wait_with_a_limit_does_not_end_the_process() {
    under_watchdog("limit", || {
        let main = || {
            let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
            let waited = child.wait_timeout(Duration::from_millis(2));
            if let Err(error) = waited {
                return assert_eq!(error.kind(), ErrorKind::Unsupported);
            }
            assert_eq!(waited.unwrap(), None);
            assert_eq!(child.try_wait().unwrap(), None);
            child.kill().unwrap();
            assert_eq!(child.wait().unwrap().signal(), Some(9));
            assert_eq!(child.wait_timeout(Duration::ZERO).unwrap().unwrap().signal(), Some(9));
            child.kill().unwrap();
        };
        on(1).run(main).unwrap();
    });
}

/// Whether there is a process, or a zombie, with this number.
fn exists(id: u32) -> bool {
    fs::exists(format!("/proc/{id}")).unwrap()
}

#[test]
fn drop_kills_and_collects_if_requested() {
    under_watchdog("drop", || {
        let main = || {
            let child = Command::new("sleep").arg("1000").kill_on_drop().spawn().unwrap();
            let id = child.id();
            assert!(exists(id));
            drop(child);
            assert!(!exists(id));
            let mut left = shell("read x").stdin(Stdio::piped()).spawn().unwrap();
            let (id, stdin) = (left.id(), left.stdin.take());
            drop(left);
            assert!(exists(id));
            drop(stdin);
        };
        on(1).run(main).unwrap();
    });
}

#[test]
fn child_gets_the_cpus_of_the_process_not_those_of_its_kernel_thread() {
    under_watchdog("cpus", || {
        let of_process = fs::read_to_string("/proc/self/status").unwrap();
        let cpus = |status: &str| {
            let line = status.lines().find(|line| line.starts_with("Cpus_allowed:")).unwrap();
            line.to_owned()
        };
        let wanted = cpus(&of_process);
        let main = || {
            let output = Command::new("cat").arg("/proc/self/status").output().unwrap();
            let slack = Command::new("cat").arg("/proc/self/timerslack_ns").output().unwrap();
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(slack.stdout).unwrap())
        };
        // With the sentinel, which pins holders.
        let runtime = Runtime::builder().virtual_processors(1).build();
        let (status, slack) = runtime.run(main).unwrap();
        assert_eq!(cpus(&status), wanted);
        assert_ne!(slack.trim(), "1");
    });
}

/// Not a test, but the other end of one: sends until it is killed, and never reads.
#[test]
fn peer() {
    let Ok(address) = std::env::var("KYOCHO_TEST_PEER") else { return };
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    while stream.write_all(&[7; 4096]).is_ok() {}
}

#[test]
fn peer_that_is_killed_in_the_middle_is_an_error_and_no_signal() {
    under_watchdog("killed peer", || {
        let main = || {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap().to_string();
            let mut command = Command::new(std::env::current_exe().unwrap());
            command
                .args(["--exact", "peer"])
                .env("KYOCHO_TEST_PEER", address)
                .stdout(Stdio::null());
            let mut child = command.kill_on_drop().spawn().unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_exact(&mut [0; 10_000]).unwrap();
            // The peer never reads this, so its kernel resets the connection.
            stream.write_all(b"unread").unwrap();
            let reader = spawn({
                let mut stream = stream.try_clone().unwrap();
                move || read_to_the_end(&mut stream)
            });
            child.kill().unwrap();
            assert_eq!(child.wait().unwrap().signal(), Some(9));
            assert_eq!(reader.join().unwrap(), ErrorKind::ConnectionReset);
            let error = loop {
                if let Err(error) = stream.write_all(&[1; 1024]) {
                    break error;
                }
            };
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        };
        on(1).run(main).unwrap();
    });
}

/// Reads until that fails; returns how.
fn read_to_the_end(stream: &mut TcpStream) -> ErrorKind {
    loop {
        match stream.read(&mut [0; 4096]) {
            Ok(0) => return ErrorKind::UnexpectedEof,
            Ok(_) => {}
            Err(error) => return error.kind(),
        }
    }
}
