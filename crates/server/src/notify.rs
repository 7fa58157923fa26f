//! Notifies the service manager of the server's state (`sd_notify`: datagrams to `$NOTIFY_SOCKET`),
//! if there is one.

use crate::console::Console;
use core::time::Duration;
use kyocho_sys::clock::monotonic_ns;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Longest wait for a manager that accepts no notice.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// The server is ready for connections.
pub(crate) fn ready(console: Console) {
    notify(console, "READY=1");
}

/// The configuration is being read again; [`ready`] ends this state.
pub(crate) fn reloading(console: Console) {
    notify(console, &format!("RELOADING=1\nMONOTONIC_USEC={}", monotonic_ns() / 1000));
}

/// The server ends.
pub(crate) fn stopping(console: Console) {
    notify(console, "STOPPING=1");
}

/// The server works: it need not be restarted.
pub(crate) fn alive(console: Console) {
    notify(console, "WATCHDOG=1");
}

fn notify(console: Console, message: &str) {
    if let Some(name) = std::env::var_os("NOTIFY_SOCKET")
        && let Err(error) = send(&name, message.as_bytes())
    {
        let name = name.display();
        console.complain(&format!("kyocho: cannot notify the service manager at {name}: {error}"));
    }
}

fn send(name: &OsStr, message: &[u8]) -> io::Result<()> {
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(Some(SEND_TIMEOUT))?;
    socket.send_to_addr(message, &address).map(drop)
}

/// How long the manager waits for the next [`alive`]. `None` if it does not wait, or waits for
/// another process.
pub(crate) fn watchdog_interval() -> Option<Duration> {
    let variable = |name| std::env::var(name).ok();
    interval_of(variable("WATCHDOG_USEC")?.as_str(), variable("WATCHDOG_PID").as_deref())
}

fn interval_of(microseconds: &str, process: Option<&str>) -> Option<Duration> {
    if process.is_some_and(|process| process.parse() != Ok(std::process::id())) {
        return None;
    }
    let microseconds = microseconds.parse().ok().filter(|&microseconds| microseconds > 0)?;
    Some(Duration::from_micros(microseconds))
}

#[cfg(test)]
mod tests {
    use super::interval_of;
    use core::time::Duration;

    #[test]
    fn a_watchdog_for_another_process_is_ignored() {
        let own = std::process::id().to_string();
        let second = Some(Duration::from_secs(1));
        assert_eq!(interval_of("1000000", None), second);
        assert_eq!(interval_of("1000000", Some(&own)), second);
        for (microseconds, process) in
            [("1000000", "1"), ("1000000", "x"), ("0", own.as_str()), ("", &own), ("-1", &own)]
        {
            assert_eq!(interval_of(microseconds, Some(process)), None, "{microseconds} {process}");
        }
    }
}
