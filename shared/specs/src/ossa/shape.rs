//! The shape of an OSSA 0.2.9 manifest: the published schema, and the fields marked "runtime". The runtime
//! semantics name those, although the schema would refuse them.

use super::form;
use crate::shape::Others::{Ignored, Refused, Warned};
use crate::shape::{Field, Object, Others, Shape};

const ANY_SIZE: i64 = i64::MAX;
const PROVIDERS: Shape = Shape::OneOf(&["openai", "anthropic", "google", "azure", "ollama", "custom"]);
const TEXTS: Shape = Shape::List(&Shape::Text);
const SECTION: Shape = Shape::Table(&Shape::Any);
const COUNT: Shape = Shape::Integer(1, ANY_SIZE);
const TURNS: Shape = Shape::Integer(1, u32::MAX as i64);
const AMOUNT: Shape = Shape::Number(0.0, f64::MAX);
/// A duration in seconds, of a hundred years at most.
const SECONDS: Shape = Shape::Number(0.0, 3_155_760_000.0);

const fn object(rule: &'static str, others: Others, fields: &'static [Field]) -> Object {
    Object { rule, others, fields }
}

pub(super) static MANIFEST: Object = object(
    "OSSA-manifest",
    Refused,
    &[
        Field::new("apiVersion", Shape::Checked(form::api_version)).required().rule("OSSA-apiVersion"),
        Field::new("kind", Shape::OneOf(&["Agent"])).required().rule("OSSA-kind"),
        Field::new("metadata", Shape::Object(&METADATA)).required().rule("OSSA-metadata"),
        Field::new("spec", Shape::Object(&SPEC)).required().rule("OSSA-spec"),
        Field::new("extensions", SECTION),
    ],
);

static METADATA: Object = object(
    "OSSA-metadata",
    Refused,
    &[
        Field::new("name", Shape::Checked(form::agent_name)).required(),
        Field::new("version", Shape::Checked(form::semver)),
        Field::new("description", Shape::Checked(form::description)),
        Field::new("labels", Shape::Table(&Shape::Checked(form::label))),
        Field::new("annotations", Shape::Table(&Shape::Text)),
    ],
);

static SPEC: Object = object(
    "OSSA-spec",
    Warned,
    &[
        Field::new("role", Shape::Filled).required().rule("OSSA-role"),
        Field::new("llm", Shape::Object(&LLM)).rule("OSSA-llm"),
        Field::new("tools", Shape::List(&Shape::Object(&TOOL))).rule("OSSA-tools"),
        Field::new("constraints", Shape::Object(&CONSTRAINTS)).rule("OSSA-constraints"),
        Field::new("autonomy", Shape::Object(&AUTONOMY)).rule("OSSA-autonomy"),
        Field::new("state", Shape::Object(&STATE)).rule("OSSA-state"),
        Field::new("taxonomy", Shape::Object(&TAXONOMY)),
        Field::new("observability", Shape::Object(&OBSERVABILITY)),
        Field::new("security", Shape::Object(&SECURITY)).rule("OSSA-security"),
        Field::new("reliability", Shape::Object(&RELIABILITY)),
        Field::new("collaboration", Shape::Object(&COLLABORATION)).rule("OSSA-collaboration"),
        Field::new("safety", Shape::Object(&SAFETY)).rule("OSSA-safety"),
        Field::new("deployment", Shape::Object(&DEPLOYMENT)),
        Field::new("reasoning", Shape::Object(&REASONING)),
        Field::new("prompts", Shape::Object(&PROMPTS)).rule("OSSA-prompts"),
        Field::new("knowledge_graph", Shape::Object(&KNOWLEDGE_GRAPH)),
        Field::new("identity", Shape::Object(&IDENTITY)),
        Field::new("runtimes", SECTION),
        // Runtime: the schema leaves `spec` open.
        Field::new("error_handlers", Shape::List(&Shape::Object(&ERROR_HANDLER))).rule("OSSA-errors"),
        Field::new("turn_chain", Shape::Object(&TURN_CHAIN)).rule("OSSA-turn_chain"),
        Field::new("conversation_memory", Shape::Object(&CONVERSATION_MEMORY))
            .rule("OSSA-conversation_memory"),
        Field::new("capabilities", Shape::Any),
        Field::new("compliance", Shape::Any),
        Field::new("triggers", Shape::Any),
        Field::new("delegation", Shape::Any),
        Field::new("messaging", Shape::Any),
    ],
);

