"""Microprocesses in gdb, of a live process or of a core.

    (gdb) source scripts/gdb/kyocho.py
    (gdb) info microprocesses
    (gdb) microprocess 12 bt
    (gdb) microprocess apply all bt

A waiting or runnable microprocess is on no kernel thread. Its registers are on its own stack, at the
address in its record. One that runs, sleeps in the kernel or was preempted is on a kernel thread,
which gdb finds by its number.

The program itself contains the layout of records (crates/microprocess/src/runtime/debugger.rs).
"""

import contextlib
import re
import struct

import gdb
import gdb.unwinder

VERSION = 1
CLASSES = 5
FIELDS = (
    "version arenas arena_bytes reservations reservation_bytes reservations_max address used "
    "stride0 stride1 stride2 stride3 stride4 colours colour_bytes "
    "record_bytes id state level context bound home name reason_kind reason_object "
    "current_of_vp holder_of_vp tid_of_kernel_thread states states_bytes kinds kinds_bytes"
).split()


@contextlib.contextmanager
def in_c():
    """Evaluates expressions as C, whatever the language of the selected frame is."""
    before = gdb.parameter("language")
    gdb.execute("set language c")
    try:
        yield
    finally:
        gdb.execute(f"set language {before}")


def memory(address, size):
    return bytes(gdb.selected_inferior().read_memory(address, size))


def word(address):
    return struct.unpack("<Q", memory(address, 8))[0]


def half(address):
    return struct.unpack("<I", memory(address, 4))[0]


class Layout:
    """The layout of records, read from the program."""

    def __init__(self):
        try:
            at = int(gdb.parse_and_eval("(unsigned long) &KYOCHO_DEBUGGER_LAYOUT"))
        except gdb.error:
            raise gdb.GdbError("this is not a Kyocho program, or its symbols are stripped")
        for number, field in enumerate(FIELDS):
            setattr(self, field, word(at + 8 * number))
        if self.version != VERSION:
            raise gdb.GdbError(f"the program has layout {self.version}; this script needs {VERSION}")
        self.states = memory(self.states, self.states_bytes).decode().split()
        self.kinds = memory(self.kinds, self.kinds_bytes).decode().split(",")
        self.strides = [getattr(self, f"stride{number}") for number in range(CLASSES)]

    def records(self):
        """The addresses of all records."""
        for number in range(CLASSES):
            arena = self.arenas + number * self.arena_bytes
            for at in range(self.reservations_max):
                reservation = arena + self.reservations + at * self.reservation_bytes
                start = word(reservation + self.address)
                if start == 0:
                    break
                for slot in range(word(reservation + self.used)):
                    yield start + slot * self.strides[number] + self.offset(number, slot)

    def offset(self, number, slot):
        """The offset of a record in its slot: at the top, less the slot's cache colour."""
        if number == 0:
            return 0
        return self.strides[number] - self.record_bytes - slot % self.colours * self.colour_bytes


class Microprocess:
    """A microprocess, read from its record."""

    def __init__(self, layout, record):
        self.layout = layout
        self.record = record
        self.id = word(record + layout.id)
        self.state = layout.states[memory(record + layout.state, 1)[0]]
        self.level = memory(record + layout.level, 1)[0]
        self.context = word(record + layout.context)
        self.stackless = self.context == 0
        name = memory(record + layout.name, 40)
        self.name = name[: name[39]].decode(errors="replace") or "(no name)"

    def kernel_thread(self):
        """The number of its kernel thread, or None."""
        bound = word(self.record + self.layout.bound)
        if bound == 0:
            vp = word(self.record + self.layout.home)
            if vp == 0 or word(vp + self.layout.current_of_vp) != self.record:
                return None
            bound = word(vp + self.layout.holder_of_vp)
        return half(bound + self.layout.tid_of_kernel_thread)

    def waits_for(self):
        if self.state != "parked":
            return ""
        kind = self.layout.kinds[memory(self.record + self.layout.reason_kind, 1)[0]]
        target = word(self.record + self.layout.reason_object)
        return f"waits for {kind} {target:#x}" if target else f"waits for {kind}"

    def describe(self):
        thread = self.kernel_thread()
        where = f"on kernel thread {thread}" if thread else self.waits_for()
        return f"{self.id:<8} {self.state:<10} {self.level:>3}  {self.name:<24} {where}".rstrip()


