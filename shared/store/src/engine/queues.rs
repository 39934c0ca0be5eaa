//! Queues as operators see them: paused, bounded, limited, weighted: the calls.

use super::Engine;
use super::session::Reader;
use crate::Queues;
use async_trait::async_trait;

#[async_trait]
impl<R: Reader> Queues for Engine<R> {}
