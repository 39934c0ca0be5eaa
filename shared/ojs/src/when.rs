//! Points in time as clients write them: RFC 3339 with a zone, or relative such as `+PT5S`.

use turnstone_domain::Timestamp;
use turnstone_domain::duration::Span;

/// The last moment that RFC 3339 can write, 9999-12-31T23:59:59.999Z.
const LATEST: Timestamp = Timestamp(253_402_300_799_999);

/// Reads a point in time; a relative one counts from `now`.
///
/// # Errors
/// Words that complete a sentence that begins with the field's name.
pub(crate) fn read(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    let at = match text.strip_prefix('+') {
        Some(duration) => {
            now.plus_ms(Span::parse(duration).map_err(|why| format!("cannot be read: {why}"))?.ms())
        }
        None => Timestamp::parse_rfc3339(text).ok_or_else(|| {
            format!(
                "must be RFC 3339 with a zone, such as 2026-03-01T10:00:00Z, or relative, such as +PT5S, not `{}`",
                crate::read::shortened(text, 60)
            )
        })?,
    };
    if at > LATEST { Err("lies after the year 9999".to_owned()) } else { Ok(at) }
}

/// Returns a point in time for a response: an absolute one in the client's own spelling, a relative one resolved.
pub(crate) fn shown(text: &str, sent_at: Timestamp) -> Option<String> {
    match text.starts_with('+') {
        true => read(text, sent_at).ok().map(Timestamp::to_rfc3339),
        false => Some(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_and_relative_times() {
        let now = Timestamp(1000);
        assert_eq!(read("1970-01-01T01:00:10+01:00", now), Ok(Timestamp(10_000)));
        assert_eq!(read("+PT5S", now), Ok(Timestamp(6000)));
        assert_eq!(read("+PT1.5H", now), Ok(Timestamp(5_401_000)));
        for bad in ["2026-03-01T10:00:00", "tomorrow", "+5s", "+P1Y", "PT5S", "", "+P4000000000D"] {
            assert!(read(bad, now).is_err(), "{bad:?} must be refused");
        }
        assert_eq!(shown("2099-12-31T23:59:59Z", now).as_deref(), Some("2099-12-31T23:59:59Z"));
        assert_eq!(shown("+PT5S", now).as_deref(), Some("1970-01-01T00:00:06.000Z"));
    }
}
