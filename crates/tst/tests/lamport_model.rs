//! Model of Lamport's algorithm: every order of three participants, one of which dies at any of its
//! steps. No two participants are inside together, and none waits for ever. The rule that finishes
//! the dead participant is the one of `src/lamport.rs`, where a waiting participant follows it, and
//! of `kernel/mips/guest/daemon.c`, where a daemon does beside all participants. A rule that does not
//! wait for the others must fail.

use std::collections::HashSet;

const N: usize = 3;
/// No participant, as a value of `x` and `y`. Participants are 1 to [`N`].
const NOBODY: usize = 0;
/// The daemon, as the one that finishes the dead participant.
const DAEMON: usize = N + 1;

/// The next step of a participant, in the order of figure 7.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    Want,
    SetX,
    TestY,
    GiveWay,
    AwaitY,
    SetY,
    TestX,
    Retreat,
    /// Waits for participant `.0` and all that follow it.
    AwaitOthers(usize),
    TestYAgain,
    Inside,
    ClearY,
    Leave,
    Done,
}

/// The next step of finishing a dead participant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Finish {
    ClearWant,
    TestY,
    AwaitOthers(usize),
    ClearY,
    Free,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    x: usize,
    y: usize,
    wants: [bool; N + 1],
    steps: [Step; N + 1],
    /// The dead participant that still owns a slot.
    dead: usize,
    has_anybody_died: bool,
    /// The participant that finishes the dead one, or the daemon, and its next step of that.
    finisher: Option<(usize, Finish)>,
}

/// How dead participants are finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    AsInTheCode,
    /// By the daemon, at any time after the death, while all living participants go on.
    ByDaemon,
    WithoutWaiting,
    NotAtAll,
}

impl Rule {
    fn is_by_a_waiter(self) -> bool {
        matches!(self, Self::AsInTheCode | Self::WithoutWaiting)
    }
}

impl State {
    fn start() -> Self {
        let steps = [Step::Want; N + 1];
        let (x, y, wants) = (NOBODY, NOBODY, [false; N + 1]);
        Self { x, y, wants, steps, dead: NOBODY, has_anybody_died: false, finisher: None }
    }

    fn is_alive(&self, participant: usize) -> bool {
        self.dead != participant && self.steps[participant] != Step::Done
    }

    /// Among the participants from `from` on, the first other than `participant` that wants to
    /// enter.
    fn wanting(&self, participant: usize, from: usize) -> Option<usize> {
        (from..=N).find(|&other| other != participant && self.wants[other])
    }

    /// The state after the next step of `participant`; `None` while it waits.
    fn after_step(&self, participant: usize) -> Option<Self> {
        let mut next = self.clone();
        next.steps[participant] = match self.steps[participant] {
            Step::Want => {
                next.wants[participant] = true;
                Step::SetX
            }
            Step::SetX => {
                next.x = participant;
                Step::TestY
            }
            Step::TestY if self.y != NOBODY => Step::GiveWay,
            Step::TestY => Step::SetY,
            Step::GiveWay => {
                next.wants[participant] = false;
                Step::AwaitY
            }
            Step::AwaitY if self.y == NOBODY => Step::Want,
            Step::SetY => {
                next.y = participant;
                Step::TestX
            }
            Step::TestX if self.x == participant => Step::Inside,
            Step::TestX => Step::Retreat,
            Step::Retreat => {
                next.wants[participant] = false;
                Step::AwaitOthers(1)
            }
            Step::AwaitOthers(other) if other > N => Step::TestYAgain,
            Step::AwaitOthers(other) if other == participant || !self.wants[other] => {
                Step::AwaitOthers(other + 1)
            }
            Step::TestYAgain if self.y == participant => Step::Inside,
            Step::TestYAgain => Step::AwaitY,
            Step::Inside => Step::ClearY,
            Step::ClearY => {
                next.y = NOBODY;
                Step::Leave
            }
            Step::Leave => {
                next.wants[participant] = false;
                Step::Done
            }
            Step::AwaitY | Step::AwaitOthers(_) | Step::Done => return None,
        };
        Some(next)
    }

    /// Whether `participant` waits for the dead participant.
    fn waits_for_the_dead(&self, participant: usize) -> bool {
        self.dead != NOBODY
            && match self.steps[participant] {
                Step::AwaitY => self.y == self.dead,
                Step::AwaitOthers(other) => other == self.dead && self.wants[other],
                _ => false,
            }
    }

