//! The client's side of a connection.

use core::cmp::Reverse;
use core::fmt;
use core::time::Duration;
use std::path::Path;
use std::sync::Arc;

use kyocho_microprocess::bell::{self, Standing, Wait};
use kyocho_microprocess::{Builder, Microprocess, Semaphore};
use kyocho_sys::prim::atomic::{AtomicU32, AtomicU64, Ordering};
use kyocho_sys::robust;
use kyocho_sys::sealed::SealedMemory;

use crate::error::{Error, Failure};
use crate::frame::{self, Frame, Head, INLINE_BYTES_MAX, NO_BELL, frame};
use crate::handshake::{self, Message};
use crate::keeper::{Life, keep, mourn};
use crate::protocol::{Answer, Phase, Word, after, client_sees};
use crate::region::{REGIONS_MAX, Region, Slice};
use crate::service::{Handle, ROOT};
use crate::state;
use crate::worker::AWAIT_REGION;

/// How many free frames are looked at for the one whose server stands best.
const LOOKS_MAX: usize = 4;

/// A connection, as the client sees it.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) life: Arc<Life>,
    server: bell::Peer,
    frames: Arc<SealedMemory>,
    credits_max: usize,
    /// Frames that are free: a permit each.
    credits: Semaphore,
    /// The same as bits.
    free: AtomicU64,
    /// The number of the last call of each frame.
    numbers: Vec<AtomicU32>,
    /// A bit for each number of a region that is free.
    regions: AtomicU64,
}

const _: () = assert!(REGIONS_MAX == u64::BITS as usize);

fn lowest_bits(count: usize) -> u64 {
    if count >= u64::BITS as usize { u64::MAX } else { (1 << count) - 1 }
}

impl Line {
    fn frame(&self, index: usize) -> &Frame {
        frame(&self.frames, index)
    }

    /// Takes a frame, for which the caller has a permit: of the first few that are free, the one whose server stands best.
    fn take(&self) -> usize {
        let cpu = bell::own_cpu();
        loop {
            let free = self.free.load(Ordering::Relaxed);
            let bits = (0..u64::BITS as usize).filter(|index| free & 1 << index != 0);
            let rank = |&index: &usize| {
                let bell = self.frame(index).server_bell();
                (preference(bell, self.server.standing(bell), cpu), Reverse(index))
            };
            let Some(index) = bits.take(LOOKS_MAX).max_by_key(rank) else { continue };
            let before = self.free.fetch_and(!(1 << index), Ordering::AcqRel);
            if before & 1 << index != 0 {
                return index;
            }
        }
    }

    fn give(&self, index: usize) {
        self.free.fetch_or(1 << index, Ordering::AcqRel);
        self.credits.release();
    }

    pub(crate) fn take_region_number(&self) -> Result<u32, Error> {
        let take = |free: u64| (free != 0).then(|| free & (free - 1));
        let before = self.regions.fetch_update(Ordering::AcqRel, Ordering::Acquire, take);
        let bytes_max = REGIONS_MAX;
        before
            .map(u64::trailing_zeros)
            .map_err(|_| Error::TooLong { bytes: bytes_max + 1, bytes_max })
    }

    pub(crate) fn put_region_number(&self, number: u32) {
        self.regions.fetch_or(1 << number, Ordering::AcqRel);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.life.end();
        // Nobody is left for the mourner to tell.
        robust::mark(frame::life(&self.frames, self.credits_max));
    }
}

/// How good it is to be served where the bell's owner stands so, seen from `cpu`: more is better. Never wake an idle core where a hand-over will
/// do.
fn preference(bell: u32, standing: Standing, cpu: usize) -> u32 {
    if bell == NO_BELL {
        return 0;
    }
    match standing {
        Standing::Awake(there) if there != cpu => 4,
        Standing::Parked(there) if there == cpu => 3,
        Standing::Awake(_) => 3,
        Standing::Parked(_) => 2,
        _ => 1,
    }
}

/// A connection to a server. Cloned, it is the same connection; microprocesses may call at the same time.
#[derive(Debug, Clone)]
pub struct Client {
    line: Arc<Line>,
}

