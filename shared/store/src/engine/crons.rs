//! Entries that make a job at times: the calls.

use super::Engine;
use super::session::Reader;
use crate::Crons;
use async_trait::async_trait;

#[async_trait]
impl<R: Reader> Crons for Engine<R> {}