static LLM: Object = object(
    "OSSA-llm",
    Refused,
    &[
        Field::new("provider", PROVIDERS).required(),
        Field::new("model", Shape::Filled).required(),
        Field::new("temperature", Shape::Number(0.0, 2.0)),
        Field::new("maxTokens", COUNT),
        Field::new("topP", Shape::Number(0.0, 1.0)),
        Field::new("frequencyPenalty", Shape::Number(-2.0, 2.0)),
        Field::new("presencePenalty", Shape::Number(-2.0, 2.0)),
        Field::new("fallback_models", Shape::List(&Shape::Object(&FALLBACK_MODEL))),
        Field::new("retry_config", Shape::Object(&RETRY)),
        Field::new("cost_tracking", SECTION),
        // Runtime.
        Field::new("max_tokens", COUNT),
        Field::new("parameters", Shape::Object(&PARAMETERS)),
    ],
);

/// The rule for retries.
static RETRY: Object = object(
    "OSSA-errors",
    Ignored,
    &[
        Field::new("max_attempts", Shape::Integer(1, 10)),
        Field::new("max_retries", Shape::Integer(0, 10)),
        Field::new("backoff_strategy", Shape::OneOf(&["fixed", "linear", "exponential"])),
        Field::new("backoff", Shape::OneOf(&["fixed", "constant", "linear", "exponential"])),
        Field::new("initial_delay_ms", Shape::Integer(0, 3_600_000)),
        Field::new("max_delay_ms", Shape::Integer(0, 3_600_000)),
        Field::new("retryable_errors", TEXTS),
    ],
);

static BREAKER: Object = object(
    "OSSA-errors",
    Ignored,
    &[
        Field::new("enabled", Shape::Flag),
        Field::new("failure_threshold", TURNS),
        Field::new("timeout_seconds", SECONDS),
        Field::new("half_open_requests", TURNS),
        Field::new("success_threshold", TURNS),
    ],
);

static ERROR_HANDLING: Object = object(
    "OSSA-errors",
    Ignored,
    &[
        Field::new("on_error", Shape::OneOf(&["fail", "fallback", "ignore", "retry"])),
        Field::new("fallback_capability", Shape::Filled),
        Field::new("error_mapping", SECTION),
    ],
);

/// OSSA §2 `ErrorHandler`.
static ERROR_HANDLER: Object = object(
    "OSSA-errors",
    Refused,
    &[
        Field::new("error_codes", Shape::List(&Shape::Checked(form::error_code))).required(),
        Field::new("strategy", Shape::OneOf(&["retry", "fallback", "skip", "escalate", "abort"])).required(),
        Field::new("max_retries", Shape::Integer(0, 10)),
        Field::new("fallback_value", Shape::Any),
        Field::new("fallback_capability", Shape::Filled),
        Field::new("fallback_tool", Shape::Filled),
        Field::new("escalation_target", Shape::Filled),
    ],
);

static FALLBACK_MODEL: Object = object(
    "OSSA-llm",
    Ignored,
    &[Field::new("provider", PROVIDERS).required(), Field::new("model", Shape::Filled).required()],
);

static PARAMETERS: Object = object(
    "OSSA-llm",
    Ignored,
    &[
        Field::new("temperature", Shape::Number(0.0, 2.0)),
        Field::new("maxTokens", COUNT),
        Field::new("max_tokens", COUNT),
        Field::new("topP", Shape::Number(0.0, 1.0)),
        Field::new("top_p", Shape::Number(0.0, 1.0)),
        Field::new("frequencyPenalty", Shape::Number(-2.0, 2.0)),
        Field::new("frequency_penalty", Shape::Number(-2.0, 2.0)),
        Field::new("presencePenalty", Shape::Number(-2.0, 2.0)),
        Field::new("presence_penalty", Shape::Number(-2.0, 2.0)),
    ],
);

