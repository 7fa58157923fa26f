//! How a node learns its place in the cluster: environment variables that a launcher sets.
//!
//! | variable | |
//! |---|---|
//! | `KYOCHO_DSM_TRANSPORT` | `tcp` (default), `shm`, or `mpi`: rank and nodes are then those of the MPI job, and the next five variables are not read |
//! | `KYOCHO_DSM_RANK` | this node's rank; without it, the program is a cluster of one |
//! | `KYOCHO_DSM_NODES` | addresses at which the nodes listen, by rank: `10.0.0.1:7000,10.0.0.2:7000`; or names that this node's host resolves |
//! | `KYOCHO_DSM_SECRET` | 64 hexadecimal digits that all nodes know |
//! | `KYOCHO_DSM_LISTENER` | number of a descriptor that already listens; without it, the node binds its own address |
//! | `KYOCHO_DSM_SHARED` | with `shm`: numbers of the descriptors that [`Shared::descriptors`] returns, separated by commas |
//! | `KYOCHO_DSM_DETECTION` | `scan`, `userfault` or `protect`; without it, the first of these that the host permits |
//! | `KYOCHO_DSM_SCHEME` | `manager` (default) or `holder`: which node keeps the log of a lock |
//! | `KYOCHO_DSM_RUN` | name of the run, under which its counters are found ([`crate::counters`]); without it, there are no counters |
//! | `KYOCHO_DSM_LAUNCHER` | number of a descriptor whose end of file means that the launcher has ended |
//! | `KYOCHO_DSM_DEADLINE_MS` | a peer that is silent for longer is dead; default 10,000 |
#![expect(unsafe_code, reason = "takes over a descriptor that the launcher gave")]

mod launcher;

use core::fmt;
use core::net::SocketAddr;
use core::str::FromStr;
use core::time::Duration;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::net::{TcpListener, ToSocketAddrs};
use std::os::fd::OwnedFd;

use kyocho_sys::descriptor;

use crate::address::NodeId;
use crate::counters;
use crate::layout::Scheme;
use crate::transport::{Cluster, Secret, Shared};
use crate::watch::Detection;

pub(crate) use launcher::{Launcher, LauncherEvent};
pub use launcher::{end_signal, ended};

/// Names of the environment variables.
pub mod variable {
    /// The transport.
    pub const TRANSPORT: &str = "KYOCHO_DSM_TRANSPORT";
    /// The rank.
    pub const RANK: &str = "KYOCHO_DSM_RANK";
    /// The addresses.
    pub const NODES: &str = "KYOCHO_DSM_NODES";
    /// The secret.
    pub const SECRET: &str = "KYOCHO_DSM_SECRET";
    /// The descriptor that listens.
    pub const LISTENER: &str = "KYOCHO_DSM_LISTENER";
    /// Descriptors of the memory that nodes of one machine share.
    pub const SHARED: &str = "KYOCHO_DSM_SHARED";
    /// How writes are detected.
    pub const DETECTION: &str = "KYOCHO_DSM_DETECTION";
    /// Which node keeps the log of a lock.
    pub const SCHEME: &str = "KYOCHO_DSM_SCHEME";
    /// The name of the run.
    pub const RUN: &str = "KYOCHO_DSM_RUN";
    /// The pipe from the launcher.
    pub const LAUNCHER: &str = "KYOCHO_DSM_LAUNCHER";
    /// How long a peer may be silent.
    pub const DEADLINE_MS: &str = "KYOCHO_DSM_DEADLINE_MS";
}

/// How long nodes wait for each other when they join.
pub(crate) const JOIN_WITHIN: Duration = Duration::from_secs(30);
const DEADLINE: Duration = Duration::from_secs(10);

/// An environment variable has an invalid value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadVariable {
    /// Its name.
    pub name: &'static str,
    /// What it should contain.
    pub expected: Cow<'static, str>,
}

