//! Connections with time limits for their clients: each wait for a client has an end, and no wait for the server has
//! one.
//!
//! An event stream is a request in flight, so its client may be silent. A client that does not read pending data is
//! disconnected; it resumes after its last event.

use crate::serve::ServeLimits;
use futures::task::AtomicWaker;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};
use tokio_io_timeout::TimeoutStream;

/// A body arrives at this many bytes a second at least, on average.
const SLOWEST_BODY: u64 = 1_024;

/// The requests of one connection.
#[derive(Default)]
pub(crate) struct Activity {
    in_flight: AtomicUsize,
    answered: AtomicU64,
    /// Wakes the connection when a request was answered: the wait for the next one begins.
    reader: AtomicWaker,
}

impl Activity {
    /// Counts a request until the returned value is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(self))
    }
}

/// A request in flight.
pub(crate) struct InFlight(Arc<Activity>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.answered.fetch_add(1, Ordering::Relaxed);
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.0.reader.wake();
    }
}

/// The state of a connection without a request in flight.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    Head,
    NextRequest,
}

/// A connection that fails with `TimedOut` when its client does not send the head of a request in time.
pub(crate) struct TimedConnection<I: AsyncRead + AsyncWrite> {
    io: Pin<Box<TimeoutStream<I>>>,
    activity: Arc<Activity>,
    head: Duration,
    idle: Duration,
    timer: Pin<Box<Sleep>>,
    /// The state that the timer limits.
    waits_for: Option<Wait>,
    /// How many requests had been answered when the present wait began.
    answered: u64,
    /// The client has begun to send a head, or has just connected.
    has_begun: bool,
}

impl<I: AsyncRead + AsyncWrite> TimedConnection<I> {
    pub(crate) fn new(io: I, activity: Arc<Activity>, limits: &ServeLimits) -> Self {
        let mut io = TimeoutStream::new(io);
        io.set_write_timeout(Some(limits.write));
        let (head, idle) = (limits.header, limits.idle);
        let timer = Box::pin(sleep(head));
        Self { io: Box::pin(io), activity, head, idle, timer, waits_for: None, answered: 0, has_begun: true }
    }

    /// Waits no longer than the client may take.
    fn in_time(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (wait, limit) =
            if self.has_begun { (Wait::Head, self.head) } else { (Wait::NextRequest, self.idle) };
        if self.waits_for != Some(wait) {
            self.waits_for = Some(wait);
            self.timer.as_mut().reset(Instant::now() + limit);
        }
        ready!(self.timer.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<I: AsyncRead + AsyncWrite> AsyncRead for TimedConnection<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let in_flight = this.activity.in_flight.load(Ordering::Relaxed) > 0;
        let answered = this.activity.answered.load(Ordering::Relaxed);
        if this.answered != answered {
            (this.answered, this.has_begun, this.waits_for) = (answered, false, None);
        }
        let before = buffer.filled().len();
        match this.io.as_mut().poll_read(cx, buffer) {
            Poll::Pending if in_flight => {
                this.activity.reader.register(cx.waker());
                Poll::Pending
            }
            Poll::Pending => this.in_time(cx),
            done => {
                this.has_begun |= !in_flight && buffer.filled().len() > before;
                done
            }
        }
    }
}

impl<I: AsyncRead + AsyncWrite> AsyncWrite for TimedConnection<I> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.io.as_mut().poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.io.as_mut().poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.as_mut().poll_shutdown(cx)
    }
}

/// The body of an answer, which keeps its request in flight.
pub(crate) struct HeldBody {
    body: axum::body::Body,
    _request: InFlight,
}

impl HeldBody {
    pub(crate) fn new(body: axum::body::Body, request: InFlight) -> Self {
        Self { body, _request: request }
    }
}

impl Body for HeldBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a request, which fails when it does not arrive in time.
pub(crate) struct TimedBody {
    body: Incoming,
    limit: Duration,
    began: Instant,
    received: u64,
    timer: Option<Pin<Box<Sleep>>>,
}

impl TimedBody {
    pub(crate) fn new(body: Incoming, limit: Duration) -> Self {
        Self { body, limit, began: Instant::now(), received: 0, timer: None }
    }

    /// Returns the time by which the next part must arrive.
    fn deadline(&self) -> Instant {
        let slowest = self.limit + Duration::from_secs(self.received / SLOWEST_BODY);
        (Instant::now() + self.limit).min(self.began + slowest)
    }
}

impl Body for TimedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) {
            this.timer = None;
            if let Some(data) = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()) {
                this.received = this.received.saturating_add(data.len() as u64);
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(axum::Error::new)));
        }
        let deadline = this.deadline();
        let timer = this.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Some(Err(axum::Error::new(io::Error::from(io::ErrorKind::TimedOut)))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