def microprocesses():
    layout = Layout()
    found = (Microprocess(layout, record) for record in layout.records())
    return sorted((it for it in found if it.state != "free"), key=lambda it: it.id)


class Switched(gdb.unwinder.Unwinder):
    """While a target is set, makes it look like the caller of frame 0, so that gdb walks its stack. This
    works for core files, too."""

    def __init__(self):
        super().__init__("kyocho")
        self.target = None

    def __call__(self, pending):
        if self.target is None or self.used:
            return None
        self.used = True
        # `switch` has left the return address, rbx and rbp. The rest of the stack is above them.
        pc, rbx, rbp = (word(self.target + 8 * number) for number in range(3))
        sp = self.target + 24
        unsigned = gdb.lookup_type("unsigned long")

        def typed(value):
            return gdb.Value(value).cast(unsigned)

        # An address below the microprocess's own frames, so that these look like its callers.
        made = pending.create_unwind_info(FrameId(typed(self.target), typed(pc)))
        for register, value in (("rip", pc), ("rsp", sp), ("rbx", rbx), ("rbp", rbp)):
            made.add_saved_register(register, typed(value))
        return made

    def walk(self, target):
        self.target, self.used = target, False
        gdb.invalidate_cached_frames()
        try:
            return gdb.execute("bt", to_string=True)
        finally:
            self.target = None
            gdb.invalidate_cached_frames()


class FrameId:
    def __init__(self, sp, pc):
        self.sp = sp
        self.pc = pc


SWITCHED = Switched()
gdb.unwinder.register_unwinder(None, SWITCHED, replace=True)


def backtrace(it):
    gdb.write(f"microprocess {it.describe()}\n")
    thread = it.kernel_thread()
    if thread:
        for known in gdb.selected_inferior().threads():
            if known.ptid[1] == thread:
                before = gdb.selected_thread()
                known.switch()
                gdb.write(gdb.execute("bt", to_string=True))
                before.switch()
        return
    if it.stackless:
        gdb.write("  (without a stack: nothing of it is on one while it waits)\n")
        return
    if it.state in ("finished", "abandoned"):
        return
    # Frame 0 belongs to the selected kernel thread, and is left out.
    for line in SWITCHED.walk(it.context).splitlines():
        if line.startswith("#0 "):
            continue
        gdb.write(re.sub(r"^#(\d+)", lambda match: f"#{int(match.group(1)) - 1}", line) + "\n")


class Info(gdb.Command):
    """Lists the microprocesses: number, state, priority, name, and their place or what they wait for."""

    def __init__(self):
        super().__init__("info microprocesses", gdb.COMMAND_STATUS)

    @in_c()
    def invoke(self, _argument, _from_tty):
        for it in microprocesses():
            gdb.write(it.describe() + "\n")


class One(gdb.Command):
    """microprocess NUMBER bt prints its backtrace; microprocess apply all bt prints all."""

    def __init__(self):
        super().__init__("microprocess", gdb.COMMAND_STACK)

    @in_c()
    def invoke(self, argument, _from_tty):
        words = argument.split()
        if words == ["apply", "all", "bt"]:
            for it in microprocesses():
                backtrace(it)
                gdb.write("\n")
            return
        if len(words) != 2 or words[1] != "bt" or not words[0].isdigit():
            raise gdb.GdbError("usage: microprocess NUMBER bt | microprocess apply all bt")
        for it in microprocesses():
            if it.id == int(words[0]):
                return backtrace(it)
        raise gdb.GdbError(f"there is no microprocess {words[0]}: see `info microprocesses`")


Info()
One()
