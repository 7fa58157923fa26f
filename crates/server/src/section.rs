//! A part of the configuration file that one protocol reads, and complaints about it.

use core::any::Any;
use core::ops::Range;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeValue, ValueDeserializer};

/// An error, and the bytes of the file where it is.
pub(crate) type Complaint = (Range<usize>, String);

/// What a protocol has read from its section. Only that protocol knows the type.
pub(crate) type Settings = Arc<dyn Any + Send + Sync>;

/// A table of the file.
pub(crate) struct Section<'a>(Spanned<DeValue<'a>>);

impl<'a> Section<'a> {
    /// The table that `value` is.
    pub(crate) fn new(value: Spanned<DeValue<'a>>) -> Self {
        Self(value)
    }

    /// The table as a type of the protocol's.
    ///
    /// # Errors
    /// The table has another form.
    pub(crate) fn read<T: DeserializeOwned>(self) -> Result<T, Complaint> {
        let own = self.0.span();
        T::deserialize(ValueDeserializer::from(self.0))
            .map_err(|error| (error.span().unwrap_or(own), error.message().to_owned()))
    }
}
