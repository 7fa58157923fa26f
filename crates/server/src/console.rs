//! Messages for the operator of the server. The program that runs the server decides where they are
//! printed.

/// Prints the server's messages. Each is one line, without a line end.
#[derive(Clone, Copy, Debug)]
pub struct Console {
    /// Prints information, such as the address of a listener or the fingerprint of the host key.
    pub announce: fn(&str),
    /// Prints an error.
    pub complain: fn(&str),
}

impl Console {
    /// Prints `text` about the service `name`, in the format in which the services of a system are
    /// listed.
    pub(crate) fn announce_service(&self, name: &str, text: &str) {
        (self.announce)(&format!("{name:<20} {text}"));
    }

    /// Prints an error.
    pub(crate) fn complain(&self, text: &str) {
        (self.complain)(text);
    }
}
