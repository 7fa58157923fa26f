//! Whether a runtime serves the control socket.

use std::env;
use std::ffi::OsStr;

use super::server::serve;
use crate::runtime::RuntimeBuilder;

/// Whether the control socket is served. `None`: the program has not decided.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::runtime) struct Service(Option<bool>);

impl Service {
    /// What applies when the user of the process is asked, too.
    pub(in crate::runtime) fn settle(self) -> Self {
        Self(Some(is_wanted(self.0, env::var_os("KYOCHO_CONTROL").as_deref())))
    }

    /// Calls `run`, and serves the control socket until it returns, if that is wanted.
    pub(in crate::runtime) fn serve_during<T>(self, run: impl FnOnce() -> T) -> T {
        let serving = (self.0 == Some(true)).then(serve).map(|served| {
            served.inspect_err(|error| {
                tracing::warn!(target: "kyocho_microprocess::runtime", %error, "no control socket");
            })
        });
        let result = run();
        drop(serving);
        result
    }
}

/// Whether to serve the control socket, as the program and the user of the process want it.
fn is_wanted(program: Option<bool>, user: Option<&OsStr>) -> bool {
    match user.and_then(OsStr::to_str) {
        Some("0") => false,
        Some("1") => true,
        _ => program == Some(true),
    }
}

impl RuntimeBuilder {
    /// Sets whether other processes of the user may list, stop, resume and end the microprocesses,
    /// through a control socket: see [`control`](crate::control). Default: no. The environment
    /// variable `KYOCHO_CONTROL` overrides this: `1` permits it, `0` forbids it.
    #[must_use]
    pub fn control(mut self, served: bool) -> Self {
        self.control = Service(Some(served));
        self
    }
}
