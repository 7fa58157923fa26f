//! Hostile clients of `kyocho unix`: each gets an error, or is killed alone.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

#[path = "unix/compiled.rs"]
mod compiled;
#[path = "unix/support.rs"]
mod support;

use compiled::compiled;
use support::{Folder, inside, is_installed, is_permitted, output_of};

fn attackers() -> &'static str {
    compiled("attackers", &[])
}

/// An attack must print `held` and exit normally.
fn held(options: &[&str], attack: &[&str]) {
    let words = [options, &["--", attackers()], attack].concat();
    let (status, text) =
        output_of(inside(&words).env("KYOCHO_TEST_PARENT", std::process::id().to_string()));
    assert_eq!((status, text.as_str()), (Some(0), "held\n"), "{attack:?}");
}

#[test]
fn calls_that_reach_others_are_not_there() {
    if !is_permitted("calls_that_reach_others_are_not_there") {
        return;
    }
    held(&[], &["forbidden-calls"]);
}

#[test]
fn strangers_cannot_be_signalled_or_read() {
    if !is_permitted("strangers_cannot_be_signalled_or_read") {
        return;
    }
    held(&[], &["strangers"]);
}

#[test]
fn the_launcher_cannot_be_moved_or_overwritten() {
    if !is_permitted("the_launcher_cannot_be_moved_or_overwritten") {
        return;
    }
    held(&[], &["launcher-mappings"]);
}

#[test]
fn descriptors_of_the_server_are_out_of_reach() {
    if !is_permitted("descriptors_of_the_server_are_out_of_reach") {
        return;
    }
    held(&[], &["descriptors"]);
}

#[test]
fn exhausted_descriptors_are_an_error_and_come_back() {
    if !is_permitted("exhausted_descriptors_are_an_error_and_come_back") {
        return;
    }
    held(&[], &["exhaustion"]);
}

#[test]
fn pointers_into_nothing_are_faults() {
    if !is_permitted("pointers_into_nothing_are_faults") {
        return;
    }
    held(&[], &["pointers"]);
}

#[test]
fn paths_that_change_while_they_are_read_open_nothing_outside() {
    if !is_permitted("paths_that_change_while_they_are_read_open_nothing_outside") {
        return;
    }
    let folder = Folder::new();
    std::fs::write(folder.path().join("secret"), "secret").unwrap();
    let root = folder.path().join("root");
    std::fs::create_dir(&root).unwrap();
    let secret = folder.path().join("secret");
    let mount = format!("{}:/jail", root.display());
    // Everything that the dynamic program needs, but not the folder with the secret.
    std::fs::copy(attackers(), root.join("attackers")).unwrap();
    let words = [
        "--root",
        root.to_str().unwrap(),
        "--mount",
        "/lib:/lib:ro",
        "--mount",
        "/lib64:/lib64:ro",
        "--mount",
        "/usr/lib:/usr/lib:ro",
        "--mount",
        &mount,
        "--",
        "/jail/attackers",
        "races",
        secret.to_str().unwrap(),
    ];
    assert_eq!(output_of(&mut inside(&words)), (Some(0), "held\n".to_owned()));
}

#[test]
fn calls_of_the_launcher_kill_a_program_that_makes_them() {
    if !is_permitted("calls_of_the_launcher_kill_a_program_that_makes_them") {
        return;
    }
    for attack in ["load", "return", "jump-into-launcher"] {
        // The shell around the attack survives and prints its status.
        let script = format!("{} {attack}; echo $?", attackers());
        let (status, text) = output_of(&mut inside(&["sh", "-c", &script]));
        assert_eq!(status, Some(0));
        // Killed by the server, or by its own fault.
        let ended = text.lines().any(|line| line == "137" || line == "139");
        assert!(ended && !text.contains("held"), "{attack}: {text}");
    }
}

#[test]
fn other_instruction_sets_kill_a_program_that_uses_them() {
    if !is_permitted("other_instruction_sets_kill_a_program_that_uses_them") {
        return;
    }
    let (status, _) = output_of(&mut inside(&[attackers(), "int80"]));
    assert_eq!(status, Some(128 + 31), "SIGSYS");
}

