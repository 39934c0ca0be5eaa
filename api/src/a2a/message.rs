//! Messages of A2A: the parts of a client's message as the input of a job, and back.

use super::rpc::RpcRefusal;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};
use turnstone_domain::message::{ContentPart, ImageKind, ImageSource};

/// The media types of an agent's input.
pub(super) const INPUT_MODES: [&str; 6] =
    ["text/plain", "application/json", "image/png", "image/jpeg", "image/gif", "image/webp"];
/// The media types of an agent's answer.
pub(super) const OUTPUT_MODES: [&str; 2] = ["text/plain", "application/json"];
/// The longest id of a message.
const ID_CHARACTERS: usize = 255;

/// A client's message.
pub(super) struct Message {
    /// The client's own id of it: a repeated message returns the same task.
    pub(super) id: String,
    /// The context that it continues.
    pub(super) context: Option<String>,
    /// The task that it answers.
    pub(super) task: Option<String>,
    /// `args` of the job.
    pub(super) args: Vec<Value>,
    /// Its parts that are data, as they were sent.
    data: Vec<Value>,
}

impl Message {
    /// Reads `params.message`.
    pub(super) fn read(sent: Option<&Value>) -> Result<Self, RpcRefusal> {
        let Some(fields) = sent.and_then(Value::as_object) else {
            return Err(RpcRefusal::parameter("message", "must be an object"));
        };
        let id = text(fields, "messageId")?.filter(|id| (1..=ID_CHARACTERS).contains(&id.chars().count()));
        let id =
            id.ok_or_else(|| RpcRefusal::parameter("message.messageId", "must have 1 to 255 characters"))?;
        if text(fields, "role")?.as_deref() != Some("ROLE_USER") {
            return Err(RpcRefusal::parameter("message.role", "must be ROLE_USER"));
        }
        let parts = fields.get("parts").and_then(Value::as_array).filter(|parts| !parts.is_empty());
        let parts = parts
            .ok_or_else(|| RpcRefusal::parameter("message.parts", "must be a list of at least one part"))?;
        Ok(Self {
            id,
            context: text(fields, "contextId")?,
            task: text(fields, "taskId")?,
            args: parts.iter().map(argument).collect::<Result<_, _>>()?,
            data: parts.iter().filter_map(|part| part.get("data").cloned()).collect(),
        })
    }

    /// Returns the message as one text.
    pub(super) fn as_text(&self) -> String {
        self.args.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
    }

    /// Returns the data of the message, when it is one object.
    pub(super) fn data(&self) -> Option<&Map<String, Value>> {
        match self.data.as_slice() {
            [data] => data.as_object(),
            _ => None,
        }
    }
}

/// Reads a text; an empty one counts as absent, as in protobuf.
fn text(fields: &Map<String, Value>, name: &str) -> Result<Option<String>, RpcRefusal> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
        Some(_) => Err(RpcRefusal::parameter(&format!("message.{name}"), "must be a text")),
    }
}

/// Returns a part in the form that NORM reads.
fn argument(part: &Value) -> Result<Value, RpcRefusal> {
    let wrong =
        || RpcRefusal::parameter("message.parts", "must each have one of `text`, `raw`, `url` and `data`");
    let fields = part.as_object().ok_or_else(wrong)?;
    let mut content =
        ["text", "raw", "url", "data"].into_iter().filter_map(|name| Some((name, fields.get(name)?)));
    let (Some((kind, value)), None) = (content.next(), content.next()) else { return Err(wrong()) };
    let media_type = text(fields, "mediaType")?.unwrap_or_default();
    match (kind, value) {
        ("text", Value::String(text)) => Ok(json!(text)),
        // As a text, because an object could look like a message of its own.
        ("data", data) => Ok(json!(data.to_string())),
        ("url", Value::String(url)) if media_type.starts_with("image/") => {
            Ok(picture(ImageKind::Url, media_type, url.clone()))
        }
        ("raw", Value::String(bytes)) if media_type.starts_with("image/") => {
            Ok(picture(ImageKind::Base64, media_type, bytes.clone()))
        }
        ("raw", Value::String(bytes)) if !media_type.is_empty() => {
            let name = text(fields, "filename")?.unwrap_or_else(|| "file".to_owned());
            Ok(json!(ContentPart::File { name, content: document(bytes, &media_type)?, media_type }))
        }
        ("url" | "raw", Value::String(_)) => {
            let why = format!(
                "A part of `{media_type}` by `{kind}` is not taken: send texts, data, pictures, or files with a mediaType."
            );
            Err(RpcRefusal::content_type(why))
        }
        _ => Err(wrong()),
    }
}

