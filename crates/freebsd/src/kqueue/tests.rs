use super::{
    ADD, CLEAR, DELETE, DISABLE, ENABLE, END, ERROR, Event, ONCE, READ, RECEIPT, TIMER, TRIGGER,
    USER, WRITE,
};
use super::{Layout, close, create};
use crate::errno::Errno;
use crate::files::duplicate;
use crate::host::{Answer, address, address_of, number, pass};

fn wait(words: &[u64; 6]) -> Answer {
    super::wait(Layout::New, words)
}

struct Kqueue(u64);

impl Kqueue {
    fn new() -> Self {
        Self(create().unwrap())
    }

    fn change(&self, changes: &[Event]) -> Answer {
        let at = changes.as_ptr().expose_provenance() as u64;
        wait(&[self.0, at, changes.len() as u64, 0, 0, 0])
    }

    /// The next event, with a timeout of two minutes.
    fn next(&self) -> Event {
        let mut event = Event::default();
        let watchdog = [120_u64, 0];
        let words = [self.0, 0, 0, address(&mut event), 1, address_of(&watchdog)];
        assert_eq!(wait(&words), Ok(1));
        event
    }

    /// The events that are there now, at most `room`.
    fn look(&self, room: usize) -> Vec<Event> {
        let mut events = vec![Event::default(); room];
        let at = events.as_mut_ptr().expose_provenance() as u64;
        let now = [0_u64; 2];
        let count = wait(&[self.0, 0, 0, at, room as u64, address_of(&now)]).unwrap();
        events.truncate(count as usize);
        events
    }
}

impl Drop for Kqueue {
    fn drop(&mut self) {
        close(self.0).unwrap();
    }
}

fn pipe() -> [u64; 2] {
    let mut pair = [0_i32; 2];
    pass(number::PIPE2, &[address(&mut pair), 0]).unwrap();
    pair.map(|file| file as u64)
}

fn fields(events: &[Event]) -> Vec<(u64, i16, u16, u64)> {
    events.iter().map(|event| (event.ident, event.filter(), event.flags(), event.user)).collect()
}

fn put(file: u64) {
    assert_eq!(pass(number::WRITE, &[file, address_of(b"x"), 1]), Ok(1));
}

fn take(file: u64) {
    let mut byte = 0_u8;
    assert_eq!(pass(number::READ, &[file, address(&mut byte), 1]), Ok(1));
}

#[test]
fn an_edge_triggered_event_is_reported_once_a_change_and_a_level_triggered_one_always() {
    let (queue, [reader, writer]) = (Kqueue::new(), pipe());
    queue.change(&[Event::new(reader, READ, ADD | CLEAR, 0, 77)]).unwrap();
    assert_eq!(queue.look(4), []);
    put(writer);
    let events = queue.look(4);
    assert_eq!(fields(&events), [(reader, READ, CLEAR, 77)]);
    assert_eq!(events[0].data, 1);
    assert_eq!(queue.look(4), []);
    put(writer);
    assert_eq!(queue.look(4)[0].data, 2);
    queue.change(&[Event::new(reader, READ, ADD, 0, 78)]).unwrap();
    for _ in 0..3 {
        assert_eq!(fields(&queue.look(4)), [(reader, READ, 0, 78)]);
    }
    take(reader);
    take(reader);
    assert_eq!(queue.look(4), []);
    for file in [reader, writer] {
        close(file).unwrap();
    }
}

#[test]
fn reading_and_writing_are_two_events_of_one_descriptor() {
    let queue = Kqueue::new();
    let mut pair = [0_i32; 2];
    pass(number::SOCKETPAIR, &[1, 1, 0, address(&mut pair)]).unwrap();
    let [one, other] = pair.map(|file| file as u64);
    let both =
        [Event::new(one, READ, ADD | CLEAR, 0, 1), Event::new(one, WRITE, ADD | CLEAR, 0, 2)];
    queue.change(&both).unwrap();
    assert_eq!(fields(&queue.look(4)), [(one, WRITE, CLEAR, 2)]);
    put(other);
    let both = fields(&queue.look(4));
    assert!(both.contains(&(one, READ, CLEAR, 1)), "{both:?}");
    // There is no room for both; none is lost.
    put(other);
    let mut seen: Vec<i16> = queue.look(1).iter().map(Event::filter).collect();
    seen.extend(queue.look(4).iter().map(Event::filter));
    assert!(seen[0] == READ && seen[1..].contains(&WRITE), "{seen:?}");
    close(other).unwrap();
    let ends = queue.look(4);
    assert!(
        ends.iter().any(|event| event.filter() == READ && event.flags() & END != 0),
        "{ends:?}"
    );
    close(one).unwrap();
}

