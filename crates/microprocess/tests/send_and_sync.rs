//! Which types may be sent to another thread and which may be shared, depending on what they guard.

use core::cell::Cell;
use core::marker::PhantomData;
use std::rc::Rc;

use kyocho_microprocess::bell::Post;
use kyocho_microprocess::channel::{Receiver, RecvArm, SendArm, Sender};
use kyocho_microprocess::sync::{RwLockReadGuard, RwLockWriteGuard, SpinMutex, SpinMutexGuard};
use kyocho_microprocess::{
    Barrier, Condvar, FutureHandle, Microprocess, Mutex, MutexGuard, Outside, RwLock, Semaphore,
};

/// A type with two constants, which say whether it may be sent and shared.
struct Probe<T>(PhantomData<T>);

trait Neither {
    const SEND: bool = false;
    const SYNC: bool = false;
}

impl<T> Neither for Probe<T> {}

// If the bound holds, a constant of the type precedes that of a trait.
impl<T: Send> Probe<T> {
    const SEND: bool = true;
}

impl<T: Sync> Probe<T> {
    const SYNC: bool = true;
}

/// Whether `$type` is `Send`, and whether it is `Sync`.
macro_rules! traits {
    ($type:ty) => {
        (<Probe<$type>>::SEND, <Probe<$type>>::SYNC)
    };
}

/// The traits of `$type` around a value that may be sent and shared, one that may only be sent, and
/// one that may be neither.
macro_rules! around {
    ($name:ident <$($life:lifetime,)? _>) => {
        [
            traits!($name<$($life,)? u32>),
            traits!($name<$($life,)? Cell<u32>>),
            traits!($name<$($life,)? Rc<u32>>),
        ]
    };
}

#[test]
fn guard_stays_with_its_microprocess_and_is_shared_as_its_value_is() {
    let stays = [(false, true), (false, false), (false, false)];
    assert_eq!(around!(MutexGuard<'static, _>), stays);
    assert_eq!(around!(SpinMutexGuard<'static, _>), stays);
    assert_eq!(around!(RwLockReadGuard<'static, _>), stays);
    assert_eq!(around!(RwLockWriteGuard<'static, _>), stays);
}

#[test]
fn lock_and_channel_are_shared_where_values_may_change_threads() {
    let by_send = [(true, true), (true, true), (false, false)];
    assert_eq!(around!(Mutex<_>), by_send);
    assert_eq!(around!(SpinMutex<_>), by_send);
    assert_eq!(around!(Sender<_>), by_send);
    assert_eq!(around!(Receiver<_>), by_send);
    assert_eq!(around!(RwLock<_>), [(true, true), (true, false), (false, false)]);
    assert_eq!(around!(FutureHandle<_>), by_send);
}

#[test]
fn values_in_the_waiters_frame_are_not_shared() {
    assert!(!traits!(RecvArm<'static, u32>).1);
    assert!(!traits!(SendArm<'static, u32>).1);
    assert_eq!(traits!(Post<'static>), (false, false));
}

#[test]
fn locks_without_a_value_are_send_and_sync() {
    assert_eq!(traits!(Semaphore), (true, true));
    assert_eq!(traits!(Barrier), (true, true));
    assert_eq!(traits!(Condvar), (true, true));
    assert_eq!(traits!(Microprocess), (true, true));
    assert_eq!(traits!(Outside), (true, true));
}
