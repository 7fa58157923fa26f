//! Waiting for a word of another process: once for an answer, or again and again for the next call.

use core::fmt;
use core::ptr;
use core::time::Duration;
use std::io;

use kyocho_sys::error::Errno;
use kyocho_sys::prim::atomic::{AtomicU32, Ordering};

use crate::data::deadline::Deadline;
use crate::processor::bell::{AfterWait, Awaited, BellPages, Peer, announce, pages};
use crate::processor::inherit::{Ranked, Ranking};
use crate::processor::record::{Kind, Reason, Record};
use crate::processor::vp::{Masked, attention};
use crate::schedule::kill_point;
use crate::schedule::{WakeCause, current, mask, mask_at_point, park_in};

/// A wait for a word.
#[derive(Debug)]
pub struct Wait<'a> {
    /// The word, which other processes change.
    pub word: &'a AtomicU32,
    /// Its value while there is nothing to do.
    pub expected: u32,
    /// A word to which the waiter's level is written. It is kept up to date as long as the wait
    /// lasts.
    pub level: Option<&'a AtomicU32>,
    /// A word of this process that also ends the wait when it is not 0. The code that sets it calls
    /// [`ring_all`](super::ring_all).
    pub over: Option<&'a AtomicU32>,
    /// The bell of the process that will change the word. Its state decides whether spinning
    /// briefly is better than sleeping.
    pub from: Option<(&'a Peer, u32)>,
    /// Whether that process was just woken, and does not show it yet.
    pub woken: bool,
    /// Where the waker reads which bell to ring. The number is stored there by
    /// [`announce`](super::announce), perhaps more than once.
    pub announced: &'a AtomicU32,
}

impl Wait<'_> {
    /// Parks the caller until the word differs from the expected value; returns the new value.
    /// Returns `None` after `limit`, or once `over` is set.
    ///
    /// A [kill point](crate::Microprocess::kill).
    ///
    /// # Errors
    /// The host gives no memory for bells, or all bells are in use ([`BELLS_MAX`](super::BELLS_MAX)
    /// virtual processors).
    ///
    /// # Panics
    /// The caller is not a microprocess.
    pub fn run(&self, limit: Option<Duration>) -> io::Result<Option<u32>> {
        let pages = pages()?;
        let deadline = limit.and_then(Deadline::after);
        let node = Awaited::new(self.word, self.over, current(), AfterWait::Ends);
        node.expect(self.expected, self.from, self.woken);
        let ranked = Ranked { by: self };
        await_change(&node, deadline, || {
            let listen = |vp: Masked<'_>| {
                let me = vp.running();
                self.tell(me);
                me.begin_ranked(&ranked);
            };
            let cause = park_once(&node, pages, deadline, self.announced, listen);
            node.record().end_ranked();
            cause
        })
    }

    /// Stores the level at which `me` waits; returns whether it is new.
    fn tell(&self, me: &Record) -> bool {
        let level = u32::from(me.effective_level());
        self.level.is_some_and(|word| word.swap(level, Ordering::SeqCst) != level)
    }
}

impl Ranking for Wait<'_> {
    fn rank_anew(&self, record: &'static Record, _: Masked<'_>) -> Option<&'static Record> {
        if let Some((peer, bell)) = self.from.filter(|_| self.tell(record)) {
            // If the peer is awake, it notices the new level within a millisecond.
            peer.ring(bell);
        }
        None
    }
}

/// The place at which a microprocess waits for one call after the other, and serves each at the
/// level of its caller.
///
/// From the end of a wait to the next one, the level of the microprocess follows the word with the
/// caller's level.
///
/// The post lies in the frame of [`Post::keep`], where lists of the runtime point to it. So a
/// reference to it is valid only during that call, and it cannot be moved out:
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
    /// The word that is waited for, which the peer changes.
    pub word: &'a AtomicU32,
    /// The word with the caller's level, at which the waiter is to serve.
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
    /// Calls `body` with a post for the caller at `words`, which `peer` changes.
    ///
    /// # Panics
    /// The caller is not a microprocess, or `body` panics.
    pub fn keep<R>(words: &Words<'_>, peer: &Peer, body: impl FnOnce(&Post<'_>) -> R) -> R {
        let follows = AfterWait::Follows(words.level);
        let node = Awaited::new(words.word, Some(words.over), current(), follows);
        // Dropped however `body` ends, which removes the node from the lists.
        body(&Post { node, words, peer })
    }

    /// As [`Wait::run`] without a limit: waits until the word is not `expected`. `bell` is the
    /// peer's bell that was used last.
    ///
    /// # Errors
    /// As for [`Wait::run`].
    ///
    /// # Panics
    /// The caller is not the microprocess that called [`keep`](Self::keep).
    pub fn wait(&self, expected: u32, bell: u32) -> io::Result<Option<u32>> {
        assert!(
            ptr::eq(self.node.record(), current()),
            "only the microprocess that called `keep` may wait at the post"
        );
        let pages = pages()?;
        self.node.expect(expected, Some((self.peer, bell)), false);
        let mut parked = false;
        let changed = await_change(&self.node, None, || {
            parked = true;
            park_once(&self.node, pages, None, self.words.announced, |_| {})
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

/// Gives the caller, which runs on `vp`, the level that was asked for it.
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

/// Calls `park` until the word of `node` has changed, or the wait ends otherwise. Returns the new
/// value of the word, or `None` if the word has not changed.
fn await_change(
    node: &Awaited,
    deadline: Option<Deadline>,
    mut park: impl FnMut() -> Result<WakeCause, Errno>,
) -> io::Result<Option<u32>> {
    while node.changed().is_none() && !node.is_over() {
        if park()? == WakeCause::Woken {
            continue;
        }
        // The word may have changed just before the end.
        if node.changed().is_none() {
            kill_point::after_wait(deadline);
        }
        break;
    }
    Ok(node.changed())
}

/// Parks the caller, to which `node` belongs, once; calls `listen` right before. Returns how the
/// wait ended.
fn park_once(
    node: &Awaited,
    pages: &'static BellPages,
    deadline: Option<Deadline>,
    announced: &AtomicU32,
    listen: impl FnOnce(Masked<'_>),
) -> Result<WakeCause, Errno> {
    let section = mask_at_point();
    let vp = section.masked();
    let Some(bell) = vp.bell.number(pages) else {
        section.leave();
        return Err(Errno::BUSY);
    };
    node.link(vp);
    announce(announced, bell);
    // Checked after the announcement: a process that changes the word from here on rings.
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
