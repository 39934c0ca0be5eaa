//! Reads bytes as one JSON object.

use crate::OjsError;
use crate::read::shortened;
use turnstone_domain::RawObject;
use turnstone_domain::flaw::{Flaw, first_flaw, first_nul};

/// The deepest nesting of a body. Parsers stop at 128; responses and stored rows use the difference to wrap a client's
/// values.
pub const MAX_DEPTH: usize = 100;

/// Reads a body that has to be one JSON object; its members stay the texts that were sent. A name that occurs twice in
/// an object, at any depth, is refused, because two readers could take different ones.
///
/// # Errors
/// `invalid_payload` for a body that is not a JSON object in UTF-8, holds half of a surrogate pair, or nests deeper
/// than [`MAX_DEPTH`]. `invalid_request` for a name that occurs twice.
pub fn read_object(body: &[u8]) -> Result<RawObject, OjsError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(OjsError::invalid_payload("The body is empty; a JSON object is expected."));
    }
    let text = std::str::from_utf8(body).map_err(|error| {
        let at = error.valid_up_to();
        OjsError::invalid_payload(format!("The body is not JSON: byte {at} is not UTF-8."))
    })?;
    let flaw = first_flaw(text, MAX_DEPTH);
    if flaw == Some(Flaw::TooDeep) {
        return Err(refusal(Flaw::TooDeep));
    }
    let object: RawObject = serde_json::from_str(text).map_err(|error| {
        let what = if error.is_data() { "a JSON object" } else { "JSON" };
        OjsError::invalid_payload(format!("The body is not {what}: {}.", shortened(&error.to_string(), 200)))
    })?;
    flaw.map_or(Ok(object), |flaw| Err(refusal(flaw)))
}

/// Refuses JSON with the character U+0000 in a text or a name: PostgreSQL stores no such text. Every body is checked, so both
/// databases take the same requests.
///
/// # Errors
/// `invalid_request` with the place of the text.
pub fn refuse_nul(body: &[u8]) -> Result<(), OjsError> {
    let place = std::str::from_utf8(body).ok().and_then(first_nul);
    place.map_or(Ok(()), |place| {
        let place = if place.is_empty() { "the body" } else { &shortened(&place, 200) };
        Err(OjsError::nul(place))
    })
}

fn refusal(flaw: Flaw) -> OjsError {
    match flaw {
        Flaw::TooDeep => OjsError::invalid_payload(format!("The body nests deeper than {MAX_DEPTH} levels.")),
        Flaw::Twice { place, name } => {
            let field = if place.is_empty() { name } else { format!("{place}.{name}") };
            OjsError::invalid_request(&shortened(&field, 200), "stands twice in its object")
        }
        Flaw::HalfPair { place } => {
            let place = shortened(&place, 200);
            let message =
                format!("The body is not JSON: the string at `{place}` holds half of a surrogate pair.");
            OjsError::invalid_payload(message).with("field", place)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &[u8]) -> OjsError {
        read_object(body).unwrap_err()
    }

    #[test]
    fn only_one_object_is_a_body() {
        for bad in [
            &b""[..],
            b"  \n",
            b"{",
            b"[]",
            b"3",
            b"null",
            b"{} {}",
            b"{'a':1}",
            b"{\"a\":\"\xff\"}",
            b"{\"a\":NaN}",
        ] {
            let error = refused(bad);
            assert_eq!((error.status, error.code), (400, "invalid_payload"), "{bad:?}: {error}");
        }
        assert!(read_object(b" {} ").unwrap().is_empty());
    }

    #[test]
    fn deep_bodies_are_refused_in_plain_words() {
        for depth in [MAX_DEPTH, 200, 10_000] {
            let body = format!("{{\"args\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
            let error = refused(body.as_bytes());
            assert_eq!(error.code, "invalid_payload");
            assert!(error.message.contains("nests deeper than 100 levels"), "{error}");
        }
        let open = format!("{{\"args\":{}", "[".repeat(100_000));
        assert!(refused(open.as_bytes()).message.contains("nests deeper"));
        let fits = format!("{{\"args\":{}{}}}", "[".repeat(MAX_DEPTH - 1), "]".repeat(MAX_DEPTH - 1));
        assert!(read_object(fits.as_bytes()).is_ok());
    }

    #[test]
    fn a_field_that_stands_twice_is_named() {
        for (body, field) in [
            (r#"{"type":"a","args":[],"type":"b"}"#, "type"),
            (r#"{"type":"a","args":[{"to":1,"to":1}]}"#, "args[0].to"),
            (r#"{"type":"a","args":[],"x":{"y":{"z":1,"z":2}}}"#, "x.y.z"),
        ] {
            let error = refused(body.as_bytes());
            assert_eq!((error.code, error.details["field"].as_str()), ("invalid_request", Some(field)));
        }
    }

    #[test]
    fn half_of_a_surrogate_pair_is_refused_with_its_place() {
        let error = refused(br#"{"type":"a","args":["fine",{"note":"\ud83e"}]}"#);
        assert_eq!((error.code, error.details["field"].as_str()), ("invalid_payload", Some("args[1].note")));
    }

    #[test]
    fn a_text_with_nul_is_refused_with_its_place() {
        let error = refuse_nul(br#"{"meta":{"agent":"a\u0000b"}}"#).unwrap_err();
        assert_eq!((error.status, error.code), (400, "invalid_request"));
        assert_eq!(error.details["field"], "meta.agent");
        assert!(error.message.contains("U+0000"), "{error}");
        assert_eq!(refuse_nul(br#"{"a":"\\u0000"}"#), Ok(()));
    }

    #[test]
    fn members_stay_the_texts_that_were_sent() {
        let text = r#"{"z":[1e400, 0.1,1.0],"a":{"b":1000000000000000000000000000000,"a":-0}}"#;
        let read = read_object(text.as_bytes()).unwrap();
        assert_eq!(read.to_raw().as_str(), text);
    }
}
