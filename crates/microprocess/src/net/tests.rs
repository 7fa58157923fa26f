//! Sockets: bytes arrive, limits end waits without effect, nobody holds up others.
#![expect(
    clippy::excessive_nesting,
    reason = "a scenario nests: runtime, scope, microprocess, loop"
)]

use core::time::Duration;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};

use super::{Shutdown, TcpListener, TcpStream, UdpSocket, UnixListener, UnixStream};
use crate::{scope, spawn, sync::tests::on_processors, yield_now};

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
fn waits_with_a_limit_end_and_take_nothing() {
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
fn reader_is_told_when_the_other_end_shuts_down() {
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
fn datagrams_tell_their_sender() {
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
