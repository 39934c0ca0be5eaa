//! One call of one model, with its span and its metrics.
//!
//! Where the provider keeps answers, the id of the answer is made durable while the model still writes it. An attempt that
//! finds the id of its request fetches the answer, and buys another one only if the provider has none.

use super::pictures;
use crate::model::{Model, ModelAnswer, ModelError, ModelRequest};
use crate::state::{Outbox, Stop, trace};
use serde_json::json;
use std::pin::pin;
use std::time::Instant;
use tokio::sync::mpsc;
use tracing::Instrument;
use turnstone_domain::digest;
use turnstone_domain::turn_write::KeptAnswer;

/// The most characters of an id that is recorded.
const LONGEST_ID: usize = 256;

/// Calls one model.
///
/// # Errors
/// Those of a barrier. The inner error is that of the call.
pub async fn make(
    outbox: &mut Outbox,
    (provider, model): (&str, &dyn Model),
    request: &mut ModelRequest,
) -> Result<Result<ModelAnswer, ModelError>, Stop> {
    outbox.secured()?;
    let (noted, mut ids) = mpsc::unbounded_channel::<String>();
    let request_sha256 = model.keeps_answers().then(|| digest_of(outbox, request));
    if request_sha256.is_some() {
        let listener = std::mem::take(&mut request.listener);
        request.listener = listener.with_id(move |id| drop(noted.send(id.to_owned())));
    }
    let kept = outbox.position.kept_answer.as_deref().filter(|kept| {
        kept.provider == provider
            && request_sha256.as_ref().is_some_and(|sha256| kept.request_sha256 == *sha256)
    });
    let kept = kept.map(|kept| kept.id.clone());
    let (span, began) = (trace::chat(&outbox.claimed, provider, request), Instant::now());
    let sent = pictures::for_model(request, model);
    let answered = {
        let answer = async {
            let Some(id) = &kept else { return model.answer(&sent).await };
            match model.kept_answer(id, &sent).await? {
                Some(answer) => Ok(answer),
                None => {
                    let timeout = sent.timeout.saturating_sub(began.elapsed());
                    model.answer(&ModelRequest { timeout, ..sent.as_ref().clone() }).await
                }
            }
        };
        let mut answer = pin!(answer.instrument(span.clone()));
        loop {
            tokio::select! {
                biased;
                answered = &mut answer => break answered,
                Some(id) = ids.recv() => {
                    let known = outbox.position.kept_answer.as_ref().is_some_and(|kept| kept.id == id);
                    if let Some(sha256) = request_sha256.as_ref().filter(|_| !known && id.len() <= LONGEST_ID) {
                        let (provider, request_sha256) = (provider.to_owned(), sha256.clone());
                        keep(outbox, Some(KeptAnswer { provider, id, request_sha256 }));
                        outbox.barrier().await?;
                    }
                }
            }
        }
    };
    let is_still =
        kept.is_some() && outbox.position.kept_answer.as_ref().map(|kept| &kept.id) == kept.as_ref();
    if is_still && matches!(answered, Err(ModelError::Timeout(_) | ModelError::Malformed(_))) {
        // It would not come in the next attempt either.
        keep(outbox, None);
    }
    let claimed = &outbox.claimed;
    claimed.trace.counted.asked(provider, began.elapsed(), answered.as_ref().err().map(ModelError::kind));
    match &answered {
        Ok(answer) => trace::answered(claimed, &span, answer),
        Err(error) => turnstone_telemetry::span::fail(&span, error.kind(), &error.to_string()),
    }
    Ok(answered)
}

/// Records the answer that the provider keeps, in the position that the next write makes durable.
fn keep(outbox: &mut Outbox, answer: Option<KeptAnswer>) {
    let answer = answer.map(Box::new);
    outbox.next_position().kept_answer.clone_from(&answer);
    outbox.position.kept_answer = answer;
}

/// Returns the digest of what the model is asked.
fn digest_of(outbox: &Outbox, request: &ModelRequest) -> String {
    let ModelRequest { model, system, messages, tools, max_tokens, .. } = request;
    let messages: Vec<_> = messages.iter().map(|message| &**message).collect();
    digest::of_json(&json!([outbox.position.turn, model, system, messages, tools, max_tokens]))
}
