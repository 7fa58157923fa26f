//! Collecting the program's writes: pages that were written are compared with their copies, and the
//! node gets the differences.

use kyocho_sys::error::Errno;
use kyocho_sys::prim::clock::Instant;

use super::{Core, State};
use crate::address::PageId;

/// If more words of a page were written, the whole page is passed on.
const WORDS_SINGLY_MAX: usize = 64;

impl Core {
    /// Passes the program's writes since the last call to the node.
    pub(super) fn collect(&self, state: &mut State) -> Result<(), Errno> {
        let began = Instant::now();
        let (written, compared) = Self::written(state)?;
        let new = state.compared.note(&written);
        let mut words = Vec::new();
        for &page in written.iter().chain(&compared) {
            let copy = state.node.copy(page).expect("a page that the program can write has a copy");
            words.clear();
            let whole = state.watch.at(page).differing(page, copy, WORDS_SINGLY_MAX, &mut words);
            let is_written = !words.is_empty();
            state.compared.record_comparison(page, is_written);
            if !is_written && compared.contains(&page) {
                continue;
            }
            let recorded = match whole {
                None => {
                    state.statistics.words_written += words.len() as u64;
                    state.node.write_words(page, &words)
                }
                Some(now) => {
                    let pairs = now.iter().zip(&**copy);
                    let words = pairs.filter(|(now, before)| now != before).count();
                    state.statistics.words_written += words as u64;
                    state.node.write_page(page, now)
                }
            };
            state.node.touch(page);
            assert!(recorded.is_ok(), "the page has a copy");
        }
        state.statistics.pages_compared += (written.len() + compared.len()) as u64;
        state.statistics.comparing += began.elapsed();
        // The node knows all writes by now, so an error loses none: pages that are still watched
        // are compared as well.
        state.watch.open(&new)
    }

    /// Pages that were written, and pages to compare in any case. The written pages are watched
    /// anew before they are read. So each write is either read now or reported by the next call.
    fn written(state: &mut State) -> Result<(Vec<PageId>, Vec<PageId>), Errno> {
        let (compared, idle) = state.compared.begin();
        state.watch.show(&idle)?;
        let written = state.watch.take_written()?;
        // They are watched now, and compared a last time.
        idle.into_iter().for_each(|page| state.compared.remove(page));
        Ok((written, compared))
    }

    /// Undoes the program's writes since the last call.
    pub(in crate::runtime) fn forget(&self) -> Result<(), Errno> {
        let mut state = self.lock()?;
        let (written, compared) = Self::written(&mut state)?;
        for &page in written.iter().chain(&compared) {
            let pages = state.watch.at(page);
            pages.put(
                page,
                state.node.copy(page).expect("a page that the program can write has a copy"),
            );
        }
        let new = state.compared.note(&written);
        state.watch.open(&new)
    }
}
