//! What operators do to many jobs at once: dead letters, bulk, statistics, tenants: the calls.

use super::Engine;
use super::session::Reader;
use crate::Operate;
use async_trait::async_trait;

#[async_trait]
impl<R: Reader> Operate for Engine<R> {}
