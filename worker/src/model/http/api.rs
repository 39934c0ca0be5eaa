//! The parts in which the APIs of providers differ.

use super::{History, PartialAnswer, WireNames};
use crate::model::{Listener, ModelAnswer, ModelRequest};
use serde_json::{Map, Value};
use std::fmt::Debug;

/// An API of models over HTTP.
pub trait Api: Debug + Send + Sync + 'static {
    /// Returns the address of the API's own provider, up to and including the version.
    fn base_url(&self) -> &'static str;

    /// Returns the path of a call below the address.
    fn path(&self) -> &'static [&'static str];

    /// Returns the header that carries the key, and the prefix of its value.
    fn key_header(&self) -> (&'static str, &'static str) {
        ("authorization", "Bearer ")
    }

    /// Returns headers of every call that the configuration may override.
    fn own_headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Returns the names of the tools on offer.
    fn names(&self, request: &ModelRequest) -> WireNames {
        WireNames::of(request.tools.iter().map(|tool| tool.name.as_str()))
    }

    /// Returns the body of a call. `more` has parameters that the request has no place for.
    fn body(
        &self,
        request: &ModelRequest,
        names: &WireNames,
        history: &History<'_>,
        more: &Map<String, Value>,
    ) -> Value;

    /// Removes a member from the body of a call that some models do not know, if the provider's refusal is about it. Returns
    /// true if it did.
    fn remove_refused(&self, _body: &mut Value, _refusal: &str) -> bool {
        false
    }

    /// Adds one event of a stream to the answer, and passes its text to `listener`.
    ///
    /// # Errors
    /// A sentence that says why it is no part of an answer.
    fn absorb(&self, answer: &mut PartialAnswer, event: &Value, listener: &Listener) -> Result<(), String>;

    /// Adds an answer that came in one piece.
    ///
    /// # Errors
    /// A sentence that says why it is no answer.
    fn absorb_whole(&self, answer: &mut PartialAnswer, document: &Value) -> Result<(), String> {
        self.absorb(answer, document, &Listener::default())
    }

    /// Returns true if a provider with this API can keep answers, each below the path of a call under its id.
    fn can_keep(&self) -> bool {
        false
    }

    /// Returns true if a kept answer is not complete yet, and still being written.
    fn is_in_progress(&self, _document: &Value) -> bool {
        false
    }

    /// Returns the failure that an event reports.
    fn failure<'a>(&self, event: &'a Value) -> Option<&'a Value> {
        (!event["error"].is_null()).then(|| &event["error"])
    }

    /// Returns the whole answer of a provider.
    ///
    /// # Errors
    /// A sentence that says why it is none.
    fn finish(
        &self,
        answer: PartialAnswer,
        names: &WireNames,
        provider: &str,
        request: &ModelRequest,
    ) -> Result<ModelAnswer, String> {
        answer.finish(names, provider, &request.model)
    }
}
