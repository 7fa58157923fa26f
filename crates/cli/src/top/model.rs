//! What `kyocho top` shows, and what its keys do: the pure part.

use kyocho_microprocess::Priority;
use kyocho_microprocess::control::protocol::Request;
use kyocho_microprocess::control::{Entry, GlobalId, Snapshot};
use ratatui::crossterm::event::{KeyCode, KeyModifiers};
use std::collections::HashMap;

/// Longest filter or number, in characters.
const INPUT_MAX: usize = 60;

/// The order of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sort {
    #[default]
    Cpu,
    Switches,
    Priority,
    State,
    Name,
    Id,
}

impl Sort {
    const ALL: [Self; 6] =
        [Self::Cpu, Self::Switches, Self::Priority, Self::State, Self::Name, Self::Id];

    fn next(self) -> Self {
        let at = Self::ALL.iter().position(|sort| *sort == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Switches => "switches",
            Self::Priority => "priority",
            Self::State => "state",
            Self::Name => "name",
            Self::Id => "id",
        }
    }
}

/// What the keys currently do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Browse,
    Help,
    /// They type a filter.
    Filter,
    /// They type a priority for this microprocess.
    Priority(GlobalId, String),
    /// They confirm or cancel this order.
    Confirm(GlobalId, Request, String),
}

/// The table that is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Table {
    #[default]
    Microprocesses,
    AddressSpaces,
}

/// What the caller must do after a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Nothing,
    Leave,
    Order(GlobalId, Request),
}

/// A microprocess, with its rates since the last snapshot.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) entry: Entry,
    pub(super) program: String,
    /// CPU time in hundredths of one processor.
    pub(super) cpu_percent: u64,
    pub(super) switches_per_second: u64,
}

impl Row {
    pub(super) fn name(&self) -> String {
        self.entry.name.clone().unwrap_or_else(|| format!("({})", self.program))
    }

    fn matches(&self, filter: &str) -> bool {
        let filter = filter.to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&filter);
        has(&self.name())
            || has(&self.entry.id.to_string())
            || has(&self.entry.status.to_string())
            || self.entry.waits_for.as_deref().is_some_and(has)
    }
}

#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) snapshots: Vec<Snapshot>,
    rows: Vec<Row>,
    /// CPU time and switches of each microprocess in the last snapshot.
    before: HashMap<GlobalId, (u64, u64)>,
    seen_ns: u64,
    pub(super) sort: Sort,
    pub(super) filter: String,
    pub(super) mode: Mode,
    pub(super) table: Table,
    selected: Option<GlobalId>,
    /// The result of the last order.
    pub(super) message: String,
}

