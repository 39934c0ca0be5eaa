//! The answers that clients in Rust read, such as the command line. Those about jobs, cron entries and webhooks are in
//! `turnstone-ojs`.

pub use crate::agents::{ListedAgent, RegisteredAgent, Remark};
pub use crate::artifacts::list::ArtifactRow;
pub use crate::audit_chain::chain::ChainPart;
pub use crate::batches::{BatchError, BatchMoney, BatchTokens, BatchView};
pub use crate::budgets::costs::Daily;
pub use crate::budgets::engagement_cost::{Cost, CostPart};
pub use crate::budgets::rows::{BudgetView, Limits, Money, Row, Tokens};
pub use crate::counts::StateCounts;
pub use crate::credentials::ShownCredential;
pub use crate::credentials::forget::ForgottenCredentials;
pub use crate::credentials::put::KeptCredential;
pub use crate::engagements::answer::AnswerTaken;
pub use crate::engagements::awaited_budget::AwaitedBudget;
pub use crate::engagements::diff::{Diff, DiffCost, DiffParting, DiffSide, DiffTotal, DiffTurn};
pub use crate::engagements::fork::{Forked, ForkedFrom};
pub use crate::engagements::import::{Imported, ImportedSignature};
pub use crate::engagements::list::{CursorEnd, ListedEngagement};
pub use crate::engagements::messages::{Message, Messages};
pub use crate::engagements::state::{
    Awaiting, State, StateChild, StateError, StateParent, StateTree, StateUser,
};
pub use crate::fleet::breakers::Breaker;
pub use crate::fleet::workers::Worker;
pub use crate::freeze::ShownFreeze;
pub use crate::freeze::lift::LiftedFreeze;
pub use crate::ids::FoundIds;
pub use crate::keys::own::OwnPrincipal;
pub use crate::keys::{NewKey, ShownKey};
pub use crate::ojs::answers::{
    BulkRefusal, BulkReply, Concurrency, CountedBrief, CountedQueue, Depths, EndedCounts, LimitReply,
    QueueDetail, QueueStats, StepBody, WorkerItem, WorkerItemKind, WorkflowBody,
};
pub use crate::rows::{Quorum, Review, Vote};
