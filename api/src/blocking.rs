//! Work of requests that blocks, such as compiling their schemas.

use crate::reply::Failure;
use turnstone_ojs::OjsError;

/// Does the work on a thread that may block, when a permit is free.
///
/// # Errors
/// 500 when the work panicked.
pub(crate) async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    let failed = |_| Failure(OjsError::internal("What was sent could not be read to its end."));
    turnstone_blocking::run(work).await.map_err(failed)
}
