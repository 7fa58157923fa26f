//! Two processes: one counts words, the other one calls it.
//!
//! ```text
//! gate                 starts a server in another process and calls it
//! gate serve PATH      the server alone
//! gate call PATH TEXT  one call
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use core::error::Error;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use kyocho::gate::{self, Client, ROOT, Server, interface};
use kyocho::microprocess::run;

/// The protocol. The macro makes a client and a service of this trait.
#[interface]
trait Words {
    /// How often each word occurs.
    fn count(&self, text: String) -> BTreeMap<String, u32>;
}

struct Counter;

impl Words for Counter {
    fn count(&self, text: String) -> BTreeMap<String, u32> {
        let mut counts = BTreeMap::new();
        text.split_whitespace()
            .for_each(|word| *counts.entry(word.to_lowercase()).or_insert(0) += 1);
        counts
    }
}

fn serve(path: &Path) -> Result<(), Box<dyn Error>> {
    run(|| -> Result<(), gate::Error> {
        let _server = Server::builder().bind(path, Arc::new(WordsService(Counter)))?;
        println!("serving at {}", path.display());
        // Serves until the parent process closes standard input.
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
        Ok(())
    })??;
    Ok(())
}

fn call(path: &Path, text: &str) -> Result<(), Box<dyn Error>> {
    let counts = run(|| WordsClient::new(Client::connect(path)?.target(ROOT)).count(text.into()))??;
    println!("{counts:?}");
    Ok(())
}

fn both() -> Result<(), Box<dyn Error>> {
    let path = std::env::temp_dir().join(format!("kyocho-words-{}", std::process::id()));
    let mut server = Command::new(std::env::current_exe()?);
    let mut server = server.arg("serve").arg(&path).stdin(Stdio::piped()).spawn()?;
    while !path.exists() {
        std::thread::yield_now();
    }
    call(&path, "To be or not to be")?;
    drop(server.stdin.take());
    server.wait()?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => both(),
        ["serve", path] => serve(path.as_ref()),
        ["call", path, text] => call(path.as_ref(), text),
        _ => Err("usage: gate [serve PATH | call PATH TEXT]".into()),
    }
}
