//! The server's side of one connection: a microprocess waits at each frame and serves it.
//!
//! Workers are hired ahead of need: one for each virtual processor to begin with, and when one gets its first call, as many more ahead
//! of it. So an idle client costs a few parked microprocesses, a busy one as many as it makes calls at a time, never more than its credits.
//! Worker *n* stays on virtual processor *n* modulo their count: the client chooses by its choice of a frame where it is served.
//!
//! **Invariant:** every frame below `hired` has a worker as long as the connection lasts: one that is killed leaves a successor, and an
//! answer to its caller.

use core::any::Any;
use core::panic::AssertUnwindSafe;
use std::collections::BTreeMap;
use std::panic::{catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kyocho_microprocess::bell::{self, Post, Words};
use kyocho_microprocess::{Builder, Killed, Microprocess, Priority, Semaphore, concurrency};
use kyocho_sys::peer::Peer;
use kyocho_sys::prim::atomic::{AtomicU32, AtomicUsize, Ordering};
use kyocho_sys::sealed::SealedMemory;

use crate::error::Failure;
use crate::frame::{INLINE_BYTES_MAX, frame, life};
use crate::keeper::Life;
use crate::protocol::{Arrival, Phase, Word, after, server_sees};
use crate::region::REGIONS_MAX;
use crate::service::{Call, Handle, ROOT, Service};
use crate::state;

/// Most handles of one connection at a time.
const HANDLES_MAX: usize = 1024;
/// Method numbers from here on are the gate's own.
pub(crate) const OWN_METHODS: u32 = u32::MAX - 15;
/// Waits until the region of the call has arrived.
pub(crate) const AWAIT_REGION: u32 = OWN_METHODS;
/// How long a region may take from the client's socket to the server's map.
const REGION_PATIENCE: core::time::Duration = core::time::Duration::from_secs(10);

/// A connection, as the server sees it.
pub(crate) struct Line {
    pub(crate) life: Life,
    peer: Peer,
    client: bell::Peer,
    frames: SealedMemory,
    credits: usize,
    /// How many workers there are.
    hired: AtomicUsize,
    regions: Mutex<BTreeMap<u32, RegionSlot>>,
    objects: Mutex<Objects>,
}

/// What there is for the number of a region.
enum RegionSlot {
    /// Calls wait for it; each that finds it here releases the next one.
    Awaited(Arc<Semaphore>),
    Here(Arc<SealedMemory>),
}

/// What a client may call.
struct Objects {
    granted: BTreeMap<u64, Arc<dyn Service>>,
    /// The next handle; none is used twice.
    next: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Line {
    pub(crate) fn new(
        life: Life,
        peer: Peer,
        client: bell::Peer,
        frames: SealedMemory,
        credits: usize,
        root: Arc<dyn Service>,
    ) -> Self {
        let granted = BTreeMap::from([(ROOT.0, root)]);
        Self {
            life,
            peer,
            client,
            frames,
            credits,
            hired: AtomicUsize::new(0),
            regions: Mutex::default(),
            objects: Mutex::new(Objects { granted, next: ROOT.0 + 1 }),
        }
    }

    pub(crate) fn frames(&self) -> &SealedMemory {
        &self.frames
    }

    /// The word that tells the client whether the connection is kept.
    pub(crate) fn life_word(&self) -> &AtomicU32 {
        life(&self.frames, self.credits)
    }

    pub(crate) fn peer(&self) -> Peer {
        self.peer
    }

    pub(crate) fn region(&self, number: u32) -> Option<Arc<SealedMemory>> {
        match lock(&self.regions).get(&number) {
            Some(RegionSlot::Here(memory)) => Some(Arc::clone(memory)),
            Some(RegionSlot::Awaited(_)) | None => None,
        }
    }

    /// A region arrived. Whether it may: the client keeps to its bounds.
    pub(crate) fn attach(&self, number: u32, memory: SealedMemory) -> bool {
        let fits = (number as usize) < REGIONS_MAX;
        if fits {
            let before = lock(&self.regions).insert(number, RegionSlot::Here(Arc::new(memory)));
            if let Some(RegionSlot::Awaited(arrival)) = before {
                arrival.release();
            }
        }
        fits
    }

    pub(crate) fn detach(&self, number: u32) {
        let mut regions = lock(&self.regions);
        if let Some(RegionSlot::Here(_)) = regions.get(&number) {
            let memory = regions.remove(&number);
            drop(regions);
            // Unmapped outside the lock.
            drop(memory);
        }
    }

    /// Waits a while until the region with this number is there; whether it is.
    fn await_region(&self, number: u32) -> bool {
        let Some(arrival) = self.arrival(number) else { return true };
        if arrival.acquire_timeout(REGION_PATIENCE) {
            // Others may wait for the same one.
            arrival.release();
        }
        let mut regions = lock(&self.regions);
        let is_here = matches!(regions.get(&number), Some(RegionSlot::Here(_)));
        if !is_here {
            regions.remove(&number);
        }
        is_here
    }

    /// What says that the region arrives; `None` once it is here.
    fn arrival(&self, number: u32) -> Option<Arc<Semaphore>> {
        let mut regions = lock(&self.regions);
        let fresh = || RegionSlot::Awaited(Arc::new(Semaphore::new(0)));
        match regions.entry(number).or_insert_with(fresh) {
            RegionSlot::Awaited(arrival) => Some(Arc::clone(arrival)),
            RegionSlot::Here(_) => None,
        }
    }

    pub(crate) fn grant(&self, object: Arc<dyn Service>) -> Result<Handle, Failure> {
        let mut objects = lock(&self.objects);
        if objects.granted.len() >= HANDLES_MAX {
            return Err(Failure::NoHandle);
        }
        let handle = objects.next;
        objects.next += 1;
        objects.granted.insert(handle, object);
        Ok(Handle(handle))
    }

    pub(crate) fn revoke(&self, handle: Handle) {
        let _object = lock(&self.objects).granted.remove(&handle.0);
    }

    fn object(&self, handle: u64) -> Option<Arc<dyn Service>> {
        lock(&self.objects).granted.get(&handle).cloned()
    }

    /// Sees to it that there are `count` workers, or as many as there are credits.
    pub(crate) fn hire(self: &Arc<Self>, count: usize) {
        let most = count.min(self.credits);
        let next = |hired: usize| (hired < most).then_some(hired + 1);
        while let Ok(index) = self.hired.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next) {
            if let Err(error) = Worker::start(self, index, 0) {
                tracing::warn!(%error, "no worker for a client of a gate");
                return self.life.end();
            }
        }
    }
}

/// Who serves one frame.
struct Worker {
    line: Arc<Line>,
    index: usize,
    /// The number of the last call it answered.
    answered: u32,
    /// Whether it was asked for something and has not answered yet.
    serving: bool,
}

impl Worker {
    fn start(line: &Arc<Line>, index: usize, answered: u32) -> std::io::Result<()> {
        let line = Arc::clone(line);
        let builder = Builder::new().name("gate worker").priority(Priority::NORMAL);
        let worker = builder.spawn(move || {
            Microprocess::current().set_virtual_processor(Some(index % concurrency()));
            Self { line, index, answered, serving: false }.work();
        })?;
        drop(worker);
        Ok(())
    }

    fn work(mut self) {
        // Here and not in the first wait alone: there may never be one, where calls are always there already.
        if let Ok(bell) = bell::own() {
            bell::announce(frame(&self.line.frames, self.index).server_place(), bell);
        }
        let line = Arc::clone(&self.line);
        let frame = frame(&line.frames, self.index);
        let words = Words {
            word: &frame.state,
            level: &frame.level,
            over: line.life.over(),
            announced: frame.server_place(),
        };
        Post::keep(&words, &line.client, |post| self.serve_calls(post));
        line.life.end();
    }

    /// Serves one call after the other, until the connection is over or the client breaks the protocol.
    fn serve_calls(&mut self, post: &Post<'_>) {
        let mut request = Vec::with_capacity(INLINE_BYTES_MAX);
        while let Some(word) = self.await_call(post) {
            let result = match server_sees(self.answered, word) {
                Arrival::Nothing => continue,
                Arrival::Broken => break,
                Arrival::Call => self.serve(&mut request),
                Arrival::Abandoned => Some(Err(Failure::Panicked)),
            };
            let Some(result) = result else { break };
            self.answer(result);
        }
    }

    /// Waits until the state word is no longer what we left there; `None` once the connection is over.
    fn await_call(&self, post: &Post<'_>) -> Option<Word> {
        let frame = frame(&self.line.frames, self.index);
        let expected = Word::new(Phase::Replied, self.answered).bits();
        let word = post.wait(expected, frame.client_bell());
        // A call that came after the end is not served, though its client does not know yet.
        word.ok()?.filter(|_| !self.line.life.is_over()).map(Word::alleged)
    }

    /// Copies the request, checks it once, and has it served; `None` where it breaks the protocol.
    fn serve(&mut self, request: &mut Vec<u8>) -> Option<Result<Vec<u8>, Failure>> {
        self.serving = true;
        if self.answered == 0 {
            // Its first call: there may be more at a time than ever before.
            self.line.hire(self.index + 1 + concurrency());
        }
        let frame = frame(&self.line.frames, self.index);
        let head = frame.head();
        if head.bytes as usize > INLINE_BYTES_MAX {
            return None;
        }
        request.resize(head.bytes as usize, 0);
        frame.get(request);
        if head.method >= OWN_METHODS {
            return Some(self.serve_own(head.method, head.region.map(|(number, ..)| number)));
        }
        let Some(object) = self.line.object(head.handle) else {
            return Some(Err(Failure::NoHandle));
        };
        let call = Call::new(&self.line, head, request);
        let served = catch_unwind(AssertUnwindSafe(|| object.serve(&call)));
        Some(served.unwrap_or_else(survive))
    }

    fn serve_own(&self, method: u32, region: Option<u32>) -> Result<Vec<u8>, Failure> {
        if method != AWAIT_REGION {
            return Err(Failure::NoMethod);
        }
        let may_come = region.filter(|&number| (number as usize) < REGIONS_MAX);
        let is_here = may_come.is_some_and(|number| self.line.await_region(number));
        if is_here { Ok(Vec::new()) } else { Err(Failure::NoRegion) }
    }

    /// Gives the frame back to the client, with the result.
    fn answer(&mut self, result: Result<Vec<u8>, Failure>) {
        let frame = frame(&self.line.frames, self.index);
        let result = match result {
            Ok(reply) if reply.len() > INLINE_BYTES_MAX => Err(Failure::ReplyTooLong),
            result => result,
        };
        match result {
            Ok(reply) => {
                frame.put(&reply);
                frame.put_result(0, reply.len() as u32);
            }
            Err(failure) => frame.put_result(failure.number(), 0),
        }
        self.answered = after(self.answered);
        self.serving = false;
        state::answer(&frame.state, self.answered);
        self.line.client.ring(frame.client_bell());
        bell::repay();
    }
}

/// A service that panicked is an answer; one that was killed takes its worker with it.
fn survive(payload: Box<dyn Any + Send>) -> Result<Vec<u8>, Failure> {
    if payload.is::<Killed>() {
        resume_unwind(payload);
    }
    Err(Failure::Panicked)
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.line.life.is_over() {
            return;
        }
        // Killed: the caller is answered, and the frame gets another worker.
        if self.serving {
            self.answer(Err(Failure::Panicked));
        }
        if Self::start(&self.line, self.index, self.answered).is_err() {
            self.line.life.end();
        }
    }
}