fn picture(kind: ImageKind, media_type: String, data: String) -> Value {
    json!(ContentPart::Image { source: ImageSource { kind, media_type, data } })
}

/// Texts are decoded; other content stays in base64.
fn document(bytes: &str, media_type: &str) -> Result<String, RpcRefusal> {
    let wrong = |why| RpcRefusal::parameter("message.parts", why);
    let read = BASE64_STANDARD.decode(bytes).map_err(|_| wrong("must have `raw` in base64"))?;
    if !media_type.starts_with("text/") {
        return Ok(bytes.to_owned());
    }
    String::from_utf8(read).map_err(|_| wrong("of text must be UTF-8"))
}

/// Returns the input as parts again. Data is returned as the text that the agent received.
pub(super) fn parts_of(args: &Value) -> Vec<Value> {
    args.as_array().map(Vec::as_slice).unwrap_or_default().iter().map(part_of).collect()
}

fn part_of(argument: &Value) -> Value {
    match serde_json::from_value::<ContentPart>(argument.clone()) {
        Ok(ContentPart::Image { source: ImageSource { kind: ImageKind::Url, media_type, data } }) => {
            json!({"url": data, "mediaType": media_type})
        }
        Ok(ContentPart::Image { source }) => json!({"raw": source.data, "mediaType": source.media_type}),
        Ok(ContentPart::File { name, content, media_type }) => {
            let raw = if media_type.starts_with("text/") { BASE64_STANDARD.encode(content) } else { content };
            json!({"raw": raw, "mediaType": media_type, "filename": name})
        }
        Ok(ContentPart::Text { text }) => json!({"text": text}),
        Err(_) => match argument {
            Value::String(text) => json!({"text": text}),
            other => json!({"data": other}),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(parts: &Value) -> Result<Message, RpcRefusal> {
        Message::read(Some(&json!({"messageId": "m", "role": "ROLE_USER", "parts": parts})))
    }

    #[test]
    fn parts_become_what_agents_are_asked() {
        let png = json!({"raw": "aGk=", "mediaType": "image/png"});
        let note = json!({"raw": "aGk=", "mediaType": "text/plain", "filename": "note"});
        let message =
            read(&json!([{"text": "a"}, {"data": {"role": "user", "content": "b"}}, &png, &note])).unwrap();
        let picture =
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}});
        let file = json!({"type": "file", "name": "note", "content": "hi", "media_type": "text/plain"});
        assert_eq!(message.args, [json!("a"), json!(r#"{"role":"user","content":"b"}"#), picture, file]);
        assert_eq!(message.data().unwrap()["content"], "b");
        let again = parts_of(&Value::Array(message.args));
        assert_eq!(
            again,
            [json!({"text": "a"}), json!({"text": r#"{"role":"user","content":"b"}"#}), png, note]
        );
    }

    #[test]
    fn what_is_no_part_is_refused() {
        let refused = [
            json!([]),
            json!("a"),
            json!([{}]),
            json!([{"text": 1}]),
            json!([{"text": "a", "data": 1}]),
            json!([{"url": "https://example.org/a.pdf"}]),
            json!([{"raw": "%", "mediaType": "text/plain"}]),
            json!([{"raw": "/w==", "mediaType": "text/plain"}]),
        ];
        for parts in refused {
            assert!(read(&parts).is_err(), "{parts}");
        }
    }
}
