//! Temporary (H3): only the fleet commands, while the rest is in flux.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]
#![expect(dead_code, reason = "temporary")]
#[path = "../it/fleet_commands/mod.rs"]
mod fleet_commands;
#[path = "../it/program.rs"]
mod program;
