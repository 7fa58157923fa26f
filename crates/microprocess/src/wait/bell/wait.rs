//! Waiting at a bell: once for an answer, or again and again for the next call.

use core::fmt;
use core::ptr;
use core::time::Duration;
use std::io;

use kyocho_sys::error::Errno;
use kyocho_sys::prim::atomic::{AtomicU32, Ordering};

use crate::data::deadline::Deadline;
use crate::processor::bell::{Afterwards, Awaited, Hall, Peer, announce, hall};
use crate::processor::inherit::{Ranked, Ranking};
use crate::processor::record::{Kind, Reason, Record};
use crate::processor::vp::{Masked, attention};
use crate::schedule::kill_point;
use crate::schedule::{WakeCause, current, mask, mask_at_point, park_in};

/// A wait for a word.
#[derive(Debug)]
pub struct Wait<'a> {
    /// The word; other processes change it.
    pub word: &'a AtomicU32,
    /// What it holds while there is nothing to do.
    pub expected: u32,
    /// A word that says at which level the waiter waits: kept right as long as it does, also where that changes.
    pub level: Option<&'a AtomicU32>,
    /// A word of this process: once it is not 0, the wait is over, too. Whoever changes it calls [`ring_all`](super::ring_all).
    pub over: Option<&'a AtomicU32>,
    /// Who will change it: another process's bell. Tells whether looking for a moment is better than sleeping.
    pub from: Option<(&'a Peer, u32)>,
    /// Whether that one was just woken, and does not show it yet.
    pub woken: bool,
    /// Where the waker finds which bell to ring: gets its number by [`announce`](super::announce), perhaps more than once.
    pub announced: &'a AtomicU32,
}

impl Wait<'_> {
    /// Parks the caller until the word has another value than the expected one; returns that value, or `None` after `limit` and once
    /// `over` is set.
    ///
    /// A [kill point](crate::Microprocess::kill).
    ///
    /// # Errors
    /// The host gives no memory for bells, or there are none left ([`BELLS_MAX`](super::BELLS_MAX) virtual processors).
    ///
    /// # Panics
    /// The caller is no microprocess.
    pub fn run(&self, limit: Option<Duration>) -> io::Result<Option<u32>> {
        let hall = hall()?;
        let deadline = limit.and_then(Deadline::after);
        let node = Awaited::new(self.word, self.over, current(), Afterwards::Ends);
        node.expect(self.expected, self.from, self.woken);
        let ranked = Ranked { by: self };
        await_change(&node, deadline, || {
            let listen = |vp: Masked<'_>| {
                let me = vp.running();
                self.tell(me);
                me.begin_ranked(&ranked);
            };
            let cause = park_once(&node, hall, deadline, self.announced, listen);
            node.who().end_ranked();
            cause
        })
    }

    /// Says at which level `me` waits; whether that is new.
    fn tell(&self, me: &Record) -> bool {
        let level = u32::from(me.effective_level());
        self.level.is_some_and(|word| word.swap(level, Ordering::SeqCst) != level)
    }
}

impl Ranking for Wait<'_> {
    fn rank_anew(&self, who: &'static Record, _: Masked<'_>) -> Option<&'static Record> {
        if let Some((peer, bell)) = self.from.filter(|_| self.tell(who)) {
            // Awake, it looks within a millisecond.
            peer.ring(bell);
        }
        None
    }
}

/// Where a microprocess waits for one call after the other, and serves each at the level of its caller.
///
/// From the end of a wait to the next one its level follows the word that says the caller's.
///
/// It lies in the frame of [`Post::keep`], where lists of the runtime point to it; others see a reference to it only while that call lasts:
///
/// ```
/// # use kyocho_microprocess::bell::{Peer, Post, Words};
/// # fn keep(words: &Words<'_>, peer: &Peer) {
/// let waited = Post::keep(words, peer, |post| post.wait(0, 0));
/// # }
/// ```
///
/// ```compile_fail,E0507
/// # use kyocho_microprocess::bell::{Peer, Post, Words};
/// # fn keep(words: &Words<'_>, peer: &Peer) {
/// Post::keep(words, peer, |post| core::mem::forget(*post));
/// # }
/// ```
///
/// ```compile_fail,E0521
/// # use kyocho_microprocess::bell::{Peer, Post, Words};
/// # fn keep(words: &Words<'_>, peer: &Peer) {
/// let mut kept = None;
/// Post::keep(words, peer, |post| kept = Some(post));
/// # }
/// ```
pub struct Post<'a> {
    node: Awaited,
    words: &'a Words<'a>,
    peer: &'a Peer,
}

