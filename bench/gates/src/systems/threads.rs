//! The paper's comparison (§7): the same gate, but a kernel thread serves the call, so the host's
//! scheduler must run it. The worker that receives the call passes it to that thread and waits for
//! the reply.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use kyocho_gate::{Call, Client, Failure, ROOT, Server};
use kyocho_microprocess::Runtime;

use super::{System, stay};
use crate::pair::{ready, stay_on};
use crate::timing;

pub const SYSTEM: System = System { name: "kernel-threads", serve, call, many: None };

/// A kernel thread that receives work and returns it.
struct Colleague {
    give: SyncSender<Vec<u8>>,
    take: std::sync::Mutex<Receiver<Vec<u8>>>,
}

impl Colleague {
    fn hire(work: impl Fn(Vec<u8>) -> Vec<u8> + Send + 'static) -> Self {
        let (give, given) = sync_channel(1);
        let (done, take) = sync_channel(1);
        thread::spawn(move || {
            for item in given {
                if done.send(work(item)).is_err() {
                    return;
                }
            }
        });
        Self { give, take: take.into() }
    }

    /// Two switches of kernel threads.
    fn ask(&self, item: Vec<u8>) -> Vec<u8> {
        self.give.send(item).expect("the thread is there");
        self.take.lock().expect("no holder panics").recv().expect("the thread answers")
    }
}

fn serve(path: &Path, cpu: usize, _size: usize) {
    stay_on(cpu);
    let colleague = Colleague::hire(|item| item);
    let answer = move |call: &Call<'_>| -> Result<Vec<u8>, Failure> {
        Ok(colleague.ask(call.bytes().to_vec()))
    };
    let main = || {
        let _server = Server::builder().bind(path, Arc::new(answer)).expect("a path that is free");
        ready();
        stay();
    };
    Runtime::builder().virtual_processors(1).build().run(main).expect("no deadlock");
}

fn call(path: &Path, size: usize, calls: usize) -> Vec<f64> {
    let main = || {
        let client = Client::connect(path).expect("the server is ready");
        let (request, mut reply) = (vec![1; size], vec![0; size]);
        let root = client.target(ROOT);
        timing::each(calls, || {
            root.call_with(0, &request, None, &mut reply).expect("the server answers");
        })
    };
    Runtime::builder().virtual_processors(1).build().run(main).expect("no deadlock")
}
