//! The data of events about jobs, and about queues, cron entries, batches and workflows.

use super::body::bodies;
use crate::budget::Measure;
use crate::error::Escalation;
use crate::review::ReviewKind;
use crate::workflow::WorkflowKind;
use crate::{CallId, JobState, RawJson, ReviewId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

bodies! {
    /// A job and its queue.
    Enqueued {
        /// The type of the job.
        job_type: String,
        /// Its queue.
        queue: String,
        /// From 2: the number of a further input of its engagement.
        input?: i64,
    }
    /// The time that a job waits for.
    Scheduled {
        /// RFC 3339.
        scheduled_at: String,
    }
    /// A claim.
    Started {
        /// The number of the attempt, from 1.
        attempt: i64,
        /// The worker.
        worker_id: Option<String>,
    }
    /// An error.
    Failure {
        /// The code.
        code: String,
        /// The sentence; absent while an output guardrail holds back the words of the model.
        message?: String,
        /// The `type` of the OJS error record.
        #[serde(rename = "type")]
        error_type: String,
        /// The code of OSSA, for an agent's own failure.
        ossa_code?: String,
        /// True if another attempt or a person can still make it succeed.
        recoverable: bool,
        /// The wait that the other side requested, in milliseconds.
        retry_after_ms?: u64,
        /// Code and message of the underlying error.
        cause?: String,
        /// The contact that decides about it or is notified.
        escalation?: Escalation,
    }
    /// A failed attempt.
    FailedAttempt {
        #[serde(flatten)]
        failure: Failure,
        /// The number of the attempt, from 1.
        attempt: i64,
    }
    /// A failed attempt that another one follows.
    Retried {
        #[serde(flatten)]
        failure: Failure,
        /// The delay, in milliseconds.
        retry_delay_ms: i64,
        /// The time of the next attempt, in RFC 3339.
        next_retry_at: String,
    }
    /// A completed job.
    Completed {
        /// The number of the attempt, from 1.
        attempt: i64,
        /// The duration of the attempt in milliseconds.
        duration_ms: i64,
        /// The result; absent when it is longer than 8 KiB, or of a delegate whose words only its caller shows.
        #[schema(value_type = Option<Value>)]
        result?: RawJson,
        /// The size of a longer result.
        result_bytes?: usize,
        /// The tokens that an agent's job used.
        tokens_used?: i64,
        /// The model that an agent's job called last; `null` when it called none.
        #[schema(value_type = Option<String>)]
        model_used?: Option<String>,
    }
    /// The state before a job ended.
    Ended {
        /// The state.
        previous_state: JobState,
    }
    /// A reason.
    Reason {
        /// The reason, if one was given.
        reason: Option<String>,
    }
    /// A saved state.
    Saved {
        /// Its number, from 1.
        sequence: i64,
    }
    /// A later time.
    Rescheduled {
        /// The reason.
        reason: String,
        /// RFC 3339.
        scheduled_at: String,
    }
    /// A lost lease.
    Lapsed {
        /// The worker that held it.
        worker_id: Option<String>,
    }
    /// An occurrence of a cron entry.
    CronOccurrence {
        /// The cron entry.
        cron_name: String,
        /// The time of the occurrence, in RFC 3339.
        scheduled_at: String,
    }
    /// A queue.
    QueueChange {
        /// The queue.
        queue: String,
        /// The same, as the subject of the event.
        subject: String,
    }
    /// A closed batch.
    BatchOutcome {
        /// The batch, as the subject of the event.
        subject: String,
        /// The batch.
        tag: String,
        /// Its jobs.
        jobs: i64,
        /// Those that completed.
        completed: i64,
        /// Those that were discarded.
        discarded: i64,
        /// Those that were cancelled.
        cancelled: i64,
    }
    /// A workflow.
    WorkflowChange {
        /// The workflow.
        workflow_id: String,
        /// Its type.
        #[serde(rename = "type")]
        kind: WorkflowKind,
        /// Its name.
        name: Option<String>,
        /// The steps that succeeded, of a workflow that failed.
        succeeded?: i64,
        /// Its steps, when it starts or failed.
        steps?: i64,
        /// The queues of its jobs.
        queues?: Vec<String>,
    }
    /// A step of a workflow.
    WorkflowStep {
        /// The workflow.
        workflow_id: String,
        /// The number of the step, from 0.
        step: i64,
        /// The queues of the workflow's jobs.
        queues?: Vec<String>,
    }
}

/// The event that a parked job waits for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Parked {
    /// A review.
    Review {
        /// The review.
        review_id: ReviewId,
        /// Its kind.
        kind: ReviewKind,
        /// The reviewer.
        reviewer: String,
    },
    /// Several reviews, or earlier ones.
    Reviews {
        /// Those that were opened now.
        reviews: Vec<ReviewId>,
    },
    /// An answer of its user.
    Input {
        /// `input`.
        kind: String,
        /// The question.
        call_id: CallId,
    },
    /// Its delegates.
    Children {
        /// Their number.
        children: usize,
    },
    /// A budget.
    Budget {
        /// `budget`.
        kind: String,
        /// The name of the budget; `engagement` for its own.
        budget: String,
        /// The most that the next call may need, in `unit`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        needed: Option<i64>,
        /// The unit of `needed`, if it is not tokens.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unit: Option<Measure>,
        /// The time at which a daily budget begins anew, in RFC 3339.
        until: Option<String>,
        /// The time after which it fails, in RFC 3339.
        given_up_at: Option<String>,
    },
}

impl Reason {
    /// Returns the data with this reason.
    #[must_use]
    pub fn of(reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()) }
    }
}
