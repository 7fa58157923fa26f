//! Nodes inside one process: a queue each.

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::address::NodeId;
use crate::transport::{Arrival, Cause, Traffic, Transport};

#[derive(Debug, Default)]
struct Inbox {
    arrivals: VecDeque<Arrival>,
    closed: bool,
    left: bool,
    traffic: Traffic,
}

#[derive(Debug, Default)]
struct Place {
    inbox: Mutex<Inbox>,
    arrived: Condvar,
}

impl Place {
    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, arrival: Arrival) {
        let mut inbox = self.lock();
        if !inbox.closed {
            inbox.arrivals.push_back(arrival);
            self.arrived.notify_all();
        }
    }
}

/// One node of several in one process.
#[derive(Debug)]
pub struct Local {
    me: NodeId,
    places: Arc<[Place]>,
}

impl Local {
    /// So many nodes, connected.
    #[must_use]
    pub fn mesh(nodes: u16) -> Vec<Self> {
        let places: Arc<[Place]> = (0..nodes).map(|_| Place::default()).collect();
        (0..nodes).map(|me| Self { me: NodeId(me), places: places.clone() }).collect()
    }

    fn here(&self) -> &Place {
        &self.places[usize::from(self.me.0)]
    }

    fn others(&self) -> impl Iterator<Item = &Place> {
        let me = usize::from(self.me.0);
        self.places.iter().enumerate().filter(move |(node, _)| *node != me).map(|(_, place)| place)
    }
}

impl Transport for Local {
    fn send(&self, to: NodeId, message: &[u8]) {
        {
            let mut here = self.here().lock();
            if here.closed || here.left {
                return;
            }
            here.traffic.messages_sent += 1;
            here.traffic.bytes_sent += message.len() as u64;
        }
        self.places[usize::from(to.0)].put(Arrival::Message(self.me, message.to_vec()));
    }

    fn receive(&self, timeout: Duration) -> Vec<Arrival> {
        let here = self.here();
        let nothing = |inbox: &mut Inbox| inbox.arrivals.is_empty() && !inbox.closed;
        let waited = here.arrived.wait_timeout_while(here.lock(), timeout, nothing);
        let (mut inbox, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let arrivals: Vec<_> = inbox.arrivals.drain(..).collect();
        for arrival in &arrivals {
            if let Arrival::Message(_, bytes) = arrival {
                inbox.traffic.messages_received += 1;
                inbox.traffic.bytes_received += bytes.len() as u64;
            }
        }
        arrivals
    }

    fn leave(&self) {
        if !core::mem::replace(&mut self.here().lock().left, true) {
            self.others().for_each(|place| place.put(Arrival::Left(self.me)));
        }
    }

    fn close(&self) {
        let mut here = self.here().lock();
        let (closed, left) = (core::mem::replace(&mut here.closed, true), here.left);
        self.here().arrived.notify_all();
        drop(here);
        if !closed && !left {
            self.others().for_each(|place| place.put(Arrival::Lost(self.me, Cause::Closed)));
        }
    }

    fn traffic(&self) -> Traffic {
        self.here().lock().traffic
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.close();
    }
}
