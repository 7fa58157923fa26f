//! The tables in which queues keep what programs attach to events. All are words that are read and
//! written as a whole.
#![expect(unsafe_code, reason = "a table in memory from the host")]

use super::timers::{TIMERS_MAX, Timer};
use crate::errno::Errno;
use crate::host::{address_of, number, pass};
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Most queues of a process at a time.
const QUEUES_MAX: usize = 64;
/// Most events of its own that a program may have in a queue.
const USER_NOTES_MAX: usize = 8;
/// A queue can watch descriptors with numbers below this.
const DESCRIPTORS_MAX: usize = 1 << 16;
const NOTES_BYTES: u64 = (DESCRIPTORS_MAX * size_of::<Knote>()) as u64;
/// Not a descriptor.
pub(super) const NONE: i32 = -1;

/// The registration of a filter: the program's flags, and whether it exists and is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State(u32);

impl State {
    const THERE: u32 = 1 << 16;
    const ACTIVE: u32 = 1 << 17;

    pub(super) fn new(flags: u16, active: bool) -> Self {
        Self(u32::from(flags) | Self::THERE).with_active(active)
    }

    pub(super) fn with_active(self, active: bool) -> Self {
        Self(if active { self.0 | Self::ACTIVE } else { self.0 & !Self::ACTIVE })
    }

    pub(super) fn flags(self) -> u16 {
        self.0 as u16
    }

    pub(super) fn is_there(self) -> bool {
        self.0 & Self::THERE != 0
    }

    pub(super) fn is_active(self) -> bool {
        self.0 & (Self::THERE | Self::ACTIVE) == Self::THERE | Self::ACTIVE
    }
}

/// One filter of one object.
#[derive(Debug)]
pub(super) struct Filter {
    state: AtomicU32,
    user: AtomicU64,
}

impl Filter {
    pub(super) const fn none() -> Self {
        Self { state: AtomicU32::new(0), user: AtomicU64::new(0) }
    }

    pub(super) fn state(&self) -> State {
        State(self.state.load(Relaxed))
    }

    pub(super) fn set_state(&self, state: State) {
        self.state.store(state.0, Relaxed);
    }

    /// The word that the program attached.
    pub(super) fn user(&self) -> u64 {
        self.user.load(Relaxed)
    }

    pub(super) fn set(&self, state: State, user: u64) {
        self.user.store(user, Relaxed);
        self.set_state(state);
    }

    pub(super) fn forget(&self) {
        self.state.store(0, Relaxed);
    }
}

/// What is attached to one descriptor.
#[derive(Debug)]
pub(super) struct Knote {
    read: Filter,
    write: Filter,
}

impl Knote {
    pub(super) fn filter(&self, reading: bool) -> &Filter {
        if reading { &self.read } else { &self.write }
    }

    pub(super) fn forget(&self) {
        self.read.forget();
        self.write.forget();
    }

    pub(super) fn is_forgotten(&self) -> bool {
        !self.read.state().is_there() && !self.write.state().is_there()
    }
}

/// An event that the program itself triggers.
#[derive(Debug)]
pub(super) struct UserKnote {
    ident: AtomicU64,
    pub(super) filter: Filter,
    triggered: AtomicU32,
}

impl UserKnote {
    const fn none() -> Self {
        Self { ident: AtomicU64::new(0), filter: Filter::none(), triggered: AtomicU32::new(0) }
    }

    pub(super) fn ident(&self) -> u64 {
        self.ident.load(Relaxed)
    }

    pub(super) fn trigger(&self) {
        self.triggered.store(1, Relaxed);
    }

    /// Whether it was triggered. If it is `cleared` by being reported, it no longer is.
    pub(super) fn was_triggered(&self, cleared: bool) -> bool {
        let was =
            if cleared { self.triggered.swap(0, Relaxed) } else { self.triggered.load(Relaxed) };
        was != 0
    }
}

/// One queue.
#[derive(Debug)]
pub(super) struct Queue {
    file: AtomicI32,
    bell: AtomicI32,
    /// The address of its `DESCRIPTORS_MAX` notes. The next queue in this place uses them again.
    notes: AtomicU64,
    users: [UserKnote; USER_NOTES_MAX],
    timers: [Timer; TIMERS_MAX],
}

static QUEUES: [Queue; QUEUES_MAX] = [const {
    Queue {
        file: AtomicI32::new(NONE),
        bell: AtomicI32::new(NONE),
        notes: AtomicU64::new(0),
        users: [const { UserKnote::none() }; USER_NOTES_MAX],
        timers: [const { Timer::none() }; TIMERS_MAX],
    }
}; QUEUES_MAX];

