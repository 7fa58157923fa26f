//! The table `[ssh]` of the configuration: the limits of connections, and the time for logging in.

use crate::section::{ConfigMistake, Section, Settings};
use core::time::Duration;
use serde::Deserialize;
use std::sync::Arc;
use toml::Spanned;

/// Longest time for a client to log in.
const LOGIN_SECONDS_MAX: u64 = 3600;

/// The values of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) connections_max: usize,
    pub(super) connections_an_address_max: usize,
    pub(super) login: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 1000,
            connections_an_address_max: 100,
            login: Duration::from_secs(20),
        }
    }
}

/// The table as it is written.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    connections: Option<usize>,
    connections_an_address: Option<usize>,
    login_seconds: Option<Spanned<u64>>,
}

/// Reads the table. Returns [`Limits`].
///
/// # Errors
/// The mistake in the table, and its place.
pub(super) fn read(section: Option<Section<'_>>) -> Result<Settings, ConfigMistake> {
    let written = section.map_or_else(|| Ok(Table::default()), Section::read::<Table>)?;
    let mut limits = Limits::default();
    if let Some(seconds) = written.login_seconds {
        if !(1..=LOGIN_SECONDS_MAX).contains(seconds.get_ref()) {
            let message = format!("login_seconds must be 1 to {LOGIN_SECONDS_MAX}");
            return Err((seconds.span(), message));
        }
        limits.login = Duration::from_secs(*seconds.get_ref());
    }
    limits.connections_max = written.connections.unwrap_or(limits.connections_max);
    limits.connections_an_address_max =
        written.connections_an_address.unwrap_or(limits.connections_an_address_max);
    Ok(Arc::new(limits))
}

#[cfg(test)]
mod tests {
    use super::{Limits, read};
    use crate::section::{ConfigMistake, Section};
    use core::time::Duration;
    use toml::de::DeValue;

    fn limits(table: &str) -> Result<Limits, ConfigMistake> {
        let settings = read(Some(Section::new(DeValue::parse(table).unwrap())))?;
        Ok(*settings.downcast::<Limits>().unwrap())
    }

    #[test]
    fn missing_keys_have_defaults() {
        let expected =
            Limits { connections_max: 3, login: Duration::from_secs(3600), ..Limits::default() };
        assert_eq!(limits("{ connections = 3, login_seconds = 3600 }").unwrap(), expected);
        assert_eq!(limits("{ }").unwrap(), Limits::default());
        assert_eq!(*read(None).unwrap().downcast::<Limits>().unwrap(), Limits::default());
    }

    #[test]
    fn mistakes_are_reported_with_their_place() {
        for (table, wrong, part) in [
            ("{ login_seconds = 0 }", "0", "login_seconds must be 1 to 3600"),
            ("{ login_seconds = 3601 }", "3601", "login_seconds must be 1 to 3600"),
            ("{ connection = 1 }", "connection", "unknown field `connection`"),
            ("{ connections = -1 }", "-1", ""),
        ] {
            let (place, message) = limits(table).unwrap_err();
            assert_eq!(&table[place], wrong, "{message}");
            assert!(message.contains(part), "{message}");
        }
    }
}
