//! The runnable examples: agents, a job, a script for the scripted model, and a tiny tool server to bind tools to.
//! `turnstone dev --demo` runs all of it; the files are embedded so that the binary alone is enough.
//!
//! ```text
//!  agents ─▶ registered by `dev --demo` ─▶ a job ─▶ answers of the script ─▶ calls of the tool server
//! ```

pub mod tool_server;

pub use tool_server::tool_server;

/// The script of the demo's model (`examples/scripts/demo.yaml`).
pub const DEMO_SCRIPT: &str = include_str!("../scripts/demo.yaml");

/// The example job of the OJS agent extension, §5, unchanged (`examples/jobs/research.json`).
pub const RESEARCH_JOB: &str = include_str!("../jobs/research.json");

/// The example configuration with the tools that the example agents name (`examples/turnstone.toml`). Its tools are
/// bound to the tool server on port [`TOOL_SERVER_PORT`]; [`tools_toml`] binds them to another.
pub const TOOLS_TOML: &str = include_str!("../turnstone.toml");

/// The example agents: file name and text (`examples/agents/`).
pub const AGENTS: &[(&str, &str)] = &[
    ("travel-desk.yaml", include_str!("../agents/travel-desk.yaml")),
    ("faq-desk.yaml", include_str!("../agents/faq-desk.yaml")),
    ("release-notes.ossa.yaml", include_str!("../agents/release-notes.ossa.yaml")),
];

/// The port that `examples/turnstone.toml` expects the tool server on.
pub const TOOL_SERVER_PORT: u16 = 7480;

/// [`TOOLS_TOML`] with its tools bound to a tool server on `port` of this machine.
#[must_use]
pub fn tools_toml(port: u16) -> String {
    TOOLS_TOML.replace(&format!("127.0.0.1:{TOOL_SERVER_PORT}"), &format!("127.0.0.1:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_moves_with_the_port() {
        let moved = tools_toml(50_123);
        assert_eq!(moved.matches("http://127.0.0.1:50123/").count(), 4);
        assert!(!moved.contains(&format!("127.0.0.1:{TOOL_SERVER_PORT}")));
    }

    #[test]
    fn every_agent_file_is_embedded() {
        let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/agents")).unwrap();
        let mut files: Vec<String> =
            folder.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        files.sort();
        let mut embedded: Vec<&str> = AGENTS.iter().map(|(name, _)| *name).collect();
        embedded.sort_unstable();
        assert_eq!(embedded, files);
    }

    #[test]
    fn the_research_job_is_the_one_of_the_specification() {
        let job: serde_json::Value = serde_json::from_str(RESEARCH_JOB).unwrap();
        assert_eq!(
            (&job["type"], &job["ext_agent_token_budget"]),
            (&"agent.research".into(), &50_000.into())
        );
    }
}
