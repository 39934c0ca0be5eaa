//! Every SQL text of this store, each in a file of its own.

macro_rules! common {
    ($($name:ident = $file:literal),+ $(,)?) => {
        $(pub(super) const $name: &str = include_str!(concat!("../../sql/common/", $file, ".sql"));)+
    };
}
macro_rules! sqlite {
    ($($name:ident = $file:literal),+ $(,)?) => {
        $(pub(super) const $name: &str = include_str!(concat!("../../sql/sqlite/", $file, ".sql"));)+
    };
}

common! {
    AGENT_UPSERT = "agent_upsert",
    AGENTS_LISTED = "agents_listed",
    CHECKPOINTS_LISTED = "checkpoints_listed",
    DEFINITION_BY_DIGEST = "definition_by_digest",
    ENGAGEMENT_BY_ID = "engagement_by_id",
    EVENTS_OF_ENGAGEMENT = "events_of_engagement",
    EVENTS_OF_JOB = "events_of_job",
    JOB_ERRORS = "job_errors",
    JOB_RESULT = "job_result",
    JOBS_AVAILABLE = "jobs_available",
    JOBS_COUNTED = "jobs_counted",
    JOBS_DUE = "jobs_due",
    JOBS_EXPIRING = "jobs_expiring",
    JOBS_LAPSED = "jobs_lapsed",
    JOBS_LISTED = "jobs_listed",
    MESSAGE_INPUT = "message_input",
    MESSAGES_AFTER = "messages_after",
    MESSAGES_NEWEST = "messages_newest",
    NEXT_DUE = "next_due",
    QUEUES_READY = "queues_ready",
    REVIEW_BY_ID = "review_by_id",
    REVIEW_DECIDE = "review_decide",
    REVIEWS_CLOSE = "reviews_close",
    REVIEWS_LISTED = "reviews_listed",
    REVIEWS_OF_TURN = "reviews_of_turn",
    REVIEWS_OVERDUE = "reviews_overdue",
    SEQS = "seqs",
    STATES_COUNTED = "states_counted",
    TOOL_CALLS_FROM_TURN = "tool_calls_from_turn",
    TOOL_CALLS_OF_ENGAGEMENT = "tool_calls_of_engagement",
    TOOL_CALLS_OF_JOB = "tool_calls_of_job",
}

sqlite! {
    BUDGETS_INSERT = "budgets_insert",
    BUDGETS_WRITE = "budgets_write",
    CHECKPOINTS_INSERT = "checkpoints_insert",
    CHECKPOINTS_OF_TURN = "checkpoints_of_turn",
    DEFINITIONS_INSERT = "definitions_insert",
    ENGAGEMENTS_BY_SEQ = "engagements_by_seq",
    ENGAGEMENTS_INSERT = "engagements_insert",
    ENGAGEMENTS_WRITE = "engagements_write",
    ENVELOPES_BY_JOB = "envelopes_by_job",
    ENVELOPES_INSERT = "envelopes_insert",
    ERRORS_INSERT = "errors_insert",
    EVENTS_INSERT = "events_insert",
    JOBS_BY_ID = "jobs_by_id",
    JOBS_BY_LEASE = "jobs_by_lease",
    JOBS_INSERT = "jobs_insert",
    JOBS_TOUCH = "jobs_touch",
    JOBS_WRITE = "jobs_write",
    LEASES_EXTEND = "leases_extend",
    LEASES_HELD = "leases_held",
    MESSAGES_INSERT = "messages_insert",
    QUEUES_INSERT = "queues_insert",
    RESULTS_INSERT = "results_insert",
    REVIEWS_INSERT = "reviews_insert",
    TOOL_CALLS_INSERT = "tool_calls_insert",
    TOOL_CALLS_WRITE = "tool_calls_write",
}
