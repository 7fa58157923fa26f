//! The file of hosts: each line is `NAME[:PORT] [SLOTS]`, and `#` begins a comment.

use std::collections::BTreeMap;
use std::net::ToSocketAddrs;

const FIRST_PORT: u16 = 7700;

/// Host and port of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeHost {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// The hosts and ports of `nodes` nodes, in the order of ranks.
pub(crate) fn node_hosts(text: &str, nodes: u16) -> Result<Vec<NodeHost>, String> {
    let mut hosts = Vec::new();
    let mut next_port = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let wrong = |what: &str| format!("line {}: {what}", index + 1);
        let mut words = line.split('#').next().unwrap_or("").split_whitespace();
        let Some(place) = words.next() else { continue };
        let (host, port) = match place.split_once(':') {
            Some((host, port)) => {
                (host, Some(port.parse().map_err(|_| wrong("not a port number"))?))
            }
            None => (place, None),
        };
        if host.starts_with('-') || host.contains(',') {
            return Err(wrong("not a host name"));
        }
        let slots: u16 =
            words.next().map_or(Ok(1), str::parse).map_err(|_| wrong("not a number of slots"))?;
        if words.next().is_some() {
            return Err(wrong("expected NAME[:PORT] [SLOTS]"));
        }
        let next: &mut u16 = next_port.entry(host.to_owned()).or_insert(FIRST_PORT);
        *next = port.unwrap_or(*next);
        for _ in 0..slots {
            hosts.push(NodeHost { host: host.to_owned(), port: *next });
            *next = next.checked_add(1).ok_or_else(|| wrong("more slots than ports"))?;
        }
    }
    if hosts.len() < usize::from(nodes) {
        return Err(format!("only {} slots for {nodes} nodes", hosts.len()));
    }
    hosts.truncate(nodes.into());
    Ok(hosts)
}

impl NodeHost {
    /// The address that all nodes are given for this one: the address of the name, if this host
    /// knows the name. Otherwise the name itself, which each node looks up on its own host.
    pub(crate) fn place(&self) -> String {
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let address = found.ok().and_then(|mut found| found.next());
        address.map_or_else(|| format!("{}:{}", self.host, self.port), |found| found.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::{NodeHost, node_hosts};

    fn at(host: &str, port: u16) -> NodeHost {
        NodeHost { host: host.to_owned(), port }
    }

    #[test]
    fn slots_are_filled_in_order_each_with_its_port() {
        let text = "# two machines\nfast:9000 2\n\nslow # old\nslow\n";
        let expected = [at("fast", 9000), at("fast", 9001), at("slow", 7700)];
        assert_eq!(node_hosts(text, 3).unwrap(), expected);
        assert_eq!(node_hosts(text, 4).unwrap()[3], at("slow", 7701));
    }

    #[test]
    fn a_name_that_is_unknown_here_is_left_to_the_nodes() {
        assert_eq!(at("127.0.0.1", 9000).place(), "127.0.0.1:9000");
        assert_eq!(at("no such host", 9000).place(), "no such host:9000");
    }

    #[test]
    fn mistakes_name_their_line() {
        assert_eq!(node_hosts("a 2", 3).unwrap_err(), "only 2 slots for 3 nodes");
        assert_eq!(node_hosts("a\nb many", 1).unwrap_err(), "line 2: not a number of slots");
        assert_eq!(node_hosts("a:port", 1).unwrap_err(), "line 1: not a port number");
        assert_eq!(node_hosts("-oProxyCommand=x", 1).unwrap_err(), "line 1: not a host name");
        assert!(node_hosts("a 1 2", 1).unwrap_err().starts_with("line 1: expected"));
        assert_eq!(node_hosts("a:65535 2", 1).unwrap_err(), "line 1: more slots than ports");
    }
}
