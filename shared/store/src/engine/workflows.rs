//! Chains, groups and batches: jobs that wait for one another: the calls.

use super::Engine;
use super::session::Reader;
use crate::Workflows;
use async_trait::async_trait;

#[async_trait]
impl<R: Reader> Workflows for Engine<R> {}
