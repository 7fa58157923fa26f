//! ipc-channel: typed channels between processes, here of bytes.

use std::path::Path;

use ipc_channel::ipc::{self, IpcBytesReceiver, IpcBytesSender, IpcOneShotServer, IpcSender};

use super::{System, check, touch};
use crate::pair::{ready, stay_on};
use crate::timing;

pub const SYSTEM: System = System { name: "ipc-channel", serve, call };

/// The server's ends of a client's two channels.
type Ends = (IpcBytesReceiver, IpcBytesSender);

fn serve(path: &Path, cpu: usize, _size: usize) {
    stay_on(cpu);
    let (server, name) = IpcOneShotServer::<Ends>::new().expect("a name");
    std::fs::write(path, name).expect("a path that is free");
    ready();
    let (_, (requests, replies)) = server.accept().expect("a client");
    while let Ok(bytes) = requests.recv() {
        replies.send(&bytes).expect("the client is there");
    }
}

fn call(path: &Path, size: usize, calls: usize) -> Vec<f64> {
    let name = std::fs::read_to_string(path).expect("the server has written its name");
    let to_server = IpcSender::<Ends>::connect(name).expect("the server is ready");
    let (requests, asked) = ipc::bytes_channel().expect("a channel");
    let (answers, replies) = ipc::bytes_channel().expect("a channel");
    to_server.send((asked, answers)).expect("the server is there");
    let mut request = vec![0; size];
    timing::each(calls, || {
        touch(&mut request, 1);
        requests.send(&request).expect("the server is there");
        check(&replies.recv().expect("the server answers"), size, 1);
    })
}
