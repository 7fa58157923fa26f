//! Recognises clients that mistake a text protocol's port for that of another service.
//!
//! A page can make its browser connect to any port of this machine, and chooses much of what the
//! browser sends. A service that evaluates lines would execute the body of such a request. But the
//! page cannot choose how a request begins:
//!
//! - HTTP: with a line `METHOD TARGET HTTP/VERSION` (RFC 9112, §3), also for WebSocket and HTTP/2;
//! - TLS: with the record of a handshake (RFC 8446, §5.1);
//! - STUN and TURN: with two zero bits (RFC 8489, §5).
//!
//! A connection that begins so is closed before anything in it is evaluated.

const ESCAPE: u8 = 0x1b;
/// Ctrl-C: ends an evaluation. A plain terminal may send it first.
const CONTROL_C: u8 = 3;
/// The first byte of a telnet command.
const TELNET_COMMAND: u8 = 255;

/// Whether text at a terminal can begin with this byte.
pub(super) fn begins_text(byte: u8) -> bool {
    match byte {
        CONTROL_C | 4 | b'\t' | b'\n' | b'\r' | ESCAPE | TELNET_COMMAND => true,
        // Excludes bytes that continue a UTF-8 character, and bytes that UTF-8 does not use.
        _ => matches!(byte, b' '..=0x7f | 0xc2..=0xf4),
    }
}

/// Whether a line is the first of an HTTP request, with any method and version.
pub(super) fn is_http_request(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let words = || line.split(u8::is_ascii_whitespace);
    let is_token = |word: &[u8]| !word.is_empty() && word.iter().all(|&byte| is_token_byte(byte));
    words().next().is_some_and(is_token)
        && words().next_back().is_some_and(|last| last.to_ascii_uppercase().starts_with(b"HTTP/"))
}

/// Whether a method's name may contain this byte (RFC 9110, §5.6.2).
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::{begins_text, is_http_request};

    #[test]
    fn http_requests_are_distinguished_from_lisp() {
        for line in [
            &b"GET / HTTP/1.1\r"[..],
            b"POST /(exit) HTTP/1.0",
            b"x-*any'method http://127.0.0.1:2323/ HTTP/1.1",
            b"PRI * HTTP/2.0",
            b"get /a b c http/1.1",
            b"  OPTIONS * HTTP/1.1  ",
        ] {
            assert!(is_http_request(line), "{}", line.escape_ascii());
        }
        for line in [
            &b"(display \"GET / HTTP/1.1\")"[..],
            b"",
            b"(fetch HTTP/1.1",
            b"GET",
            b"; GET / HTTP/1.1",
            b",help",
            b"\"POST / HTTP/1.1",
        ] {
            assert!(!is_http_request(line), "{}", line.escape_ascii());
        }
    }

    #[test]
    fn handshakes_of_other_protocols_are_not_text() {
        for byte in [0x16, 0x80, 0, 1, 0x40 | 0x80, 0xfe] {
            assert!(!begins_text(byte), "{byte:#x}");
        }
        for byte in
            ["(", "'", "é", "λ", "𝄞", ",", "\n", "\u{3}", " "].map(|text| text.as_bytes()[0])
        {
            assert!(begins_text(byte), "{byte:#x}");
        }
    }
}
