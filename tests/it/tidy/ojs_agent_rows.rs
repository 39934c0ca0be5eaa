//! The rows of OJS's extension for AI agents (1.0.0-rc.1).

/// Row, weight, and requirement.
pub const ROWS: &[(&str, &str, &str)] = &[
    ("AIX-01", "may", "`ext_agent_model` names the preferred model"),
    (
        "AIX-02",
        "should",
        "`ext_agent_fallback_models` are called in order when the preferred model is not available",
    ),
    ("AIX-03", "may", "`ext_agent_provider` names the provider"),
    ("AIX-04", "may", "`ext_agent_temperature` is from 0.0 to 2.0"),
    ("AIX-05", "may", "`ext_agent_max_tokens` bounds an answer"),
    (
        "AIX-06",
        "must",
        "`ext_agent_token_budget` bounds the tokens of the whole chain of agents, on the server",
    ),
    ("AIX-07", "must", "`ext_agent_tokens_used` is the server's count"),
    (
        "AIX-08",
        "may",
        "`ext_agent_tools` are objects with a name, a description and a schema of their parameters",
    ),
    ("AIX-09", "may", "`ext_agent_tool_choice` is auto, required or none"),
    ("AIX-10", "must", "`ext_agent_tool_results` are the server's record"),
    ("AIX-11", "may", "`ext_agent_parent_id` names the job that delegated"),
    ("AIX-12", "must", "the depth of delegation is bounded, at most 10"),
    (
        "AIX-13",
        "must",
        "a job deeper than `ext_agent_max_delegation_depth` fails with AGENT_MAX_DELEGATION_DEPTH",
    ),
    ("AIX-14", "may", "`ext_agent_output_schema` is the schema of the output"),
    ("AIX-15", "may", "`ext_agent_output_format` is json, text or markdown"),
    ("AIX-16", "should", "an exhausted budget makes the job retryable with AGENT_TOKEN_BUDGET_EXCEEDED"),
    ("AIX-17", "must", "agent jobs follow the eight states of OJS"),
    (
        "AIX-18",
        "should",
        "tools are checked against an allowlist: only tools of the server are offered and called",
    ),
    ("AIX-19", "should", "results of agents are encrypted like other payloads"),
];

/// Rows that this version does not support.
pub const NOT_YET: &[&str] = &[];
