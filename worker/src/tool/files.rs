//! Files in the answers of tools: they become artifacts, and the model receives their names.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use std::sync::Arc;
use turnstone_domain::CallId;
use turnstone_domain::artifact::{self, NewArtifact};

/// Returns a file in the form that the model receives.
pub(super) fn as_json(file: &NewArtifact) -> Value {
    json!({"type": "artifact", "artifact_id": file.id, "name": file.name, "media_type": file.media_type,
           "bytes": file.bytes(), "sha256": file.digest, "url": artifact::path(&file.id)})
}

/// Returns a file that a tool sent. An invalid name or media type is replaced by a more general one.
pub(super) fn given(
    call_id: &CallId,
    part: usize,
    (tool, name): (&str, Option<&str>),
    media_type: &str,
    content: Vec<u8>,
) -> Result<NewArtifact, String> {
    let content: Arc<[u8]> = content.into();
    let plain = format!("{}-{}.{}", tool.rsplit('.').next().unwrap_or(tool), part + 1, ending(media_type));
    let named = name.unwrap_or(&plain);
    let plain = plain.as_str();
    let attempts =
        [(named, media_type), (plain, media_type), (named, artifact::BYTES), (plain, artifact::BYTES)];
    let mut last = String::new();
    for (name, media_type) in attempts {
        match NewArtifact::new(call_id, part, name, media_type, Arc::clone(&content)) {
            Ok(file) => return Ok(file),
            Err(why) => last = why,
        }
    }
    Err(last)
}

/// Replaces the files in the content of an MCP answer, and returns them: pictures, sounds and resources in
/// bytes.
pub(super) fn take(call_id: &CallId, tool: &str, output: &mut Value) -> Vec<NewArtifact> {
    let blocks = match output {
        Value::Object(fields) => fields.get_mut("content").and_then(Value::as_array_mut),
        Value::Array(blocks) => Some(blocks),
        _ => None,
    };
    let mut files = Vec::new();
    for block in blocks.into_iter().flatten() {
        let Some(file) = file_of(call_id, files.len(), tool, block) else { continue };
        *block = as_json(&file);
        files.push(file);
    }
    files
}

fn file_of(call_id: &CallId, part: usize, tool: &str, block: &Value) -> Option<NewArtifact> {
    let (held, bytes, name) = match block["type"].as_str()? {
        "image" | "audio" => (block, block["data"].as_str()?, None),
        "resource" => {
            let resource = &block["resource"];
            let name = resource["uri"].as_str().and_then(last_segment);
            (resource, resource["blob"].as_str()?, name)
        }
        _ => return None,
    };
    let content = BASE64_STANDARD.decode(bytes).ok()?;
    given(call_id, part, (tool, name), held["mimeType"].as_str().unwrap_or(artifact::BYTES), content).ok()
}

/// Returns the last part of the path of an address.
pub(super) fn last_segment(uri: &str) -> Option<&str> {
    let path = uri.split(['?', '#']).next()?;
    let path = path.split_once("://").map_or(path, |(_, rest)| rest);
    path.split_once('/')?.1.rsplit('/').next().filter(|name| !name.is_empty())
}

/// Returns the file extension for a media type.
fn ending(media_type: &str) -> &str {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    match essence.split_once('/').map_or("", |(_, kind)| kind.split('+').next().unwrap_or(kind)) {
        "jpeg" => "jpg",
        "mpeg" => "mp3",
        "plain" => "txt",
        kind if (1..=5).contains(&kind.len()) && kind.bytes().all(|b| b.is_ascii_alphanumeric()) => kind,
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_an_answer_become_artifacts() {
        let mut output = json!([
            {"type": "text", "text": "here"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "file:///tmp/a%20b.pdf", "mimeType": "application/pdf", "blob": "aGk="}},
            {"type": "resource", "resource": {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "hi"}},
            {"type": "image", "data": "%", "mimeType": "image/png"},
        ]);
        let files = take(&"c".into(), "shop.show", &mut output);
        let names: Vec<_> = files.iter().map(|file| (file.name.as_str(), file.media_type.as_str())).collect();
        assert_eq!(names, [("show-1.png", "image/png"), ("a%20b.pdf", "application/pdf")]);
        assert_eq!((&*files[0].content, &*files[1].content), (&[0_u8, 0, 0][..], &b"hi"[..]));
        assert_eq!(output[1]["artifact_id"], files[0].id.as_str());
        assert_eq!((&output[0]["text"], &output[3]["resource"]["text"]), (&json!("here"), &json!("hi")));
        assert_eq!(output[4]["data"], "%", "what is no file stays what it is");
    }

    #[test]
    fn what_a_tool_says_of_a_file_need_not_be_true() {
        let file = given(&"c".into(), 0, ("t", Some("a/../b")), "no type", vec![1]).unwrap();
        assert_eq!((file.name.as_str(), file.media_type.as_str()), ("t-1.bin", artifact::BYTES));
    }

    #[test]
    fn names_are_found_in_addresses() {
        assert_eq!(last_segment("https://a.example/x/y.pdf?z=1"), Some("y.pdf"));
        for none in ["https://a.example", "https://a.example/", "urn:isbn:1"] {
            assert_eq!(last_segment(none), None, "{none}");
        }
        assert_eq!(
            (ending("image/svg+xml"), ending("image/jpeg"), ending("application/vnd.ms-excel")),
            ("svg", "jpg", "bin")
        );
    }
}
