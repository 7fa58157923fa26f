//! Widely used servers and runtimes behave under `kyocho unix` as outside.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

#[path = "unix/support.rs"]
mod support;

use support::{Folder, inside, is_installed, is_permitted, output_of};

/// For scripts: repeats a command until it succeeds, for a minute at most. Servers listen on
/// sockets in the test's own folder, so ports cannot collide.
const UNTIL: &str = "until_it() { for i in $(seq 600); do \"$@\" >/dev/null 2>&1 && return; sleep 0.1; done; echo \"never: $*\"; exit 9; };";

#[test]
fn redis_answers_its_benchmark() {
    let test = "redis_answers_its_benchmark";
    if !(is_permitted(test) && is_installed(test, "redis-server")) {
        return;
    }
    let folder = Folder::new();
    let script = format!(
        "{UNTIL} redis-server --port 0 --unixsocket $PWD/socket --dir . --appendonly yes --save '' >log &
        until_it redis-cli -s socket ping; redis-benchmark -s socket -q -n 500 -c 10 -t set,get,lpush >figures || exit 1
        redis-cli -s socket set kept 4711; redis-cli -s socket get kept; redis-cli -s socket shutdown; wait; echo $?
        grep -c kept appendonlydir/*.incr.aof"
    );
    let mut command = inside(&["sh", "-c", &script]);
    let (status, text) = output_of(command.current_dir(folder.path()));
    assert_eq!((status, text.as_str()), (Some(0), "OK\n4711\n0\n1\n"));
}

#[test]
fn nginx_serves_files() {
    let test = "nginx_serves_files";
    if !(is_permitted(test) && is_installed(test, "nginx") && is_installed(test, "curl")) {
        return;
    }
    let folder = Folder::new();
    let at = folder.path().display();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {at}/{name};"))
        .join(" ");
    let settings = format!(
        "daemon off; worker_processes 2; pid {at}/pid; error_log {at}/log;
        events {{ worker_connections 64; }}
        http {{ access_log off; {temporary} server {{ listen unix:{at}/socket; root {at}; }} }}"
    );
    std::fs::write(folder.path().join("settings"), settings).unwrap();
    std::fs::write(folder.path().join("page"), "x".repeat(100_000)).unwrap();
    // Workers of a server of root change their user, which a process without capabilities cannot.
    let user = if rustix::process::geteuid().is_root() { "user root;" } else { "" };
    let script = format!(
        "{UNTIL} get() {{ curl -s --unix-socket socket http://here/\"$@\"; }}; nginx -e log -c {at}/settings -g '{user}' &
        until_it get page -f -o first; cmp page first && for i in 1 2 3 4 5; do get page | wc -c; done
        get nothing -o missing -w '%{{http_code}}\\n'; kill -QUIT $!; wait; echo $?"
    );
    let mut command = inside(&["sh", "-c", &script]);
    let (status, text) = output_of(command.current_dir(folder.path()));
    let counts = "100000\n".repeat(5);
    assert_eq!((status, text), (Some(0), format!("{counts}404\n0\n")));
}

#[test]
fn node_serves_starts_programs_and_has_workers() {
    let test = "node_serves_starts_programs_and_has_workers";
    if !(is_permitted(test) && is_installed(test, "node")) {
        return;
    }
    let program = "
        const fs = require('fs'), http = require('http'), { execSync } = require('child_process'), { Worker } = require('worker_threads');
        fs.writeFileSync('file', 'written'); console.log(fs.readFileSync('file') + '', execSync('echo program') + '');
        const worker = new Worker(`require('worker_threads').parentPort.postMessage(42)`, { eval: true });
        worker.on('message', answer => {
            const server = http.createServer((_, reply) => reply.end('served ' + answer));
            server.listen(0, '127.0.0.1', () => http.get({ host: '127.0.0.1', port: server.address().port }, reply =>
                reply.on('data', data => console.log(data + '')).on('end', () => server.close())));
        });";
    let folder = Folder::new();
    let mut command = inside(&["node", "-e", program]);
    let (status, text) = output_of(command.current_dir(folder.path()));
    assert_eq!((status, text.as_str()), (Some(0), "written program\n\nserved 42\n"));
}
