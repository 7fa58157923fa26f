//! What the server says to its operator. The program that runs the server decides where that goes.

/// Where the server's messages go. Each is one line, without its end.
#[derive(Clone, Copy, Debug)]
pub struct Console {
    /// Takes what the operator needs to know: a listener's address, a host key's fingerprint.
    pub announce: fn(&str),
    /// Takes what went wrong.
    pub complain: fn(&str),
}

impl Console {
    /// Announces `text` about `name`, as the services of a system are listed.
    pub(crate) fn announce_service(&self, name: &str, text: &str) {
        (self.announce)(&format!("{name:<20} {text}"));
    }

    /// Says what went wrong.
    pub(crate) fn complain(&self, text: &str) {
        (self.complain)(text);
    }
}
