//! Which virtual processor takes the events of a source of input and output.
//!
//! ```text
//!   Route::Caller   on the virtual processor of the caller
//!   Route::To(k)    on virtual processor k: a microprocess moves there to wait for the source, and is woken there
//!   Route::Spread   on each virtual processor in turn, for one operation each
//! ```
//! An operation begins on the ring of one virtual processor, completes there, and wakes its waiter
//! there. So the route decides which virtual processor is interrupted for a source, and whose cache
//! receives the data. A route may change while the source is in use: operations in flight complete
//! where they began. A timer belongs to its sleeper's virtual processor, so pin the sleeper
//! ([`Microprocess::set_virtual_processor`]).
//!
//! The number of events that each virtual processor took is in `completed` and `timers` of
//! [`Statistics`](crate::Statistics), and in `kyocho ps --json`.
//!
//! Source: Paper 2 dispatches the interrupts of each driver to one processor or to all in turn;
//! here a source is a descriptor.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};

use crate::schedule::mask;
use crate::thread::microprocess::Microprocess;

/// Which virtual processor takes the events of a source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Route {
    /// The virtual processor of the microprocess that waits.
    #[default]
    Caller,
    /// The virtual processor with this index.
    To(usize),
    /// Each virtual processor in turn.
    Spread,
}

/// Only descriptors below this number can be routed. Unused parts of the table take no memory.
const DESCRIPTORS_MAX: usize = 1 << 16;
const CALLER: usize = 0;
const SPREAD: usize = usize::MAX;

static ROUTES: [AtomicUsize; DESCRIPTORS_MAX] =
    [const { AtomicUsize::new(CALLER) }; DESCRIPTORS_MAX];
/// Which virtual processor is next for sources that are spread.
static NEXT: AtomicUsize = AtomicUsize::new(0);

impl Route {
    fn to_word(self) -> usize {
        match self {
            Self::Caller => CALLER,
            Self::To(index) => index + 1,
            Self::Spread => SPREAD,
        }
    }

    fn from_word(word: usize) -> Self {
        match word {
            CALLER => Self::Caller,
            SPREAD => Self::Spread,
            number => Self::To(number - 1),
        }
    }

    /// Moves the caller to where the route leads, until the result is dropped. A pinned caller
    /// stays; so does one outside any runtime, or on a kernel thread that it must not leave.
    #[inline]
    pub(crate) fn follow(self) -> Option<Visit> {
        match self {
            Self::Caller => None,
            Self::To(index) => Visit::begin(|_| index),
            Self::Spread => Visit::begin(|count| NEXT.fetch_add(1, Ordering::Relaxed) % count),
        }
    }
}

/// A visit to the virtual processor of a source, for one operation.
#[derive(Debug)]
pub(crate) struct Visit(Microprocess);

impl Visit {
    #[cold]
    fn begin(choose: impl FnOnce(usize) -> usize) -> Option<Self> {
        let section = mask();
        let may = section.vp.current.get().is_some_and(|me| {
            !me.is_pinned() && !me.in_place.get() && !me.is_stackless.get() && !me.is_ending.get()
        });
        section.leave();
        if !may {
            return None;
        }
        let me = Microprocess::current();
        me.set_virtual_processor(Some(choose(running())));
        Some(Self(me))
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.0.set_virtual_processor(None);
    }
}

/// Routes the events of `source` from now on, until it is routed anew or its descriptor number is
/// reused.
///
/// ```
/// # kyocho_microprocess::Runtime::builder().virtual_processors(2).build().run(|| {
/// use kyocho_microprocess::{io::{File, Route, route}, virtual_processor};
/// use std::io::{Read, Write};
///
/// let (reader, mut writer) = std::io::pipe()?;
/// let mut reader = File::from(reader);
/// route(&reader, Route::To(1))?;
/// writer.write_all(b"event")?;
/// reader.read_exact(&mut [0; 5])?;
/// # std::io::Result::Ok(()) }).unwrap().unwrap();
/// ```
///
/// # Errors
/// No such virtual processor runs, or the descriptor number is 65,536 or more
/// ([`InvalidInput`](io::ErrorKind::InvalidInput)).
///
/// # Panics
/// The caller is not a microprocess.
pub fn route(source: impl AsFd, route: Route) -> io::Result<()> {
    let number = source.as_fd().as_raw_fd();
    let count = running();
    if let Route::To(index) = route
        && index >= count
    {
        let text =
            format!("there is no virtual processor {index}: they are numbered 0 to {}", count - 1);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let Some(place) = place(number) else {
        let text =
            format!("descriptor {number} cannot be routed: only those below {DESCRIPTORS_MAX}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    };
    place.store(route.to_word(), Ordering::Relaxed);
    Ok(())
}

/// How the events of `source` are routed.
#[must_use]
pub fn route_of(source: impl AsFd) -> Route {
    of(source.as_fd().as_raw_fd())
}

/// How many virtual processors run microprocesses.
fn running() -> usize {
    let section = mask();
    let shared = section.vp.shared();
    section.leave();
    shared.concurrency()
}

fn place(number: RawFd) -> Option<&'static AtomicUsize> {
    usize::try_from(number).ok().and_then(|number| ROUTES.get(number))
}

#[inline]
pub(super) fn of(number: RawFd) -> Route {
    Route::from_word(place(number).map_or(CALLER, |place| place.load(Ordering::Relaxed)))
}

/// Called when the descriptor number of `source` belongs to a new source.
pub(crate) fn forget(source: impl AsFd) {
    if let Some(place) = place(source.as_fd().as_raw_fd()) {
        place.store(CALLER, Ordering::Relaxed);
    }
}