impl Client {
    /// Connects to the server at `path`. Blocks the kernel thread until the server has answered.
    ///
    /// # Errors
    /// [`Error::Connect`], [`Error::Refused`], [`Error::Protocol`], [`Error::Host`].
    pub fn connect(path: impl AsRef<Path>) -> Result<Self, Error> {
        let (socket, server, frames, credits) = handshake::greet(path.as_ref())?;
        let frames = Arc::new(frames);
        let life = Arc::new(Life::new(socket));
        // Ended by its drop, whatever fails below.
        let line = Arc::new(Line {
            life: Arc::clone(&life),
            server,
            frames: Arc::clone(&frames),
            credits_max: credits,
            credits: Semaphore::new(credits),
            free: AtomicU64::new(lowest_bits(credits)),
            numbers: (0..credits).map(|_| AtomicU32::new(0)).collect(),
            regions: AtomicU64::new(u64::MAX),
        });
        mourn(&life, &frames, credits)?;
        keep(move || {
            // The server has nothing to say: what comes is its end, or nonsense.
            let _end = Message::receive(life.socket());
            life.end();
        })?;
        Ok(Self { line })
    }

    /// Calls `method` of the object that the connection begins with; returns the reply.
    ///
    /// The microprocess waits, others of its virtual processor go on. The service runs at the caller's priority.
    ///
    /// # Errors
    /// [`Error`]. After [`Error::Closed`] the call may have been served.
    ///
    /// # Panics
    /// The caller is no microprocess.
    pub fn call(&self, method: u32, request: &[u8]) -> Result<Vec<u8>, Error> {
        self.target(ROOT).call(method, request)
    }

    /// The object behind `handle`, which the server granted to this client.
    #[must_use]
    pub fn target(&self, handle: Handle) -> Target {
        Target { line: Arc::clone(&self.line), handle, limit: None }
    }

    /// Makes memory of `bytes` that calls can hand over without copying.
    ///
    /// # Errors
    /// [`Error::TooLong`]: it is larger than [`REGION_BYTES_MAX`](crate::REGION_BYTES_MAX), or there are [`REGIONS_MAX`] already.
    /// [`Error::Closed`], [`Error::Host`].
    ///
    /// # Panics
    /// The caller is no microprocess.
    pub fn region(&self, bytes: usize) -> Result<Region, Error> {
        let region = Region::new(&self.line, bytes)?;
        let whole = region.whole();
        self.target(ROOT).call_with(AWAIT_REGION, &[], Some((&region, &whole)), &mut [])?;
        Ok(region)
    }

    /// Whether the server is there, as far as known.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.line.life.is_over()
    }
}

/// An object of a server.
#[derive(Clone)]
pub struct Target {
    line: Arc<Line>,
    handle: Handle,
    limit: Option<Duration>,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl Target {
    /// Gives calls up that take longer than `limit`.
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Calls `method`; returns the reply.
    ///
    /// # Errors
    /// As for [`Client::call`].
    ///
    /// # Panics
    /// The caller is no microprocess.
    pub fn call(&self, method: u32, request: &[u8]) -> Result<Vec<u8>, Error> {
        let mut ticket = self.begin(method, request, None)?;
        let bytes = ticket.finish(self.limit)?;
        let mut reply = vec![0; bytes];
        ticket.frame().get(&mut reply);
        Ok(reply)
    }

    /// As [`call`](Self::call), hands `region`'s part over, and copies the reply to the beginning of `reply`; returns its length.
    ///
    /// # Errors
    /// As there; [`Error::TooLong`] also where the reply does not fit.
    ///
    /// # Panics
    /// The caller is no microprocess.
    pub fn call_with(
        &self,
        method: u32,
        request: &[u8],
        region: Option<(&Region, &Slice)>,
        reply: &mut [u8],
    ) -> Result<usize, Error> {
        let mut ticket = self.begin(method, request, region)?;
        let bytes = ticket.finish(self.limit)?;
        let bytes_max = reply.len();
        let place = reply.get_mut(..bytes).ok_or(Error::TooLong { bytes, bytes_max })?;
        ticket.frame().get(place);
        Ok(bytes)
    }

    fn begin(
        &self,
        method: u32,
        request: &[u8],
        region: Option<(&Region, &Slice)>,
    ) -> Result<Ticket<'_>, Error> {
        let (bytes, bytes_max) = (request.len(), INLINE_BYTES_MAX);
        if bytes > bytes_max {
            return Err(Error::TooLong { bytes, bytes_max });
        }
        if region.is_some_and(|(region, _)| !region.is_of(&self.line)) {
            return Err(Error::Failed(Failure::NoRegion));
        }
        let line = &self.line;
        line.credits.acquire();
        let index = line.take();
        let number = after(line.numbers[index].load(Ordering::Relaxed));
        let mut ticket =
            Ticket { line, index, number, bell: NO_BELL, woken: false, state: Ticked::Unasked };
        if line.life.is_over() {
            return Err(Error::Closed);
        }
        let me = Microprocess::current();
        let region = region.map(|(region, slice)| {
            let (offset, bytes) = slice.range();
            (region.number(), offset, bytes)
        });
        let head =
            Head { method, bytes: bytes as u32, handle: self.handle.0, caller: me.id(), region };
        ticket.frame().put_head(&head);
        ticket.frame().put(request);
        ticket.ask(u32::from(me.effective_priority().level()));
        Ok(ticket)
    }
}

