//! A prompt that is longer than the model's context (`[models] on_context_overflow`).
//!
//! The next model of the list whose configured context has room is asked. If there is none, the oldest outcomes of tools are
//! shortened in the request, and the models are asked again. The conversation itself keeps them whole.

use super::ask::{Answered, Prepared, ask_models};
use super::request::bound;
use crate::flow::run::FlowRun;
use crate::model::ModelRequest;
use crate::options::OnContextOverflow;
use crate::state::{Outbox, Stop};
use std::sync::Arc;
use turnstone_domain::budget;
use turnstone_domain::error::FailureKind;
use turnstone_domain::event::{EventBody, ShortenedHistory};
use turnstone_domain::message::{Message, Role};

/// The most times that a request is shortened.
const ROUNDS: usize = 4;
/// The characters that a shortened outcome keeps.
const KEPT: usize = 400;
/// The bytes that shortening saves at least. An outcome that was shortened is left as it is.
const WORTH_IT: usize = 200;

/// Calls the models of the agent until one answers, with less of the conversation if it does not fit.
///
/// # Errors
/// As [`ask_models`]; [`FailureKind::ContextOverflow`] when nothing is left to shorten.
pub async fn ask(
    outbox: &mut Outbox,
    flow: Option<&FlowRun>,
    prepared: &mut Prepared,
) -> Result<Answered, Stop> {
    for _ in 0..ROUNDS {
        match ask_models(outbox, flow, prepared).await {
            Err(Stop::Fail(error)) if error.kind == FailureKind::ContextOverflow => {
                let may_shorten = outbox.claimed.deps.options.on_context_overflow != OnContextOverflow::Fail;
                let shortened = may_shorten.then(|| shorten(&mut prepared.request)).flatten();
                let Some(shortened) = shortened else { return Err(error.into()) };
                prepared.prompt_bound = bound(&prepared.request);
                outbox.event(&EventBody::HistoryShortened(shortened));
            }
            other => return other,
        }
    }
    ask_models(outbox, flow, prepared).await
}

/// Returns true if the context of a model is known, and has room for a request that another one refused for its length.
pub fn has_room(outbox: &Outbox, model: &str, refused: &str, prepared: &Prepared) -> bool {
    let estimates = &outbox.claimed.deps.estimates;
    let wanted = budget::estimate(usize::try_from(prepared.prompt_bound).unwrap_or(usize::MAX))
        .saturating_add(prepared.request.max_tokens);
    let is_larger = |context: i64| estimates.context_tokens(refused).is_none_or(|refused| context > refused);
    estimates.context_tokens(model).is_some_and(|context| context >= wanted && is_larger(context))
}

/// Shortens the oldest outcomes of tools, until two thirds of the request are left. Returns `None` if there is nothing to
/// shorten.
fn shorten(request: &mut ModelRequest) -> Option<ShortenedHistory> {
    let mut left = usize::try_from(bound(request)).unwrap_or(usize::MAX);
    let target = left / 3 * 2;
    let (mut results, mut bytes) = (0, 0);
    for message in request.messages.iter_mut().filter(|message| message.role == Role::Tool) {
        if left <= target {
            break;
        }
        let Some(shorter) = shortened(message) else { continue };
        let saved = message.content.len() - shorter.content.len();
        (results, bytes, left) = (results + 1, bytes + saved, left.saturating_sub(saved));
        *message = Arc::new(shorter);
    }
    (results > 0).then_some(ShortenedHistory { results, bytes })
}

/// Returns the beginning of an outcome; `None` if that would save nothing.
fn shortened(message: &Message) -> Option<Message> {
    let kept: String = message.content.chars().take(KEPT).collect();
    let bytes = message.content.len() - kept.len();
    let content = format!("{kept} … ({bytes} more bytes are left out, because the conversation is too long)");
    (content.len() + WORTH_IT < message.content.len()).then(|| Message {
        content,
        parts: Vec::new(),
        ..message.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::request_of_test;

    #[test]
    fn the_oldest_outcomes_are_shortened_first() {
        let outcome = |text: String| Arc::new(Message::tool("c".into(), text));
        let mut request = request_of_test();
        request.messages.extend([
            outcome("a".repeat(9_000)),
            outcome("b".repeat(100)),
            outcome("c".repeat(9_000)),
        ]);
        let first = shorten(&mut request).unwrap();
        assert_eq!(first.results, 1);
        assert!(first.bytes > 8_000);
        assert!(request.messages[1].content.contains("are left out"));
        assert_eq!(request.messages[3].content.len(), 9_000);
        assert_eq!(shorten(&mut request).unwrap().results, 1);
        assert_eq!(request.messages[2].content.len(), 100);
        assert!(shorten(&mut request).is_none());
    }
}