/// The words of a [`Post`].
#[derive(Debug)]
pub struct Words<'a> {
    /// The word that is waited for; the peer changes it.
    pub word: &'a AtomicU32,
    /// At which level the waiter is to go on, and to be while it serves.
    pub level: &'a AtomicU32,
    /// See [`Wait::over`].
    pub over: &'a AtomicU32,
    /// See [`Wait::announced`].
    pub announced: &'a AtomicU32,
}

impl fmt::Debug for Post<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Post").field("words", &self.words).finish_non_exhaustive()
    }
}

impl Post<'_> {
    /// Passes the caller's post at `words` to `body`. `peer` is who changes them.
    ///
    /// # Panics
    /// The caller is no microprocess; `body` panics.
    pub fn keep<R>(words: &Words<'_>, peer: &Peer, body: impl FnOnce(&Post<'_>) -> R) -> R {
        let follows = Afterwards::Follows(words.level);
        let node = Awaited::new(words.word, Some(words.over), current(), follows);
        // Dropped however `body` ends, which is what takes the node out of the lists.
        body(&Post { node, words, peer })
    }

    /// As [`Wait::run`] without a limit, until the word is not `expected`. `bell` is the one of the peer that rang last.
    ///
    /// # Errors
    /// As for [`Wait::run`].
    ///
    /// # Panics
    /// The caller is not the one that keeps it.
    pub fn wait(&self, expected: u32, bell: u32) -> io::Result<Option<u32>> {
        assert!(ptr::eq(self.node.who(), current()), "a post is that of who keeps it");
        let hall = hall()?;
        self.node.expect(expected, Some((self.peer, bell)), false);
        let mut parked = false;
        let changed = await_change(&self.node, None, || {
            parked = true;
            park_once(&self.node, hall, None, self.words.announced, |_| {})
        });
        let section = mask();
        if !parked {
            self.node.follow(section.masked());
        }
        adopt_level(section.masked());
        section.leave();
        changed
    }
}

/// Lets the caller, which runs on `vp`, have the level that was asked for it.
fn adopt_level(vp: Masked<'_>) {
    let me = vp.running();
    if me.level() != me.effective_level() {
        vp.changed(me);
        vp.attention.fetch_or(attention::RECONSIDER, Ordering::Relaxed);
    }
}

impl Drop for Post<'_> {
    fn drop(&mut self) {
        let section = mask();
        self.node.unlink();
        section.leave();
    }
}

/// Waits by `park` until the word of `node` has changed; its value, or `None` once its wait is over otherwise.
fn await_change(
    node: &Awaited,
    deadline: Option<Deadline>,
    mut park: impl FnMut() -> Result<WakeCause, Errno>,
) -> io::Result<Option<u32>> {
    while node.changed().is_none() && !node.is_over() {
        if park()? == WakeCause::Woken {
            continue;
        }
        // The word may have changed at the last moment.
        if node.changed().is_none() {
            kill_point::after_wait(deadline);
        }
        break;
    }
    Ok(node.changed())
}

/// Parks the caller, whose `node` it is, once; calls `listen` right before. How it ended.
fn park_once(
    node: &Awaited,
    hall: &'static Hall,
    deadline: Option<Deadline>,
    announced: &AtomicU32,
    listen: impl FnOnce(Masked<'_>),
) -> Result<WakeCause, Errno> {
    let section = mask_at_point();
    let vp = section.masked();
    let Some(bell) = vp.bell.number(hall) else {
        section.leave();
        return Err(Errno::BUSY);
    };
    node.link(vp);
    announce(announced, bell);
    // After the announcement: who changes the word from here on rings.
    if node.has_changed() {
        node.leave();
        section.leave();
        return Ok(WakeCause::Woken);
    }
    listen(vp);
    let reason = Reason { kind: Kind::Bell, object: node.word_address() };
    let cause = park_in(section, reason, deadline);
    let section = mask();
    node.leave();
    section.leave();
    Ok(cause)
}
