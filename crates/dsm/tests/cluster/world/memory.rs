//! Shared memory as the programs of a cluster access it.

use kyocho_dsm::{Absent, Address};

use super::World;
use crate::mutant::Mutant;
use crate::view::Readmission;

impl World {
    fn readmission(&self) -> Readmission {
        match self.mutant {
            Mutant::AdmittedAsClean => Readmission::AsClean,
            _ => Readmission::Asked,
        }
    }

    /// Reads a word, as the program of a node sees it.
    pub(super) fn read(&mut self, node: usize, word: Address) -> Result<u32, Absent> {
        let copy = self.nodes[node].read(word)?;
        let readmission = self.readmission();
        Ok(self.views[node].read(word, readmission).unwrap_or(copy))
    }

    /// Writes a word; the node gets it when its program's interval ends.
    pub(super) fn write(&mut self, node: usize, word: Address, value: u32) -> Result<(), Absent> {
        self.nodes[node].copy(word.page)?;
        let readmission = self.readmission();
        if self.views[node].write(word, value, readmission) {
            return Ok(());
        }
        self.nodes[node].write(word, value)
    }

    /// Passes the writes of a program to its node, as words or as whole pages.
    pub(super) fn collect(&mut self, node: usize) -> Result<(), String> {
        for (page, words) in self.views[node].take_written() {
            let whole = self.random.percent(50);
            let node = &mut self.nodes[node];
            let copy = node.copy(page).map_err(|_| "written, and not here")?;
            let mut contents = copy.to_vec();
            words.iter().for_each(|(word, value)| contents[*word as usize] = *value);
            let recorded = if whole {
                node.write_page(page, contents.into())
            } else {
                node.write_words(page, &words)
            };
            recorded.map_err(|_| "written, and not here")?;
            node.touch(page);
        }
        Ok(())
    }
}
