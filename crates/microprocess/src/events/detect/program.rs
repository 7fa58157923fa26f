//! The BPF programs that the host runs for a runtime.
//!
//! # At every switch of the host, on any CPU: `observe`
//! ```text
//!   next is registered:  its view says RUNNING; had the host taken its CPU while it held a virtual processor: resumed += 1
//!   prev is registered and runnable:   its view says WAITING; if it holds a virtual processor: preempted += 1
//!   prev is registered and sleeps:     its view says ASLEEP, and where, if it holds a virtual processor with events unmasked; then
//!                                      its watcher is woken, unless its sentinel comes next
//! ```
//! A thread is identified by the address of the host's structure for it, which `sched_switch` has
//! as an argument. Reading *inside* that structure would depend on its layout. For threads that are
//! not registered, this costs two look-ups in a hash.
//!
//! # Run by a kernel thread of a runtime, for itself: `enlist`
//! Registers the calling thread with the index of its view, or removes it.
//!
//! Paper 1, §6.2, puts its few hundred lines into `sleep` and the trap handler of the kernel. This
//! program is called at the same places, from outside.

use core::mem::offset_of;

use kyocho_sys::bpf::Map;
use kyocho_sys::bpf::assembler::{Assembler, Condition, Helper, Label, Register, Width};

use crate::data::view::{
    ASLEEP, CHANGE, GUARDS, MOMENT, PC, RECORD, RUNNING, SP, TAKEN_FROM, WAITING,
};
use crate::processor::kernel_thread::{HEAD_BYTES, MASK_OFFSET, VP_OFFSET};
use crate::processor::vp::Vp;
use Register::{R0, R1, R2, R3, R4, R6, R7, R8, R10};
use Width::{Half, Whole};

/// Byte offsets of the arguments of `sched_switch`: whether it is a preemption, the previous task,
/// the next task, the state of the previous task.
const PREEMPT: i16 = 0;
const PREV: i16 = 8;
const NEXT: i16 = 16;
const PREV_STATE: i16 = 24;

/// Byte offsets of the words of the counters of a map entry.
pub(super) const PREEMPTED: i16 = 0;
pub(super) const RESUMED: i16 = 8;

/// The program's stack: a task's address; an index; word 4 of the next task's view; the head of a
/// kernel thread's record; a program counter; a stack pointer.
const TASK: i16 = -8;
const INDEX: i16 = -12;
const COMES: i16 = -16;
const HEAD: i16 = -32;
const STACKED_PC: i16 = -40;
const STACKED_SP: i16 = -48;

/// The offset of the stack pointer among the registers that the kernel saves when it is entered
/// from user mode (`struct pt_regs`). Debuggers rely on it, so it does not change.
#[cfg(target_arch = "x86_64")]
const SAVED_SP: i32 = 19 * 8;
#[cfg(target_arch = "aarch64")]
const SAVED_SP: i32 = 31 * 8;

/// A record begins with the event mask.
const _: () = assert!(MASK_OFFSET == 0 && HEAD_BYTES <= (COMES - HEAD) as usize);

/// `BPF_F_USER_STACK` of `bpf_get_stack`.
const USER_STACK: i32 = 1 << 8;
/// `BPF_RB_FORCE_WAKEUP` of `bpf_ringbuf_output`.
const FORCE_WAKEUP: i32 = 2;

/// The maps that the programs use.
#[derive(Debug)]
pub(super) struct Maps<'a> {
    /// Address of a task → index of its view, four bytes.
    pub(super) threads: &'a Map,
    /// Views.
    pub(super) views: &'a Map,
    /// Counters of each map entry.
    pub(super) counters: &'a Map,
    /// The ring of each map entry.
    pub(super) rings: &'a Map,
}

/// Looks up `map[*key]`, whose key is on the stack; jumps to `otherwise` if there is no entry.
fn look_up(code: &mut Assembler, map: &Map, key: i16, otherwise: Label) {
    code.map(R1, map);
    code.stack_address(R2, i32::from(key));
    code.call(Helper::MapLookup);
    code.jump_if(R0, Condition::Equal, 0, otherwise);
}

