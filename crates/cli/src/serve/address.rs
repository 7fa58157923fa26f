//! Where a server listens: `unix:PATH`, `ssh:ADDRESS:PORT`, `nrepl`, `nrepl:unix:PATH`, `nrepl:127.0.0.1:PORT`, `telnet:127.0.0.1:PORT`.

use core::fmt;
use core::net::SocketAddr;
use core::str::FromStr;
use std::io;
use std::path::PathBuf;

/// A place to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// A socket of this machine; the kernel tells who connects.
    Unix(PathBuf),
    /// A port; who connects proves to have a user's key.
    Ssh(SocketAddr),
    /// A port of the loopback interface; nobody tells who connects.
    Telnet(SocketAddr),
    /// A socket of this machine, for editors; the kernel tells who connects.
    NreplUnix(PathBuf),
    /// A port of the loopback interface, for editors that show a token.
    Nrepl(SocketAddr),
}

impl Address {
    /// Where `kyocho serve` listens, and `kyocho connect` knocks, unless told otherwise.
    ///
    /// # Errors
    /// There is no directory for it.
    pub(crate) fn of_user() -> io::Result<Self> {
        Ok(Self::Unix(kyocho_sys::directory::of_user()?.join("serve.sock")))
    }

    /// Where it listens for editors.
    fn for_editors() -> io::Result<Self> {
        Ok(Self::NreplUnix(kyocho_sys::directory::of_user()?.join("nrepl.sock")))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Ssh(address) => write!(f, "ssh:{address}"),
            Self::Telnet(address) => write!(f, "telnet:{address}"),
            Self::NreplUnix(path) => write!(f, "nrepl:unix:{}", path.display()),
            Self::Nrepl(address) => write!(f, "nrepl:{address}"),
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("nrepl:unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::NreplUnix(path.into()));
        }
        match text.split_once(':') {
            None if text == "nrepl" => Self::for_editors().map_err(|error| error.to_string()),
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(path.into())),
            Some(("ssh", address)) => address.parse().map(Self::Ssh).map_err(|_| {
                format!("{address} is no address and port, such as 0.0.0.0:2222 or [::]:2222")
            }),
            Some(("telnet", address)) => loopback("telnet", address).map(Self::Telnet),
            Some(("nrepl", address)) => loopback("nrepl", address).map(Self::Nrepl),
            _ => Err("expected unix:PATH, ssh:ADDRESS:PORT, nrepl, nrepl:unix:PATH, \
                      nrepl:127.0.0.1:PORT or telnet:127.0.0.1:PORT"
                .to_owned()),
        }
    }
}

/// A port that only this machine reaches.
fn loopback(what: &str, address: &str) -> Result<SocketAddr, String> {
    let example = |_| format!("{address} is no address, such as 127.0.0.1:2323");
    let address: SocketAddr = address.parse().map_err(example)?;
    if !address.ip().is_loopback() {
        let message = "has no cipher: only loopback, 127.0.0.1 or [::1]";
        return Err(format!("{what} {message}"));
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn what_is_written_is_understood() {
        for text in [
            "unix:/run/k.sock",
            "ssh:0.0.0.0:2222",
            "ssh:[::]:22",
            "telnet:127.0.0.1:2323",
            "telnet:[::1]:1",
            "nrepl:127.0.0.1:7",
            "nrepl:unix:/run/editors.sock",
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "unix:",
            "telnet:2323",
            "ssh:2222",
            "ssh:localhost",
            "telnet:0.0.0.0:23",
            "ftp:x",
            "telnet:10.0.0.1:23",
            "nrepl:10.0.0.1:7",
            "nrepl:unix:",
            "nrepl:",
        ] {
            text.parse::<Address>().unwrap_err();
        }
    }
}
