//! `kyocho dsm top`: a live view of the counters of the nodes on this host.
//!
//! On a terminal the table is drawn again each second until the user leaves. Otherwise it is
//! printed once.

mod table;

use core::time::Duration;
use std::io;
use std::process::ExitCode;

use kyocho_dsm::counters;
use kyocho_sys::prim::clock::Instant;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::{DefaultTerminal, Frame};

use crate::dsm::TopArguments;
use crate::screen;
use crate::terminal::{complain, line};
use table::Sample;

/// Time between two looks at the counters.
const REFRESH: Duration = Duration::from_secs(1);
/// Lines that a page key moves by.
const PAGE_LINES: isize = 10;

pub(crate) fn command(arguments: &TopArguments) -> ExitCode {
    if !arguments.json && !arguments.once && screen::is_there() {
        return screen::take_over(watch);
    }
    match look() {
        Ok(look) if arguments.json => line(&serde_json::json!(look.nodes).to_string()),
        Ok(look) => {
            table::lines(&look, None, usize::MAX).iter().for_each(|row| line(row));
            if !look.nodes.is_empty() {
                line(table::units(false));
            }
        }
        Err(why) => {
            complain(&format!("kyocho dsm top: {why}"));
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn look() -> io::Result<Sample> {
    Ok(Sample { nodes: counters::of_this_host()?, at: Instant::now() })
}

/// Shows the table until the user leaves.
fn watch(screen: &mut DefaultTerminal) -> io::Result<()> {
    let (mut before, mut now, mut first) = (None, look()?, 0_usize);
    loop {
        first = first.min(now.nodes.len().saturating_sub(1));
        screen.draw(|frame| draw(frame, &now, before.as_ref(), first))?;
        match screen::next_key(REFRESH.saturating_sub(now.at.elapsed()))?.map(pressed) {
            Some(Pressed::Leave) => return Ok(()),
            Some(Pressed::Scroll(lines)) => first = first.saturating_add_signed(lines),
            Some(Pressed::Nothing) | None => {}
        }
        if now.at.elapsed() >= REFRESH {
            before = Some(core::mem::replace(&mut now, look()?));
        }
    }
}

/// The effect of a key.
enum Pressed {
    Leave,
    Scroll(isize),
    Nothing,
}

fn pressed(key: KeyEvent) -> Pressed {
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Pressed::Leave,
        KeyCode::Char('q') => Pressed::Leave,
        KeyCode::Down | KeyCode::Char('j') => Pressed::Scroll(1),
        KeyCode::Up | KeyCode::Char('k') => Pressed::Scroll(-1),
        KeyCode::PageDown => Pressed::Scroll(PAGE_LINES),
        KeyCode::PageUp => Pressed::Scroll(-PAGE_LINES),
        KeyCode::Home => Pressed::Scroll(isize::MIN),
        KeyCode::End => Pressed::Scroll(isize::MAX),
        _ => Pressed::Nothing,
    }
}

/// Draws the titles, the nodes from number `first` on, and a line of help.
fn draw(frame: &mut Frame<'_>, now: &Sample, before: Option<&Sample>, first: usize) {
    let parts = [Constraint::Min(1), Constraint::Length(1)];
    let [top, bottom] = Layout::vertical(parts).areas(frame.area());
    let mut lines = table::lines(now, before, top.width.into());
    if !now.nodes.is_empty() {
        lines.drain(1..=first);
    }
    for (row, text) in top.rows().zip(lines) {
        frame.render_widget(Line::from(text), row);
    }
    let help = format!("q leave  Up Down scroll   {}", table::units(before.is_some()));
    frame.render_widget(
        Line::from(help).style(Style::new().add_modifier(Modifier::REVERSED)),
        bottom,
    );
}
