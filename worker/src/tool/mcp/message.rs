//! Messages of a server, before the protocol's parser reads them.
//!
//! The parser takes UTF-8 and the numbers of JSON alone. A message with other bytes or numbers is rewritten, so that the rest
//! of it is not lost. Its result then says in `_meta` how it was read.

use crate::tool::body_text::{self, BodyText};
use futures::{Stream, stream};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::io;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio_util::bytes::Bytes;
use tokio_util::io::StreamReader;
use turnstone_domain::flaw::without_half_pairs;

/// The key of our notes in the `_meta` of a result.
const NOTES: &str = "turnstone.read";

/// Returns a message as the parser takes it.
pub(super) fn readable(content_type: &str, message: Vec<u8>) -> String {
    let BodyText { text, note } = body_text::decode(content_type, message);
    let whole = without_half_pairs(&text);
    let with_texts = body_text::with_numbers_as_texts(&whole);
    let numbers = match &with_texts {
        Cow::Borrowed(_) => None,
        Cow::Owned(_) => Some(format!("{}; they are read as texts", body_text::HAS_NO_NUMBERS)),
    };
    let notes: Vec<String> = note.into_iter().chain(numbers).collect();
    let text = with_texts.into_owned();
    // A server does not write our notes.
    if notes.is_empty() && !text.contains(NOTES) {
        return text;
    }
    noted(&text, &notes).unwrap_or(text)
}

/// Returns a message whose result carries notes; `None` if it has no result.
fn noted(text: &str, notes: &[String]) -> Option<String> {
    let mut message: Value = serde_json::from_str(text).ok()?;
    let result = message.get_mut("result")?.as_object_mut()?;
    let meta = result.entry("_meta").or_insert_with(|| Map::new().into());
    let meta = meta.as_object_mut()?;
    match notes.is_empty() {
        true => drop(meta.shift_remove(NOTES)),
        false => drop(meta.insert(NOTES.to_owned(), json!(notes))),
    }
    Some(message.to_string())
}

/// Returns the notes in the `_meta` of a result.
pub(super) fn notes_of(meta: Option<&Map<String, Value>>) -> Vec<String> {
    let notes = meta.and_then(|meta| meta.get(NOTES)).and_then(Value::as_array);
    notes.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns a stream of lines in which each line is a message as the parser takes it.
pub(super) fn readable_lines<R>(lines: R) -> impl AsyncRead + Send + Unpin + 'static
where
    R: AsyncRead + Send + Unpin + 'static,
{
    StreamReader::new(Box::pin(messages(lines)))
}

fn messages<R>(lines: R) -> impl Stream<Item = io::Result<Bytes>> + Send
where
    R: AsyncRead + Send + Unpin + 'static,
{
    stream::try_unfold(BufReader::new(lines).split(b'\n'), |mut lines| async move {
        let line = lines.next_segment().await?;
        Ok(line.map(|line| {
            let mut message = readable("", line);
            message.push('\n');
            (Bytes::from(message), lines)
        }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_rewritten_only_if_it_must_be() {
        let plain = r#"{"jsonrpc":"2.0","id":1,"result":{"a":"NaN"}}"#;
        assert_eq!(readable("application/json", plain.into()), plain);
        let half = readable("", br#"{"id":1,"result":{"a":"\ud83d"}}"#.to_vec());
        assert_eq!(half, r#"{"id":1,"result":{"a":"\ufffd"}}"#);
        let numbers = r#"{"jsonrpc":"2.0","id":1,"result":{"a":NaN,"_meta":{"b":1}}}"#;
        let read: Value = serde_json::from_str(&readable("application/json", numbers.into())).unwrap();
        assert_eq!((&read["result"]["a"], &read["result"]["_meta"]["b"]), (&json!("NaN"), &json!(1)));
        let notes = notes_of(read["result"]["_meta"].as_object());
        assert!(matches!(notes.as_slice(), [note] if note.contains("NaN")), "{notes:?}");
        let latin = b"{\"id\":1,\"result\":{\"a\":\"caf\xe9\"}}".to_vec();
        let read: Value = serde_json::from_str(&readable("", latin)).unwrap();
        assert_eq!(read["result"]["a"], "café");
        assert_eq!(notes_of(read["result"]["_meta"].as_object()).len(), 1);
    }
}
