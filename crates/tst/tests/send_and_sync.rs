//! Which types are `Send` and `Sync`, depending on the value that they guard.

use core::cell::Cell;
use core::marker::PhantomData;
use std::rc::Rc;
use std::sync;

use kyocho_tst::biased::{Owner, OwnerGuard, Visitor, VisitorGuard};
use kyocho_tst::blocking::mutex::{Mutex, MutexGuard};
use kyocho_tst::blocking::rwlock::{ReadGuard, RwLock, WriteGuard};
use kyocho_tst::blocking::semaphore::Semaphore;
use kyocho_tst::{
    Atomics, Counter, FreeList, PerCpu, PerCpuCounter, PerCpuList, Queue, Restartable, SystemCall,
    TryLock, TryLockGuard,
};

/// A type whose two constants below say whether the inner type is `Send` and `Sync`.
struct Probe<T>(PhantomData<T>);

trait Neither {
    const SEND: bool = false;
    const SYNC: bool = false;
}

impl<T> Neither for Probe<T> {}

// Constants of the type take precedence over those of a trait, if the bound holds.
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

/// `Send` and `Sync`.
type Both = u32;
/// `Send`, not `Sync`.
type SendOnly = Cell<u32>;
/// `Sync`, not `Send`.
type SyncOnly = sync::MutexGuard<'static, u32>;
/// Neither `Send` nor `Sync`.
type Nothing = Rc<u32>;

/// The traits of `$type` around each of the four kinds of value, in the order above.
macro_rules! around {
    ($($name:ident)::+ <$($life:lifetime,)? _ $(, $mechanism:ty)?>) => {
        [
            traits!($($name)::+<$($life,)? Both $(, $mechanism)?>),
            traits!($($name)::+<$($life,)? SendOnly $(, $mechanism)?>),
            traits!($($name)::+<$($life,)? SyncOnly $(, $mechanism)?>),
            traits!($($name)::+<$($life,)? Nothing $(, $mechanism)?>),
        ]
    };
}

/// `TryLock` and its guard have the mechanism as their first parameter.
type Try<T, M> = TryLock<M, T>;
type TryGuard<'a, T, M> = TryLockGuard<'a, M, T>;

#[test]
fn probe_detects_send_and_sync() {
    let kinds = [traits!(Both), traits!(SendOnly), traits!(SyncOnly), traits!(Nothing)];
    assert_eq!(kinds, [(true, true), (true, false), (false, true), (false, false)]);
}

#[test]
fn guard_of_one_user_is_sent_and_shared_as_its_value_is() {
    // A guard can be dropped on any thread. It yields `&T` on each thread that shares it. Around a
    // value that is not `Send` the lock is not `Sync`, so its guard cannot reach another thread.
    let as_the_value = [(true, true), (true, false), (false, false), (false, false)];
    assert_eq!(around!(MutexGuard<'static, _, Atomics>), as_the_value);
    assert_eq!(around!(OwnerGuard<'static, _>), as_the_value);
    assert_eq!(around!(VisitorGuard<'static, _>), as_the_value);
    assert_eq!(around!(TryGuard<'static, _, Atomics>), as_the_value);
    assert_eq!(around!(TryGuard<'static, _, SystemCall>), as_the_value);
    assert_eq!(around!(TryGuard<'static, _, Restartable>), as_the_value);
}

#[test]
fn guard_of_a_lock_for_readers_moves_where_its_lock_may_be_shared() {
    // A writer may move the value out, and readers share it.
    let sent_and_shared = [(true, true), (false, false), (false, false), (false, false)];
    assert_eq!(around!(ReadGuard<'static, _, Atomics>), sent_and_shared);
    assert_eq!(around!(WriteGuard<'static, _, Atomics>), sent_and_shared);
}

#[test]
fn lock_of_one_user_is_shared_where_its_value_may_be_sent() {
    let by_send = [(true, true), (true, true), (false, false), (false, false)];
    assert_eq!(around!(Mutex<_, Atomics>), by_send);
    assert_eq!(around!(Try<_, Atomics>), by_send);
    assert_eq!(around!(Owner<_>), by_send);
    assert_eq!(around!(Visitor<_>), by_send);
}

#[test]
fn lock_of_many_readers_is_shared_where_its_value_is_sent_and_shared() {
    let shared = [(true, true), (true, false), (false, false), (false, false)];
    assert_eq!(around!(RwLock<_, Atomics>), shared);
    // All threads can reach the slot of any CPU.
    let as_the_value = [(true, true), (true, false), (false, true), (false, false)];
    assert_eq!(around!(PerCpu<_>), as_the_value);
}

#[test]
fn locks_without_a_value_are_send_and_sync() {
    assert_eq!(traits!(Semaphore), (true, true));
    assert_eq!(traits!(Counter<Atomics>), (true, true));
    assert_eq!(traits!(FreeList<Atomics>), (true, true));
    assert_eq!(traits!(Queue<Atomics>), (true, true));
    assert_eq!(traits!(PerCpuCounter), (true, true));
    assert_eq!(traits!(PerCpuList), (true, true));
}
