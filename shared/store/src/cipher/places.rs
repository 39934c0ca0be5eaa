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
    INSERT_AGENT: "agents"[0] { 2 source }
    INSERT_ARTIFACT_CONTENTS: "artifact_contents"[0, 1] { 4 content }
    INSERT_ARTIFACTS: "artifacts"[0] { 8 name }
    INSERT_CREDENTIAL: "credentials"[0, 1, 2, 3] { 6 content }
    UPDATE_CRON: "crons"[0, 1] { 7 template }
    UPDATE_CRON_COUNTS: "crons"[0, 1] { 5 last_error }
    INSERT_CRON: "crons"[0, 1] { 7 template }
    INSERT_CRON_RUN: "cron_runs"[0] { 7 message }
    INSERT_DEFINITIONS: "agent_definitions"[0] { 1 definition }
    INSERT_DELIVERIES: "deliveries"[0] { 4 body }
    INSERT_ENVELOPES: "job_envelopes"[0] { 2 args, 3 meta, 4 options, 5 extra, 6 parent_results }
    INSERT_ERRORS: "job_errors"[0, 1, 3] { 2 error }
    INSERT_FORK: "forks"[0] { 5 changes }
    INSERT_GUARDRAIL_CHECKS: "guardrail_checks"[0] { 6 content }
    INSERT_JOURNAL: "journal"[0, 1, 2, 6, 7] { 17 body, 18 said }
    INSERT_PROGRESS: "progress"[0] { 2 message, 3 data }
    INSERT_RESULTS: "job_results"[0] { 1 result }
    UPDATE_REVIEW: "reviews"[0] { 4 votes }
    UPDATE_DECIDED_REVIEW: "reviews"[0] { 3 reason }
    INSERT_REVIEWS: "reviews"[0] { 7 question }
    INSERT_RUN_EVENTS: "run_events"[0, 1] { 3 body }
    INSERT_RUN_SETTINGS: "run_settings"[0, 1, 2] { 3 args }
    INSERT_SAVED_STATE: "saved_states"[0] { 1 state }
    INSERT_SERVER_KEY: "server_keys"[0] { 1 body }
    INSERT_STATE_KEYS: "state_keys"[0, 1] { 2 content }
    INSERT_TOOL_CALLS: "tool_calls"[0] { 6 input }
    UPDATE_TOOL_CALLS: "tool_calls"[0] { 2 outcome, 8 handled }
    UPDATE_IDEMPOTENCY_ANSWER: "idempotency_keys"[0] { 2 answer }
    UPDATE_IDEMPOTENCY_KEY: "idempotency_keys"[0] { 2 answer }
    INSERT_WEBHOOK: "webhooks"[0] { 2 url, 5 metadata, 6 secret }
    UPDATE_WEBHOOK: "webhooks"[0] { 1 url, 4 metadata, 5 secret, 6 old_secret }
    INSERT_WORKFLOW_STEPS: "workflow_steps"[0, 1] { 10 job }
}

