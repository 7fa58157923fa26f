//! What the manifests of the workspace promise to those who build with its crates.

mod dependencies;
mod packages;
