//! The control socket in a build without feature `control`: it is not served.

/// Whether the control socket is served: never.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Service;

impl Service {
    pub(super) fn settle(self) -> Self {
        self
    }

    pub(super) fn serve_during<T>(self, run: impl FnOnce() -> T) -> T {
        run()
    }
}