impl fmt::Display for BadVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} must be {}; start nodes by `kyocho dsm run`", self.name, self.expected)
    }
}

impl core::error::Error for BadVariable {}

/// How this node reaches the others.
#[derive(Debug)]
pub(crate) enum Route {
    /// There are no others.
    Alone,
    /// By TCP; with a socket that already listens, or with the node's own.
    Tcp(Cluster, Option<TcpListener>),
    /// By shared memory, on one machine; the nodes find each other by TCP.
    Shm(Cluster, Option<TcpListener>, Shared),
    /// By the MPI job that started it.
    #[cfg(feature = "mpi")]
    Mpi,
}

impl Route {
    /// Number of nodes that share this host's memory, as far as is known. With TCP, these are the
    /// nodes at this node's address.
    pub(crate) fn nodes_here(&self) -> usize {
        match self {
            Self::Alone => 1,
            Self::Shm(cluster, ..) => cluster.addresses.len(),
            Self::Tcp(cluster, _) => {
                let here = cluster.addresses[usize::from(cluster.me.0)].ip();
                cluster.addresses.iter().filter(|address| address.ip() == here).count()
            }
            #[cfg(feature = "mpi")]
            Self::Mpi => {
                let names = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"];
                let said = names.iter().find_map(|name| std::env::var(name).ok()?.parse().ok());
                said.unwrap_or(1)
            }
        }
    }
}

/// The contents of the environment.
#[derive(Debug)]
pub(crate) struct Environment {
    pub(crate) route: Route,
    pub(crate) detection: Option<Detection>,
    pub(crate) scheme: Scheme,
    pub(crate) deadline: Duration,
    pub(crate) run: Option<String>,
    pub(crate) launcher: Option<Launcher>,
}

impl Environment {
    /// Reads the variables by `get`.
    pub(crate) fn read(get: impl Fn(&str) -> Option<String>) -> Result<Self, BadVariable> {
        let detection = parsed(&get, variable::DETECTION, "scan, userfault or protect")?;
        let scheme = match get(variable::SCHEME).as_deref() {
            None | Some("manager") => Scheme::LogAtManager,
            Some("holder") => Scheme::LogAtLastHolder,
            Some(_) => return Err(bad(variable::SCHEME, "manager or holder")),
        };
        let deadline: Option<u64> = parsed(&get, variable::DEADLINE_MS, "milliseconds")?;
        let deadline = deadline.map_or(DEADLINE, Duration::from_millis);
        if deadline.is_zero() {
            return Err(bad(variable::DEADLINE_MS, "milliseconds, more than 0"));
        }
        let run = get(variable::RUN);
        if run.as_deref().is_some_and(|name| !counters::is_run(name)) {
            return Err(bad(variable::RUN, "1 to 64 letters, digits and hyphens"));
        }
        let launcher = launcher(parsed(&get, variable::LAUNCHER, "a descriptor's number")?)?;
        let route = match get(variable::TRANSPORT).as_deref() {
            None | Some("tcp") => by_tcp(get)?,
            Some("shm") => by_memory(get)?,
            #[cfg(feature = "mpi")]
            Some("mpi") => Route::Mpi,
            #[cfg(not(feature = "mpi"))]
            Some("mpi") => {
                return Err(bad(
                    variable::TRANSPORT,
                    "tcp or shm, as this program was built without MPI (feature `mpi`)",
                ));
            }
            Some(_) => return Err(bad(variable::TRANSPORT, "tcp, shm or mpi")),
        };
        Ok(Self { route, detection, scheme, deadline, run, launcher })
    }
}

