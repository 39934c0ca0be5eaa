//! The valid names of queues and types of jobs (OJS core §3), for every reader of a name.

use turnstone_domain::RawJson;

/// A name has at most this many characters.
const TYPE_CHARACTERS: usize = 255;
const QUEUE_CHARACTERS: usize = 128;

/// Checks the name of a queue.
///
/// # Errors
/// Words that complete a sentence that begins with the field.
pub fn check_queue_name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let fits = (1..=QUEUE_CHARACTERS).contains(&name.len())
        && name.starts_with(plain)
        && name.chars().all(|c| plain(c) || matches!(c, '-' | '.'));
    if fits {
        return Ok(());
    }
    Err("must be 1 to 128 characters of a-z, 0-9, `-`, `.`, and begin with a letter or digit".to_owned())
}

/// Checks the type of a job.
///
/// # Errors
/// Words that complete a sentence that begins with the field.
pub fn check_job_type(name: &str) -> Result<(), String> {
    let part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_lowercase())
            && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-'))
    };
    if name.len() <= TYPE_CHARACTERS && name.split('.').all(part) {
        return Ok(());
    }
    Err(
        "must be at most 255 characters in dot-separated parts of a-z, 0-9, `_`, `-`, each beginning with a letter, such as agent.research"
            .to_owned(),
    )
}

/// Splits a type that carries its version, such as `invoice.generate@2.0` (OJS job versioning §5.3). A suffix after `@`
/// that is no version stays part of the name, which is then invalid.
pub(crate) fn versioned(name: &str) -> (&str, Option<&str>) {
    match name.rsplit_once('@') {
        Some((base, version)) if is_version(version) => (base, Some(version)),
        _ => (name, None),
    }
}

/// Returns true if a text is a version: one to three numbers with dots between.
fn is_version(text: &str) -> bool {
    let number = |part: &str| (1..=9).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
    text.split('.').count() <= 3 && text.split('.').all(number)
}

/// Reads the version of a schema from a text. Schemas have whole numbers here, so that `2`, `2.0` and `2.0.0` are the
/// same one, and `2.1` is none.
#[must_use]
pub fn schema_version(text: &str) -> Option<i64> {
    if !is_version(text) {
        return None;
    }
    let (number, rest) = text.split_once('.').unwrap_or((text, ""));
    let whole = rest.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    number.parse().ok().filter(|version| whole && *version > 0)
}

/// Returns the version of a schema that the member `version` of a job names: a whole number, or such a text.
#[must_use]
pub fn schema_version_of(version: &RawJson) -> Option<i64> {
    match version.parse::<i64>() {
        Ok(number) => Some(number).filter(|number| *number > 0),
        Err(_) => version.parse::<String>().ok().and_then(|text| schema_version(&text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_may_carry_its_version() {
        assert_eq!(versioned("invoice.generate@2.0"), ("invoice.generate", Some("2.0")));
        assert_eq!(versioned("a@1"), ("a", Some("1")));
        assert_eq!(versioned("a@1.2.3"), ("a", Some("1.2.3")));
        for plain in ["a", "email@send!", "a@", "a@1.2.3.4", "a@v2", "a@1..2", "a@1234567890"] {
            assert_eq!(versioned(plain), (plain, None));
        }
    }

    #[test]
    fn a_schema_has_a_whole_number() {
        for (text, version) in
            [("2", Some(2)), ("2.0", Some(2)), ("2.0.0", Some(2)), ("2.1", None), ("0", None)]
        {
            assert_eq!(schema_version(text), version, "{text}");
        }
        for none in ["", "v2", "2.", "-1", "2.0.1"] {
            assert_eq!(schema_version(none), None, "{none}");
        }
        let of = |text: &str| schema_version_of(&RawJson::from_text(text.to_owned()).unwrap());
        assert_eq!(
            (of("3"), of("\"3.0\""), of("\"beta\""), of("0"), of("1.5")),
            (Some(3), Some(3), None, None, None)
        );
    }

    #[test]
    fn names_are_checked() {
        for good in ["a", "mail.out", "0-9", &"q".repeat(128)] {
            assert_eq!(check_queue_name(good), Ok(()), "{good}");
        }
        for bad in ["", "A", "-a", "a b", "a_b", &"q".repeat(129)] {
            assert!(check_queue_name(bad).is_err(), "{bad}");
        }
        assert_eq!(check_job_type("email.send-now"), Ok(()));
        for bad in ["", "Email.Send", "1a", "a..b", "a b", "a@1", &"a".repeat(256)] {
            assert!(check_job_type(bad).is_err(), "{bad}");
        }
    }
}
