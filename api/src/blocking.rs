//! Work that takes up to tenths of a second, such as compiling the schemas of a request: away from the threads that answer
//! requests, and few at once.

use crate::reply::Failure;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use turnstone_ojs::OjsError;

/// The number of requests that compile at once. Others wait without delaying requests that compile nothing.
const AT_ONCE: usize = 2;

/// The places for blocking work.
pub(crate) struct Blocking(Arc<Semaphore>);

impl Default for Blocking {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

impl Blocking {
    /// Does the work on a thread that may block. A request that is given up keeps its place until the work has ended.
    ///
    /// # Errors
    /// 500 when the work panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let failed = || Failure(OjsError::internal("What was sent could not be read to its end."));
        let place = Arc::clone(&self.0).acquire_owned().await.map_err(|_| failed())?;
        let done = spawn_blocking(move || {
            let _place = place;
            work()
        });
        done.await.map_err(|_| failed())
    }
}
