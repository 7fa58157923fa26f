//! A full heap: a call that runs out of memory has no effect, and succeeds when it is repeated.

use super::Calculator;
use super::ports::Scratch;
use core::net::SocketAddr;
use kyocho_heap::value::Value;
use std::fs;
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};

const HEAP_BYTES: usize = 4 << 20;

/// Uses up all memory, including the reserve, as a thread does that handles an out-of-memory error
/// and continues.
fn fill(c: &mut Calculator) {
    let mut list = Value::NIL;
    while let Ok(pair) = c.m.cons(Value::NIL, list) {
        list = pair;
    }
}

/// Calls a primitive in a full heap, and again with room. Only its arguments are kept alive
/// meanwhile.
fn call_twice(c: &mut Calculator, name: &str, arguments: &[Value]) -> Value {
    fill(c);
    let refused = c.call(name, arguments).expect_err("there is no memory");
    assert!(refused.is_out_of_memory(), "{name}: {refused:?}");
    c.m.heap.collect(|marker| arguments.iter().for_each(|&argument| marker.mark(argument)));
    c.call(name, arguments).unwrap_or_else(|raise| panic!("{name}: {raise:?}"))
}

#[test]
fn a_read_that_ran_out_of_memory_is_repeated() {
    let file = Scratch::new("full-heap");
    fs::write(&file.0, "the first line\nand (a \"datum\" 1/2) rest of it\n").unwrap();
    let mut c = Calculator::with_bytes(HEAP_BYTES);
    let path = c.m.string(&file.path()).unwrap();
    let port = c.call("open-input-file", &[path]).unwrap();
    let read = |c: &mut Calculator, name, arguments: &[Value]| {
        let value = call_twice(c, name, arguments);
        crate::printer::to_text(value, crate::printer::Style::Write).unwrap()
    };
    assert_eq!(read(&mut c, "read-line", &[port]), "\"the first line\"");
    assert_eq!(read(&mut c, "read-string", &[Value::fixnum(4), port]), "\"and \"");
    assert_eq!(read(&mut c, "read", &[port]), "(a \"datum\" 1/2)");
    assert_eq!(read(&mut c, "read-line", &[port]), "\" rest of it\"");
    // A value that is not an object needs no memory.
    fill(&mut c);
    assert_eq!(c.call("read-line", &[port]).unwrap(), Value::EOF);
    c.m.heap.collect(|_| ());

    let path = c.m.string(&file.path()).unwrap();
    let port = c.call("open-binary-input-file", &[path]).unwrap();
    let bytes = "#u8(116 104 101)";
    assert_eq!(read(&mut c, "read-bytevector", &[Value::fixnum(3), port]), bytes);
    fill(&mut c);
    assert_eq!(c.call("read-u8", &[port]).unwrap(), Value::fixnum(32));
}

#[test]
fn programs_are_not_started_without_memory_for_their_objects() {
    let file = Scratch::new("started");
    let mut c = Calculator::with_bytes(HEAP_BYTES);
    let line = format!("echo started >> {}; cat", file.path());
    let pipeline = [["sh", "-c", &line].as_slice(), &["cat"]].map(|words| {
        let words: Vec<Value> = words.iter().map(|word| c.m.string(word).unwrap()).collect();
        c.m.list(&words).unwrap()
    });
    let pipeline = c.m.list(&pipeline).unwrap();
    let arguments = [pipeline, Value::FALSE, Value::FALSE, Value::FALSE, Value::NIL];
    let started = call_twice(&mut c, "start-programs", &arguments);
    let first = started.car().and_then(Value::car).unwrap();
    assert_eq!(c.call("program-wait", &[first]).unwrap(), Value::fixnum(0));
    assert_eq!(fs::read_to_string(&file.0).unwrap(), "started\n", "once");
}

fn tcp_arguments(c: &mut Calculator, address: SocketAddr) -> [Value; 2] {
    [c.m.string(&address.ip().to_string()).unwrap(), Value::fixnum(address.port().into())]
}

#[test]
fn connections_are_not_made_without_memory_for_their_objects() {
    let mut c = Calculator::with_bytes(HEAP_BYTES);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let arguments = tcp_arguments(&mut c, listener.local_addr().unwrap());
    call_twice(&mut c, "tcp-connect", &arguments);
    assert!(listener.accept().is_ok());
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "one came");
}

#[test]
fn a_repeated_accept_accepts_the_first_connection() {
    let mut c = Calculator::with_bytes(HEAP_BYTES);
    let arguments = tcp_arguments(&mut c, SocketAddr::from(([127, 0, 0, 1], 0)));
    let listener = c.call("tcp-listen", &arguments).unwrap();
    let text_of = |c: &mut Calculator, socket| {
        c.call("socket-address", &[socket]).unwrap().to_text().unwrap()
    };
    let address = text_of(&mut c, listener);
    let comers = [TcpStream::connect(&address).unwrap(), TcpStream::connect(&address).unwrap()];
    let accepted = call_twice(&mut c, "socket-accept", &[listener]);
    let first = comers[0].local_addr().unwrap().to_string();
    assert_eq!(text_of(&mut c, accepted), first, "the first connection");
}

#[test]
fn a_file_that_must_be_new_is_created_once() {
    let file = Scratch::new("new");
    let mut c = Calculator::with_bytes(HEAP_BYTES);
    let path = c.m.string(&file.path()).unwrap();
    let port_type = c.run("'binary-output").unwrap();
    // open/create + open/exclusive.
    let port = call_twice(&mut c, "open-file", &[path, port_type, Value::fixnum(6)]);
    c.call("close-port", &[port]).unwrap();
    assert!(file.0.exists());
}
