//! Sockets: bytes arrive, time limits end waits without effect, and no wait delays other
//! microprocesses.
#![expect(
    clippy::excessive_nesting,
    reason = "a scenario nests: runtime, scope, microprocess, loop"
)]

use core::time::Duration;
use std::io::{BufRead, BufReader, ErrorKind, IoSlice, IoSliceMut, Read, Write};

use super::{Shutdown, TcpListener, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixStream};
use crate::wait::sync::tests::on_processors;
use crate::yield_now;
use crate::{scope, spawn};

const SOON: Duration = Duration::from_millis(2);

#[test]
fn tcp_echo_serves_many_at_once() {
    const CLIENTS: usize = 20;
    for virtual_processors in [1, 2] {
        on_processors(virtual_processors, || {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            scope(|scope| {
                scope.spawn(|| {
                    for connection in listener.incoming().take(CLIENTS) {
                        let mut connection = connection.unwrap();
                        scope.spawn(move || {
                            let mut input = BufReader::new(connection.try_clone().unwrap());
                            let mut line = String::new();
                            while input.read_line(&mut line).unwrap() > 0 {
                                connection.write_all(line.as_bytes()).unwrap();
                                line.clear();
                            }
                        });
                    }
                });
                for client in 0..CLIENTS {
                    scope.spawn(move || {
                        let mut stream = TcpStream::connect(address).unwrap();
                        stream.set_nodelay(true).unwrap();
                        let mut echo = BufReader::new(stream.try_clone().unwrap());
                        for turn in 0..10 {
                            writeln!(stream, "client {client} turn {turn}").unwrap();
                            let mut line = String::new();
                            echo.read_line(&mut line).unwrap();
                            assert_eq!(line, format!("client {client} turn {turn}\n"));
                        }
                        stream.shutdown(Shutdown::Both).unwrap();
                    });
                }
            });
        });
    }
}

#[test]
fn waits_with_a_limit_end_without_effect() {
    for virtual_processors in [1, 2] {
        on_processors(virtual_processors, || {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            listener.set_accept_timeout(Some(SOON)).unwrap();
            assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::TimedOut);
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut server, peer) = listener.accept().unwrap();
            assert_eq!(peer, client.local_addr().unwrap());
            server.set_read_timeout(Some(SOON)).unwrap();
            let mut byte = [0];
            assert_eq!(server.read(&mut byte).unwrap_err().kind(), ErrorKind::TimedOut);
            client.write_all(&[5]).unwrap();
            server.set_read_timeout(None).unwrap();
            server.read_exact(&mut byte).unwrap();
            assert_eq!(byte, [5]);
            let zero = server.set_read_timeout(Some(Duration::ZERO)).unwrap_err();
            assert_eq!(zero.kind(), ErrorKind::InvalidInput);
        });
    }
}

#[test]
fn shutdown_of_the_other_end_ends_a_read() {
    on_processors(1, || {
        let (mut one, other) = UnixStream::pair().unwrap();
        let reader = spawn(move || one.read(&mut [0; 8]).unwrap());
        yield_now();
        other.shutdown(Shutdown::Write).unwrap();
        assert_eq!(reader.join().unwrap(), 0);
    });
}

#[test]
fn refused_connection_is_an_error() {
    on_processors(1, || {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = TcpStream::connect(address).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        assert!(TcpStream::connect_timeout(&address, SOON).is_err());
    });
}

#[test]
fn datagrams_carry_the_address_of_their_sender() {
    on_processors(1, || {
        let (one, other) =
            (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let (one_address, other_address) = (one.local_addr().unwrap(), other.local_addr().unwrap());
        let receiver = spawn(move || {
            let mut buffer = [0; 16];
            let (count, sender) = other.recv_from(&mut buffer).unwrap();
            other.connect(sender).unwrap();
            other.send(b"answer").unwrap();
            (buffer[..count].to_vec(), sender)
        });
        yield_now();
        one.send_to(b"question", other_address).unwrap();
        let (question, sender) = receiver.join().unwrap();
        assert_eq!((question.as_slice(), sender), (&b"question"[..], one_address));
        let mut buffer = [0; 16];
        let count = one.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..count], b"answer");
        one.set_read_timeout(Some(SOON)).unwrap();
        assert_eq!(one.recv(&mut buffer).unwrap_err().kind(), ErrorKind::TimedOut);
    });
}

#[test]
fn unix_sockets_are_named_by_paths() {
    on_processors(1, || {
        let path = std::env::temp_dir().join(format!("kyocho-socket-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        let server = spawn(move || {
            let mut text = String::new();
            listener.accept().unwrap().read_to_string(&mut text).unwrap();
            text
        });
        let mut client = UnixStream::connect(&path).unwrap();
        client.write_all(b"by path").unwrap();
        drop(client);
        assert_eq!(server.join().unwrap(), "by path");
        std::fs::remove_file(&path).unwrap();
    });
}

