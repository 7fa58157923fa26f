//! iceoryx2: requests and responses in shared memory, written and read in place.

use std::path::Path;
use std::thread::yield_now;

use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::request_response::PortFactory;

use super::{System, check, touch};
use crate::pair::{ready, stay_on};
use crate::timing;

pub const SYSTEM: System = System { name: "iceoryx2", serve, call };

type Service = PortFactory<ipc::Service, [u8], (), [u8], ()>;

/// The service that both sides know by the path.
fn service(node: &Node<ipc::Service>, path: &Path) -> Service {
    let name = path.to_string_lossy();
    let name: ServiceName = name.as_ref().try_into().expect("a path is a name");
    node.service_builder(&name)
        .request_response::<[u8], [u8]>()
        .open_or_create()
        .expect("shared memory")
}

fn node() -> Node<ipc::Service> {
    NodeBuilder::new().create().expect("a directory of its own")
}

fn serve(path: &Path, cpu: usize, size: usize) {
    stay_on(cpu);
    let node = node();
    let service = service(&node, path);
    let server = service.server_builder().initial_max_slice_len(size.max(1));
    let server = server.create().expect("shared memory");
    ready();
    loop {
        let Some(request) = server.receive().expect("the client is sound") else {
            yield_now();
            continue;
        };
        let length = request.payload().len();
        // Uninitialised memory is safe here: every cache line is written.
        let mut response = request.loan_slice(length).expect("shared memory");
        let value = request.payload().first().copied().unwrap_or(0);
        check(request.payload(), length, value);
        touch(response.payload_mut(), value);
        response.send().expect("the client is there");
    }
}

fn call(path: &Path, size: usize, calls: usize) -> Vec<f64> {
    let node = node();
    let service = service(&node, path);
    let length = size.max(1);
    let client = service.client_builder().initial_max_slice_len(length);
    let client = client.create().expect("shared memory");
    timing::each(calls, || {
        let mut request = client.loan_slice(length).expect("shared memory");
        touch(request.payload_mut(), 1);
        let pending = request.send().expect("the server is there");
        let response = loop {
            match pending.receive().expect("the server is sound") {
                Some(response) => break response,
                None => yield_now(),
            }
        };
        check(response.payload(), length, 1);
    })
}
