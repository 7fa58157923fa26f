//! What a program must see: a single memory, changed in the order of the writes, and for snapshots
//! the states that exclusive holders left.

use std::collections::BTreeMap;

use kyocho_dsm::{Address, LockId, Mode, NodeId};

use crate::program::{Program, Role};

type Words = BTreeMap<Address, u32>;

/// A non-exclusive section: the states that its reads so far may come from.
#[derive(Debug)]
struct View {
    lock: LockId,
    candidates: Vec<Words>,
}

#[derive(Debug, Default)]
pub(crate) struct Oracle {
    truth: Words,
    holders: BTreeMap<LockId, NodeId>,
    /// By phase and lock: the states that exclusive holders left.
    versions: BTreeMap<(usize, LockId), Vec<Words>>,
    /// By node and lock: the first state of which a snapshot requested now may be.
    asked: BTreeMap<(NodeId, LockId), usize>,
    views: BTreeMap<NodeId, Vec<View>>,
}

impl Oracle {
    fn words_of(&self, program: &Program, phase: usize, lock: LockId) -> Words {
        let roles = program.roles[phase].iter();
        let words = roles.filter(|(_, role)| **role == Role::Lock(lock)).map(|(word, _)| *word);
        words.map(|word| (word, self.value(word))).collect()
    }

    fn value(&self, word: Address) -> u32 {
        self.truth.get(&word).copied().unwrap_or(0)
    }

    pub(crate) fn asks(&mut self, program: &Program, phase: usize, node: NodeId, lock: LockId) {
        let words = self.words_of(program, phase, lock);
        let versions = self.versions.entry((phase, lock)).or_insert_with(|| vec![words]);
        self.asked.insert((node, lock), versions.len() - 1);
    }

    pub(crate) fn acquired(
        &mut self,
        phase: usize,
        node: NodeId,
        lock: LockId,
        mode: Mode,
    ) -> Result<(), String> {
        if mode == Mode::Exclusive {
            return match self.holders.insert(lock, node) {
                Some(other) => Err(format!("{node:?} and {other:?} both hold {lock:?}")),
                None => Ok(()),
            };
        }
        let first = self.asked[&(node, lock)];
        let candidates = self.versions[&(phase, lock)][first..].to_vec();
        self.views.entry(node).or_default().push(View { lock, candidates });
        Ok(())
    }

    pub(crate) fn releases(
        &mut self,
        program: &Program,
        phase: usize,
        node: NodeId,
        lock: LockId,
        mode: Mode,
    ) {
        if mode == Mode::NonExclusive {
            self.views.entry(node).or_default().retain(|view| view.lock != lock);
            return;
        }
        self.holders.remove(&lock);
        let words = self.words_of(program, phase, lock);
        self.versions.entry((phase, lock)).or_default().push(words);
    }

    pub(crate) fn wrote(&mut self, word: Address, value: u32) {
        self.truth.insert(word, value);
    }

    pub(crate) fn read(
        &mut self,
        program: &Program,
        phase: usize,
        node: NodeId,
        word: Address,
        value: u32,
    ) -> Result<(), String> {
        if let Role::Lock(lock) = program.roles[phase][&word]
            && self.holders.get(&lock) != Some(&node)
        {
            return self.read_in_view(node, lock, word, value);
        }
        let expected = self.value(word);
        if value == expected {
            Ok(())
        } else {
            Err(format!("{node:?} read {value} from {word:?} in phase {phase}, not {expected}"))
        }
    }

    /// All reads of a snapshot must be from one state.
    fn read_in_view(
        &mut self,
        node: NodeId,
        lock: LockId,
        word: Address,
        value: u32,
    ) -> Result<(), String> {
        let views = self.views.get_mut(&node).into_iter().flatten();
        for view in views.filter(|view| view.lock == lock) {
            view.candidates.retain(|state| state.get(&word) == Some(&value));
            if view.candidates.is_empty() {
                return Err(format!(
                    "{node:?} read {value} from {word:?}: no state under {lock:?}"
                ));
            }
        }
        Ok(())
    }
}
