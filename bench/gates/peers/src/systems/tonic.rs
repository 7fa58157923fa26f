//! tonic: gRPC over a Unix socket. The service is what its generator would write, with a codec that
//! does not change bytes.

use std::convert::Infallible;
use std::future::{Ready, ready as at_once};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut};
use hyper_util::rt::TokioIo;
use tokio::net::{UnixListener, UnixStream};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::{Service, http};
use tonic::server::{NamedService, UnaryService};
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Status};
use tower::service_fn;

use super::{System, check, touch};
use crate::pair::{ready, stay_on};
use crate::timing;

pub const SYSTEM: System = System { name: "tonic", serve, call };

/// Bytes as they are.
#[derive(Clone, Copy, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, bytes: Vec<u8>, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put_slice(&bytes);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let mut bytes = vec![0; from.remaining()];
        from.copy_to_slice(&mut bytes);
        Ok(Some(bytes))
    }
}

/// What a call does.
struct Echo;

impl UnaryService<Vec<u8>> for Echo {
    type Response = Vec<u8>;
    type Future = Ready<Result<Response<Vec<u8>>, Status>>;

    fn call(&mut self, request: Request<Vec<u8>>) -> Self::Future {
        at_once(Ok(Response::new(request.into_inner())))
    }
}

/// The service, of one method.
#[derive(Clone)]
struct Echoes;

impl NamedService for Echoes {
    const NAME: &'static str = "bench.Echo";
}

type Answer = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

impl Service<http::Request<Body>> for Echoes {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Answer {
        Box::pin(async {
            let mut grpc = tonic::server::Grpc::new(Raw).max_decoding_message_size(usize::MAX);
            Ok(grpc.unary(Echo, request).await)
        })
    }
}

fn serve(path: &Path, cpu: usize, _size: usize) {
    stay_on(cpu);
    super::tokio().block_on(async {
        let listener = UnixListener::bind(path).expect("a path that is free");
        ready();
        let clients = UnixListenerStream::new(listener);
        let server = Server::builder().add_service(Echoes).serve_with_incoming(clients);
        server.await.expect("clients may come and go");
    });
}

fn call(path: &Path, size: usize, calls: usize) -> Vec<f64> {
    let runtime = super::tokio();
    let path = path.to_owned();
    let mut client = runtime.block_on(async {
        let connect = service_fn(move |_| {
            let path = path.clone();
            async { UnixStream::connect(path).await.map(TokioIo::new) }
        });
        // The name is not resolved: the connector has the path.
        let endpoint = Endpoint::from_static("http://localhost");
        let channel = endpoint.connect_with_connector(connect).await.expect("the server is ready");
        tonic::client::Grpc::new(channel).max_decoding_message_size(usize::MAX)
    });
    timing::each(calls, || {
        let mut request = vec![0; size];
        touch(&mut request, 1);
        let reply = runtime.block_on(async {
            client.ready().await.expect("the server is there");
            let method = http::uri::PathAndQuery::from_static("/bench.Echo/Echo");
            client.unary(Request::new(request), method, Raw).await
        });
        check(&reply.expect("the server answers").into_inner(), size, 1);
    })
}
