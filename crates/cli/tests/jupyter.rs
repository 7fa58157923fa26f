//! The Jupyter kernel, driven by an unmodified `jupyter_client` of Jupyter.

mod python;

use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn a_notebook_s_client_evaluates_completes_and_interrupts() {
    let python = match python::python_with("jupyter_client", "jupyter_client==8.*") {
        Ok(python) => python,
        Err(why) => {
            kyocho_sys::skip::skip("a_notebook_s_client_evaluates_completes_and_interrupts", &why);
            return;
        }
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("jupyter");
    // Left over from an earlier run.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let at = |command: &mut Command| {
        command.env("JUPYTER_DATA_DIR", folder.join("data"));
        command
            .env("JUPYTER_RUNTIME_DIR", folder.join("runtime"))
            .env("KYOCHO_DIR", folder.join("own"));
        command.stdin(Stdio::null()).output().unwrap()
    };
    std::fs::create_dir(folder.join("own")).unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(folder.join("own"), private).unwrap();
    let mut install = Command::new(env!("CARGO_BIN_EXE_kyocho"));
    let installed = at(install.args(["jupyter", "install", "--user"]));
    assert!(installed.status.success(), "{installed:?}");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jupyter/client.py");
    // The client has time limits of its own.
    let talked = at(Command::new(python).arg(script));
    assert!(talked.status.success(), "{}", String::from_utf8_lossy(&talked.stderr));
    assert_eq!(String::from_utf8_lossy(&talked.stdout), "all is well\n");
}

#[test]
fn what_is_no_connection_file_is_reported() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-connection.json");
    let run = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kyocho"));
        let output = command.args(["jupyter", "run"]).arg(&file).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    std::fs::write(&file, "{").unwrap();
    assert!(run().contains("no-connection.json: EOF"));
    let ports = r#""ip":"127.0.0.1","shell_port":1,"iopub_port":2,"stdin_port":3,"control_port":4,"hb_port":5,"key":"k""#;
    std::fs::write(
        &file,
        format!(r#"{{"transport":"ipc",{ports},"signature_scheme":"hmac-sha256"}}"#),
    )
    .unwrap();
    assert!(run().contains("transport ipc is not supported: use tcp"));
    std::fs::write(
        &file,
        format!(r#"{{"transport":"tcp",{ports},"signature_scheme":"hmac-md5"}}"#),
    )
    .unwrap();
    assert!(run().contains("signature scheme hmac-md5 is not supported: use hmac-sha256"));
}