found! {
    SELECT_AGENTS_BY_NAME: "agent_definitions"[Text digest] { definition }
    SELECT_AGENTS: "agents"[Text name] { source }
    SELECT_AGENTS: "agent_definitions"[Text digest] { definition }
    SELECT_GIVEN_ANSWER: "tool_calls"[Text call_id] { outcome }
    SELECT_ANSWERS_OF_JOB: "tool_calls"[Text call_id] { outcome }
    SELECT_ARTIFACT_BY_ID: "artifacts"[Text id] { name }
    SELECT_ARTIFACT_CONTENT: "artifact_contents"[Text tenant, Text digest] { content }
    SELECT_ARTIFACTS_OF_ENGAGEMENT: "artifacts"[Text id] { name }
    SELECT_CHECKPOINTS: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { body }
    SELECT_CHECKPOINTS_OF_JOBS: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { body }
    SELECT_CHECKPOINTS_OF_PHASE: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { body }
    SELECT_CHECKPOINTS_OF_PHASE_OF_JOB: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { body }
    SELECT_CHECKPOINTS_OF_TURN: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { body, said }
    SELECT_CHECKPOINTS_OF_TURNS: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { body }
    SELECT_CREDENTIALS_OF_CALL: "credentials"[Text kind, Text subject, Text tool, Text header] { content }
    SELECT_CRON_RUNS: "cron_runs"[Text id] { message }
    SELECT_DUE_CRONS: "crons"[Text tenant, Text name] { template, last_error }
    SELECT_CRONS: "crons"[Text tenant, Text name] { template, last_error }
    SELECT_DEFINITION_BY_DIGEST: "agent_definitions"[Text digest] { definition }
    SELECT_DELEGATIONS_OF_TURN: "job_errors"[Int job_seq, Int attempt, Int at] { error }
    SELECT_DELEGATIONS_OF_TURN: "job_results"[Int job_seq] { result }
    SELECT_DUE_DELIVERIES: "deliveries"[Text id] { body }
    SELECT_DELIVERIES: "deliveries"[Text id] { body }
    SELECT_DIRECTIVES_BY_JOB: "job_envelopes"[Int job_seq] { meta }
    SELECT_ENGAGEMENT_BY_ID: "agent_definitions"[Text digest] { definition }
    SELECT_ENVELOPES_BY_JOB: "job_envelopes"[Int job_seq] { args, meta, options, extra, parent_results }
    SELECT_ERRORS_BY_JOB: "job_errors"[Int job_seq, Int attempt, Int at] { error }
    SELECT_EVENTS_OF_ENGAGEMENT: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { body }
    SELECT_EVENTS_OF_JOB: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { body }
    SELECT_FEED_OF_JOB: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { body }
    SELECT_FEED: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { body }
    SELECT_FORK_CALL: "tool_calls"[Text call_id] { input, outcome, handled }
    SELECT_FORK_CHECKS: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { body }
    SELECT_FORK_OF_JOB: "forks"[Int engagement_seq] { changes }
    SELECT_FORK_RECORD: "tool_calls"[Text call_id] { input }
    SELECT_FORK_REVIEWS: "reviews"[Text id] { reason }
    SELECT_NEWEST_GUARDRAIL_CHECKS: "guardrail_checks"[Text id] { content }
    SELECT_IDEMPOTENCY_KEY: "idempotency_keys"[Text name] { answer }
    UPDATE_IDEMPOTENCY_ANSWER: "idempotency_keys"[Text name] { answer }
    SELECT_MEMORIES_OF_JOB: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { said }
    SELECT_INPUT_MESSAGE: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { said }
    SELECT_MESSAGES_AFTER: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { said }
    SELECT_NEWEST_MESSAGES: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { said }
    SELECT_MESSAGES_OF_TURN: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { said }
    SELECT_MESSAGES_OF_TURNS: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { said }
    SELECT_PARTS_OF_JOBS: "job_envelopes"[Int job_seq] { args, meta, options, extra }
    SELECT_PARTS_OF_JOBS: "job_results"[Int job_seq] { result }
    SELECT_PARTS_OF_JOBS: "saved_states"[Int job_seq] { state }
    SELECT_PARKED_JOBS: "journal"[Int stream, Int last_event, Int last_message, Int turn, Int phase] { body }
    SELECT_PROGRESS_OF_JOB: "progress"[Int job_seq] { message, data }
    SELECT_QUESTION_OF_JOB: "tool_calls"[Text call_id] { input, outcome, handled }
    SELECT_RESULTS_BY_JOB: "job_results"[Int job_seq] { result }
    SELECT_REVIEW_BY_ASKED: "reviews"[Text id] { question, reason, votes }
    SELECT_REVIEW_BY_ID: "reviews"[Text id] { question, reason, votes }
    SELECT_REVIEWS: "reviews"[Text id] { question, reason, votes }
    SELECT_REVIEWS_OF_TURN: "reviews"[Text id] { question, reason, votes }
    SELECT_RUN_SETTINGS_OF: "run_settings"[Text agent_name, Text tenant, Text run] { args }
    SELECT_RUN_JOBS: "job_envelopes"[Int job_seq] { meta }
    SELECT_RUN_EVENTS_AFTER: "run_events"[Text run_id, Int id] { body }
    SELECT_SERVER_KEYS: "server_keys"[Text name] { body }
    SELECT_STATE_OF_SCOPE: "state_keys"[Text scope, Text name] { content }
    SELECT_TOOL_CALL_BY_ID: "tool_calls"[Text call_id] { input, outcome, handled }
    SELECT_TOOL_CALLS_FROM_TURN: "tool_calls"[Text call_id] { input, outcome, handled }
    SELECT_NEWEST_TOOL_CALLS: "tool_calls"[Text call_id] { input, outcome, handled }
    SELECT_TOOL_CALLS_OF_ENGAGEMENT: "tool_calls"[Text call_id] { input, outcome, handled }
    SELECT_TOOL_CALLS_OF_JOB: "tool_calls"[Text call_id] { input, outcome, handled }
    SELECT_TOOL_CALLS_OF_TURNS: "tool_calls"[Text call_id] { input, outcome, handled }
    LOCK_WEBHOOK: "webhooks"[Text id] { url, metadata, secret, old_secret }
    SELECT_WEBHOOKS: "webhooks"[Text id] { url, metadata, secret, old_secret }
    SELECT_WORKFLOW_CALLBACKS: "workflow_steps"[Int workflow_seq, Int step] { job }
    SELECT_WORKFLOW_INPUTS: "job_envelopes"[Int seq] { parent_results }
    SELECT_WORKFLOW_RESULTS: "job_results"[Int job_seq] { result }
    SELECT_READY_WORKFLOW_STEPS: "workflow_steps"[Int workflow_seq, Int step] { job }
}
