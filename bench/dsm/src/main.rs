//! The cost of shared memory across nodes, as ratios within one run (paper 3, figures 1 to 3, table
//! 3). Nodes are threads of this program, connected by TCP over loopback.
//!
//! ```text
//! dsm [all|locks|pages|pairs] [TURNS]
//! kyocho dsm run -n 2 dsm node [TURNS]      barrier, lock and increment, by processes, any transport
//! ```
//! Prints one figure per line, as JSON: its name, and its value. `pairs` prints two matrices, a line
//! each. Figures 4 and 5 are programs, `examples/water.rs` and `examples/sor.rs`; `bench/run --part
//! dsm` runs all of it in rounds.

mod cluster;
mod locks;
mod node;
mod pages;
mod pairs;

/// Prints a figure.
fn figure(name: &str, value: f64) {
    println!("{{\"figure\": \"{name}\", \"value\": {value:.4}}}");
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let turns = words.get(1).map_or(1000, |word| word.parse().expect("TURNS is a number"));
    let wanted = |name: &str| words.first().is_none_or(|word| word == name || word == "all");
    if words.first().is_some_and(|word| word == "node") {
        return node::run(turns);
    }
    if wanted("locks") {
        locks::run(turns);
    }
    if wanted("pages") {
        pages::run(turns);
    }
    if wanted("pairs") {
        pairs::run();
    }
}