static TOOL: Object = object(
    "OSSA-tools",
    Refused,
    &[
        Field::new("type", Shape::OneOf(&["mcp", "kubernetes", "http", "grpc", "function", "a2a", "custom"])),
        Field::new("name", Shape::Text),
        Field::new("server", Shape::Text),
        Field::new("namespace", Shape::Text),
        Field::new("endpoint", Shape::Text),
        Field::new("capabilities", Shape::List(&Shape::TextOr(&CAPABILITY))),
        Field::new("config", SECTION),
        Field::new("auth", SECTION),
        Field::new("transport", Shape::Object(&TRANSPORT)),
        Field::new("compliance_tags", TEXTS),
        Field::new("health_check", SECTION),
        Field::new("circuit_breaker", Shape::Object(&BREAKER)),
        // Runtime.
        Field::new("error_handling", Shape::Object(&ERROR_HANDLING)),
        Field::new("description", Shape::Text),
        Field::new("input_schema", SECTION),
        Field::new("parallel", Shape::Flag),
        Field::new("source", Shape::Any),
        Field::new("timeout_ms", COUNT),
        Field::new("retry_policy", Shape::Object(&RETRY)),
        Field::new("approval_required", Shape::Flag),
    ],
);

static CAPABILITY: Object = object(
    "OSSA-tools",
    Refused,
    &[
        Field::new("name", Shape::Text).required(),
        Field::new("description", Shape::Text),
        Field::new("version", Shape::Checked(form::short_version)),
        Field::new("deprecated", Shape::Flag),
        Field::new("deprecation_message", Shape::Text),
        Field::new("input_schema", SECTION),
        Field::new("output_schema", SECTION),
        Field::new("examples", Shape::List(&SECTION)),
        Field::new("transport", Shape::Object(&TRANSPORT)),
        Field::new("scopes", TEXTS),
        Field::new("compliance_tags", TEXTS),
        Field::new("timeout", Shape::Object(&TIMEOUT)),
        Field::new("retry_policy", Shape::Object(&RETRY)),
        Field::new("error_handling", Shape::Object(&ERROR_HANDLING)),
        Field::new("caching", SECTION),
        Field::new("idempotency", SECTION),
    ],
);

static TIMEOUT: Object = object(
    "OSSA-tools",
    Ignored,
    &[Field::new("execution_seconds", SECONDS), Field::new("connection_seconds", SECONDS)],
);

static TRANSPORT: Object = object(
    "OSSA-tools",
    Refused,
    &[
        Field::new("protocol", Shape::OneOf(&["http", "grpc", "a2a", "mcp", "websocket", "custom"])),
        Field::new("streaming", Shape::OneOf(&["none", "request", "response", "bidirectional"])),
        Field::new("binding", Shape::Text),
        Field::new("content_type", Shape::Text),
        Field::new("rateLimit", SECTION),
    ],
);

static CONSTRAINTS: Object = object(
    "OSSA-constraints",
    Refused,
    &[
        Field::new("cost", Shape::Object(&COST)),
        Field::new("performance", Shape::Object(&PERFORMANCE)),
        Field::new("resources", SECTION),
        // Runtime.
        Field::new("max_turns", TURNS),
        Field::new("max_tokens", Shape::Integer(0, ANY_SIZE)),
        Field::new("timeout_seconds", SECONDS),
        Field::new("max_tokens_per_turn", COUNT),
    ],
);

static COST: Object = object(
    "OSSA-constraints",
    Ignored,
    &[
        Field::new("maxTokensPerDay", Shape::Integer(0, ANY_SIZE)),
        Field::new("maxTokensPerRequest", Shape::Integer(0, ANY_SIZE)),
        Field::new("maxCostPerDay", AMOUNT),
        Field::new("currency", Shape::Checked(form::currency)),
    ],
);

static PERFORMANCE: Object = object(
    "OSSA-constraints",
    Ignored,
    &[
        Field::new("maxLatencySeconds", AMOUNT),
        Field::new("maxConcurrentRequests", COUNT),
        Field::new("timeoutSeconds", SECONDS),
    ],
);

static AUTONOMY: Object = object(
    "OSSA-autonomy",
    Refused,
    &[
        Field::new("level", Shape::OneOf(&["supervised", "autonomous", "fully_autonomous"])),
        Field::new("approval_required", Shape::Flag),
        Field::new("allowed_actions", TEXTS),
        Field::new("blocked_actions", TEXTS),
        Field::new("escalation_policy", SECTION),
        // Runtime.
        Field::new("max_turns", TURNS),
    ],
);

static STATE: Object = object(
    "OSSA-state",
    Refused,
    &[
        Field::new("mode", Shape::OneOf(&["stateless", "session", "long_running", "none", "persistent"])),
        Field::new("storage", Shape::Object(&STORAGE)),
        Field::new("context_window", Shape::Object(&CONTEXT_WINDOW)),
        // Runtime.
        Field::new(
            "isolation_level",
            Shape::OneOf(&["read_uncommitted", "read_committed", "repeatable_read", "serializable"]),
        ),
        Field::new("enabled", Shape::Flag),
        Field::new("ttl", Shape::Any),
        Field::new("ttl_seconds", SECONDS),
        Field::new("encryption", Shape::Any),
    ],
);