#[test]
fn mounts_for_reading_stay_as_they_are() {
    if !is_permitted("mounts_for_reading_stay_as_they_are") {
        return;
    }
    let folder = Folder::new();
    std::fs::write(folder.path().join("kept"), "kept").unwrap();
    let mount = format!("{}:/kept:ro", folder.path().display());
    let script = "cd /kept; echo x > kept; echo x > new; rm -f kept; mv kept b; chmod 777 kept; touch kept; mkdir d; ln kept e
        exec 3< kept; echo x > /proc/self/fd/3; chmod 777 /proc/self/fd/3; truncate -s 0 kept; cat kept; ls";
    let (_, text) = output_of(&mut inside(&["--mount", &mount, "--", "sh", "-c", script]));
    assert!(text.starts_with("keptkept\n"), "{text}");
    assert!(text.matches("Read-only file system").count() >= 9, "{text}");
    assert_eq!(std::fs::read_to_string(folder.path().join("kept")).unwrap(), "kept");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn no_network_means_none() {
    if !is_permitted("no_network_means_none") {
        return;
    }
    held(&["--net", "none"], &["no-network"]);
}

#[test]
fn the_loopback_network_reaches_only_itself() {
    if !is_permitted("the_loopback_network_reaches_only_itself") {
        return;
    }
    held(&["--net", "loopback"], &["loopback"]);
}

#[test]
fn memory_has_a_limit() {
    if !is_permitted("memory_has_a_limit") {
        return;
    }
    held(&["--memory", "64"], &["memory"]);
}

#[test]
fn memory_that_no_process_has_mapped_has_a_limit() {
    const TEST: &str = "memory_that_no_process_has_mapped_has_a_limit";
    if !is_permitted(TEST) {
        return;
    }
    let words = ["--memory", "64", "--", attackers(), "memory-files"];
    let (status, text) = output_of(&mut inside(&words));
    if text == "none\n" {
        return kyocho_sys::skip::skip(TEST, "this user may make no file system in memory");
    }
    assert_eq!((status, text.as_str()), (Some(0), "held\n"));
}

/// In a user namespace that permits no further ones, as a user without capabilities.
#[test]
fn without_mounts_no_memory_escapes_its_limit() {
    const TEST: &str = "without_mounts_no_memory_escapes_its_limit";
    const SCRIPT: &str = "echo 0 >/proc/sys/user/max_user_namespaces && echo entered &&
        exec setpriv --bounding-set=-all --inh-caps=-all \"$@\"";
    if !is_permitted(TEST) || !is_installed(TEST, "setpriv") {
        return;
    }
    let instance = inside(&["--memory", "64", "--", attackers(), "memory-files"]);
    let mut command = std::process::Command::new("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", SCRIPT, "sh"]);
    let (status, text) = output_of(command.arg(instance.get_program()).args(instance.get_args()));
    if !text.starts_with("entered\n") {
        return kyocho_sys::skip::skip(TEST, "this user may make no user namespace");
    }
    assert_eq!((status, text.as_str()), (Some(0), "entered\nnone\n"));
}

#[test]
fn tasks_have_a_limit() {
    if !is_permitted("tasks_have_a_limit") {
        return;
    }
    held(&["--processes", "8"], &["task-bomb"]);
}

#[test]
fn descriptors_have_a_limit() {
    if !is_permitted("descriptors_have_a_limit") {
        return;
    }
    held(&["--descriptors", "64"], &["few-descriptors"]);
}

#[test]
fn processor_time_has_a_limit_however_it_is_spent() {
    if !is_permitted("processor_time_has_a_limit_however_it_is_spent") {
        return;
    }
    for attack in ["spin", "spin-in-children", "spin-in-orphans"] {
        let (status, text) = output_of(&mut inside(&["--cpu", "0.3", "--", attackers(), attack]));
        assert_eq!(status, Some(128 + 9), "{attack}: {text}");
        let says = "kyocho unix: 0.3 s of processor time are used up; the programs were ended\n";
        assert_eq!(text, says, "{attack}");
    }
}

#[test]
fn calls_that_are_not_there_are_named_on_request() {
    if !is_permitted("calls_that_are_not_there_are_named_on_request") {
        return;
    }
    let (_, text) = output_of(&mut inside(&["--missing", "--", attackers(), "forbidden-calls"]));
    let line = text.lines().find(|line| line.contains("calls that are not there")).unwrap();
    assert!(line.contains("io_uring_setup (1)") && line.contains("ptrace (1)"), "{line}");
}
