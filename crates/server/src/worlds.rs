//! Users' worlds: images in one folder, one a user. A session begins with its user's, and `(save-image)` without a file's name keeps it.
//!
//! Each session has a world of its own; who has several at a time keeps the one that he saves last.

use crate::evaluation::{Interrupt, await_end};
use kyocho_lisp::system::Session;
use std::path::PathBuf;

/// Where one user's sessions find their world.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct World {
    /// His own, which may not be there yet.
    pub(crate) own: Option<PathBuf>,
    /// What everybody begins with who has none.
    pub(crate) first: Option<PathBuf>,
}

impl World {
    /// Has the session begin with it, as a microprocess.
    ///
    /// # Errors
    /// The world is there and cannot be had. It is kept as it is: the session has no place to save to.
    pub(crate) fn enter(&self, session: &mut Session) -> Result<(), String> {
        let own = self.own.as_ref().filter(|own| own.exists());
        if let Some(image) = own.or(self.first.as_ref()) {
            let begun = |on_end| session.begin_image(image, on_end);
            let ended = await_end(begun, &session.handle(), &Interrupt::default());
            session.finish(ended).map_err(|report| report.message().to_owned())?;
        }
        self.is_saved_by(session);
        Ok(())
    }

    /// `(save-image)` in the session keeps it.
    pub(crate) fn is_saved_by(&self, session: &Session) {
        if let Some(own) = &self.own {
            session.set_image(own);
        }
    }
}
