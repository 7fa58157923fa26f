//! The `kyocho` command.
fn main() {}
