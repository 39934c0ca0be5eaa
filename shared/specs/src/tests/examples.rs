//! The agents of the examples folder.

use crate::{Names, read};

#[test]
fn the_example_agents_read_without_a_problem() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/agents");
    let tools = ["web_search", "search-flights", "book-flight", "search-faqs", "clock", "http_get"];
    let names = Names {
        tools: &tools,
        keyless: &[],
        servers: &[],
        agents: &[],
        remote: &[],
        reviewers: None,
        reach: None,
        open: false,
    };
    let mut read_files = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let (agent, warnings) = read(&std::fs::read_to_string(&path).unwrap(), Some(&names))
            .unwrap_or_else(|problems| panic!("{}: {problems:?}", path.display()));
        assert!(warnings.is_empty(), "{}: {warnings:?}", path.display());
        assert!(!agent.capabilities.is_empty(), "{}", path.display());
        read_files += 1;
    }
    assert!(read_files >= 3, "only {read_files} files in {folder}");
}
