//! Signatures: HMAC-SHA256, in the headers of Standard Webhooks and in those of OJS.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::hmac::{HMAC_SHA256, Key, Tag, sign};
use std::fmt::Write as _;
use turnstone_domain::webhook::SigningSecret;

fn hmac(key: &[u8], parts: &[&str]) -> Tag {
    sign(&Key::new(HMAC_SHA256, key), parts.join(".").as_bytes())
}

/// `v1,<base64>` over `id.timestamp.body` (Standard Webhooks). The key is the part after `whsec_`, decoded; a secret of
/// another form is the key itself.
pub(super) fn standard(secret: &SigningSecret, id: &str, timestamp: &str, body: &str) -> String {
    let text = secret.0.as_str();
    let decoded = text.strip_prefix("whsec_").and_then(|rest| BASE64_STANDARD.decode(rest).ok());
    let key = decoded.unwrap_or_else(|| text.as_bytes().to_vec());
    format!("v1,{}", BASE64_STANDARD.encode(hmac(&key, &[id, timestamp, body])))
}

/// `sha256=<hex>` over `timestamp.body` (OJS webhooks). The key is the secret as it was shown.
pub(super) fn ojs(secret: &SigningSecret, timestamp: &str, body: &str) -> String {
    let mut text = String::from("sha256=");
    for byte in hmac(secret.0.as_bytes(), &[timestamp, body]).as_ref() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first is the example of Standard Webhooks; the others were computed with Python's `hmac`.
    #[test]
    fn signatures_are_those_that_others_compute() {
        let made = SigningSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned());
        let signed = standard(&made, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", r#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        let own = SigningSecret("whsec_not*base64".to_owned());
        assert_eq!(standard(&own, "a", "1", "{}"), "v1,ErZ6YjQ57E93p7yT5B336kITTTCVuTHYgx+3OfNdCbY=");
        assert_eq!(
            ojs(&own, "1", "{}"),
            "sha256=8b4693962977821190d751e28466c842afa5453302bd2740956baca9922c3a00"
        );
    }
}
