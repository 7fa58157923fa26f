//! Gates.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use kyocho_gate::{Call, Client, Failure, ROOT, Server};
use kyocho_microprocess::{Runtime, spawn};

use super::{IN_PLACE_BYTES, System, stay};
use crate::pair::{ready, stay_on};
use crate::timing;

pub const SYSTEM: System = System { name: "kyocho", serve, call, many: Some(many) };

/// One word of each cache line is written and read, as any use of the bytes would.
const WORDS_PER_LINE: usize = 8;

fn answer(call: &Call<'_>) -> Result<Vec<u8>, Failure> {
    if let Ok(slice) = call.region() {
        let words = slice.in_place().iter().step_by(WORDS_PER_LINE);
        let sum =
            words.clone().fold(0, |sum: u64, word| sum.wrapping_add(word.load(Ordering::Relaxed)));
        words.for_each(|word| word.store(sum, Ordering::Relaxed));
        return Ok(Vec::new());
    }
    Ok(call.bytes().to_vec())
}

fn runtime(cpu: usize) -> Runtime {
    let builder = Runtime::builder();
    if cpu == usize::MAX {
        return builder.build();
    }
    stay_on(cpu);
    builder.virtual_processors(1).build()
}

fn serve(path: &Path, cpu: usize, _size: usize) {
    let main = || {
        let _server = Server::builder().bind(path, Arc::new(answer)).expect("a path that is free");
        ready();
        stay();
    };
    runtime(cpu).run(main).expect("no deadlock");
}

/// Times calls; the caller has confined the process already.
fn call(path: &Path, size: usize, calls: usize) -> Vec<f64> {
    let main = || {
        let client = Client::connect(path).expect("the server is ready");
        if size >= IN_PLACE_BYTES {
            return in_place(&client, size, calls);
        }
        let (request, mut reply) = (vec![1; size], vec![0; size]);
        let root = client.target(ROOT);
        let ns = timing::each(calls, || {
            root.call_with(0, &request, None, &mut reply).expect("the server answers");
        });
        assert_eq!(request, reply, "the answer is the request");
        ns
    };
    Runtime::builder().virtual_processors(1).build().run(main).expect("no deadlock")
}

fn in_place(client: &Client, size: usize, calls: usize) -> Vec<f64> {
    let region = client.region(size).expect("memory");
    let (root, whole) = (client.target(ROOT), region.whole());
    let lines = || whole.in_place().iter().step_by(WORDS_PER_LINE);
    timing::each(calls, || {
        lines().for_each(|word| word.store(1, Ordering::Relaxed));
        root.call_with(0, &[], Some((&region, &whole)), &mut []).expect("the server answers");
        let expected = (size / 64) as u64;
        assert!(
            lines().all(|word| word.load(Ordering::Relaxed) == expected),
            "the answer is there"
        );
    })
}

fn many(path: &Path, callers: usize, calls: usize) -> f64 {
    let main = || {
        let client = Client::connect(path).expect("the server is ready");
        let begin = Instant::now();
        let caller = |_| {
            let client = client.clone();
            spawn(move || {
                for _ in 0..calls {
                    client.call(0, &[]).expect("the server answers");
                }
            })
        };
        let all: Vec<_> = (0..callers).map(caller).collect();
        all.into_iter().for_each(|caller| caller.join().expect("no caller panics"));
        begin.elapsed().as_secs_f64()
    };
    Runtime::builder().build().run(main).expect("no deadlock")
}
