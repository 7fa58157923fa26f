//! Tests of the keys, and of the screen at 80 columns and 24 lines.

use super::super::view;
use super::{Command, Mode, Model, Sort, Table};
use kyocho_microprocess::control::protocol::Request;
use kyocho_microprocess::control::{GlobalId, Snapshot};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};
use serde_json::json;

fn entry(local: u64, name: &str, status: &str, cpu_ms: u64) -> serde_json::Value {
    json!({ "id": format!("7:{local}"), "name": name, "status": status, "priority": 31,
        "virtual_processor": 0, "waits_for": "mutex 0x10", "held_by": "7:1",
        "cpu_ns": cpu_ms * 1_000_000, "switches": local * 10, "stackless": false })
}

/// A process with these microprocesses, as its control socket reports it.
fn space(microprocesses: &[serde_json::Value]) -> Snapshot {
    let none = json!({ "switches": 0, "spawned": 0, "ended": 0, "blocked": 5, "unblocked": 0,
        "resumed": 0, "preempted": 0, "shared": 0 });
    let counters = serde_json::to_value(kyocho_microprocess::Statistics::default()).unwrap();
    let counters = counters.as_object().map_or(none, |fields| json!(fields));
    let space = json!({ "process": 7, "program": "demo", "kernel_threads": 4, "counters": counters,
        "virtual_processors": [], "microprocesses": microprocesses, "left_off": 0 });
    serde_json::from_value(space).unwrap()
}

fn second(number: u64) -> u64 {
    number * 1_000_000_000
}

/// Two snapshots, a second apart. `busy` ran half of that time.
fn model() -> Model {
    let mut model = Model::default();
    let look = |cpu_ms| {
        vec![space(&[
            entry(1, "main", "waiting", 1),
            entry(2, "busy", "running", cpu_ms),
            entry(3, "asleep", "blocked", 0),
        ])]
    };
    model.observe(look(100), second(1));
    model.observe(look(600), second(2));
    model
}

fn press(model: &mut Model, keys: &str) -> Command {
    let mut last = Command::Nothing;
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\x1b' => KeyCode::Esc,
            '\t' => KeyCode::Tab,
            key => KeyCode::Char(key),
        };
        last = model.press(code, KeyModifiers::NONE);
    }
    last
}

fn names(model: &Model) -> Vec<String> {
    model.rows().iter().map(|row| row.name()).collect()
}

fn screen(model: &mut Model) -> String {
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    terminal.draw(|frame| view::draw(frame, model)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn rates_come_from_two_looks() {
    let model = model();
    let busy = model.rows()[0];
    assert_eq!((busy.name().as_str(), busy.cpu_percent), ("busy", 50));
}

#[test]
fn rows_are_sorted_and_filtered() {
    let mut model = model();
    assert_eq!(names(&model), ["busy", "main", "asleep"]);
    while model.sort != Sort::Name {
        press(&mut model, "s");
    }
    assert_eq!(names(&model), ["asleep", "busy", "main"]);
    press(&mut model, "/bloc\n");
    assert_eq!(names(&model), ["asleep"]);
    press(&mut model, "\x1b");
    assert_eq!(names(&model).len(), 3);
}

#[test]
fn orders_need_a_confirmation() {
    let mut model = model();
    let busy = GlobalId { process: 7, local: 2 };
    assert_eq!(press(&mut model, "K"), Command::Nothing);
    assert!(screen(&mut model).contains("kill 7:2 busy? (y/n)"));
    assert_eq!(press(&mut model, "n"), Command::Nothing);
    assert_eq!(press(&mut model, "Ky"), Command::Order(busy, Request::Kill { id: 2 }));
    assert_eq!(press(&mut model, "zy"), Command::Order(busy, Request::Suspend { id: 2 }));
    assert_eq!(press(&mut model, "ry"), Command::Order(busy, Request::Resume { id: 2 }));
    let priority = Command::Order(busy, Request::Priority { id: 2, level: 40 });
    assert_eq!(press(&mut model, "p40\ny"), priority);
    assert_eq!(press(&mut model, "p64\n"), Command::Nothing);
    assert!(screen(&mut model).contains("priorities are 0 to 63"));
}

#[test]
fn an_order_is_for_the_microprocess_of_the_question() {
    let mut model = model();
    press(&mut model, "K");
    // Rows move: another microprocess is first now.
    model.observe(vec![space(&[entry(1, "main", "running", 900)])], second(3));
    let busy = GlobalId { process: 7, local: 2 };
    assert_eq!(press(&mut model, "y"), Command::Order(busy, Request::Kill { id: 2 }));
}

#[test]
fn everything_fits_into_80_by_24() {
    let mut model = model();
    let text_of_screen = screen(&mut model);
    for text in ["1 processes, 3 microprocesses: 1 running", "busy", "mutex of 7:1", "q leave"] {
        assert!(text_of_screen.contains(text), "{text} is missing:\n{text_of_screen}");
    }
    press(&mut model, "?");
    assert_eq!(model.mode, Mode::Help);
    assert!(screen(&mut model).contains("any key goes back"));
    press(&mut model, "x\t");
    assert_eq!(model.table, Table::AddressSpaces);
    assert!(screen(&mut model).contains("demo"));
    assert_eq!(press(&mut model, "q"), Command::Leave);
}

#[test]
fn an_empty_list_is_not_an_error() {
    let mut model = Model::default();
    model.observe(Vec::new(), second(1));
    assert_eq!(press(&mut model, "Kjk"), Command::Nothing);
    assert!(screen(&mut model).contains("0 processes"));
}
