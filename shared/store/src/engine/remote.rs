//! What workers in any language write, reached over HTTP: acknowledgements, failures, beats, saved states, progress: the calls.

use super::Engine;
use super::session::Reader;
use crate::Remote;
use async_trait::async_trait;

#[async_trait]
impl<R: Reader> Remote for Engine<R> {}