/// `R7` = the view of the task in argument `task`; jumps to `otherwise` if the task is not
/// registered.
fn view_of(code: &mut Assembler, maps: &Maps<'_>, task: i16, otherwise: Label) {
    code.load(Whole, R1, R6, task);
    code.store(Whole, R10, TASK, R1);
    look_up(code, maps.threads, TASK, otherwise);
    code.load(Half, R1, R0, 0);
    code.store(Half, R10, INDEX, R1);
    look_up(code, maps.views, INDEX, otherwise);
    code.copy(R7, R0);
}

/// Sets the state of the view in `R7` to `state`.
fn publish(code: &mut Assembler, state: i32) {
    code.load(Whole, R1, R7, MOMENT);
    code.and(R1, -CHANGE);
    code.add(R1, CHANGE + state);
    code.exchange(R7, MOMENT, R1);
}

/// The word `base[offset] = value`.
fn set_word(code: &mut Assembler, base: Register, offset: i16, value: i32) {
    code.set(R1, value);
    code.store(Whole, base, offset, R1);
}

/// Reads `bytes` of the current process from `R8` to the stack; jumps to `otherwise` if a page is
/// not present.
fn read_user(code: &mut Assembler, to: i16, bytes: usize, otherwise: Label) {
    code.stack_address(R1, i32::from(to));
    code.set(R2, bytes as i32);
    code.copy(R3, R8);
    code.call(Helper::ReadUser);
    code.jump_if(R0, Condition::NotEqual, 0, otherwise);
}

/// `R8` = the virtual processor that the current thread holds, whose view is in `R7`. Puts the head
/// of its record on the stack. Jumps to `otherwise` if it holds none.
fn virtual_processor(code: &mut Assembler, otherwise: Label) {
    code.load(Whole, R8, R7, RECORD);
    code.jump_if(R8, Condition::Equal, 0, otherwise);
    read_user(code, HEAD, HEAD_BYTES, otherwise);
    code.load(Whole, R8, R10, HEAD + VP_OFFSET as i16);
    // Neither null nor the claim.
    code.jump_if(R8, Condition::AtMost, 1, otherwise);
}

/// Puts the map entry number of the virtual processor in `R8` on the stack.
fn map_entry(code: &mut Assembler, otherwise: Label) {
    code.add(R8, offset_of!(Vp, map_entry) as i32);
    read_user(code, INDEX, size_of::<u32>(), otherwise);
}

/// Adds one to counter `what` of the map entry on the stack.
fn count(code: &mut Assembler, maps: &Maps<'_>, what: i16, otherwise: Label) {
    look_up(code, maps.counters, INDEX, otherwise);
    code.set(R1, 1);
    code.count(R0, what, R1);
}

/// Puts the current thread's stack pointer in user mode on the stack.
fn read_stack_pointer(code: &mut Assembler, otherwise: Label) {
    code.call(Helper::CurrentTaskStructure);
    code.copy(R1, R0);
    code.call(Helper::UserRegisters);
    code.copy(R3, R0);
    code.add(R3, SAVED_SP);
    code.stack_address(R1, i32::from(STACKED_SP));
    code.set(R2, size_of::<u64>() as i32);
    code.call(Helper::ReadKernel);
    code.jump_if(R0, Condition::NotEqual, 0, otherwise);
}

/// The program for `sched_switch`.
pub(super) fn observe(maps: &Maps<'_>) -> Vec<u64> {
    let code = &mut Assembler::new();
    let (leaving, end) = (code.label(), code.label());
    code.copy(R6, R1);
    code.set(R1, 0);
    code.store(Half, R10, COMES, R1);
    view_of(code, maps, NEXT, leaving);
    code.load(Half, R1, R7, GUARDS);
    code.store(Half, R10, COMES, R1);
    arrive(code, maps, leaving);
    code.place(leaving);
    view_of(code, maps, PREV, end);
    leave(code, maps, end);
    code.place(end);
    code.set(R0, 0);
    code.exit();
    core::mem::take(code).finish()
}