#[test]
fn what_is_deleted_disabled_or_wanted_once_is_silent() {
    let (queue, [reader, writer]) = (Kqueue::new(), pipe());
    put(writer);
    queue.change(&[Event::new(reader, READ, ADD, 0, 0)]).unwrap();
    queue.change(&[Event::new(reader, READ, DISABLE, 0, 0)]).unwrap();
    assert_eq!(queue.look(4), []);
    queue.change(&[Event::new(reader, READ, ENABLE, 0, 0)]).unwrap();
    assert_eq!(queue.look(4).len(), 1);
    queue.change(&[Event::new(reader, READ, DELETE, 0, 0)]).unwrap();
    assert_eq!(queue.look(4), []);
    let gone = queue.change(&[Event::new(reader, READ, DELETE, 0, 0)]);
    assert_eq!(gone, Err(Errno::NOENT));
    queue.change(&[Event::new(reader, READ, ADD | ONCE, 0, 0)]).unwrap();
    assert_eq!(queue.look(4).len(), 1);
    assert_eq!(queue.look(4), []);
    for file in [reader, writer] {
        close(file).unwrap();
    }
}

#[test]
fn a_number_that_means_another_descriptor_by_now_has_no_old_filters() {
    // A number that no other test gets at the same time.
    const NUMBER: u64 = 700;
    let (queue, [reader, writer]) = (Kqueue::new(), pipe());
    duplicate(reader, NUMBER, 0).unwrap();
    queue.change(&[Event::new(NUMBER, READ, ADD | CLEAR, 0, 1)]).unwrap();
    for file in [NUMBER, reader] {
        close(file).unwrap();
    }
    let mut pair = [0_i32; 2];
    pass(number::SOCKETPAIR, &[1, 1, 0, address(&mut pair)]).unwrap();
    let [one, other] = pair.map(|file| file as u64);
    duplicate(one, NUMBER, 0).unwrap();
    queue.change(&[Event::new(NUMBER, WRITE, ADD | CLEAR, 0, 2)]).unwrap();
    put(other);
    assert_eq!(fields(&queue.look(4)), [(NUMBER, WRITE, CLEAR, 2)]);
    for file in [NUMBER, one, other, writer] {
        close(file).unwrap();
    }
}

#[test]
fn the_program_triggers_events_of_its_own() {
    let queue = Kqueue::new();
    queue.change(&[Event::new(5, USER, ADD | CLEAR, 0, 55)]).unwrap();
    assert_eq!(queue.look(4), []);
    let trigger = Event { filter_words: TRIGGER, ..Event::new(5, USER, 0, 0, 0) };
    queue.change(&[trigger]).unwrap();
    assert_eq!(fields(&queue.look(4)), [(5, USER, CLEAR, 55)]);
    assert_eq!(queue.look(4), []);
    let unknown = Event { filter_words: TRIGGER, ..Event::new(6, USER, 0, 0, 0) };
    assert_eq!(queue.change(&[unknown]), Err(Errno::NOENT));
    // An event that is not cleared is reported until it is deleted.
    queue.change(&[Event { filter_words: TRIGGER, ..Event::new(7, USER, ADD, 0, 0) }]).unwrap();
    for _ in 0..3 {
        assert_eq!(queue.look(4).len(), 1);
    }
    queue.change(&[Event::new(7, USER, DELETE, 0, 0)]).unwrap();
    assert_eq!(queue.look(4), []);
}

#[test]
fn errors_are_reported_where_there_is_room_and_receipts_where_they_are_wanted() {
    const NO_DESCRIPTOR: u64 = 60_000;
    const NO_FILTER: i16 = -99;
    let (queue, [reader, writer]) = (Kqueue::new(), pipe());
    let changes = [
        Event::new(reader, READ, ADD | RECEIPT, 0, 1),
        Event::new(NO_DESCRIPTOR, READ, ADD, 0, 2),
        Event::new(1, NO_FILTER, ADD, 0, 3),
    ];
    let mut events = [Event::default(); 4];
    let count = wait(&[queue.0, address_of(&changes), 3, address(&mut events), 4, 0]);
    assert_eq!(count, Ok(3));
    assert!(events[..3].iter().all(|event| event.flags() == ERROR));
    let errors: Vec<u64> = events[..3].iter().map(|event| event.data).collect();
    assert_eq!(errors, [0, 9, 22]);
    assert_eq!(queue.change(&changes[1..]), Err(Errno::BADF));
    assert_eq!(wait(&[reader, 0, 0, 0, 0, 0]), Err(Errno::BADF));
    for file in [reader, writer] {
        close(file).unwrap();
    }
}

