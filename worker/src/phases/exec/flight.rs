//! The calls of a batch and their progress.

use super::tool_outcome::Over;
use crate::breakers::Success;
use crate::state::journal::Call;
use crate::state::tools::Callable;
use serde_json::Value;
use turnstone_store::breakers::Passage;

/// A call of the batch and its progress.
pub struct Flight {
    pub call: Call,
    pub step: Step,
    /// The success that its circuit breaker in the store must learn of after the next barrier.
    pub success: Option<Success>,
}

impl Flight {
    pub fn ready(call: Call, ready: Ready) -> Self {
        Self { call, step: Step::Ready(Box::new(ready)), success: None }
    }

    pub fn over(call: Call, over: Over) -> Self {
        Self { call, step: Step::Over(Box::new(over)), success: None }
    }

    /// Returns the most tokens that a remote agent may spend on it; `None` for a call of any other tool.
    pub fn tokens(&self) -> Option<i64> {
        match &self.step {
            Step::Ready(ready) => ready.callable.tool.tokens(),
            Step::Over(_) | Step::Returned => None,
        }
    }

    /// Returns true if it runs in this round.
    pub fn is_in_round(&self) -> bool {
        matches!(&self.step, Step::Ready(ready) if ready.in_round)
    }

    /// Returns true if no work for it runs on this server now.
    pub fn is_remote(&self) -> bool {
        match &self.step {
            Step::Ready(ready) => ready.callable.tool.tokens().is_some(),
            Step::Over(_) | Step::Returned => true,
        }
    }
}

/// The progress of a call.
pub enum Step {
    /// It runs in the next round.
    Ready(Box<Ready>),
    /// Its outcome is known, but the model has not received it yet.
    Over(Box<Over>),
    /// The model has received its outcome.
    Returned,
}

/// The tool to call next, and the result of earlier tries.
pub struct Ready {
    pub callable: Callable,
    /// The number of tries of this tool that failed.
    pub tries: u32,
    /// True if this tool is the fallback of the one that the model requested.
    pub replaced: bool,
    /// The permission of its circuit breaker.
    pub passage: Passage,
    /// The tokens reserved for it, when it is a remote agent.
    pub set_aside: i64,
    /// The tokens charged for it so far. Another try continues the same remote engagement, whose count includes them.
    pub booked: i64,
    /// The handle by which a remote agent is asked about the work that it has begun.
    pub handle: Option<Value>,
    /// True if remote work may exist without a handle: a request was sent, and its outcome is unknown.
    pub doubtful: bool,
    /// True if a remote agent began to work in the round before. This round sends no new request, and waits for its end.
    pub continues: bool,
    /// True if it runs in this round.
    pub in_round: bool,
}

impl Ready {
    /// Returns the first try of a call by this tool.
    pub fn new(callable: Callable) -> Self {
        Self {
            callable,
            tries: 0,
            replaced: false,
            passage: Passage::Free,
            set_aside: 0,
            booked: 0,
            handle: None,
            doubtful: false,
            continues: false,
            in_round: false,
        }
    }
}
