//! The output of `--trace`: each call, whether the host answered it alone, and how often each was
//! made.

use crate::options::Personality;
use crate::policy::names;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// What answered a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AnsweredBy {
    Local,
    Server,
    /// The FreeBSD personality, by calls of the host that are shown after it.
    FreeBsd,
}

impl AnsweredBy {
    fn mark(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Server => "server",
            Self::FreeBsd => "freebsd",
        }
    }

    /// The system to which a call's number belongs.
    fn personality(self) -> Personality {
        if self == Self::FreeBsd { Personality::FreeBsd } else { Personality::Linux }
    }
}

/// The counts so far.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    counts: Mutex<BTreeMap<(AnsweredBy, u32), u64>>,
}

impl Trace {
    /// Shows a call of a FreeBSD program.
    pub(crate) fn show_freebsd(&self, thread: u32, number: u32, words: &[u64]) {
        let words: Vec<String> = words.iter().map(|word| format!("{word:#x}")).collect();
        self.line(thread, AnsweredBy::FreeBsd, number, &format!("({})", words.join(", ")));
    }

    /// Counts a call, and shows it. `rest` follows its name.
    pub(crate) fn line(&self, thread: u32, by: AnsweredBy, number: u32, rest: &str) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry((by, number)).or_default() += 1;
        let name = names::of(by.personality(), number);
        let name = name.map_or_else(|| number.to_string(), str::to_owned);
        // One write for each line. If standard error is closed, nothing is shown.
        let line = format!("{thread} [{}] {name}{rest}\n", by.mark());
        let _ = std::io::stderr().write_all(line.as_bytes());
    }

    /// The summary.
    pub(crate) fn summary(&self) -> String {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows: Vec<_> = counts.iter().collect();
        rows.sort_by_key(|(_, count)| core::cmp::Reverse(**count));
        let mut text = String::from("    calls  by       name\n");
        for ((by, number), count) in rows {
            let name = names::of(by.personality(), *number).unwrap_or("?");
            text.push_str(&format!("{count:9}  {:7}  {name}\n", by.mark()));
        }
        text
    }
}
