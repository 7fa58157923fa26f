//! tarpc: calls by a trait, bincode over a Unix socket.

use std::path::Path;

use futures::StreamExt;
use tarpc::context::Context;
use tarpc::serde_transport::unix;
use tarpc::server::{BaseChannel, Channel};
use tarpc::tokio_serde::formats::Bincode;

use super::{System, check, touch};
use crate::pair::{ready, stay_on};
use crate::timing;

pub const SYSTEM: System = System { name: "tarpc", serve, call };

#[tarpc::service]
trait Echo {
    async fn echo(bytes: Vec<u8>) -> Vec<u8>;
}

#[derive(Clone)]
struct Server;

impl Echo for Server {
    async fn echo(self, _: Context, bytes: Vec<u8>) -> Vec<u8> {
        bytes
    }
}

fn serve(path: &Path, cpu: usize, _size: usize) {
    stay_on(cpu);
    super::tokio().block_on(async {
        let mut clients = unix::listen(path, Bincode::default).await.expect("a path that is free");
        clients.config_mut().max_frame_length(usize::MAX);
        ready();
        while let Some(Ok(client)) = clients.next().await {
            let requests = BaseChannel::with_defaults(client).execute(Server.serve());
            tokio::spawn(requests.for_each(|answer| async move {
                tokio::spawn(answer);
            }));
        }
    });
}

fn call(path: &Path, size: usize, calls: usize) -> Vec<f64> {
    let runtime = super::tokio();
    let client = runtime.block_on(async {
        let mut connecting = unix::connect(path, Bincode::default);
        connecting.config_mut().max_frame_length(usize::MAX);
        let transport = connecting.await.expect("the server is ready");
        EchoClient::new(tarpc::client::Config::default(), transport).spawn()
    });
    timing::each(calls, || {
        let mut request = vec![0; size];
        touch(&mut request, 1);
        let reply = runtime.block_on(client.echo(tarpc::context::current(), request));
        check(&reply.expect("the server answers"), size, 1);
    })
}
