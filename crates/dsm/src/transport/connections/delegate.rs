//! Transports that consist of connections over one medium.

/// Implements [`Transport`] for a type whose only field is [`Connections`]. The medium stays
/// private.
macro_rules! transport_by_connections {
    ($name:ty) => {
        impl $crate::transport::Transport for $name {
            fn send(&self, to: $crate::address::NodeId, message: &[u8]) {
                self.0.send(to, message);
            }

            fn send_with(
                &self,
                to: $crate::address::NodeId,
                message: &[u8],
                urgency: $crate::transport::Urgency,
            ) {
                self.0.send_with(to, message, urgency);
            }

            fn begin_call(&self) {
                self.0.begin_call();
            }

            fn end_call(&self) -> bool {
                self.0.end_call()
            }

            fn hurry(&self, on: bool) {
                self.0.hurry(on);
            }

            fn is_full(&self) -> bool {
                $crate::transport::Transport::is_full(&self.0)
            }

            fn wait(
                &self,
                waiter: $crate::transport::Waiter,
                timeout: core::time::Duration,
            ) -> bool {
                self.0.wait(waiter, timeout)
            }

            fn take(&self) -> Vec<$crate::transport::Arrival> {
                self.0.take()
            }

            fn send_heartbeats(&self) -> Option<core::time::Duration> {
                self.0.send_heartbeats()
            }

            fn rouse(&self) {
                $crate::transport::Transport::rouse(&self.0);
            }

            fn leave(&self) {
                self.0.leave();
            }

            fn close(&self) {
                self.0.close();
            }

            fn bound(&self, bounds: (usize, usize)) {
                self.0.bound(bounds);
            }

            fn traffic(&self) -> $crate::transport::Traffic {
                self.0.traffic()
            }

            fn traffic_with(&self, peer: $crate::address::NodeId) -> $crate::transport::Traffic {
                self.0.traffic_with(peer)
            }
        }
    };
}
pub(in crate::transport) use transport_by_connections;
