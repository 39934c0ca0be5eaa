//! Documents of agents that tests register.

/// Returns an OpenAgentSpec document; `rest` is YAML that follows its required members.
pub fn oas(name: &str, rest: &str) -> String {
    format!(
        "kind: \"openagentspec:v1/agent\"\nname: {name}\ndescription: An agent called {name}.\nintent: You are {name}.\n\
         owner: tests\n{rest}\n"
    )
}

/// Returns an OSSA manifest; `rest` is YAML that follows `spec.role`, indented by two spaces.
pub fn ossa(name: &str, rest: &str) -> String {
    format!(
        "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {{name: {name}}}\nspec:\n  role: You are {name}.\n{rest}\n"
    )
}