fn timer(ident: u64, flags: u16, units: u32, time: u64) -> Event {
    Event { filter_words: units, ..Event::new(ident, TIMER, flags, time, ident + 70) }
}

const NANOSECONDS: u32 = 8;
const SECONDS: u32 = 1;

#[test]
fn a_timer_comes_again_until_it_is_deleted_and_one_of_one_time_does_not() {
    let queue = Kqueue::new();
    queue.change(&[timer(1, ADD, NANOSECONDS, 1000)]).unwrap();
    for _ in 0..3 {
        let event = queue.next();
        assert_eq!(fields(&[event]), [(1, TIMER, CLEAR, 71)]);
        assert!(event.data >= 1);
    }
    queue.change(&[timer(1, DELETE, 0, 0), timer(2, ADD | ONCE, 0, 1)]).unwrap();
    assert_eq!(fields(&[queue.next()]), [(2, TIMER, CLEAR | ONCE, 72)]);
    assert_eq!(queue.look(4), []);
    for ident in [1, 2, 3] {
        assert_eq!(queue.change(&[timer(ident, DELETE, 0, 0)]), Err(Errno::NOENT), "{ident}");
    }
}

#[test]
fn a_timer_that_is_disabled_counts_on_and_one_of_an_hour_does_not_come() {
    let queue = Kqueue::new();
    queue.change(&[timer(1, ADD | DISABLE, NANOSECONDS, 1000)]).unwrap();
    queue.change(&[timer(2, ADD, SECONDS, 3600)]).unwrap();
    queue.change(&[timer(3, ADD | ONCE, NANOSECONDS, 1)]).unwrap();
    assert_eq!(queue.next().ident, 3);
    assert_eq!(queue.look(4), []);
    queue.change(&[timer(1, ENABLE, 0, 0)]).unwrap();
    assert_eq!(queue.next().ident, 1);
    // The timer of an hour is set again, to another time.
    queue.change(&[timer(1, DELETE, 0, 0), timer(2, ADD, 0, 0)]).unwrap();
    assert_eq!(queue.next().ident, 2);
}

#[test]
fn a_moment_that_is_over_has_come() {
    const ABSOLUTE: u32 = 0x10;
    let queue = Kqueue::new();
    queue.change(&[timer(1, ADD, SECONDS | ABSOLUTE, 1_000_000_000)]).unwrap();
    assert_eq!(fields(&[queue.next()]), [(1, TIMER, CLEAR, 71)]);
    assert_eq!(queue.look(4), []);
    for (units, time) in [(SECONDS, u64::MAX), (SECONDS | NANOSECONDS, 1), (0x100, 1)] {
        assert_eq!(queue.change(&[timer(9, ADD, units, time)]), Err(Errno::INVAL));
    }
}

#[test]
fn timers_are_many_and_leave_no_descriptors() {
    let queue = Kqueue::new();
    let made =
        (1..100).take_while(|ident| queue.change(&[timer(*ident, ADD, SECONDS, 3600)]).is_ok());
    assert_eq!(made.count(), super::timers::TIMERS_MAX);
    // An existing timer can be set however many there are.
    assert_eq!(queue.change(&[timer(1, ADD | ONCE, NANOSECONDS, 1)]), Ok(0));
    assert_eq!(queue.next().ident, 1);
    assert_eq!(queue.change(&[timer(100, ADD, SECONDS, 3600)]), Ok(0));
}

#[test]
fn events_of_old_programs_are_shorter() {
    let queue = Kqueue::new();
    let words = |ident: u64, flags: u16| {
        let head = u64::from(USER as u16) | u64::from(flags) << 16 | u64::from(TRIGGER) << 32;
        [ident, head, 0, ident + 70]
    };
    let changes = [words(1, ADD | CLEAR), words(2, ADD | CLEAR)];
    let mut events = [[0_u64; 4]; 3];
    let all = [queue.0, address_of(&changes), 2, address(&mut events), 2, 0];
    assert_eq!(super::wait(Layout::Old, &all), Ok(2));
    let head = u64::from(USER as u16) | u64::from(CLEAR) << 16;
    assert_eq!(events, [[1, head, 0, 71], [2, head, 0, 72], [0; 4]]);
}
