//! Nodes inside one process, with one queue each.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::address::NodeId;
use crate::transport::{Arrival, Cause, Traffic, Transport, Waiter};

#[derive(Debug, Default)]
struct Inbox {
    arrivals: VecDeque<Arrival>,
    closed: bool,
    left: bool,
    /// Whether a calling thread waits, and whether it must stop waiting.
    caller_waits: bool,
    roused: bool,
    traffic: BTreeMap<NodeId, Traffic>,
}

#[derive(Debug, Default)]
struct Endpoint {
    inbox: Mutex<Inbox>,
    for_caller: Condvar,
    for_service: Condvar,
}

impl Endpoint {
    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, arrival: Arrival) {
        let mut inbox = self.lock();
        if !inbox.closed {
            inbox.arrivals.push_back(arrival);
            if inbox.caller_waits { &self.for_caller } else { &self.for_service }.notify_all();
        }
    }
}

/// One node of several in one process.
#[derive(Debug)]
pub struct Local {
    me: NodeId,
    endpoints: Arc<[Endpoint]>,
}

impl Local {
    /// So many connected nodes.
    #[must_use]
    pub fn mesh(nodes: u16) -> Vec<Self> {
        let endpoints: Arc<[Endpoint]> = (0..nodes).map(|_| Endpoint::default()).collect();
        (0..nodes).map(|me| Self { me: NodeId(me), endpoints: endpoints.clone() }).collect()
    }

    fn here(&self) -> &Endpoint {
        &self.endpoints[usize::from(self.me.0)]
    }

    fn others(&self) -> impl Iterator<Item = &Endpoint> {
        let me = usize::from(self.me.0);
        self.endpoints
            .iter()
            .enumerate()
            .filter(move |(node, _)| *node != me)
            .map(|(_, endpoint)| endpoint)
    }
}

impl Transport for Local {
    fn send(&self, to: NodeId, message: &[u8]) {
        {
            let mut here = self.here().lock();
            if here.closed || here.left {
                return;
            }
            here.traffic.entry(to).or_default().sent(message);
        }
        self.endpoints[usize::from(to.0)].put(Arrival::Message(self.me, message.to_vec()));
    }

    fn wait(&self, waiter: Waiter, timeout: Duration) -> bool {
        let here = self.here();
        let mut inbox = here.lock();
        let (condition, is_caller) = match waiter {
            Waiter::Caller => (&here.for_caller, true),
            Waiter::Service => (&here.for_service, false),
        };
        inbox.caller_waits |= is_caller;
        let waited = condition.wait_timeout_while(inbox, timeout, |inbox| {
            inbox.arrivals.is_empty() && !inbox.closed && !(is_caller && inbox.roused)
        });
        let (mut inbox, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if is_caller {
            (inbox.caller_waits, inbox.roused) = (false, false);
        }
        !inbox.closed
    }

    fn take(&self) -> Vec<Arrival> {
        let mut inbox = self.here().lock();
        let arrivals: Vec<_> = inbox.arrivals.drain(..).collect();
        for arrival in &arrivals {
            if let Arrival::Message(from, message) = arrival {
                inbox.traffic.entry(*from).or_default().received(message);
            }
        }
        arrivals
    }

    fn rouse(&self) {
        self.here().lock().roused = true;
        self.here().for_caller.notify_all();
    }

    fn leave(&self) {
        if !core::mem::replace(&mut self.here().lock().left, true) {
            self.others().for_each(|place| place.put(Arrival::Left(self.me)));
        }
    }

    fn close(&self) {
        let mut here = self.here().lock();
        let (closed, left) = (core::mem::replace(&mut here.closed, true), here.left);
        self.here().for_caller.notify_all();
        self.here().for_service.notify_all();
        drop(here);
        if !closed && !left {
            self.others().for_each(|place| place.put(Arrival::Lost(self.me, Cause::Closed)));
        }
    }

    fn traffic(&self) -> Traffic {
        self.here().lock().traffic.values().copied().sum()
    }

    fn traffic_with(&self, peer: NodeId) -> Traffic {
        self.here().lock().traffic.get(&peer).copied().unwrap_or_default()
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.close();
    }
}