    /// The state after the next step of finishing the dead participant; `None` while that step
    /// waits.
    fn after_finish(&self, participant: usize, finish: Finish, rule: Rule) -> Option<Self> {
        let mut next = self.clone();
        let then = match finish {
            Finish::ClearWant => {
                next.wants[self.dead] = false;
                Finish::TestY
            }
            Finish::TestY if self.y != self.dead => Finish::Free,
            Finish::TestY if rule == Rule::WithoutWaiting => Finish::ClearY,
            Finish::TestY => Finish::AwaitOthers(1),
            Finish::AwaitOthers(other) if other > N => Finish::ClearY,
            Finish::AwaitOthers(other) => match self.wanting(self.dead, other) {
                Some(wanting) if wanting == other => return None,
                _ => Finish::AwaitOthers(other + 1),
            },
            Finish::ClearY => {
                if self.y == self.dead {
                    next.y = NOBODY;
                }
                Finish::Free
            }
            Finish::Free => {
                next.steps[self.dead] = Step::Done;
                next.dead = NOBODY;
                next.finisher = None;
                return Some(next);
            }
        };
        next.finisher = Some((participant, then));
        Some(next)
    }

    /// All states that one step of a living participant leads to.
    fn moves(&self, rule: Rule) -> Vec<Self> {
        let mut moves = Vec::new();
        if rule == Rule::ByDaemon && self.dead != NOBODY {
            let finish = self.finisher.map_or(Finish::ClearWant, |(_, finish)| finish);
            moves.extend(self.after_finish(DAEMON, finish, rule));
        }
        for participant in (1..=N).filter(|&participant| self.is_alive(participant)) {
            match self.finisher {
                Some((finisher, finish)) if finisher == participant => {
                    moves.extend(self.after_finish(participant, finish, rule));
                    continue;
                }
                None if rule.is_by_a_waiter() && self.waits_for_the_dead(participant) => {
                    let finisher = Some((participant, Finish::ClearWant));
                    moves.push(Self { finisher, ..self.clone() });
                }
                _ => {}
            }
            moves.extend(self.after_step(participant));
        }
        moves
    }

    /// All states in which one participant has just died. At most one dies.
    fn deaths(&self) -> Vec<Self> {
        if self.has_anybody_died {
            return Vec::new();
        }
        let dies = |dead| Self { dead, has_anybody_died: true, ..self.clone() };
        (1..=N).filter(|&participant| self.is_alive(participant)).map(dies).collect()
    }

    /// The property that the state violates, if it violates one.
    fn fault(&self, moves: &[Self]) -> Option<String> {
        let alive = |participant: &usize| self.is_alive(*participant);
        let inside = (1..=N)
            .filter(alive)
            .filter(|&participant| self.steps[participant] == Step::Inside)
            .count();
        if inside > 1 {
            return Some(format!("{inside} are inside: {self:?}"));
        }
        let waiting = (1..=N).filter(alive).count();
        (waiting > 0 && moves.is_empty()).then(|| format!("all wait for ever: {self:?}"))
    }
}

/// Visits every reachable state. Returns their number.
///
/// # Errors
/// The first state that violates a property.
fn explore(rule: Rule) -> Result<usize, String> {
    let mut seen = HashSet::from([State::start()]);
    let mut left = vec![State::start()];
    while let Some(state) = left.pop() {
        let moves = state.moves(rule);
        if let Some(fault) = state.fault(&moves) {
            return Err(fault);
        }
        let next = moves.into_iter().chain(state.deaths());
        left.extend(next.filter(|next| seen.insert(next.clone())));
    }
    Ok(seen.len())
}

#[test]
fn participant_dead_at_any_step_is_finished_and_two_are_never_inside() {
    let states = explore(Rule::AsInTheCode).unwrap_or_else(|fault| panic!("{fault}"));
    assert!(states > 50_000, "only {states} states: the model makes no progress");
}

#[test]
fn a_daemon_may_finish_the_dead_participant_beside_all_others() {
    let states = explore(Rule::ByDaemon).unwrap_or_else(|fault| panic!("{fault}"));
    assert!(states > 50_000, "only {states} states: the model makes no progress");
}

#[test]
fn a_rule_that_does_not_wait_for_the_others_is_caught() {
    let fault = explore(Rule::WithoutWaiting).expect_err("two are inside somewhere");
    assert!(fault.contains("are inside"), "{fault}");
}

#[test]
fn without_a_rule_a_dead_participant_blocks_the_others() {
    let fault = explore(Rule::NotAtAll).expect_err("a participant waits for a dead one");
    assert!(fault.contains("wait for ever"), "{fault}");
}