/// The thread whose view is in `R7` receives a CPU.
fn arrive(code: &mut Assembler, maps: &Maps<'_>, end: Label) {
    code.load(Whole, R8, R7, TAKEN_FROM);
    publish(code, RUNNING);
    code.jump_if(R8, Condition::Equal, 0, end);
    set_word(code, R7, TAKEN_FROM, 0);
    code.add(R8, -1);
    code.store(Half, R10, INDEX, R8);
    count(code, maps, RESUMED, end);
}

/// The current thread, whose view is in `R7`, loses its CPU.
fn leave(code: &mut Assembler, maps: &Maps<'_>, end: Label) {
    let (runnable, unknown) = (code.label(), code.label());
    code.load(Whole, R1, R6, PREEMPT);
    code.jump_if(R1, Condition::NotEqual, 0, runnable);
    code.load(Whole, R1, R6, PREV_STATE);
    code.jump_if(R1, Condition::Equal, 0, runnable);

    set_word(code, R7, PC, 0);
    virtual_processor(code, unknown);
    code.load(Half, R1, R10, HEAD);
    code.jump_if(R1, Condition::NotEqual, 0, unknown);
    code.copy(R1, R6);
    code.stack_address(R2, i32::from(STACKED_PC));
    code.set(R3, size_of::<u64>() as i32);
    code.set(R4, USER_STACK);
    code.call(Helper::Stack);
    code.jump_if(R0, Condition::NotEqual, size_of::<u64>() as i32, unknown);
    read_stack_pointer(code, unknown);
    code.load(Whole, R1, R10, STACKED_SP);
    code.store(Whole, R7, SP, R1);
    code.load(Whole, R1, R10, STACKED_PC);
    code.store(Whole, R7, PC, R1);
    publish(code, ASLEEP);
    map_entry(code, end);
    code.load(Half, R1, R10, INDEX);
    code.add(R1, 1);
    code.load(Half, R2, R10, COMES);
    code.jump_if_same(R1, R2, end);
    look_up(code, maps.rings, INDEX, end);
    code.copy(R1, R0);
    code.stack_address(R2, i32::from(TASK));
    code.set(R3, size_of::<u64>() as i32);
    code.set(R4, FORCE_WAKEUP);
    code.call(Helper::RingOutput);
    code.jump(end);

    code.place(unknown);
    publish(code, ASLEEP);
    code.jump(end);

    code.place(runnable);
    publish(code, WAITING);
    virtual_processor(code, end);
    map_entry(code, end);
    code.load(Half, R1, R10, INDEX);
    code.add(R1, 1);
    code.store(Whole, R7, TAKEN_FROM, R1);
    count(code, maps, PREEMPTED, end);
}

/// The program that a thread runs for itself. Its argument is the index of the thread's view, or
/// [`OUT`].
pub(super) fn enlist(threads: &Map) -> Vec<u64> {
    let code = &mut Assembler::new();
    let (out, end) = (code.label(), code.label());
    code.load(Whole, R6, R1, 0);
    code.store(Half, R10, INDEX, R6);
    code.call(Helper::CurrentTask);
    code.store(Whole, R10, TASK, R0);
    code.map(R1, threads);
    code.stack_address(R2, i32::from(TASK));
    code.jump_if(R6, Condition::Equal, OUT as i32, out);
    code.stack_address(R3, i32::from(INDEX));
    code.set(R4, 0);
    code.call(Helper::MapUpdate);
    code.jump(end);
    code.place(out);
    code.call(Helper::MapDelete);
    code.place(end);
    code.exit();
    core::mem::take(code).finish()
}

/// In place of an index: the thread ends.
pub(super) const OUT: u64 = i32::MAX as u64;