static STORAGE: Object = object(
    "OSSA-state",
    Refused,
    &[
        Field::new("type", Shape::OneOf(&["memory", "vector-db", "kv", "rdbms", "custom"])),
        Field::new("retention", Shape::Text),
        Field::new("config", SECTION),
        Field::new("encryption", SECTION),
        // Runtime.
        Field::new("backend", Shape::Text),
        Field::new("uri", Shape::Text),
        Field::new("key_prefix", Shape::Text),
    ],
);

static CONTEXT_WINDOW: Object = object(
    "OSSA-state",
    Refused,
    &[
        Field::new("max_messages", TURNS),
        Field::new("max_tokens", COUNT),
        Field::new("strategy", Shape::OneOf(&["sliding_window", "summarization", "importance_weighted"])),
    ],
);

static TURN_CHAIN: Object = object(
    "OSSA-turn_chain",
    Warned,
    &[
        Field::new("continue_on_tool_use", Shape::Flag),
        Field::new("max_tool_turns", TURNS),
        Field::new("confirm_between_turns", Shape::Flag),
    ],
);

static CONVERSATION_MEMORY: Object = object(
    "OSSA-conversation_memory",
    Warned,
    &[
        Field::new("window_size", TURNS),
        Field::new("max_history_tokens", COUNT),
        Field::new("summarization", Shape::OneOf(&["truncate", "summarize", "sliding"])),
    ],
);

static TAXONOMY: Object = object(
    "OSSA-taxonomy",
    Refused,
    &[
        Field::new("domain", Shape::Text).required(),
        Field::new("subdomain", Shape::Text),
        Field::new("capability", Shape::Text),
    ],
);

/// A closed map whose values are sections of their own.
const fn sections(rule: &'static str, fields: &'static [Field]) -> Object {
    object(rule, Refused, fields)
}

static OBSERVABILITY: Object = sections(
    "OSSA-observability",
    &[
        Field::new("tracing", SECTION),
        Field::new("metrics", SECTION),
        Field::new("logging", SECTION),
        Field::new("alerting", SECTION),
        Field::new("slo", SECTION),
    ],
);

static SECURITY: Object = sections(
    "OSSA-security",
    &[
        Field::new("authentication", SECTION),
        Field::new("authorization", SECTION),
        Field::new("encryption", SECTION),
        Field::new("secrets", SECTION),
        Field::new("audit", SECTION),
        Field::new("compliance", SECTION),
        // Runtime.
        Field::new("output_filtering", Shape::Any),
    ],
);

static RELIABILITY: Object = sections(
    "OSSA-reliability",
    &[
        Field::new("sla", SECTION),
        Field::new("circuit_breaker", Shape::Object(&BREAKER)),
        Field::new("health_check", SECTION),
        Field::new("failover", SECTION),
        Field::new("disaster_recovery", SECTION),
        // Runtime.
        Field::new("retry", Shape::Object(&RETRY)),
        Field::new("error_handlers", Shape::List(&Shape::Object(&ERROR_HANDLER))),
        Field::new("fallback", SECTION),
    ],
);

static COLLABORATION: Object = sections(
    "OSSA-collaboration",
    &[
        Field::new("mode", Shape::OneOf(&["standalone", "collaborative", "orchestrated"])),
        Field::new("handoffs", Shape::List(&SECTION)),
        Field::new("delegation", SECTION),
        Field::new("communication", SECTION),
        Field::new("orchestration", SECTION),
    ],
);

static SAFETY: Object = sections(
    "OSSA-safety",
    &[
        Field::new("content_filtering", Shape::Object(&CONTENT_FILTERING)),
        Field::new("pii_detection", Shape::Object(&PII_DETECTION)),
        Field::new("rate_limiting", SECTION),
        Field::new("guardrails", Shape::Object(&GUARDRAILS)),
        Field::new("human_in_loop", SECTION),
    ],
);

static GUARDRAILS: Object = object(
    "OSSA-safety",
    Ignored,
    &[
        Field::new("enabled", Shape::Flag),
        Field::new("policies", Shape::Any),
        Field::new("max_tool_calls", COUNT),
        Field::new("max_execution_time_seconds", Shape::Integer(1, u32::MAX as i64)),
    ],
);

