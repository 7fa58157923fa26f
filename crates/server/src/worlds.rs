//! Users' worlds: images in one folder, one for each user. A session begins with its user's world,
//! and `(save-image)` without a file name saves it.
//!
//! Each session has a world of its own. If a user saves from several sessions, the last one is
//! kept.

use crate::evaluation::{Interrupt, await_end};
use kyocho_lisp::system::Session;
use std::path::PathBuf;

/// Where the sessions of one user find their world.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct World {
    /// The user's own image, which need not exist yet.
    pub(crate) own: Option<PathBuf>,
    /// The image for users without one.
    pub(crate) first: Option<PathBuf>,
}

impl World {
    /// Lets the session begin with the world. Call as a microprocess.
    ///
    /// # Errors
    /// The image exists and cannot be loaded. It is not changed, and the session cannot save.
    pub(crate) fn enter(&self, session: &mut Session) -> Result<(), String> {
        let own = self.own.as_ref().filter(|own| own.exists());
        if let Some(image) = own.or(self.first.as_ref()) {
            let begun = |on_end| session.begin_image(image, on_end);
            let ended = await_end(begun, &session.handle(), &Interrupt::default());
            session.finish(ended).map_err(|report| report.message().to_owned())?;
        }
        self.set_image_of(session);
        Ok(())
    }

    /// Makes `(save-image)` in the session save to the user's own image.
    pub(crate) fn set_image_of(&self, session: &Session) {
        if let Some(own) = &self.own {
            session.set_image(own);
        }
    }
}
