//! An engagement is paused, resumed, forked, merged, or one of its calls made again.

use super::Engine;
use super::ops::control as ops;
use super::rows::decode;
use super::views::many;
use crate::{StoreError, sql};
use async_recursion::async_recursion as boxed;
use std::sync::Arc;
use turnstone_domain::{CallId, EngagementId, JobId, JobState, Timestamp};

/// Whose job is meant, and when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// The job.
    pub job: JobId,
    /// Finds only a job of this tenant; `None` means any tenant.
    pub tenant: Option<String>,
    /// The identity of the principal, which submits a branch; `None` when it has none.
    pub by: Option<String>,
    /// Now.
    pub at: Timestamp,
}

/// Why nothing was changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// There is no such job.
    NoJob,
    /// The job has ended.
    Ended(JobState),
    /// The job's engagement had several inputs; a branch has one job for its whole past.
    SeveralInputs,
    /// The job is not paused.
    NotPaused,
    /// The job has not come as far as this turn.
    NoTurn {
        /// The newest turn that can be forked from.
        newest: i64,
    },
    /// Another branch of the same root has this name.
    NameTaken(String),
    /// There is no such branch.
    NoBranch(String),
    /// The branch comes from another job.
    OtherRoot(String),
    /// The job has no such call.
    NoCall,
    /// The call was asked to be made again as often as its policy allows.
    TooOften {
        /// How often that is.
        most: i64,
    },
    /// The call is not idempotent and may have had its effect: it needs an approval.
    NotIdempotent,
    /// The call has not been made yet, or waits for a review.
    NotMade,
    /// The policy names no other provider, or one that the agent has not.
    NoAlternate(Option<String>),
}

/// The result of an operation, or the reason why it was refused; the outer error is the database's.
pub type Controlled<T> = Result<Result<T, Refusal>, StoreError>;

/// A fork that is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fork {
    /// The first turn of the branch's own: everything before it is taken over. 0 and 1 are the beginning; `None` is the
    /// current turn of the job.
    pub at_turn: Option<i64>,
    /// The name of the branch, unique among all branches of its root.
    pub name: Option<String>,
    /// The id of the branch's job.
    pub job: JobId,
    /// The id of the branch's engagement.
    pub engagement: EngagementId,
}

/// A branch that was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Branch {
    /// The id of its engagement, or that of its job when it is a plain job.
    pub id: String,
    /// Its job.
    pub job: JobId,
    /// Lower-case hex SHA-256 of what was taken over.
    pub content: String,
    /// Its first turn of its own.
    pub at_turn: i64,
    /// True when its job is paused.
    pub held: bool,
}

/// Whose turns a merged branch takes over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strategy {
    /// Those of the first branch.
    Ours,
    /// Those of the second branch.
    Theirs,
    /// Those of the first, then those of the second from where they part.
    Union,
}

impl Strategy {
    /// The strategy as on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Theirs => "theirs",
            Self::Union => "union",
        }
    }

    /// Reads a strategy; `None` for an unknown word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Ours, Self::Theirs, Self::Union].into_iter().find(|strategy| strategy.as_str() == text)
    }
}

/// A merge that is asked for. A branch is named by its id, its name, or the id of its job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Merge {
    /// The first branch.
    pub ours: String,
    /// The second branch.
    pub theirs: String,
    /// Whose turns are taken over.
    pub strategy: Strategy,
    /// The id of the merged branch's job.
    pub job: JobId,
    /// The id of the merged branch's engagement.
    pub engagement: EngagementId,
}

/// A merge that was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Merged {
    /// The new branch.
    pub branch: Branch,
    /// The turns that both branches have, and in which they differ.
    pub conflicts: Vec<i64>,
}

/// A call that is to be made again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolRetry {
    /// The call.
    pub call: CallId,
    /// The error, as the client describes it.
    pub error: Option<String>,
    /// True when the job's other provider is called instead.
    pub use_alternate: bool,
    /// True when a call that is not idempotent may be made once more.
    pub approved: bool,
}

/// A call that will be made again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Retried {
    /// The provider to call: the other one or, for an agent's call, the tool itself. `None` means a plain job's own
    /// provider, which only its worker knows.
    pub provider: Option<String>,
    /// How often this call was asked to be made again.
    pub attempt: i64,
}

/// A key that all processes of a fleet share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerKey {
    /// The purpose of the key.
    pub name: String,
    /// The key itself.
    pub body: String,
    /// When it was kept.
    pub created_at: Timestamp,
}

/// An engagement is paused, resumed, forked, merged, or one of its calls made again.
#[derive(Clone)]
pub struct Control(pub(super) Arc<Engine>);

impl Control {
    /// Pauses a job: no worker claims it from now on. Our worker stops after the current phase and releases the
    /// job; a worker in another language keeps its lease. Pausing a paused job changes nothing. Returns the job's
    /// state.
    #[boxed]
    pub async fn pause(&self, target: Target, reason: Option<String>) -> Controlled<JobState> {
        self.0
            .write((target, reason), |tx, (target, reason)| {
                Box::pin(ops::pause(&mut tx.session, &mut tx.unit, target, reason.as_deref()))
            })
            .await
    }

    /// The job may be claimed again. Returns its state.
    #[boxed]
    pub async fn resume(
        &self,
        target: Target,
        approved: Option<bool>,
        comment: Option<String>,
    ) -> Controlled<JobState> {
        self.0
            .write((target, approved, comment), |tx, (target, approved, comment)| {
                Box::pin(ops::resume(&mut tx.session, &mut tx.unit, target, *approved, comment.as_deref()))
            })
            .await
    }

    /// Makes a new job that continues from a turn of this one, with everything before it. This job stays as it is.
    /// The copy of a plain job is paused.
    #[boxed]
    pub async fn fork(&self, target: Target, fork: Fork) -> Controlled<Branch> {
        self.0
            .write((target, fork), |tx, (target, fork)| {
                Box::pin(ops::fork(&mut tx.session, &mut tx.unit, target, fork, &*tx.ids))
            })
            .await
    }

    /// Two branches of the job become a new one, which is paused.
    #[boxed]
    pub async fn merge(&self, target: Target, merge: Merge) -> Controlled<Merged> {
        self.0
            .write((target, merge), |tx, (target, merge)| {
                Box::pin(ops::merge(&mut tx.session, &mut tx.unit, target, merge, &*tx.ids))
            })
            .await
    }

    /// The next turn makes a call again.
    #[boxed]
    pub async fn retry_tool(&self, target: Target, retry: ToolRetry) -> Controlled<Retried> {
        self.0
            .write((target, retry), |tx, (target, retry)| {
                Box::pin(ops::retry_tool(&mut tx.session, &mut tx.unit, target, retry))
            })
            .await
    }

    /// Keeps a key unless there is one of its name; returns the one that is kept. The first process decides, so all
    /// processes get the same key.
    #[boxed]
    pub async fn keep_key(&self, key: ServerKey) -> Result<ServerKey, StoreError> {
        self.0.write(key, |tx, key| Box::pin(ops::keep_key(&mut tx.session, key))).await
    }

    /// The keys whose names begin like this, by name.
    #[boxed]
    pub async fn keys(&self, beginning: &str) -> Result<Vec<ServerKey>, StoreError> {
        let (action, text) = ("read keys", &sql::SELECT_SERVER_KEYS);
        let mut keys = many(&self.0.readers, action, text, &[], decode::<ServerKey>).await?;
        keys.retain(|key| key.name.starts_with(beginning));
        Ok(keys)
    }
}
