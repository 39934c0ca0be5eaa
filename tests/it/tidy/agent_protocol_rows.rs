//! The rows of the Agent Protocol (draft of 2025): what its document asks of a server.

/// Row, weight, and requirement.
pub const ROWS: &[(&str, &str, &str)] = &[
    ("AP-01", "must", "the agents of a server are listed as pairs of name and path"),
    ("AP-02", "must", "`describe` returns name, purpose, endpoints, operations with `chat`, and tools"),
    ("AP-03", "must", "`process` with a ChatRequest and no `run_id` begins a run"),
    (
        "AP-04",
        "must",
        "a request with a `run_id` is the next turn of that run, which remembers the turns before",
    ),
    (
        "AP-05",
        "must",
        "`wait` returns an event with `request_id` and `run_id`; without it the response is a status",
    ),
    ("AP-06", "must", "a turn begins with RequestStarted, ends with RequestCompleted, and has one of each"),
    (
        "AP-07",
        "must",
        "an event has `id`, `run_id`, `agent`, `type`, `role` and `depth`; ids grow within a run",
    ),
    (
        "AP-08",
        "should",
        "TextOutput, ToolCall, ToolResult, ToolError, CompletionCall and CompletionResult are published",
    ),
    ("AP-09", "may", "WaitForInput names the keys that are asked for, and ResumeWithInput answers them"),
    ("AP-10", "must", "a CancelRequest ends the turn with `finish_reason` `canceled`"),
    ("AP-11", "must", "a ConfigureRequest configures the agent and ends with RequestCompleted"),
    ("AP-12", "must", "`getevents` returns the events since the last poll, or later than `since`"),
    ("AP-13", "must", "`getevents` with `stream` sends the events by SSE, until the turn is completed"),
    ("AP-14", "must", "`stream_request` starts a request and streams its events in one call"),
    ("AP-15", "may", "the status of a request can be read"),
    ("AP-16", "may", "the runs of an agent are listed"),
    ("AP-17", "may", "all events of a run can be read in their order"),
    ("AP-18", "may", "ArtifactGenerated names a file of the agent, which the caller can download"),
    ("AP-19", "may", "an agent has operations of its own, with schemas of input and output"),
    ("AP-20", "may", "ToolTextOutput carries text that a tool generates"),
    ("AP-21", "must", "`request_metadata` adds data to a request, such as the user"),
    ("AP-22", "must", "`logging_level` asks for more detail"),
    ("AP-23", "must", "an event says which agent it is of, and how deep in the chain of callers"),
    ("AP-24", "must", "a request to an unknown agent, run or request, or of an unknown form, has no effect"),
];

/// Rows that this version does not support.
pub const NOT_YET: &[&str] = &[];
