//! How a system is booted.

use core::time::Duration;
use kyocho_heap::heap::{CellCache, Torture};
use kyocho_heap::number::INTEGER_BITS_MAX;
use std::path::PathBuf;

/// Which evaluator runs programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Engine {
    /// The compiler and the register machine.
    #[default]
    Machine,
    /// The paper's deep-binding evaluator.
    Deep,
}

/// How a system is booted.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which evaluator.
    pub engine: Engine,
    /// Cells that a thread takes with one request.
    pub cell_cache: CellCache,
    /// Limit of the heap.
    pub memory_max_bytes: usize,
    /// Limit of a thread's stack. A quarter of the heap is a further limit.
    pub stack_max_bytes: usize,
    /// Number of virtual processors; by default the number of CPUs of the process.
    pub virtual_processors: Option<usize>,
    /// How long a thread runs while threads of equal priority wait: 1 ms to 1 s, by default 5 ms.
    pub time_slice: Option<Duration>,
    /// Maximum number of bits of an exact integer, in the whole process.
    pub integer_bits_max: u64,
    /// Whether other processes of the user may list and control the threads: see
    /// [`kyocho_microprocess::control`].
    pub control: bool,
    /// Folders that are searched for libraries.
    pub library_path: Vec<PathBuf>,
    /// Archives whose libraries can be imported: see [`kyocho_library::package`].
    pub packages: Vec<PathBuf>,
    /// The image of the initial world: see
    /// [`System::load_image`](crate::system::System::load_image).
    pub image: Option<PathBuf>,
    /// For tests: collections at fixed counts of requests.
    pub torture: Option<Torture>,
    /// For tests: calls outside Lisp from one collection to the next; 0 for no such collections.
    pub torture_outside: u64,
    /// The program, for `command-line`.
    pub script: Option<PathBuf>,
    /// Its arguments.
    pub arguments: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            engine: Engine::Machine,
            cell_cache: CellCache::Auto,
            memory_max_bytes: 4 << 30,
            stack_max_bytes: 256 << 20,
            virtual_processors: None,
            time_slice: None,
            integer_bits_max: INTEGER_BITS_MAX,
            control: false,
            library_path: Vec::new(),
            packages: Vec::new(),
            image: None,
            torture: None,
            torture_outside: 0,
            script: None,
            arguments: Vec::new(),
        }
    }
}