#[test]
fn several_buffers_are_sent_and_received_as_one_stream() {
    on_processors(1, || {
        let (mut one, mut other) = UnixStream::pair().unwrap();
        let parts = [IoSlice::new(b"ky"), IoSlice::new(b""), IoSlice::new(b"ocho")];
        assert_eq!(one.write_vectored(&parts).unwrap(), 6);
        let (mut head, mut tail) = ([0; 4], [0; 4]);
        let mut places = [IoSliceMut::new(&mut head), IoSliceMut::new(&mut tail)];
        assert_eq!(other.read_vectored(&mut places).unwrap(), 6);
        assert_eq!((&head, &tail[..2]), (b"kyoc", &b"ho"[..]));
    });
}

#[test]
fn socket_is_read_and_written_at_once_and_clones_keep_its_limits() {
    on_processors(1, || {
        let (one, other) = UnixStream::pair().unwrap();
        one.set_read_timeout(Some(SOON)).unwrap();
        one.set_write_timeout(Some(SOON)).unwrap();
        let clone = one.try_clone().unwrap();
        assert_eq!((clone.read_timeout(), clone.write_timeout()), (Some(SOON), Some(SOON)));
        clone.set_read_timeout(None).unwrap();
        let reader = spawn(move || {
            let mut byte = [0];
            (&clone).read_exact(&mut byte).unwrap();
            byte[0]
        });
        (&one).write_all(b"x").unwrap();
        (&other).write_all(b"y").unwrap();
        assert_eq!(reader.join().unwrap(), b'y');
        // Nothing is read, so in the end a write has no room.
        let error = (0..10_000).find_map(|_| (&one).write_all(&[0; 4096]).err()).unwrap();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    });
}

#[test]
fn peeking_consumes_nothing() {
    on_processors(1, || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut server = listener.incoming().next().unwrap().unwrap();
        client.write_all(b"abc").unwrap();
        let mut bytes = [0; 2];
        assert_eq!(server.peek(&mut bytes).unwrap(), 2);
        server.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"ab");
        assert!(server.take_error().unwrap().is_none());
        let (one, other) =
            (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        other.connect(one.local_addr().unwrap()).unwrap();
        assert_eq!(other.peer_addr().unwrap(), one.local_addr().unwrap());
        other.send(b"datagram").unwrap();
        let mut buffer = [0; 16];
        assert_eq!(one.peek_from(&mut buffer).unwrap(), (8, other.local_addr().unwrap()));
        assert_eq!(one.peek(&mut buffer).unwrap(), 8);
        assert_eq!(one.recv(&mut buffer).unwrap(), 8);
    });
}

#[test]
fn datagram_to_an_unused_port_is_refused() {
    on_processors(1, || {
        let gone = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(gone).unwrap();
        socket.send(b"anybody?").unwrap();
        // On the loopback interface the answer comes at once, and the next call returns it.
        assert_eq!(socket.recv(&mut [0; 8]).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn write_to_a_closed_connection_is_an_error_and_no_signal() {
    on_processors(1, || {
        let (mut one, other) = UnixStream::pair().unwrap();
        drop(other);
        assert_eq!(one.write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
        let parts = [IoSlice::new(b"x")];
        assert_eq!(one.write_vectored(&parts).unwrap_err().kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn unix_datagrams_stay_whole_and_carry_their_senders_address() {
    on_processors(1, || {
        let path =
            |name| std::env::temp_dir().join(format!("kyocho-{name}-{}", std::process::id()));
        let (one_path, other_path) = (path("one"), path("other"));
        let one = UnixDatagram::bind(&one_path).unwrap();
        let other = UnixDatagram::bind(&other_path).unwrap();
        let receiver = spawn(move || {
            let mut buffer = [0; 4];
            let (count, sender) = other.recv_from(&mut buffer).unwrap();
            (buffer[..count].to_vec(), sender.as_pathname().map(ToOwned::to_owned))
        });
        yield_now();
        one.send_to(b"longer than its buffer", &other_path).unwrap();
        assert_eq!(receiver.join().unwrap(), (b"long".to_vec(), Some(one_path.clone())));
        assert_eq!(
            one.send_to(b"x", &other_path).unwrap_err().kind(),
            ErrorKind::ConnectionRefused
        );
        let unnamed = UnixDatagram::unbound().unwrap();
        unnamed.connect(&one_path).unwrap();
        unnamed.send(b"hello").unwrap();
        let mut buffer = [0; 8];
        let (count, sender) = one.recv_from(&mut buffer).unwrap();
        assert!(sender.is_unnamed() && &buffer[..count] == b"hello");
        std::fs::remove_file(&one_path).unwrap();
        std::fs::remove_file(&other_path).unwrap();
    });
}

#[test]
fn unix_listener_has_its_path_and_accepts_connections() {
    on_processors(1, || {
        let path = std::env::temp_dir().join(format!("kyocho-incoming-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        assert_eq!(listener.local_addr().unwrap().as_pathname(), Some(path.as_path()));
        let clients: Vec<_> = (0..3).map(|_| UnixStream::connect(&path).unwrap()).collect();
        for (client, connection) in clients.iter().zip(listener.incoming()) {
            let connection = connection.unwrap();
            assert_eq!(client.peer_addr().unwrap().as_pathname(), Some(path.as_path()));
            assert!(connection.peer_addr().unwrap().is_unnamed());
        }
        assert_eq!(UnixListener::bind(&path).unwrap_err().kind(), ErrorKind::AddrInUse);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(UnixStream::connect(&path).unwrap_err().kind(), ErrorKind::NotFound);
    });
}
