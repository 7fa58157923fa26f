//! The function for each call number: the personality "FreeBSD amd64" as a table (Paper 2:
//! personalities are tables).
//!
//! ```text
//!   in    rax: number; rdi, rsi, rdx, r10, r8, r9: words; further words are on the stack,
//!         after the return address
//!   out   carry clear: rax, and rdx if there are two values        carry set: rax is the error
//! ```

use crate::errno::Errno;
use crate::files::{self, HERE, at_flags};
use crate::frame::Context;
use crate::host::{Answer, DONE, address_of, number, pass};
use crate::kqueue::Layout;
use crate::{
    deliver, kqueue, masks, processes, report, same, signals, sockets, space, start, stat, sysctl,
};
use crate::{threads, time, user, volumes};

/// The carry bit of the flags: the call failed.
const CARRY: u64 = 1;

/// One call of the program.
#[derive(Debug)]
struct Call<'a> {
    number: u64,
    words: [u64; 6],
    context: &'a mut Context,
}

/// Makes the call at which `context` was interrupted, and stores the result there.
pub(crate) fn serve(context: &mut Context) {
    let from = &context.registers;
    let words = [from.rdi, from.rsi, from.rdx, from.r10, from.r8, from.r9];
    let mut call = Call { number: from.rax & 0xffff_ffff, words, context };
    call.unwrap();
    report::show(call.number, &call.words);
    let answer = call.answer();
    let registers = &mut call.context.registers;
    (registers.rax, registers.flags) = match answer {
        Ok(value) => (value, registers.flags & !CARRY),
        Err(errno) => (errno.freebsd(), registers.flags | CARRY),
    };
}

impl Call<'_> {
    /// `syscall` and `__syscall`: the first word is the number.
    fn unwrap(&mut self) {
        const INDIRECT: [u64; 2] = [0, 198];
        if INDIRECT.contains(&self.number) {
            let [number, a, b, c, d, e] = self.words;
            let sixth = self.on_stack(0).unwrap_or(0);
            (self.number, self.words) = (number & 0xffff_ffff, [a, b, c, d, e, sixth]);
        }
    }

    /// A word after those in registers.
    fn on_stack(&self, index: u64) -> Answer {
        user::read(self.context.registers.rsp + 8 * (index + 1))
    }

    fn answer(&mut self) -> Answer {
        if let Some(host) = same::number(self.number) {
            return pass(host, &self.words);
        }
        self.on_files()
            .or_else(|| self.on_threads())
            .or_else(|| self.on_signals())
            .or_else(|| self.on_sockets())
            .or_else(|| self.on_processes())
            .unwrap_or_else(|| {
                report::miss(self.number, &self.words);
                Err(Errno::NOSYS)
            })
    }

    fn on_files(&mut self) -> Option<Answer> {
        let [a, b, c, d, e, _] = self.words;
        Some(match self.number {
            5 => files::open(HERE, a, b, c),
            6 => kqueue::close(a),
            42 => self.pipe(),
            54 => files::request(a, b, c),
            90 => files::duplicate(a, b, 0),
            92 => files::control(a, b, c),
            132 => stat::make_node(HERE, a, b & PERMISSIONS | PIPE, 0),
            138 => files::set_coarse_times(HERE, a, b, 0),
            206 => files::set_coarse_times(a, 0, b, 0),
            276 => files::set_coarse_times(HERE, a, b, NOT_THROUGH_LINKS),
            326 => files::current_directory(a, b),
            376 => pass(number::FACCESSAT2, &[HERE, a, b, AS_EFFECTIVE]),
            393 => files::send_file(&self.words),
            489 => pass(number::FACCESSAT2, &[a, b, c, at_flags(d)]),
            490 => pass(number::FCHMODAT2, &[a, b, c, at_flags(d)]),
            491 => pass(number::FCHOWNAT, &[a, b, c, d, at_flags(e)]),
            495 => pass(number::LINKAT, &[a, b, c, d, at_flags(e)]),
            497 => stat::make_node(a, b, c & PERMISSIONS | PIPE, 0),
            499 => files::open(a, b, c, d),
            503 => pass(number::UNLINKAT, &[a, b, at_flags(c)]),
            509 => pass(number::CLOSE_RANGE, &[a, u64::from(u32::MAX), 0]),
            530 => by_value(pass(number::FALLOCATE, &[a, 0, b, c])),
            542 => files::pipe(a, b),
            546 => files::set_times(a, 0, b, 0),
            547 => files::set_times(a, b, c, d),
            551 => stat::of_file(a, b),
            552 => stat::of_path(a, b, c, d),
            554 => stat::entries(a, b, c, d),
            555 => volumes::of_path(a, b),
            556 => volumes::of_file(a, b),
            557 => volumes::all(a, b),
            559 => stat::make_node(a, b, c, d),
            _ => return None,
        })
    }

    /// The original `pipe`, which returns two values.
    fn pipe(&mut self) -> Answer {
        let mut pair = [0_i32; 2];
        pass(number::PIPE2, &[crate::host::address(&mut pair), 0])?;
        self.context.registers.rdx = pair[1] as u64;
        Ok(pair[0] as u64)
    }

    fn on_threads(&mut self) -> Option<Answer> {
        let [a, b, c, d, e, _] = self.words;
        Some(match self.number {
            74 => pass(MPROTECT, &[a, b, c & 7]),
            75 => space::advise(a, b, c),
            65 => space::synchronize(a, b, c),
            477 => space::map(&self.words),
            165 => threads::set_pointer(a, b),
            232 => time::read(a, b),
            234 => time::resolution(a, b),
            244 => by_value(time::sleep(a, b, c, d)),
            253 => DONE,
            362 => kqueue::create(),
            363 => kqueue::wait(Layout::Old, &self.words),
            560 => kqueue::wait(Layout::New, &self.words),
            431 => threads::end(a, self.context),
            432 => threads::own_number(a),
            433 => processes::send_to_thread(a, b),
            454 => threads::wait_or_wake(&self.words),
            455 => threads::start(a, b),
            464 => start::set_name(b),
            481 => processes::send_to_thread_of(a, b, c),
            487 => threads::processors(d, e),
            202 => sysctl::by_numbers(&self.words),
            570 => sysctl::by_name(&self.words),
            _ => return None,
        })
    }

    fn on_signals(&mut self) -> Option<Answer> {
        let [a, b, c, ..] = self.words;
        let handler = deliver::on_signal as *const ();
        Some(match self.number {
            53 => threads::alternate_stack(a, b, self.context),
            340 => masks::change(a, b, c, self.context),
            341 => masks::suspend(a),
            343 => masks::pending(a),
            345 => deliver::wait(a, b, c).map(u64::from),
            346 => deliver::wait(a, b, 0).map(u64::from),
            416 => signals::set_action(a, b, c, handler.addr() as u64),
            429 => by_value(
                deliver::wait(a, 0, 0).and_then(|signal| user::write(b, &signal).map(|()| 0)),
            ),
            _ => return None,
        })
    }

    fn on_sockets(&mut self) -> Option<Answer> {
        let [a, b, c, d, ..] = self.words;
        Some(match self.number {
            27 => sockets::receive(a, b, c),
            28 => sockets::send(a, b, c),
            29 => sockets::receive_from(&self.words),
            30 => sockets::accept(a, b, c, 0),
            31 => sockets::name_of(number::GETPEERNAME, a, b, c),
            32 => sockets::name_of(number::GETSOCKNAME, a, b, c),
            97 => sockets::create(a, b, c),
            98 => sockets::name(number::CONNECT, a, b, c),
            104 => sockets::name(number::BIND, a, b, c),
            105 => sockets::set_option(&self.words),
            118 => sockets::option(&self.words),
            133 => sockets::send_to(&self.words),
            135 => sockets::create_pair(&self.words),
            541 => sockets::accept(a, b, c, d),
            _ => return None,
        })
    }

    fn on_processes(&mut self) -> Option<Answer> {
        let [a, b, c, d, ..] = self.words;
        Some(match self.number {
            2 | 66 => pass(number::FORK, &[]).inspect(|child| {
                if *child == 0 {
                    kqueue::after_fork();
                }
            }),
            7 => processes::wait(a, b, c, d),
            37 => processes::send(a, b),
            89 => processes::descriptors(),
            100 => pass(GETPRIORITY, &[a, b]).map(|kept| 20_u64.wrapping_sub(kept)),
            182 => pass(number::SETRESGID, &[u64::MAX, a, u64::MAX]),
            183 => pass(number::SETRESUID, &[u64::MAX, a, u64::MAX]),
            194 => processes::get_limit(a, b),
            195 => processes::set_limit(a, b),
            532 => processes::wait_by_kind(&self.words),
            544 => processes::control(c, d),
            545 => self.poll(),
            _ => return None,
        })
    }

    /// `ppoll`.
    fn poll(&self) -> Answer {
        let [list, count, limit, mask, ..] = self.words;
        if mask == 0 {
            return pass(number::PPOLL, &[list, count, limit, 0, 8]);
        }
        let blocked = signals::set_to_host(user::read(mask)?);
        pass(number::PPOLL, &[list, count, limit, address_of(&blocked), 8])
    }
}