impl Model {
    /// Takes a new snapshot.
    pub(super) fn observe(&mut self, snapshots: Vec<Snapshot>, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.seen_ns).max(1);
        let is_first = self.seen_ns == 0;
        let mut before = HashMap::new();
        self.rows.clear();
        let all = |snapshot: &Snapshot| {
            let program = snapshot.program.clone();
            snapshot.microprocesses.clone().into_iter().map(move |entry| (program.clone(), entry))
        };
        for (program, entry) in snapshots.iter().flat_map(all) {
            let now = (entry.cpu_ns, entry.switches);
            // Before the first snapshot there is no rate.
            let unseen = if is_first { now } else { (0, 0) };
            let then = self.before.get(&entry.id).copied().unwrap_or(unseen);
            before.insert(entry.id, now);
            self.rows.push(Row {
                cpu_percent: now.0.saturating_sub(then.0).saturating_mul(100) / elapsed_ns,
                switches_per_second: per_second(now.1.saturating_sub(then.1), elapsed_ns),
                program,
                entry,
            });
        }
        (self.before, self.seen_ns, self.snapshots) = (before, now_ns, snapshots);
    }

    /// The rows to show, in order.
    pub(super) fn rows(&self) -> Vec<&Row> {
        let mut rows: Vec<&Row> =
            self.rows.iter().filter(|row| row.matches(&self.filter)).collect();
        rows.sort_by(|a, b| self.compare(a, b).then_with(|| a.entry.id.cmp(&b.entry.id)));
        rows
    }

    fn compare(&self, a: &Row, b: &Row) -> core::cmp::Ordering {
        match self.sort {
            Sort::Cpu => (b.cpu_percent, b.entry.cpu_ns).cmp(&(a.cpu_percent, a.entry.cpu_ns)),
            Sort::Switches => (b.switches_per_second, b.entry.switches)
                .cmp(&(a.switches_per_second, a.entry.switches)),
            Sort::Priority => b.entry.priority.cmp(&a.entry.priority),
            Sort::State => a.entry.status.cmp(&b.entry.status),
            Sort::Name => a.name().cmp(&b.name()),
            Sort::Id => core::cmp::Ordering::Equal,
        }
    }

    /// The index of the selected row in [`rows`](Self::rows).
    pub(super) fn selected_at(&self) -> Option<usize> {
        let rows = self.rows();
        let at = rows.iter().position(|row| Some(row.entry.id) == self.selected);
        at.or(if rows.is_empty() { None } else { Some(0) })
    }

    fn selected(&self) -> Option<GlobalId> {
        self.selected_at().map(|at| self.rows()[at].entry.id)
    }

    fn select(&mut self, change: isize) {
        let rows = self.rows();
        if let Some(at) = self.selected_at() {
            let to = at.saturating_add_signed(change).min(rows.len() - 1);
            self.selected = Some(rows[to].entry.id);
        }
    }

    /// Shows `message` until the next key.
    pub(super) fn show_message(&mut self, message: String) {
        self.message = message;
    }

    /// Executes a key.
    pub(super) fn press(&mut self, key: KeyCode, modifiers: KeyModifiers) -> Command {
        self.message.clear();
        if key == KeyCode::Char('c') && modifiers.contains(KeyModifiers::CONTROL) {
            return Command::Leave;
        }
        match core::mem::take(&mut self.mode) {
            Mode::Browse => return self.browse(key),
            Mode::Help => {}
            Mode::Filter => self.type_filter(key),
            Mode::Priority(target, text) => self.type_priority(target, text, key),
            Mode::Confirm(target, request, _) => {
                if matches!(key, KeyCode::Char('y' | 'Y')) {
                    return Command::Order(target, request);
                }
                self.show_message("cancelled".to_owned());
            }
        }
        Command::Nothing
    }

    fn browse(&mut self, key: KeyCode) -> Command {
        match key {
            KeyCode::Char('q') => return Command::Leave,
            KeyCode::Char('?' | 'h') => self.mode = Mode::Help,
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Tab => {
                self.table = match self.table {
                    Table::Microprocesses => Table::AddressSpaces,
                    Table::AddressSpaces => Table::Microprocesses,
                }
            }
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Down | KeyCode::Char('j') => self.select(1),
            KeyCode::Up | KeyCode::Char('k') => self.select(-1),
            KeyCode::PageDown => self.select(10),
            KeyCode::PageUp => self.select(-10),
            KeyCode::Home => self.select(isize::MIN),
            KeyCode::End => self.select(isize::MAX),
            KeyCode::Char('K') => self.propose("kill", |id| Request::Kill { id }),
            KeyCode::Char('z') => self.propose("suspend", |id| Request::Suspend { id }),
            KeyCode::Char('r') => self.propose("resume", |id| Request::Resume { id }),
            KeyCode::Char('p') => {
                if let Some(target) = self.selected() {
                    self.mode = Mode::Priority(target, String::new());
                }
            }
            _ => {}
        }
        Command::Nothing
    }

    /// Asks for confirmation of an order to the selected microprocess.
    fn propose(&mut self, verb: &str, order: impl Fn(u64) -> Request) {
        let Some(target) = self.selected() else {
            return self.show_message(format!("nothing to {verb}"));
        };
        let name = self.rows.iter().find(|row| row.entry.id == target).map(Row::name);
        let question = format!("{verb} {target} {}? (y/n)", name.unwrap_or_default());
        // Selects the microprocess of the question, even if rows have moved meanwhile.
        self.selected = Some(target);
        self.mode = Mode::Confirm(target, order(target.local), question);
    }

    fn type_filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => return,
            KeyCode::Esc => return self.filter.clear(),
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(c) if self.filter.chars().count() < INPUT_MAX => self.filter.push(c),
            _ => {}
        }
        self.mode = Mode::Filter;
    }

    fn type_priority(&mut self, target: GlobalId, mut text: String, key: KeyCode) {
        match key {
            KeyCode::Esc => return,
            KeyCode::Enter => {
                let level = text.parse().ok().filter(|level| Priority::new(*level).is_some());
                return match level {
                    Some(level) => {
                        let request = Request::Priority { id: target.local, level };
                        let question = format!("priority {level} for {target}? (y/n)");
                        self.mode = Mode::Confirm(target, request, question);
                    }
                    None => self.show_message("priorities are 0 to 63".to_owned()),
                };
            }
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Char(c) if c.is_ascii_digit() && text.len() < 2 => text.push(c),
            _ => {}
        }
        self.mode = Mode::Priority(target, text);
    }
}

fn per_second(count: u64, elapsed_ns: u64) -> u64 {
    (u128::from(count) * 1_000_000_000 / u128::from(elapsed_ns)) as u64
}

#[cfg(test)]
mod tests;
