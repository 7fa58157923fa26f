//! `kyocho dsm check`: what this host offers to nodes, one line for each item.

use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::Arc;

use kyocho_dsm::transport::Shared;
use kyocho_dsm::watch::{Detection, Watch};
use kyocho_sys::memory::PAGE_BYTES;
use kyocho_sys::two_views::TwoViews;

use crate::terminal::line;

/// The kernel's default of `max_map_count`. `protect` may need more mappings than a smaller number.
const MAPPINGS_DEFAULT: u64 = 65_530;

pub(crate) fn command() -> ExitCode {
    let mut able = true;
    match TwoViews::new(PAGE_BYTES, None) {
        Ok(views) => able &= detections(&Arc::new(views)),
        Err(why) => {
            able = false;
            line(&format!("memory           no: {why}"));
        }
    }
    match std::fs::read_to_string("/proc/sys/vm/max_map_count") {
        Ok(text) if text.trim().parse().is_ok_and(|count: u64| count < MAPPINGS_DEFAULT) => {
            line(&format!(
                "mappings         {}: protect may run out of them; as root: sysctl vm.max_map_count={MAPPINGS_DEFAULT}",
                text.trim()
            ));
        }
        Ok(text) => line(&format!("mappings         {} for each process", text.trim())),
        Err(why) => line(&format!("mappings         unknown: {why}")),
    }
    match Shared::new(2) {
        Ok(_) => line("messages         by memory on this host (shm), else by tcp"),
        Err(why) => line(&format!("messages         by tcp only; shm: {why}")),
    }
    match TcpListener::bind("127.0.0.1:0") {
        Ok(_) => line("ports            yes"),
        Err(why) => {
            able = false;
            line(&format!("ports            no: {why}"));
        }
    }
    if able { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints which ways of detecting writes work. Returns whether any does.
fn detections(views: &Arc<TwoViews>) -> bool {
    let mut best = None;
    for detection in Detection::ALL {
        match Watch::new(views, detection) {
            Ok(_) => {
                best = best.or(Some(detection));
                line(&format!("{:<17}yes", detection.to_string()));
            }
            Err(why) => line(&format!(
                "{:<17}no: {why}; it needs Linux {} and userfaultfd permitted",
                detection.to_string(),
                if detection == Detection::Scan { "6.7" } else { "5.19" }
            )),
        }
    }
    if let Some(best) = best {
        line(&format!("writes           detected by {best}"));
    }
    best.is_some()
}
