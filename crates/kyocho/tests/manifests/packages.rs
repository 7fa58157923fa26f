//! What crates.io and docs.rs must know of each package of the workspace.

use serde_json::Value;
use std::process::Command;

/// The packages of the workspace, as cargo reads their manifests.
fn packages() -> Vec<Value> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--offline", "--no-deps", "--format-version", "1"]);
    let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let packages = metadata["packages"].as_array().expect("a list of packages").clone();
    assert!(packages.iter().any(|package| package["name"] == "kyocho"), "this one is among them");
    packages
}

/// What a package lacks, in words.
fn lacks(package: &Value) -> Vec<String> {
    let texts = ["description", "license", "repository", "readme", "rust_version"];
    let texts = texts.into_iter().filter(|key| package[key].as_str().is_none_or(str::is_empty));
    let lists = ["keywords", "categories"];
    let lists = lists.into_iter().filter(|key| package[key].as_array().is_none_or(Vec::is_empty));
    let mut lacks: Vec<_> = texts.chain(lists).map(str::to_owned).collect();
    if package["metadata"]["docs"]["rs"]["targets"].as_array().is_none_or(Vec::is_empty) {
        lacks.push("targets of docs.rs".to_owned());
    }
    if !package["publish"].is_null() {
        lacks.push("permission to be published".to_owned());
    }
    for dependency in package["dependencies"].as_array().expect("a list of dependencies") {
        // A package may name itself among its dev-dependencies, to have all features in its tests.
        // Cargo leaves that out of what it publishes.
        if dependency["req"] == "*" && dependency["name"] != package["name"] {
            lacks.push(format!("a version of its dependency {}", dependency["name"]));
        }
    }
    lacks
}

/// Whether a package is for users. The others, such as the harness of the benches, are not
/// published.
fn is_for_users(package: &Value) -> bool {
    package["manifest_path"].as_str().is_some_and(|path| path.contains("/crates/"))
}

#[test]
fn every_package_says_what_registries_ask_for() {
    for package in packages().into_iter().filter(is_for_users) {
        let lacks = lacks(&package);
        assert!(lacks.is_empty(), "{} lacks {}", package["name"], lacks.join(", "));
    }
}

#[test]
fn every_package_needs_the_same_rust_as_the_setup() {
    let setup = include_str!("../../../../scripts/setup");
    for package in packages() {
        let version = package["rust_version"].as_str().expect("checked by another test");
        let minimum = format!("rust_minimum={version}\n");
        assert!(setup.contains(&minimum), "{} needs {version}, not scripts/setup", package["name"]);
    }
}