impl Queue {
    /// Takes a place for the queue with descriptor `file`.
    pub(super) fn take(file: i32, bell: i32) -> Result<(), Errno> {
        // A queue whose descriptor was replaced, for example by `dup2`, has the same number.
        if let Some(old) = Self::find(file) {
            old.give_back();
        }
        let is_free =
            |queue: &&Self| queue.file.compare_exchange(NONE, file, Relaxed, Relaxed).is_ok();
        let queue = QUEUES.iter().find(is_free).ok_or(Errno::NOMEM)?;
        queue.bell.store(bell, Relaxed);
        for note in &queue.users {
            note.filter.forget();
        }
        if queue.notes.load(Relaxed) != 0 {
            return Ok(());
        }
        const READ_WRITE: u64 = 3;
        const PRIVATE_NAMELESS_UNRESERVED: u64 = 0x4022;
        let words = [0, NOTES_BYTES, READ_WRITE, PRIVATE_NAMELESS_UNRESERVED, u64::MAX, 0];
        let notes = pass(number::MMAP, &words).inspect_err(|_| queue.file.store(NONE, Relaxed))?;
        queue.notes.store(notes, Relaxed);
        Ok(())
    }

    /// The queue with descriptor `file`.
    pub(super) fn find(file: i32) -> Option<&'static Self> {
        QUEUES.iter().find(|queue| file >= 0 && queue.file.load(Relaxed) == file)
    }

    pub(super) fn give_back(&self) {
        for timer in &self.timers {
            timer.forget();
        }
        let bell = self.bell.swap(NONE, Relaxed);
        self.file.store(NONE, Relaxed);
        // No other thread knows the descriptor.
        let _ = pass(number::CLOSE, &[bell as u64]);
    }

    /// Called in a new process.
    pub(super) fn forget_all() {
        for queue in QUEUES.iter().filter(|queue| queue.file.load(Relaxed) != NONE) {
            queue.give_back();
        }
    }

    /// The note for `descriptor`.
    pub(super) fn note(&self, descriptor: i32) -> Result<&'static Knote, Errno> {
        let index = usize::try_from(descriptor).map_err(|_| Errno::BADF)?;
        let notes = self.notes.load(Relaxed);
        if index >= DESCRIPTORS_MAX || notes == 0 {
            return Err(Errno::NOMEM);
        }
        let notes = core::ptr::with_exposed_provenance::<Knote>(notes as usize);
        // SAFETY: the host mapped `DESCRIPTORS_MAX` notes, zeroed. They are never unmapped.
        let note = unsafe { notes.add(index) };
        // SAFETY: as above, and all of its fields are atomic.
        Ok(unsafe { &*note })
    }

    /// The program's own event `ident`. If there is none and `make` is set, a new one.
    pub(super) fn user_note(&self, ident: u64, make: bool) -> Result<&UserKnote, Errno> {
        let mut known = self.users.iter();
        if let Some(note) =
            known.find(|note| note.filter.state().is_there() && note.ident() == ident)
        {
            return Ok(note);
        }
        if !make {
            return Err(Errno::NOENT);
        }
        let taken = State::new(0, false).0;
        let is_free = |note: &&UserKnote| {
            note.filter.state.compare_exchange(0, taken, Relaxed, Relaxed).is_ok()
        };
        let note = self.users.iter().find(is_free).ok_or(Errno::NOMEM)?;
        note.triggered.store(0, Relaxed);
        note.ident.store(ident, Relaxed);
        Ok(note)
    }

    pub(super) fn user_notes(&self) -> impl Iterator<Item = &UserKnote> {
        self.users.iter()
    }

    pub(super) fn timers(&self) -> &[Timer; TIMERS_MAX] {
        &self.timers
    }

    /// Makes the bell of the queue readable.
    pub(super) fn ring(&self) -> Result<(), Errno> {
        let one = 1_u64;
        let bell = self.bell.load(Relaxed) as u64;
        match pass(number::WRITE, &[bell, address_of(&one), 8]) {
            // The counter of the bell is at its maximum.
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Resets the bell. Another thread may have done so.
    pub(super) fn silence(&self) {
        let mut rung = 0_u64;
        let bell = self.bell.load(Relaxed) as u64;
        let _ = pass(number::READ, &[bell, crate::host::address(&mut rung), 8]);
    }
}