static CONTENT_FILTERING: Object = object(
    "OSSA-safety",
    Ignored,
    &[
        Field::new("enabled", Shape::Flag),
        Field::new(
            "categories",
            Shape::List(&Shape::OneOf(&["hate", "violence", "sexual", "self-harm", "profanity", "pii"])),
        ),
        Field::new("threshold", Shape::OneOf(&["low", "medium", "high"])),
        Field::new("action", Shape::OneOf(&["block", "warn", "log"])),
    ],
);

static PII_DETECTION: Object = object(
    "OSSA-safety",
    Ignored,
    &[
        Field::new("enabled", Shape::Flag),
        Field::new(
            "types",
            Shape::List(&Shape::OneOf(&[
                "email",
                "phone",
                "ssn",
                "credit_card",
                "ip_address",
                "name",
                "address",
            ])),
        ),
        Field::new("action", Shape::OneOf(&["redact", "block", "warn", "log"])),
    ],
);

static DEPLOYMENT: Object = sections(
    "OSSA-deployment",
    &[
        Field::new("strategy", Shape::OneOf(&["rolling", "blue-green", "canary", "recreate"])),
        Field::new("canary", SECTION),
        Field::new("rollback", SECTION),
        Field::new("versioning", SECTION),
        Field::new("testing", SECTION),
        Field::new("lifecycle", SECTION),
    ],
);

static REASONING: Object = sections(
    "OSSA-reasoning",
    &[
        Field::new("strategy", Shape::OneOf(&["react", "cot", "tree_of_thought", "custom"])),
        Field::new("max_steps", Shape::Integer(1, 100)),
        Field::new("max_depth", Shape::Integer(1, 20)),
        Field::new("trace_enabled", Shape::Flag),
        Field::new("export_format", Shape::OneOf(&["otel", "json", "markdown"])),
        Field::new("self_reflection", SECTION),
    ],
);

static PROMPTS: Object = sections(
    "OSSA-prompts",
    &[
        Field::new("system", Shape::Object(&SYSTEM_PROMPT)),
        Field::new("user", SECTION),
        Field::new("few_shot_examples", Shape::List(&Shape::Object(&EXAMPLE))),
        Field::new("registry", SECTION),
    ],
);

static SYSTEM_PROMPT: Object = object(
    "OSSA-prompts",
    Ignored,
    &[
        Field::new("template", Shape::Text),
        Field::new("version", Shape::Checked(form::plain_version)),
        Field::new("variables", Shape::Table(&Shape::Text)),
    ],
);

static EXAMPLE: Object = object(
    "OSSA-prompts",
    Ignored,
    &[
        Field::new("input", Shape::Text).required(),
        Field::new("output", Shape::Text).required(),
        Field::new("context", Shape::Text),
    ],
);

static KNOWLEDGE_GRAPH: Object = sections(
    "OSSA-knowledge_graph",
    &[
        Field::new("enabled", Shape::Flag),
        Field::new("provider", Shape::OneOf(&["neo4j", "neptune", "dgraph", "memgraph", "custom"])),
        Field::new("connection", SECTION),
        Field::new("schema", SECTION),
        Field::new("sync", Shape::Object(&SYNC)),
    ],
);

static SYNC: Object = object(
    "OSSA-knowledge_graph",
    Ignored,
    &[
        Field::new("mode", Shape::OneOf(&["real_time", "batch", "on_demand"])),
        Field::new("batch_size", COUNT),
        Field::new("interval", Shape::Checked(form::interval)),
    ],
);

static IDENTITY: Object = sections(
    "OSSA-identity",
    &[
        Field::new("instance_id", Shape::Object(&GENERATED)).required(),
        Field::new("session_id", Shape::Object(&GENERATED)),
        Field::new("interaction_id", Shape::Object(&GENERATED)).required(),
        Field::new("propagation", Shape::Object(&PROPAGATION)),
    ],
);

static GENERATED: Object = object(
    "OSSA-identity",
    Ignored,
    &[
        Field::new("generation", Shape::OneOf(&["uuid_v4", "ulid", "custom"])),
        Field::new("scope", Shape::Text),
    ],
);

static PROPAGATION: Object = object(
    "OSSA-identity",
    Ignored,
    &[
        Field::new("inherit_session", Shape::Flag),
        Field::new("trace_context", Shape::OneOf(&["w3c", "b3", "jaeger", "none"])),
        Field::new("baggage", Shape::Flag),
    ],
);
