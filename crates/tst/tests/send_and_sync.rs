//! Which types may be sent to another thread, and which may be shared, by what they guard.

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

/// A type of which the two constants below say whether it may be sent and shared.
struct Probe<T>(PhantomData<T>);

trait Neither {
    const SEND: bool = false;
    const SYNC: bool = false;
}

impl<T> Neither for Probe<T> {}

// Constants of the type come before those of a trait, where the bound holds.
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

/// May be sent and shared.
type Both = u32;
/// May be sent, not shared.
type SendOnly = Cell<u32>;
/// May be shared, not sent.
type SyncOnly = sync::MutexGuard<'static, u32>;
/// May be neither sent nor shared.
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

/// `TryLock` and its guard name the mechanism first.
type Try<T, M> = TryLock<M, T>;
type TryGuard<'a, T, M> = TryLockGuard<'a, M, T>;

#[test]
fn probe_sees_what_is_sent_and_shared() {
    let kinds = [traits!(Both), traits!(SendOnly), traits!(SyncOnly), traits!(Nothing)];
    assert_eq!(kinds, [(true, true), (true, false), (false, true), (false, false)]);
}

#[test]
fn guard_of_one_user_is_sent_and_shared_as_its_value_is() {
    // A guard can be dropped on any thread. It gives `&T` to each thread that shares it. Around a value that cannot be
    // sent the lock itself is not shared, so its guard stays where it is.
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
    // A writer may take the value out, and readers share it.
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
    // Of whatever CPU, a slot is seen by all threads.
    let as_the_value = [(true, true), (true, false), (false, true), (false, false)];
    assert_eq!(around!(PerCpu<_>), as_the_value);
}

#[test]
fn what_guards_no_value_is_sent_and_shared() {
    assert_eq!(traits!(Semaphore), (true, true));
    assert_eq!(traits!(Counter<Atomics>), (true, true));
    assert_eq!(traits!(FreeList<Atomics>), (true, true));
    assert_eq!(traits!(Queue<Atomics>), (true, true));
    assert_eq!(traits!(PerCpuCounter), (true, true));
    assert_eq!(traits!(PerCpuList), (true, true));
}
