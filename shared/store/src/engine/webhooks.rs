//! Who is told of events, and what became of it: the calls.

use super::Engine;
use super::session::Reader;
use crate::Webhooks;
use async_trait::async_trait;

#[async_trait]
impl<R: Reader> Webhooks for Engine<R> {}
