//! Files, pipes and the port itself.
#![expect(
    clippy::excessive_nesting,
    reason = "a scenario nests: runtime, scope, microprocess, loop"
)]

use std::io::{BufRead, BufReader, ErrorKind, IoSlice, IoSliceMut, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;

use super::descriptor::{Interest, ready};
use super::{File, Mechanism, Route, mechanism, ring, route, route_of};
use crate::Microprocess;
use crate::schedule::mask;
use crate::wait::sync::tests::on_processors;
use crate::yield_now;
use crate::{scope, spawn};
use kyocho_sys::skip::skip;

/// A pipe with asynchronous ends: microprocesses wait, kernel threads do not.
fn pipe() -> (File, File) {
    let (reader, writer) = std::io::pipe().unwrap();
    (reader.into(), writer.into())
}

#[test]
fn pipe_carries_more_than_it_holds() {
    const BYTES: usize = 1 << 20;
    for virtual_processors in [1, 2] {
        on_processors(virtual_processors, || {
            let (mut reader, mut writer) = pipe();
            let sent: Vec<u8> = (0..BYTES).map(|i| ((i * i) >> 8) as u8).collect();
            let theirs = sent.clone();
            let sender = spawn(move || writer.write_all(&theirs));
            let mut got = Vec::new();
            reader.read_to_end(&mut got).unwrap();
            sender.join().unwrap().unwrap();
            assert!(got == sent);
        });
    }
}

#[test]
fn reader_that_waits_lets_others_run_and_is_woken() {
    on_processors(1, || {
        let (mut reader, mut writer) = pipe();
        let waiting = spawn(move || {
            let mut byte = [0];
            reader.read_exact(&mut byte).unwrap();
            byte[0]
        });
        for _ in 0..10 {
            yield_now();
        }
        assert!(!waiting.is_finished());
        writer.write_all(&[7]).unwrap();
        assert_eq!(waiting.join().unwrap(), 7);
    });
}

#[test]
fn many_operations_are_in_flight_at_once() {
    const PIPES: usize = 200;
    for virtual_processors in [1, 2] {
        let sum: usize = on_processors(virtual_processors, || {
            let (readers, writers): (Vec<_>, Vec<_>) = (0..PIPES).map(|_| pipe()).unzip();
            scope(|scope| {
                let waiting: Vec<_> = readers
                    .into_iter()
                    .map(|mut reader| {
                        scope.spawn(move || {
                            let mut bytes = [0; 2];
                            reader.read_exact(&mut bytes).unwrap();
                            usize::from(u16::from_le_bytes(bytes))
                        })
                    })
                    .collect();
                yield_now();
                for (index, mut writer) in writers.into_iter().enumerate().rev() {
                    writer.write_all(&(index as u16).to_le_bytes()).unwrap();
                }
                waiting.into_iter().map(|waiting| waiting.join().unwrap()).sum()
            })
        });
        assert_eq!(sum, (0..PIPES).sum::<usize>());
    }
}

#[test]
fn file_is_read_and_written_at_its_position_and_at_offsets() {
    on_processors(1, || {
        let path = std::env::temp_dir().join(format!("kyocho-file-{}", std::process::id()));
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let mut file = File::open_with(&options, &path).unwrap();
        file.write_all(b"one\ntwo\nthree\n").unwrap();
        assert_eq!(file.write_at(b"TWO", 4).unwrap(), 3);
        file.sync_all().unwrap();
        let mut word = [0; 5];
        assert_eq!(file.read_at(&mut word, 8).unwrap(), 5);
        assert_eq!(&word, b"three");
        assert_eq!(file.read_at(&mut word, 1000).unwrap(), 0);
        file.seek(SeekFrom::Start(0)).unwrap();
        let lines: Vec<_> = BufReader::new(file).lines().map(Result::unwrap).collect();
        assert_eq!(lines, ["one", "TWO", "three"]);
        std::fs::remove_file(&path).unwrap();
    });
}

#[test]
fn errors_are_the_kernels() {
    on_processors(1, || {
        let (reader, mut writer) = pipe();
        drop(reader);
        let error = writer.write_all(b"no reader").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        let (mut reader, _writer) = pipe();
        assert!(reader.write_all(b"the wrong end of the pipe").is_err());
        assert!(File::open("/nowhere").is_err());
    });
}

#[test]
fn operations_work_outside_a_runtime() {
    let (mut reader, mut writer) = pipe();
    writer.write_all(b"plain").unwrap();
    drop(writer);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "plain");
}

#[test]
fn operation_cancelled_by_the_kernel_is_repeated() {
    on_processors(1, || {
        let (mut reader, mut writer) = pipe();
        let waiting = spawn(move || {
            let mut byte = [0];
            reader.read_exact(&mut byte).unwrap();
            byte[0]
        });
        yield_now();
        // As when the kernel thread that submitted the operation exits.
        let Some(port) = ring::of_caller() else { return };
        assert!(port.is_pending());
        port.cancel_all();
        for _ in 0..200 {
            yield_now();
        }
        assert!(!waiting.is_finished());
        writer.write_all(&[7]).unwrap();
        assert_eq!(waiting.join().unwrap(), 7);
    });
}

