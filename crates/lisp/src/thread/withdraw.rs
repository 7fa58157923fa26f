//! The end of a thread's wait that does not come from the object it waits for.

use super::{channel, condvar, join, mutex, select};
use crate::gate;
use crate::kernel::session::thread::LispThread;
use kyocho_vm::machine::Machine;
use std::sync::Arc;

/// Removes the thread from the queue of its wait, because it continues elsewhere.
pub(crate) fn withdraw(machine: &mut Machine, thread: &Arc<LispThread>) {
    if let Some(wait) = machine.wait.take() {
        join::withdraw(wait.object, thread);
        mutex::withdraw(wait.object, thread);
        condvar::withdraw(wait.object, thread);
        channel::withdraw(wait.object, thread);
        select::withdraw(wait.object, thread);
        gate::withdraw(&wait, thread);
    }
}
