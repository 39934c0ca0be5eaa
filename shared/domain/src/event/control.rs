//! The data of events about reviews, and about the control of engagements and budgets.

use super::body::bodies;
use crate::budget::{Amount, OnExceed};
use crate::review::{ReviewKind, ReviewState};
use crate::{CallId, EngagementId, JobId, Phase, ReviewId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

bodies! {
    /// A review.
    OpenedReview {
        /// The review.
        review_id: ReviewId,
        /// Its kind.
        kind: ReviewKind,
        /// The reviewer.
        reviewer: String,
        /// The tool that the question is about.
        name: Option<String>,
        /// The engagement of the agent that reviews.
        asked_engagement_id?: EngagementId,
    }
    /// A vote.
    ReviewVote {
        /// The review.
        review_id: ReviewId,
        /// True if the reviewer approves.
        approve: bool,
        /// The reviewer.
        by: String,
        /// The reason.
        reason: Option<String>,
        /// The approvals so far.
        approvals: usize,
        /// The rejections so far.
        rejections: usize,
        /// The approvals that are needed.
        needed: usize,
    }
    /// A reminder.
    ReviewReminder {
        /// The review.
        review_id: ReviewId,
        /// Its kind.
        kind: ReviewKind,
        /// The reviewer.
        reviewer: String,
        /// The tool that the question is about.
        name: Option<String>,
        /// The reviewers that have not answered.
        missing: Vec<String>,
        /// The number of reminders.
        reminders: i64,
        /// The deadline, in RFC 3339.
        deadline_at: Option<String>,
    }
    /// An escalation to other reviewers.
    EscalatedReview {
        /// The review.
        review_id: ReviewId,
        /// Its kind.
        kind: ReviewKind,
        /// The reviewer before.
        from: String,
        /// The reviewer.
        reviewer: String,
        /// The reviewers, when they are several.
        members: Vec<String>,
        /// The tool that the question is about.
        name: Option<String>,
        /// The deadline, in RFC 3339.
        deadline_at: Option<String>,
    }
    /// A decision.
    DecidedReview {
        /// The review.
        review_id: ReviewId,
        /// The result.
        state: ReviewState,
        /// The reviewer.
        decided_by: Option<String>,
        /// The reason.
        reason: Option<String>,
    }
    /// An answer without effect.
    LateAnswer {
        /// The review.
        review_id: ReviewId,
        /// True if the reviewer approves.
        approve: bool,
        /// The reviewer.
        by: String,
        /// The reason.
        reason: Option<String>,
        /// The result of the review.
        state: ReviewState,
    }
    /// A changed budget.
    ChangedBudget {
        /// The engagement, or the name of a shared budget.
        subject: String,
        /// The limits before; `null` for a new budget.
        before: Option<Limits>,
        /// The limits after; `null` for a deleted budget.
        after: Option<Limits>,
    }
    /// The limits of a budget. Those of an engagement are in tokens and money alone.
    Limits {
        /// Tokens.
        tokens: Option<i64>,
        /// Tokens of a day.
        #[schema(value_type = Option<i64>)]
        tokens_per_day?: Option<i64>,
        /// Money, as a decimal.
        #[schema(value_type = Option<String>)]
        cost: Option<Amount>,
        /// Money of a day, as a decimal.
        #[schema(value_type = Option<String>)]
        cost_per_day?: Option<Amount>,
        /// The effect on a job that needs more.
        #[schema(value_type = Option<OnExceed>)]
        on_exceed?: Option<OnExceed>,
    }
    /// A resumed job.
    Resumed {
        /// The decision of the operator, if there was one.
        approved: Option<bool>,
        /// The comment of the operator.
        comment: Option<String>,
    }
    /// A job that continues from a turn of this one.
    Branched {
        /// The branch.
        branch_id: String,
        /// Its job.
        job_id: JobId,
        /// The turn.
        at_turn: i64,
        /// The name of the branch.
        branch_name: Option<String>,
        /// The digest of the shared past.
        content_id: String,
    }
    /// A fork of another engagement.
    Forked {
        /// The origin.
        forked_from: EngagementId,
        /// The turn of the fork point.
        at_turn: i64,
        /// The phase of the fork point.
        phase: Phase,
        /// True if the fork calls its tools.
        live_tools: bool,
        /// The names of the changes.
        set: Vec<String>,
    }
    /// Two branches that became one.
    Joined {
        /// The new branch.
        merged_id: String,
        /// Its job.
        job_id: JobId,
        /// The first branch.
        branch_a: String,
        /// The second branch.
        branch_b: String,
        /// The strategy.
        strategy: String,
        /// The turns in which they conflicted.
        conflicts: Vec<i64>,
    }
    /// A repeated call of a tool.
    RepeatedCall {
        /// The call.
        tool_call_id: CallId,
        /// The error of the call before.
        error: Option<String>,
        /// The tool that is called.
        provider: Option<String>,
        /// The number of the retry, from 1.
        attempt: i64,
    }
}