#[test]
fn stopping_runtime_cancels_its_operations() {
    for _ in 0..3 {
        let (mut reader, _writer) = pipe();
        on_processors(1, move || {
            spawn(move || {
                let mut bytes = [0; 64];
                drop(reader.read(&mut bytes));
            });
            yield_now();
        });
    }
}

#[test]
fn reported_mechanism_performs_the_operations() {
    let said = mechanism();
    if io_uring::IoUring::new(2).is_err() {
        assert_eq!(said, Mechanism::Calls);
    }
    on_processors(1, move || {
        let (mut reader, mut writer) = pipe();
        let waiting = spawn(move || reader.read_exact(&mut [0]).unwrap());
        yield_now();
        let is_in_ring = ring::of_caller().is_some_and(crate::processor::port::Port::is_pending);
        assert_eq!(said, if is_in_ring { Mechanism::Ring } else { Mechanism::Calls });
        writer.write_all(&[1]).unwrap();
        waiting.join().unwrap();
    });
}

#[test]
fn file_is_truncated_extended_and_written_from_several_buffers() {
    on_processors(1, || {
        let path = std::env::temp_dir().join(format!("kyocho-parts-{}", std::process::id()));
        let options =
            std::fs::OpenOptions::new().read(true).write(true).create(true).truncate(true).clone();
        let mut file = File::open_with(&options, &path).unwrap();
        let parts = [IoSlice::new(b"one "), IoSlice::new(b"two")];
        assert_eq!(file.write_vectored(&parts).unwrap(), 7);
        file.sync_data().unwrap();
        file.set_len(9).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 9);
        file.seek(SeekFrom::Start(2)).unwrap();
        let (mut head, mut tail) = ([0; 3], [0; 10]);
        let mut places = [IoSliceMut::new(&mut head), IoSliceMut::new(&mut tail)];
        assert_eq!(file.read_vectored(&mut places).unwrap(), 7);
        assert_eq!((&head, &tail[..4]), (b"e t", &b"wo\0\0"[..]));
        let append = std::fs::OpenOptions::new().append(true).clone();
        let mut log = File::open_with(&append, &path).unwrap();
        log.write_all(b"end").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one two\0\0end");
        // Not open for reading.
        assert!(log.read(&mut head).is_err());
        std::fs::remove_file(&path).unwrap();
    });
}

#[test]
fn device_without_room_is_an_error() {
    on_processors(1, || {
        let Ok(mut full) = File::create("/dev/full") else {
            return skip("device_without_room_is_an_error", "there is no /dev/full");
        };
        assert_eq!(full.write(b"x").unwrap_err().kind(), ErrorKind::StorageFull);
    });
}

#[test]
fn descriptor_is_waited_for_without_reading() {
    on_processors(1, || {
        let (reader, mut writer) = pipe();
        let soon = Some(core::time::Duration::from_millis(2));
        let wait = |limit| ready(reader.as_fd(), Interest::Read, limit);
        assert_eq!(wait(soon).unwrap_err().kind(), ErrorKind::TimedOut);
        ready(writer.as_fd(), Interest::Write, None).unwrap();
        writer.write_all(b"x").unwrap();
        wait(None).unwrap();
        drop(writer);
        wait(None).unwrap();
    });
}

/// How many operations completed on each virtual processor of the caller's runtime.
fn completed() -> [u64; 2] {
    let section = mask();
    let vps = section.vp.shared().vps();
    section.leave();
    [0, 1].map(|index| vps[index].counters.completed.get())
}

/// Reads eight bytes, one at a time; returns on which virtual processors these operations
/// completed.
fn read_eight(reader: &mut File, writer: &mut std::io::PipeWriter) -> [u64; 2] {
    let before = completed();
    for _ in 0..8 {
        writer.write_all(&[1]).unwrap();
        reader.read_exact(&mut [0]).unwrap();
    }
    let after = completed();
    [0, 1].map(|index| after[index] - before[index])
}

#[test]
fn events_complete_on_the_virtual_processor_of_their_route() {
    if mechanism() == Mechanism::Calls {
        return skip("events_complete_on_the_virtual_processor_of_their_route", "no io_uring here");
    }
    on_processors(2, || {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut reader = File::from(reader);
        let routes = [(Route::To(1), [0, 8]), (Route::To(0), [8, 0]), (Route::Spread, [4, 4])];
        for (way, expected) in routes {
            route(&reader, way).unwrap();
            assert_eq!(route_of(&reader), way);
            assert_eq!(read_eight(&mut reader, &mut writer), expected, "{way:?}");
        }
        let me = Microprocess::current();
        assert_eq!(me.pinned_to(), None);
        // A pinned microprocess stays.
        me.set_virtual_processor(Some(0));
        route(&reader, Route::To(1)).unwrap();
        assert_eq!(read_eight(&mut reader, &mut writer), [8, 0]);
        assert_eq!(me.pinned_to(), Some(0));
        drop(reader);
        // The next source with that descriptor number is a new one.
        let (reader, _writer) = pipe();
        assert_eq!(route_of(&reader), Route::Caller);
        let refused = route(&reader, Route::To(2)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        assert!(refused.to_string().contains("no virtual processor 2"), "{refused}");
    });
}
