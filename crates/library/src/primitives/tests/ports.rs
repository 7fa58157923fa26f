use super::{Calculator, check, complaint};
use crate::printer::{Style, to_text};
use kyocho_heap::value::Value;
use std::fs;
use std::path::PathBuf;

/// A separate file for each test, removed at its end.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn new(name: &str) -> Self {
        let file = format!("kyocho-ports-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(file))
    }

    pub(super) fn path(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Calculator {
    fn text(&mut self, name: &str, arguments: &[Value]) -> String {
        match self.call(name, arguments) {
            Ok(value) => to_text(value, Style::Write).unwrap(),
            Err(raise) => complaint(&raise),
        }
    }
}

#[test]
fn string_ports() {
    let mut c = Calculator::new();
    let port = c.run("(open-input-string \"aλ\r\n(1 . 2) #;x foo\")").unwrap();
    assert_eq!(c.text("peek-char", &[port]), "#\\a");
    assert_eq!(c.text("read-line", &[port]), "\"aλ\"");
    assert_eq!(c.text("read", &[port]), "(1 . 2)");
    assert_eq!(c.text("read-char", &[port]), "#\\space");
    assert_eq!(c.text("read", &[port]), "foo");
    assert_eq!(c.text("read", &[port]), "#<eof>");
    assert_eq!(c.text("read-string", &[Value::fixnum(3), port]), "#<eof>");
    assert_eq!(c.text("char-ready?", &[port]), "#t");
    c.call("close-port", &[port]).unwrap();
    assert_eq!(c.text("read-char", &[port]), "read-char: the port is closed: string");
    assert_eq!(c.text("input-port-open?", &[port]), "#f");

    let out = c.run("(open-output-string)").unwrap();
    let value = c.run("'(1 \"a\\nb\" #\\x)").unwrap();
    for name in ["write", "display"] {
        c.call(name, &[value, out]).unwrap();
        c.call("fresh-line", &[out]).unwrap();
    }
    c.call("fresh-line", &[out]).unwrap();
    assert_eq!(
        c.call("get-output-string", &[out]).unwrap().to_text().unwrap(),
        "(1 \"a\\nb\" #\\x)\n(1 a\nb x)\n"
    );
    assert_eq!(c.text("read-char", &[out]), "read-char 1 expects textual input port");
    assert_eq!(
        c.text("write-u8", &[Value::fixnum(1), out]),
        "write-u8 2 expects binary output port"
    );
}

#[test]
fn syntax_errors_have_a_position() {
    let mut c = Calculator::new();
    let port = c.run("(open-input-string \"ok\\n  (a . b c)\")").unwrap();
    assert_eq!(c.text("read", &[port]), "ok");
    let raise = c.call("read", &[port]).unwrap_err();
    let kyocho_heap::raise::Cause::Read { span, .. } = raise.cause() else { panic!("{raise:?}") };
    assert_eq!(span.line, 2);
}

#[test]
fn binary_ports() {
    let mut c = Calculator::new();
    let port = c.run("(open-input-bytevector #u8(1 2 3 4 5))").unwrap();
    assert_eq!(c.text("peek-u8", &[port]), "1");
    assert_eq!(c.text("read-u8", &[port]), "1");
    assert_eq!(c.text("read-bytevector", &[Value::fixnum(2), port]), "#u8(2 3)");
    let target = c.run("(make-bytevector 4 0)").unwrap();
    assert_eq!(c.text("read-bytevector!", &[target, port, Value::fixnum(1)]), "2");
    assert_eq!(to_text(target, Style::Write).unwrap(), "#u8(0 4 5 0)");
    assert_eq!(c.text("read-u8", &[port]), "#<eof>");
    assert_eq!(c.text("read-bytevector", &[Value::fixnum(2), port]), "#<eof>");
    assert_eq!(c.text("read-char", &[port]), "read-char 1 expects textual input port");
    let out = c.run("(open-output-bytevector)").unwrap();
    c.call("write-u8", &[Value::fixnum(7), out]).unwrap();
    c.call("write-bytevector", &[target, out, Value::fixnum(1)]).unwrap();
    assert_eq!(c.text("get-output-bytevector", &[out]), "#u8(7 4 5 0)");
}

#[test]
fn a_written_file_reads_back() {
    let file = Scratch::new("round-trip");
    let mut c = Calculator::new();
    let path = c.m.string(&file.path()).unwrap();
    let out = c.call("open-output-file", &[path]).unwrap();
    // More than one buffer, with characters across its boundary.
    let line = c.m.string(&"日本語".repeat(3000)).unwrap();
    for _ in 0..3 {
        c.call("write-string", &[line, out]).unwrap();
        c.call("newline", &[out]).unwrap();
    }
    c.call("close-port", &[out]).unwrap();
    assert_eq!(
        c.text("write-char", &[Value::character('x'), out]),
        format!("write-char: the port is closed: {}", file.path())
    );
    let port = c.call("open-input-file", &[path]).unwrap();
    for _ in 0..3 {
        let read = c.call("read-line", &[port]).unwrap();
        assert!(kyocho_heap::equality::equal(read, line));
    }
    assert_eq!(c.text("read-line", &[port]), "#<eof>");
    let append = c.call("open-output-file", &[path, Value::TRUE]).unwrap();
    c.call("write-char", &[Value::character('!'), append]).unwrap();
    crate::port::flush_all().unwrap();
    assert!(fs::read_to_string(&file.0).unwrap().ends_with("語\n!"));
}

#[test]
fn an_output_port_that_is_dropped_keeps_its_text() {
    let file = Scratch::new("dropped");
    let mut c = Calculator::new();
    let path = c.m.string(&file.path()).unwrap();
    let out = c.call("open-output-file", &[path]).unwrap();
    c.call("write", &[Value::fixnum(42), out]).unwrap();
    c.m.heap.collect(|_| {});
    assert_eq!(fs::read_to_string(&file.0).unwrap(), "42");
}

#[test]
fn invalid_utf8_is_reported_with_its_position_and_skipped() {
    let file = Scratch::new("latin");
    fs::write(&file.0, b"ab\nc\xe9d\xe6\x97").unwrap();
    let mut c = Calculator::new();
    let path = c.m.string(&file.path()).unwrap();
    let port = c.call("open-input-file", &[path]).unwrap();
    assert_eq!(c.text("read-line", &[port]), "\"ab\"");
    assert_eq!(c.text("read-char", &[port]), "#\\c");
    let wrong = c.text("read-char", &[port]);
    assert!(wrong.contains("byte #xe9 at offset 4 (line 2, column 2)"), "{wrong}");
    assert_eq!(c.text("read-char", &[port]), "#\\d");
    let cut = c.text("read-char", &[port]);
    assert!(cut.contains("offset 6"), "{cut}");
}

#[test]
fn the_host_s_refusals_are_file_errors() {
    let mut c = Calculator::new();
    for (call, reason) in [
        ("(open-input-file \"/nonexistent/file\")", "No such file or directory"),
        ("(open-input-file \"/\")", "is a directory"),
        ("(delete-file \"/nonexistent/file\")", "No such file or directory"),
    ] {
        let raise = c.run(call).unwrap_err();
        let kyocho_heap::raise::Cause::File { reason: found, .. } = raise.cause() else {
            panic!("{raise:?}")
        };
        assert_eq!(found, reason, "{call}");
    }
    let full = c.run("(open-output-file \"/dev/full\")").unwrap();
    c.call("write-char", &[Value::character('x'), full]).unwrap();
    let refused = c.text("flush-output-port", &[full]);
    assert!(refused.contains("No space left on device"), "{refused}");
    // Output that could not be written is dropped, so that the port remains usable.
    assert_eq!(c.text("flush-output-port", &[full]), "#<unspecified>");
    check(&[
        ("(file-exists? \"/nonexistent/file\")", "#f"),
        ("(open-input-file 'a)", "open-input-file 1 expects string"),
        ("(textual-port? 1)", "#f"),
    ]);
}

#[test]
fn time_and_process() {
    let mut c = Calculator::new();
    let early = c.run("(current-jiffy)").unwrap().as_fixnum().unwrap();
    let late = c.run("(current-jiffy)").unwrap().as_fixnum().unwrap();
    assert!(early <= late);
    // In or after 2020, on any plausible clock.
    assert!(c.run("(current-second)").unwrap().as_flonum().unwrap() > 1.5e9);
    check(&[
        ("(get-environment-variable \"KYOCHO_NO_SUCH_VARIABLE\")", "#f"),
        ("(get-environment-variable \"\")", "#f"),
        ("(list? (get-environment-variables))", "#t"),
        ("(list? (command-line))", "#t"),
    ]);
}
