//! A Unix stream socket and plain reads and writes: the baseline. Each side has a kernel thread for
//! the connection.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::Instant;

use super::System;
use crate::pair::{ready, stay_on};
use crate::timing;

pub const SYSTEM: System = System { name: "unix-socket", serve, call, many: Some(many) };

/// A null call carries as much as the head of a gate's frame: method and length.
const HEAD_BYTES: usize = 8;

fn serve(path: &Path, cpu: usize, size: usize) {
    if cpu != usize::MAX {
        stay_on(cpu);
    }
    let listener = UnixListener::bind(path).expect("a path that is free");
    ready();
    for client in listener.incoming().flatten() {
        thread::spawn(move || echo(client, size));
    }
}

fn echo(mut client: UnixStream, size: usize) {
    let mut bytes = vec![0; HEAD_BYTES + size];
    while client.read_exact(&mut bytes).is_ok() {
        if client.write_all(&bytes).is_err() {
            return;
        }
    }
}

fn exchange(server: &mut UnixStream, request: &[u8], reply: &mut [u8]) {
    server.write_all(request).expect("the server is there");
    server.read_exact(reply).expect("the server answers");
}

fn call(path: &Path, size: usize, calls: usize) -> Vec<f64> {
    let mut server = UnixStream::connect(path).expect("the server is ready");
    let (mut request, mut reply) = (vec![0; HEAD_BYTES + size], vec![0; HEAD_BYTES + size]);
    timing::each(calls, || {
        request.iter_mut().step_by(64).for_each(|byte| *byte = 1);
        exchange(&mut server, &request, &mut reply);
        assert!(reply.iter().step_by(64).all(|&byte| byte == 1), "the answer is there");
    })
}

fn many(path: &Path, callers: usize, calls: usize) -> f64 {
    let begin = Instant::now();
    thread::scope(|scope| {
        for _ in 0..callers {
            scope.spawn(|| {
                let mut server = UnixStream::connect(path).expect("the server is ready");
                let mut reply = [0; HEAD_BYTES];
                (0..calls).for_each(|_| exchange(&mut server, &[0; HEAD_BYTES], &mut reply));
            });
        }
    });
    begin.elapsed().as_secs_f64()
}
