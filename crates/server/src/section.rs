//! The table of the configuration file that one protocol reads, and mistakes in the file.

use core::any::Any;
use core::ops::Range;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeValue, ValueDeserializer};

/// The bytes of the file where a mistake is, and its description.
pub(crate) type ConfigMistake = (Range<usize>, String);

/// The values that a protocol has read from its section. Only that protocol knows their type.
pub(crate) type Settings = Arc<dyn Any + Send + Sync>;

/// A protocol's table of the file.
pub(crate) struct Section<'a>(Spanned<DeValue<'a>>);

impl<'a> Section<'a> {
    /// `value` as a section. Whether it is a table is checked by [`read`](Self::read).
    pub(crate) fn new(value: Spanned<DeValue<'a>>) -> Self {
        Self(value)
    }

    /// Converts the table to a type of the protocol.
    ///
    /// # Errors
    /// The table does not have the form of this type.
    pub(crate) fn read<T: DeserializeOwned>(self) -> Result<T, ConfigMistake> {
        let own = self.0.span();
        T::deserialize(ValueDeserializer::from(self.0))
            .map_err(|error| (error.span().unwrap_or(own), error.message().to_owned()))
    }
}
