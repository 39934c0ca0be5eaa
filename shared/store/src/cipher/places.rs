//! What is sealed: the parameters of statements that write it, and the columns of statements that read it, each with
//! what tells its row from others. Everything else stays in the clear; `guard.rs` says why, column by column.

use crate::sql::{self, Text};

/// Parameters of a statement that are sealed. They are counted from 0: among the columns where it is given rows, among
/// the values where it is given those.
pub(super) struct Written {
    pub text: &'static Text,
    pub table: &'static str,
    pub key: &'static [usize],
    pub columns: &'static [(usize, &'static str)],
}

/// A column that tells a row from others.
#[derive(Clone, Copy)]
pub(super) enum KeyPart {
    Int(&'static str),
    Text(&'static str),
}

/// Columns of a statement's rows that are sealed in their table.
pub(super) struct Found {
    pub text: &'static Text,
    pub table: &'static str,
    pub key: &'static [KeyPart],
    pub columns: &'static [&'static str],
}

macro_rules! written {
    ($($text:ident: $table:literal[$($key:literal),+] { $($at:literal $column:ident),+ })+) => {
        pub(super) static WRITTEN: &[Written] = &[$(Written {
            text: &sql::$text,
            table: $table,
            key: &[$($key),+],
            columns: &[$(($at, stringify!($column))),+],
        }),+];
    };
}

macro_rules! found {
    ($($text:ident: $table:literal[$($kind:ident $key:ident),+] { $($column:ident),+ })+) => {
        pub(super) static FOUND: &[Found] = &[$(Found {
            text: &sql::$text,
            table: $table,
            key: &[$(KeyPart::$kind(stringify!($key))),+],
            columns: &[$(stringify!($column)),+],
        }),+];
    };
}

written! {
    AGENT_UPSERT: "agents"[0] { 2 source }
    ARTIFACT_CONTENTS_INSERT: "artifact_contents"[0, 1] { 4 content }
    ARTIFACTS_INSERT: "artifacts"[0] { 8 name }
    CREDENTIAL_PUT: "credentials"[0, 1, 2, 3] { 6 content }
    CRON_CHANGE: "crons"[0, 1] { 7 template }
    CRON_COUNT: "crons"[0, 1] { 5 last_error }
    CRON_PUT: "crons"[0, 1] { 7 template }
    CRON_RUN_INSERT: "cron_runs"[0] { 7 message }
    DEFINITIONS_INSERT: "agent_definitions"[0] { 1 definition }
    DELIVERIES_INSERT: "deliveries"[0] { 4 body }
    ENVELOPES_INSERT: "job_envelopes"[0] { 2 args, 3 meta, 4 options, 5 extra, 6 parent_results }
    ERRORS_INSERT: "job_errors"[0, 1, 3] { 2 error }
    FORK_INSERT: "forks"[0] { 5 changes }
    GUARDRAIL_CHECKS_INSERT: "guardrail_checks"[0] { 6 content }
    INSERT_JOURNAL: "journal"[0, 1, 2, 6, 7] { 17 body, 18 said }
    PROGRESS_PUT: "progress"[0] { 2 message, 3 data }
    RESULTS_INSERT: "job_results"[0] { 1 result }
    REVIEW_CHANGE: "reviews"[0] { 4 votes }
    REVIEW_DECIDE: "reviews"[0] { 3 reason }
    REVIEWS_INSERT: "reviews"[0] { 7 question }
    RUN_EVENTS_INSERT: "run_events"[0, 1] { 3 body }
    RUN_SETTINGS_PUT: "run_settings"[0, 1, 2] { 3 args }
    SAVED_STATE_PUT: "saved_states"[0] { 1 state }
    SERVER_KEY_KEEP: "server_keys"[0] { 1 body }
    STATE_KEYS_PUT: "state_keys"[0, 1] { 2 content }
    TOOL_CALLS_INSERT: "tool_calls"[0] { 6 input }
    TOOL_CALLS_WRITE: "tool_calls"[0] { 2 outcome, 8 handled }
    UPDATE_IDEMPOTENCY_ANSWER: "idempotency_keys"[0] { 2 answer }
    UPDATE_IDEMPOTENCY_KEY: "idempotency_keys"[0] { 2 answer }
    WEBHOOK_INSERT: "webhooks"[0] { 2 url, 5 metadata, 6 secret }
    WEBHOOK_WRITE: "webhooks"[0] { 1 url, 4 metadata, 5 secret, 6 old_secret }
    WORKFLOW_STEPS_INSERT: "workflow_steps"[0, 1] { 10 job }
}

found! {
    AGENTS_BY_NAME: "agent_definitions"[Text digest] { definition }
    AGENTS_LISTED: "agents"[Text name] { source }
    AGENTS_LISTED: "agent_definitions"[Text digest] { definition }
    ANSWER_GIVEN: "tool_calls"[Text call_id] { outcome }
    ANSWERS_OF_JOB: "tool_calls"[Text call_id] { outcome }
    ARTIFACT_BY_ID: "artifacts"[Text id] { name }
    ARTIFACT_CONTENT: "artifact_contents"[Text tenant, Text digest] { content }
    ARTIFACTS_OF_ENGAGEMENT: "artifacts"[Text id] { name }
    CHECKPOINTS_LISTED: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { body }
    CHECKPOINTS_OF_JOBS: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { body }
    CHECKPOINTS_OF_PHASE_OF_JOB: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { body }
    CHECKPOINTS_OF_PHASE: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { body }
    CHECKPOINTS_OF_TURN: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { body, said }
    CHECKPOINTS_OF_TURNS: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { body }
    CREDENTIALS_OF_CALL: "credentials"[Text kind, Text subject, Text tool, Text header] { content }
    CRON_RUNS_LISTED: "cron_runs"[Text id] { message }
    CRONS_DUE: "crons"[Text tenant, Text name] { template, last_error }
    CRONS_LISTED: "crons"[Text tenant, Text name] { template, last_error }
    DEFINITION_BY_DIGEST: "agent_definitions"[Text digest] { definition }
    DELEGATIONS_OF_TURN: "job_errors"[Int job_seq, Int attempt, Int at] { error }
    DELEGATIONS_OF_TURN: "job_results"[Int job_seq] { result }
    DELIVERIES_DUE: "deliveries"[Text id] { body }
    DELIVERIES_LISTED: "deliveries"[Text id] { body }
    DIRECTIVES_BY_JOB: "job_envelopes"[Int job_seq] { meta }
    ENGAGEMENT_BY_ID: "agent_definitions"[Text digest] { definition }
    ENVELOPES_BY_JOB: "job_envelopes"[Int job_seq] { args, meta, options, extra, parent_results }
    ERRORS_BY_JOB: "job_errors"[Int job_seq, Int attempt, Int at] { error }
    EVENTS_OF_ENGAGEMENT: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { body }
    EVENTS_OF_JOB: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { body }
    FEED_OF_JOB: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { body }
    FEED_READ: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { body }
    FORK_CALL: "tool_calls"[Text call_id] { input, outcome, handled }
    FORK_CHECKS: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { body }
    FORK_OF_JOB: "forks"[Int engagement_seq] { changes }
    FORK_RECORD: "tool_calls"[Text call_id] { input }
    FORK_REVIEWS: "reviews"[Text id] { reason }
    GUARDRAIL_CHECKS_NEWEST: "guardrail_checks"[Text id] { content }
    SELECT_IDEMPOTENCY_KEY: "idempotency_keys"[Text name] { answer }
    UPDATE_IDEMPOTENCY_ANSWER: "idempotency_keys"[Text name] { answer }
    MEMORIES_OF_JOB: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { said }
    MESSAGE_INPUT: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { said }
    MESSAGES_AFTER: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { said }
    MESSAGES_NEWEST: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { said }
    MESSAGES_OF_TURN: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { said }
    MESSAGES_OF_TURNS: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { said }
    PARKED_BY_JOB: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { body }
    PROGRESS_OF_JOB: "progress"[Int job_seq] { message, data }
    QUESTION_OF_JOB: "tool_calls"[Text call_id] { input, outcome, handled }
    RESULTS_BY_JOB: "job_results"[Int job_seq] { result }
    REVIEW_BY_ASKED: "reviews"[Text id] { question, reason, votes }
    REVIEW_BY_ID: "reviews"[Text id] { question, reason, votes }
    REVIEWS_LISTED: "reviews"[Text id] { question, reason, votes }
    REVIEWS_OF_TURN: "reviews"[Text id] { question, reason, votes }
    RUN_SETTINGS_OF: "run_settings"[Text agent_name, Text tenant, Text run] { args }
    RUN_JOBS: "job_envelopes"[Int job_seq] { meta }
    RUN_EVENTS_AFTER: "run_events"[Text run_id, Int id] { body }
    SAVED_BY_JOB: "saved_states"[Int job_seq] { state }
    SERVER_KEYS: "server_keys"[Text name] { body }
    STATE_OF_SCOPE: "state_keys"[Text scope, Text name] { content }
    TOOL_CALL_BY_ID: "tool_calls"[Text call_id] { input, outcome, handled }
    TOOL_CALLS_FROM_TURN: "tool_calls"[Text call_id] { input, outcome, handled }
    TOOL_CALLS_NEWEST: "tool_calls"[Text call_id] { input, outcome, handled }
    TOOL_CALLS_OF_ENGAGEMENT: "tool_calls"[Text call_id] { input, outcome, handled }
    TOOL_CALLS_OF_JOB: "tool_calls"[Text call_id] { input, outcome, handled }
    TOOL_CALLS_OF_TURNS: "tool_calls"[Text call_id] { input, outcome, handled }
    WEBHOOK_TO_CHANGE: "webhooks"[Text id] { url, metadata, secret, old_secret }
    WEBHOOKS_LISTED: "webhooks"[Text id] { url, metadata, secret, old_secret }
    WORKFLOW_CALLBACKS: "workflow_steps"[Int workflow_seq, Int step] { job }
    WORKFLOW_INPUTS: "job_envelopes"[Int seq] { parent_results }
    WORKFLOW_RESULTS: "job_results"[Int job_seq] { result }
    WORKFLOW_STEPS_READY: "workflow_steps"[Int workflow_seq, Int step] { job }
}
