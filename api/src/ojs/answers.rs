//! The answers of the OJS endpoints that clients in Rust read.

pub use super::operate::bulk::{BulkRefusal, BulkReply};
pub use super::operate::workers::{WorkerItem, WorkerItemKind};
pub use super::queues::limits::{Concurrency, LimitReply};
pub use super::queues::list_queues::{CountedQueue, EndedCounts};
pub use super::queues::show_queue::{CountedBrief, Depths, QueueDetail, QueueStats};
pub use super::workflows::body::{StepBody, WorkflowBody};
