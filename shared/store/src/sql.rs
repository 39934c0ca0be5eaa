//! Every SQL text of this store, each in a file of its own.

/// One statement in the words of each database.
pub(crate) struct Text {
    /// For SQLite.
    pub sqlite: &'static str,
    /// For PostgreSQL.
    pub postgres: &'static str,
}

macro_rules! common {
    ($($name:ident = $file:literal),+ $(,)?) => {
        $(pub(crate) static $name: Text = Text {
            sqlite: include_str!(concat!("../sql/common/", $file, ".sql")),
            postgres: include_str!(concat!("../sql/common/", $file, ".sql")),
        };)+
    };
}
macro_rules! each {
    ($($name:ident = $file:literal),+ $(,)?) => {
        $(pub(crate) static $name: Text = Text {
            sqlite: include_str!(concat!("../sql/sqlite/", $file, ".sql")),
            postgres: include_str!(concat!("../sql/postgres/", $file, ".sql")),
        };)+
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
    JOB_BY_ID = "job_by_id",
    JOBS_COUNTED = "jobs_counted",
    JOBS_LISTED = "jobs_listed",
    JOBS_LISTED_OLDEST = "jobs_listed_oldest",
    JOBS_LISTED_SORTED = "jobs_listed_sorted",
    LEADER_RESIGN = "leader_resign",
    LEADER_SEEN = "leader_seen",
    LEADER_TAKE = "leader_take",
    MESSAGE_INPUT = "message_input",
    MESSAGES_AFTER = "messages_after",
    MESSAGES_NEWEST = "messages_newest",
    NEXT_DUE = "next_due",
    PING = "ping",
    PRUNE_WORKERS = "prune_workers",
    PRUNE_WRITERS = "prune_writers",
    QUEUES_LISTED = "queues_listed",
    QUEUES_READY = "queues_ready",
    RATE_LIMITS_FORGET = "rate_limits_forget",
    RATE_LIMITS_HOLD = "rate_limits_hold",
    RATE_LIMITS_INSERT = "rate_limits_insert",
    RATE_LIMITS_READ = "rate_limits_read",
    RATE_LIMITS_SETTLE = "rate_limits_settle",
    RATE_LIMITS_TAKE = "rate_limits_take",
    REVIEW_BY_ID = "review_by_id",
    REVIEW_DECIDE = "review_decide",
    REVIEWS_CLOSE = "reviews_close",
    REVIEWS_LISTED = "reviews_listed",
    REVIEWS_OF_TURN = "reviews_of_turn",
    STATES_COUNTED = "states_counted",
    STATISTICS_FOLD = "statistics_fold",
    STATISTICS_LISTED = "statistics_listed",
    STATISTICS_MARK = "statistics_mark",
    STATISTICS_MOVE = "statistics_move",
    TOOL_CALLS_FROM_TURN = "tool_calls_from_turn",
    TOOL_CALLS_OF_ENGAGEMENT = "tool_calls_of_engagement",
    TOOL_CALLS_OF_JOB = "tool_calls_of_job",
    WORKER_BEAT = "worker_beat",
    WORKER_LEAVE = "worker_leave",
    WORKERS_LISTED = "workers_listed",
}

each! {
    BUDGETS_INSERT = "budgets_insert",
    BUDGETS_WRITE = "budgets_write",
    CHECKPOINTS_INSERT = "checkpoints_insert",
    CHECKPOINTS_OF_TURN = "checkpoints_of_turn",
    DEFINITIONS_INSERT = "definitions_insert",
    ENGAGEMENTS_BY_SEQ = "engagements_by_seq",
    ENGAGEMENTS_INSERT = "engagements_insert",
    ENGAGEMENTS_TO_CHANGE = "engagements_to_change",
    ENGAGEMENTS_WRITE = "engagements_write",
    ENVELOPES_BY_JOB = "envelopes_by_job",
    ENVELOPES_INSERT = "envelopes_insert",
    ERRORS_INSERT = "errors_insert",
    EVENTS_INSERT = "events_insert",
    JOB_TO_CHANGE = "job_to_change",
    JOBS_ALIKE = "jobs_alike",
    JOBS_AVAILABLE = "jobs_available",
    JOBS_BY_LEASE = "jobs_by_lease",
    JOBS_DUE = "jobs_due",
    JOBS_DUE_IN_QUEUE = "jobs_due_in_queue",
    JOBS_EXPIRING = "jobs_expiring",
    JOBS_INSERT = "jobs_insert",
    JOBS_KNOWN = "jobs_known",
    JOBS_LAPSED = "jobs_lapsed",
    JOBS_PRUNABLE = "jobs_prunable",
    JOBS_TIMED_OUT = "jobs_timed_out",
    JOBS_TO_CHANGE = "jobs_to_change",
    JOBS_TOUCH = "jobs_touch",
    JOBS_WRITE = "jobs_write",
    LEADER_HOLDS = "leader_holds",
    LEASES_EXTEND = "leases_extend",
    LEASES_HELD = "leases_held",
    MESSAGES_INSERT = "messages_insert",
    PRUNE_BUDGETS = "prune_budgets",
    PRUNE_CHECKPOINTS = "prune_checkpoints",
    PRUNE_ENGAGEMENTS = "prune_engagements",
    PRUNE_ENVELOPES = "prune_envelopes",
    PRUNE_ERRORS = "prune_errors",
    PRUNE_EVENTS = "prune_events",
    PRUNE_HISTORY = "prune_history",
    PRUNE_JOBS = "prune_jobs",
    PRUNE_MESSAGES = "prune_messages",
    PRUNE_RESULTS = "prune_results",
    PRUNE_REVIEWS = "prune_reviews",
    PRUNE_TOOL_CALLS = "prune_tool_calls",
    QUEUES_INSERT = "queues_insert",
    RESULTS_INSERT = "results_insert",
    REVIEWS_INSERT = "reviews_insert",
    REVIEWS_OVERDUE = "reviews_overdue",
    SEQS = "seqs",
    TOOL_CALLS_INSERT = "tool_calls_insert",
    TOOL_CALLS_WRITE = "tool_calls_write",
    UNIQUE_LOCK = "unique_lock",
}
