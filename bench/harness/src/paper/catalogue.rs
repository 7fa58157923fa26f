//! All tables and figures of the five papers: what was published, and where the values measured
//! here come from.

mod lisp;
mod microprocess;
mod mkng;
mod sms;
mod tst;

use super::figure::Figure;
use super::results::Results;
use crate::PartName;

/// A table or figure of a paper.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The number of the paper, a point, and the name of the table or figure: `1.table2`.
    pub id: &'static str,
    /// The title, in English.
    pub title: &'static str,
    /// What was measured there: machine, system, method.
    pub there: &'static str,
    /// The parts whose results it needs.
    pub parts: &'static [PartName],
    /// The workloads of the part `threads` that it needs.
    pub workloads: &'static [&'static str],
    /// Puts published and measured values together.
    pub read: fn(&Results) -> Result<Figure, String>,
    /// Why the values agree or differ, in one or two sentences.
    pub why: &'static str,
}

/// A paper: its number, title, authors, and where it was published.
#[derive(Debug, Clone, Copy)]
pub struct Paper {
    /// Kyocho's number for it.
    pub number: usize,
    /// The title in English.
    pub title: &'static str,
    /// The authors.
    pub authors: &'static str,
    /// The page that follows it section by section.
    pub page: &'static str,
    /// Its tables and figures.
    pub entries: &'static [Entry],
}

/// The papers, in their order.
pub const PAPERS: [Paper; 5] = [
    Paper {
        number: 0,
        title: "The implementation of user level test-and-set on PS2 Linux",
        authors: "Hiroyuki Machida, Takao Shinohara",
        page: "docs/papers/0-test-and-set.md",
        entries: &tst::ENTRIES,
    },
    Paper {
        number: 1,
        title: "Design and implementation of a thread mechanism based on user/kernel cooperation",
        authors: "Shiki Okasaka, Kentaro Shimizu, Hyo Ashihara, Hisao Kameda",
        page: "docs/papers/1-microprocess.md",
        entries: &microprocess::ENTRIES,
    },
    Paper {
        number: 2,
        title: "Microkernel porting technology in the MKng project: performance of the Mach 3 \
                microkernel and the 4.4BSD Lite server on MIPS",
        authors: "Atsushi Mitsuzawa, Kazunori Hayashi, Takashi Nakano, Kouichi Tanaka, \
                  Hideyuki Tokuda",
        page: "docs/papers/2-mkng.md",
        entries: &mkng::ENTRIES,
    },
    Paper {
        number: 3,
        title: "Software distributed shared memory SMS: a new lock implementation and new functions",
        authors: "H. Midorikawa, Y. Ohashi, S. Katano, H. Iizuka",
        page: "docs/papers/3-sms.md",
        entries: &sms::ENTRIES,
    },
    Paper {
        number: 4,
        title: "System call caching of the Lisp Server",
        authors: "Teruo Iwai, Masakazu Nakanishi",
        page: "docs/papers/4-lisp-server.md",
        entries: &lisp::ENTRIES,
    },
];

/// The entries whose id is in `only`, or begins with one of its words and a point: `1` names all of
/// paper 1. All entries if `only` is empty.
///
/// # Errors
/// A word names no entry.
pub fn chosen(only: &[String]) -> Result<Vec<&'static Entry>, String> {
    let all = || PAPERS.iter().flat_map(|paper| paper.entries);
    let names = |word: &str, id: &str| {
        id == word || id.strip_prefix(word).is_some_and(|rest| rest.starts_with('.'))
    };
    if let Some(word) = only.iter().find(|word| !all().any(|entry| names(word, entry.id))) {
        let ids: Vec<_> = all().map(|entry| entry.id).collect();
        return Err(format!("no table or figure `{word}`. There are: {}", ids.join(", ")));
    }
    let wanted = |id: &str| only.is_empty() || only.iter().any(|word| names(word, id));
    Ok(all().filter(|entry| wanted(entry.id)).collect())
}

#[cfg(test)]
mod tests {
    use super::{PAPERS, chosen};
    use std::collections::BTreeSet;

    #[test]
    fn every_entry_has_a_number_of_its_own_and_belongs_to_its_paper() {
        let mut ids = BTreeSet::new();
        for paper in PAPERS {
            for entry in paper.entries {
                assert!(entry.id.starts_with(&format!("{}.", paper.number)), "{}", entry.id);
                assert!(ids.insert(entry.id), "{} twice", entry.id);
                assert!(!entry.why.is_empty() && !entry.there.is_empty(), "{}", entry.id);
            }
        }
    }

    #[test]
    fn a_number_chooses_a_paper_and_a_wrong_word_is_refused() {
        let all = chosen(&["4".into()]).unwrap();
        assert!(all.len() > 1 && all.iter().all(|entry| entry.id.starts_with("4.")));
        assert_eq!(chosen(&["1.table2".into()]).unwrap().len(), 1);
        assert!(chosen(&["1.table9".into()]).unwrap_err().contains("1.table2"));
        assert_eq!(
            chosen(&[]).unwrap().len(),
            PAPERS.iter().map(|paper| paper.entries.len()).sum::<usize>()
        );
    }
}