fn by_tcp(get: impl Fn(&str) -> Option<String>) -> Result<Route, BadVariable> {
    let rank: Option<u16> = parsed(&get, variable::RANK, "a rank below the number of nodes")?;
    let Some(rank) = rank else { return Ok(Route::Alone) };
    let wanted = "addresses like 10.0.0.1:7000,10.0.0.2:7000, one for each node";
    let nodes = get(variable::NODES).ok_or_else(|| bad(variable::NODES, wanted))?;
    let addresses = nodes.split(',').map(|place| address(place, wanted));
    let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
    if usize::from(rank) >= addresses.len() {
        return Err(bad(variable::RANK, "a rank below the number of nodes"));
    }
    let secret = get(variable::SECRET).and_then(|digits| Secret::from_hex(&digits));
    let secret = secret.ok_or_else(|| bad(variable::SECRET, "64 hexadecimal digits"))?;
    let me = NodeId(rank);
    let (layout, join_within) = ([0; 4], JOIN_WITHIN);
    let cluster = Cluster { me, addresses, secret, layout, join_within };
    let listener = listener(parsed(&get, variable::LISTENER, "a descriptor's number")?)?;
    Ok(Route::Tcp(cluster, listener))
}

/// The address of a node, as this host resolves it.
fn address(place: &str, wanted: &'static str) -> Result<SocketAddr, BadVariable> {
    match place.to_socket_addrs().map(|mut found| found.next()) {
        Ok(Some(address)) => Ok(address),
        Err(why) if why.kind() == std::io::ErrorKind::InvalidInput => {
            Err(bad(variable::NODES, wanted))
        }
        Ok(None) => Err(unknown(place, "it has no address")),
        Err(why) => Err(unknown(place, &why.to_string())),
    }
}

fn unknown(place: &str, why: &str) -> BadVariable {
    let expected = format!("addresses, or names that this host knows, unlike {place} ({why})");
    BadVariable { name: variable::NODES, expected: expected.into() }
}

fn by_memory(get: impl Fn(&str) -> Option<String>) -> Result<Route, BadVariable> {
    let wanted =
        "numbers of descriptors that this program was started with: memory, and a bell a node";
    let wrong = || bad(variable::SHARED, wanted);
    let numbers = get(variable::SHARED);
    let Route::Tcp(cluster, listener) = by_tcp(get)? else { return Ok(Route::Alone) };
    let numbers: Result<Vec<u32>, _> =
        numbers.ok_or_else(wrong)?.split(',').map(str::parse).collect();
    let numbers = numbers.map_err(|_| wrong())?;
    let distinct: BTreeSet<_> = numbers.iter().collect();
    if numbers.len() != cluster.addresses.len() + 1 || distinct.len() != numbers.len() {
        return Err(wrong());
    }
    let mut descriptors = Vec::new();
    for number in numbers {
        descriptors.push(inherited(number).ok_or_else(wrong)?);
    }
    let bells = descriptors.split_off(1);
    let shared = descriptors.pop().and_then(|memory| Shared::receive(memory, bells).ok());
    Ok(Route::Shm(cluster, listener, shared.ok_or_else(wrong)?))
}

fn bad(name: &'static str, expected: &'static str) -> BadVariable {
    BadVariable { name, expected: expected.into() }
}

fn parsed<T: FromStr>(
    get: impl Fn(&str) -> Option<String>,
    name: &'static str,
    expected: &'static str,
) -> Result<Option<T>, BadVariable> {
    get(name).map(|text| text.parse().map_err(|_| bad(name, expected))).transpose()
}

fn listener(number: Option<u32>) -> Result<Option<TcpListener>, BadVariable> {
    let Some(number) = number else { return Ok(None) };
    let wanted = "the number of a descriptor that this program was started with";
    let owned = inherited(number).ok_or_else(|| bad(variable::LISTENER, wanted))?;
    Ok(Some(owned.into()))
}

fn launcher(number: Option<u32>) -> Result<Option<Launcher>, BadVariable> {
    let Some(number) = number else { return Ok(None) };
    let wanted = "the number of a descriptor that this program was started with";
    let line = inherited(number).ok_or_else(|| bad(variable::LAUNCHER, wanted))?;
    Ok(Some(Launcher::new(line)))
}

