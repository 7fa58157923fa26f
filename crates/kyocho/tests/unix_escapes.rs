//! Ways out of `kyocho unix` that are not there, each tried by a program inside.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

#[path = "unix/compiled.rs"]
mod compiled;
#[path = "unix/support.rs"]
mod support;

use compiled::compiled;
use std::process::Command;
use support::{Folder, inside, is_permitted, output_of};

/// An attack must print `held` and end well.
fn held(command: &mut Command) {
    let (status, text) =
        output_of(command.env("KYOCHO_TEST_PARENT", std::process::id().to_string()));
    assert_eq!((status, text.as_str()), (Some(0), "held\n"));
}

fn escapes() -> &'static str {
    compiled("escapes", &[])
}

#[test]
fn no_hint_and_no_want_of_room_maps_below_the_guard() {
    if !is_permitted("no_hint_and_no_want_of_room_maps_below_the_guard") {
        return;
    }
    held(&mut inside(&[escapes(), "below-guard"]));
}

#[test]
fn a_running_program_cannot_be_written_and_can_be_replaced() {
    if !is_permitted("a_running_program_cannot_be_written_and_can_be_replaced") {
        return;
    }
    // As outside.
    for within in [false, true] {
        let folder = Folder::new();
        let program = folder.path().join("program");
        std::fs::copy(escapes(), &program).unwrap();
        let program = program.to_str().unwrap();
        let mut command = if within { inside(&[program]) } else { Command::new(program) };
        held(command.arg("own-program"));
        assert_eq!(std::fs::read(program).unwrap(), std::fs::read(escapes()).unwrap());
    }
}

#[test]
fn numbers_of_strangers_tell_nothing() {
    if !is_permitted("numbers_of_strangers_tell_nothing") {
        return;
    }
    held(&mut inside(&[escapes(), "strangers-numbers"]));
}

#[test]
fn the_loopback_network_cannot_be_left() {
    if !is_permitted("the_loopback_network_cannot_be_left") {
        return;
    }
    let network = compiled("network", &[]);
    for attack in [&["undone"][..], &["scopes"], &["options"], &["kinds", "loopback"]] {
        held(inside(&["--net", "loopback", "--", network]).args(attack));
    }
    held(&mut inside(&["--net", "host", "--", network, "kinds"]));
}

#[test]
fn the_hosts_own_files_of_processes_are_in_no_mount() {
    if !is_permitted("the_hosts_own_files_of_processes_are_in_no_mount") {
        return;
    }
    let folder = Folder::new();
    let mut command = inside(&["--mount", "/:/host", "--", escapes(), "raw-files"]);
    held(command.arg(folder.path().join("link")));
    let (status, text) = output_of(&mut inside(&["--mount", "/proc:/host", "--", "true"]));
    assert_eq!(status, Some(125), "{text}");
    assert!(text.contains("cannot use /proc"), "{text}");
}

#[test]
fn descriptors_permit_what_they_did_and_what_they_lead_to_gets_no_name() {
    if !is_permitted("descriptors_permit_what_they_did_and_what_they_lead_to_gets_no_name") {
        return;
    }
    let folder = Folder::new();
    let (root, jail) = (folder.path().join("root"), folder.path().join("root/jail"));
    std::fs::create_dir_all(&jail).unwrap();
    std::fs::write(folder.path().join("secret"), "secret").unwrap();
    let program = compiled("escapes", &["-static"]);
    std::fs::copy(program, jail.join("escapes")).unwrap();
    let mount = format!("{}:/jail", jail.display());
    let words = ["--root", root.to_str().unwrap(), "--mount", &mount, "--", "/jail/escapes"];
    let command = inside(&words);
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"exec "$0" "$@" inherited 7<secret 8>>log 9<."#]);
    held(shell.arg(command.get_program()).args(command.get_args()).current_dir(folder.path()));
    assert_eq!(std::fs::read_to_string(folder.path().join("secret")).unwrap(), "secret");
}