/// How far a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ticked {
    /// The frame is ours.
    Unasked,
    /// The frame is the server's.
    Asked,
    /// Answered: the frame is ours again.
    Answered,
}

/// A call under way, and the frame it has.
struct Ticket<'a> {
    line: &'a Arc<Line>,
    index: usize,
    number: u32,
    /// The server's bell, and whether its owner slept when it was rung.
    bell: u32,
    woken: bool,
    state: Ticked,
}

impl Ticket<'_> {
    fn frame(&self) -> &Frame {
        self.line.frame(self.index)
    }

    /// Makes the call.
    fn ask(&mut self, level: u32) {
        let frame = self.line.frame(self.index);
        frame.level.store(level, Ordering::Relaxed);
        self.line.numbers[self.index].store(self.number, Ordering::Relaxed);
        self.state = Ticked::Asked;
        state::ask(&frame.state, self.number);
        self.bell = frame.server_bell();
        self.woken = self.line.server.ring(self.bell);
    }

    /// Waits for the answer; its length, which fits into a frame.
    fn finish(&mut self, limit: Option<Duration>) -> Result<usize, Error> {
        let frame = self.line.frame(self.index);
        let wait = Wait {
            word: &frame.state,
            expected: Word::new(Phase::Requested, self.number).bits(),
            level: Some(&frame.level),
            over: Some(self.line.life.over()),
            from: Some((&self.line.server, self.bell)),
            woken: self.woken,
            announced: frame.client_place(),
        };
        let Some(word) = wait.run(limit)? else {
            return Err(if self.line.life.is_over() { Error::Closed } else { Error::TimedOut });
        };
        if client_sees(self.number, Word::alleged(word)) != Answer::Here {
            self.line.life.end();
            return Err(Error::Protocol);
        }
        self.state = Ticked::Answered;
        let (status, bytes) = frame.result();
        if let Some(failure) = Failure::alleged(status) {
            return Err(Error::Failed(failure));
        }
        if bytes as usize > INLINE_BYTES_MAX {
            self.line.life.end();
            return Err(Error::Protocol);
        }
        Ok(bytes as usize)
    }

    /// Tells the server that nobody waits any more. The frame is free again once it has answered: somebody has to wait for that.
    fn abandon(&self) {
        let (line, index, number) = (Arc::clone(self.line), self.index, self.number);
        if !state::give_up(&self.frame().state, number) {
            // Answered meanwhile.
            return line.give(index);
        }
        let heir = Builder::new().name("gate heir").spawn(move || {
            let frame = line.frame(index);
            let wait = Wait {
                word: &frame.state,
                expected: Word::new(Phase::Cancelled, number).bits(),
                level: None,
                over: Some(line.life.over()),
                from: None,
                woken: false,
                announced: frame.client_place(),
            };
            if matches!(wait.run(None), Ok(Some(_))) {
                line.give(index);
            }
        });
        // No memory for it: the credit is lost until the connection ends.
        drop(heir);
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        match self.state {
            Ticked::Asked if !self.line.life.is_over() => self.abandon(),
            _ => self.line.give(self.index),
        }
    }
}