/// A descriptor that this process has inherited from the launcher.
fn inherited(number: u32) -> Option<OwnedFd> {
    if number <= 2 {
        return None;
    }
    // SAFETY: the launcher opened it for this node alone; a program joins once, before it opens
    // descriptors of its own.
    unsafe { descriptor::adopt(number) }.ok()
}

#[cfg(test)]
mod tests {
    use super::{BadVariable, Environment, Route, variable};
    use crate::layout::Scheme;
    use crate::watch::Detection;

    fn read(variables: &[(&str, &str)]) -> Result<Environment, BadVariable> {
        Environment::read(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn without_a_rank_a_program_is_a_cluster_of_one() {
        let place =
            read(&[(variable::DETECTION, "protect"), (variable::SCHEME, "holder")]).unwrap();
        assert!(matches!(place.route, Route::Alone), "{place:?}");
        assert_eq!(place.detection, Some(Detection::Protect));
        assert_eq!(place.scheme, Scheme::LogAtLastHolder);
    }

    #[test]
    fn a_place_is_read_and_mistakes_are_named() {
        let secret = "ab".repeat(32);
        let good = [
            (variable::RANK, "1"),
            (variable::NODES, "127.0.0.1:7000,[::1]:7001"),
            (variable::SECRET, secret.as_str()),
        ];
        let Route::Tcp(place, None) = read(&good).unwrap().route else { panic!("a place by TCP") };
        assert_eq!((place.me.0, place.addresses.len()), (1, 2));
        let elsewhere = "10.0.0.1:1,10.0.0.2:1,10.0.0.1:2,10.0.0.2:2,10.0.0.2:3";
        let parted = [good[0], (variable::NODES, elsewhere), good[2]];
        assert_eq!(read(&parted).unwrap().route.nodes_here(), 3, "those of its host");
        for (name, value) in [
            (variable::RANK, "2"),
            (variable::RANK, "first"),
            (variable::NODES, "here,there"),
            (variable::SECRET, "swordfish"),
            (variable::DETECTION, "magic"),
            (variable::SCHEME, "both"),
            (variable::DEADLINE_MS, "0"),
            (variable::RUN, "../elsewhere"),
            (variable::TRANSPORT, "pigeon"),
            (variable::LISTENER, "1"),
            (variable::LAUNCHER, "1"),
            (variable::LAUNCHER, "536870911"),
            (variable::LISTENER, "536870912"),
        ] {
            let mut wrong = vec![(name, value)];
            wrong.extend(good.iter().filter(|(known, _)| *known != name));
            let why = read(&wrong).unwrap_err();
            assert_eq!(why.name, name);
            assert!(why.to_string().contains(name));
        }
        let named = [good[0], (variable::NODES, "localhost:7000,127.0.0.1:7001"), good[2]];
        let Route::Tcp(place, None) = read(&named).unwrap().route else { panic!("a place by TCP") };
        assert!(place.addresses[0].ip().is_loopback() && place.addresses[0].port() == 7000);
        assert_eq!(read(&good[..1]).unwrap_err().name, variable::NODES);
        for shared in ["", "1,2,3", "536870912,536870913,536870914", "7,8", "7,7,7"] {
            let mut wrong = vec![(variable::TRANSPORT, "shm"), (variable::SHARED, shared)];
            wrong.extend(good);
            assert_eq!(read(&wrong).unwrap_err().name, variable::SHARED, "{shared}");
        }
        assert!(matches!(read(&[(variable::TRANSPORT, "shm")]).unwrap().route, Route::Alone));
    }

    #[test]
    fn a_program_without_mpi_reports_that() {
        let place = read(&[(variable::TRANSPORT, "mpi")]);
        if cfg!(feature = "mpi") {
            assert!(place.is_ok(), "{place:?}");
        } else {
            assert!(place.unwrap_err().to_string().contains("built without MPI"));
        }
    }
}