const PERMISSIONS: u64 = 0o7777;
const PIPE: u64 = 0o010_000;
const NOT_THROUGH_LINKS: u64 = 0x100;
const AS_EFFECTIVE: u64 = 0x200;
const MPROTECT: u32 = 10;
const GETPRIORITY: u32 = 140;

/// For calls that return their error as a value.
fn by_value(answer: Answer) -> Answer {
    Ok(answer.err().map_or(0, Errno::freebsd))
}

#[cfg(test)]
mod tests {
    use super::{CARRY, serve};
    use crate::frame::Context;
    use crate::host::address_of;

    fn call(number: u64, words: &[u64]) -> Context {
        let (mut context, stack) = (Context::default(), [0_u64; 4]);
        context.registers.rax = number;
        context.registers.rsp = address_of(&stack);
        let registers = &mut context.registers;
        let places =
            [&mut registers.rdi, &mut registers.rsi, &mut registers.rdx, &mut registers.r10];
        for (place, word) in places.into_iter().zip(words) {
            *place = *word;
        }
        serve(&mut context);
        context
    }

    #[test]
    fn a_result_clears_the_carry_and_an_error_sets_it() {
        let own = call(20, &[]);
        assert_eq!(own.registers.rax, u64::from(std::process::id()));
        assert_eq!(own.registers.flags & CARRY, 0);
        let bad = call(3, &[u64::MAX, 0, 0]);
        assert_eq!((bad.registers.rax, bad.registers.flags & CARRY), (9, CARRY));
    }

    #[test]
    fn an_indirect_call_is_the_one_that_it_names() {
        for indirect in [0, 198] {
            let own = call(indirect, &[20]);
            assert_eq!(own.registers.rax, u64::from(std::process::id()));
        }
    }

    #[test]
    fn what_is_not_there_is_said_so() {
        const NO_SUCH_CALL: u64 = 78;
        for number in [11, 518, 9999] {
            let none = call(number, &[]);
            assert_eq!((none.registers.rax, none.registers.flags & CARRY), (NO_SUCH_CALL, CARRY));
        }
    }
}
