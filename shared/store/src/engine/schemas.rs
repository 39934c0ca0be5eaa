//! What the arguments of a job type have to look like: the calls.

use super::Engine;
use super::session::Reader;
use crate::Schemas;
use async_trait::async_trait;

#[async_trait]
impl<R: Reader> Schemas for Engine<R> {}
