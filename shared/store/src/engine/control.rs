//! An engagement is paused, resumed, forked, merged, or one of its calls made again: the calls.

use super::Engine;
use super::session::Reader;
use crate::Control;
use async_trait::async_trait;

#[async_trait]
impl<R: Reader> Control for Engine<R> {}
