//! Draws `kyocho top`. 80 columns and 24 lines are enough.

use super::model::{Mode, Model, Row as ModelRow, Table as ModelTable};
use kyocho_microprocess::control::{Entry, Status};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row, Table, TableState};

const HELP: &str = "\
kyocho top: the microprocesses of your Kyocho programs

  Up Down PgUp PgDn   select one           Tab   processes, and back
  s   sort by cpu, switches, priority, state, name, id
  /   show only those that contain a text in a column
  Esc show all
  K   kill       terminate it; its destructors run
  z   suspend    stop it, in any state
  r   resume     continue it
  p   priority   0 (least urgent) to 63 (most urgent)
  q   leave

CPU% is sampled once in each time slice; 100 is one virtual processor.
Only programs with a control socket are shown: kyocho, kyocho run, and
programs that run with KYOCHO_CONTROL=1.   (any key goes back)";

const KEYS: &str =
    " q leave  ? help  s sort  / filter  K kill  z suspend  r resume  p priority  Tab";

/// Draws the whole screen.
pub(super) fn draw(frame: &mut Frame<'_>, model: &mut Model) {
    let lines = [Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)];
    let [top, middle, bottom] = Layout::vertical(lines).areas(frame.area());
    frame.render_widget(Line::from(summary(model)).style(bold()), top);
    match (&model.mode, model.table) {
        (Mode::Help, _) => frame.render_widget(Paragraph::new(HELP), middle),
        (_, ModelTable::Microprocesses) => microprocesses(frame, model, middle),
        (_, ModelTable::AddressSpaces) => address_spaces(frame, model, middle),
    }
    frame.render_widget(Line::from(status(model)).style(reversed()), bottom);
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn reversed() -> Style {
    Style::new().add_modifier(Modifier::REVERSED)
}

fn summary(model: &Model) -> String {
    let entries = || model.snapshots.iter().flat_map(|snapshot| &snapshot.microprocesses);
    let count = |status: Status| entries().filter(|entry| entry.status == status).count();
    format!(
        "{} processes, {} microprocesses: {} running, {} runnable, {} waiting, {} blocked",
        model.snapshots.len(),
        entries().count(),
        count(Status::Running),
        count(Status::Runnable),
        count(Status::Waiting),
        count(Status::Blocked),
    )
}

/// The last line: a question, a result, or the keys.
fn status(model: &Model) -> String {
    match &model.mode {
        Mode::Confirm(_, _, question) => question.clone(),
        Mode::Priority(target, text) => format!("new priority of {target}, 0 to 63: {text}_"),
        Mode::Filter => format!("show only: {}_", model.filter),
        _ if !model.message.is_empty() => model.message.clone(),
        _ if model.filter.is_empty() => format!("{KEYS}  [{}]", model.sort.name()),
        _ => format!("only {:?}, Esc shows all  [{}]", model.filter, model.sort.name()),
    }
}

fn microprocesses(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let header = Row::new(["ID", "STATE", "PRI", "VP", "CPU%", "SW/S", "NAME", "WAITS FOR"]);
    let widths = [
        Constraint::Length(13),
        Constraint::Length(9),
        Constraint::Length(3),
        Constraint::Length(2),
        Constraint::Length(4),
        Constraint::Length(8),
        Constraint::Length(14),
        Constraint::Fill(1),
    ];
    let rows: Vec<Row<'_>> = model.rows().into_iter().map(row).collect();
    let mut state = TableState::default().with_selected(model.selected_at());
    let table = Table::new(rows, widths).header(header.style(reversed()));
    let table = table.row_highlight_style(reversed());
    frame.render_stateful_widget(table, area, &mut state);
}

fn row(row: &ModelRow) -> Row<'static> {
    let entry = &row.entry;
    let style = match entry.status {
        Status::Running => Style::new().fg(Color::Green),
        Status::Blocked => Style::new().fg(Color::Yellow),
        Status::Suspended | Status::Abandoned => Style::new().fg(Color::Red),
        _ => Style::new(),
    };
    Row::new([
        entry.id.to_string(),
        entry.status.to_string(),
        format!("{:>3}", entry.priority),
        format!("{:>2}", entry.virtual_processor),
        format!("{:>4}", row.cpu_percent),
        format!("{:>8}", row.switches_per_second),
        row.name(),
        waits(entry),
    ])
    .style(style)
}

/// What the microprocess waits for, without an address.
fn waits(entry: &Entry) -> String {
    let whole = entry.waits_for.as_deref().unwrap_or_default();
    let kind = whole.split_once(" 0x").map_or(whole, |(kind, _)| kind);
    entry.held_by.map_or_else(|| kind.to_owned(), |holder| format!("{kind} of {holder}"))
}

fn address_spaces(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let header =
        Row::new(["PROCESS", "PROGRAM", "VPS", "MICROPROCESSES", "THREADS", "SWITCHES", "BLOCKED"]);
    let widths = [
        Constraint::Length(9),
        Constraint::Length(16),
        Constraint::Length(4),
        Constraint::Length(14),
        Constraint::Length(8),
        Constraint::Length(12),
        Constraint::Fill(1),
    ];
    let rows = model.snapshots.iter().map(|snapshot| {
        Row::new([
            snapshot.process.to_string(),
            snapshot.program.clone(),
            snapshot.virtual_processors.len().to_string(),
            (snapshot.microprocesses.len() + snapshot.left_off).to_string(),
            snapshot.kernel_threads.to_string(),
            snapshot.counters.switches.to_string(),
            snapshot.counters.blocked.to_string(),
        ])
    });
    frame.render_widget(Table::new(rows, widths).header(header.style(reversed())), area);
}
