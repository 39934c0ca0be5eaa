//! Content that is more than one text: ordered parts (OSSA §1.2 rule 3, RS-09).

use serde::{Deserialize, Serialize};

/// A part of a message's content.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ContentPart {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image {
        /// Where its bytes are.
        source: ImageSource,
    },
    /// A named document.
    File {
        /// Its name.
        name: String,
        /// Its content: text, or base64 where the media type is not one of text.
        content: String,
        /// Its media type, such as `text/csv`.
        media_type: String,
    },
}

/// Where the bytes of a picture are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ImageSource {
    /// The form of `data`.
    #[serde(rename = "type")]
    pub kind: ImageKind,
    /// The media type, such as `image/png`.
    pub media_type: String,
    /// Base64 without line breaks, or a URL that the provider fetches.
    pub data: String,
}

/// The form of a picture's `data`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageKind {
    /// The bytes themselves, in base64.
    Base64,
    /// A URL.
    Url,
}

impl ImageSource {
    /// Returns the picture as a URL, for providers that take nothing else: bytes become a `data:` URL.
    #[must_use]
    pub fn as_url(&self) -> String {
        match self.kind {
            ImageKind::Url => self.data.clone(),
            ImageKind::Base64 => format!("data:{};base64,{}", self.media_type, self.data),
        }
    }
}

impl ContentPart {
    /// Returns the part as text for a reader that takes nothing else; a picture is named, not shown.
    #[must_use]
    pub fn as_text(&self) -> String {
        match self {
            Self::Text { text } => text.clone(),
            Self::Image { source } => format!("[image, {}]", source.media_type),
            Self::File { name, content, media_type } => format!("[file {name}, {media_type}]\n{content}"),
        }
    }

    /// Returns true if it is a picture, whose size in bytes does not bound its tokens.
    #[must_use]
    pub fn is_image(&self) -> bool {
        matches!(self, Self::Image { .. })
    }
}

/// Returns all parts as one text, in order, each in a paragraph of its own.
#[must_use]
pub fn as_text(parts: &[ContentPart]) -> String {
    parts.iter().map(ContentPart::as_text).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// RS-09: the shapes of the parts are those of OSSA §1.2.
    #[test]
    fn parts_are_written_as_ossa_writes_them() {
        let written = json!([
            {"type": "text", "text": "What is this?"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
            {"type": "file", "name": "a.csv", "content": "x;y", "media_type": "text/csv"},
        ]);
        let parts: Vec<ContentPart> = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(&parts).unwrap(), written);
        assert_eq!(as_text(&parts), "What is this?\n\n[image, image/png]\n\n[file a.csv, text/csv]\nx;y");
        let ContentPart::Image { source } = &parts[1] else { panic!("{parts:?}") };
        assert_eq!(source.as_url(), "data:image/png;base64,aGk=");
    }
}
