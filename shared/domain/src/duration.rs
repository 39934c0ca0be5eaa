//! ISO 8601 durations as OJS writes them (`PT1S`, `P1DT2H`), in milliseconds.

/// Reads an ISO 8601 duration into milliseconds.
///
/// # Errors
/// A sentence that names the problem: not ISO 8601, years or months (which have no fixed length), or too large.
pub fn parse_iso8601_ms(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not an ISO 8601 duration such as PT30S or PT5M");
    // The parser is lenient: it takes a valid beginning for the whole, and signs.
    let ends_with_unit = text.ends_with(|c: char| c.is_ascii_uppercase()) && !text.ends_with(['P', 'T']);
    let plain = text.chars().all(|c| c.is_ascii_digit() || c.is_ascii_uppercase() || c == '.');
    if !text.starts_with('P') || !ends_with_unit || !plain {
        return Err(wrong());
    }
    match iso8601::duration(text).map_err(|_| wrong())? {
        iso8601::Duration::Weeks(weeks) => Ok(u64::from(weeks) * 7 * 86_400_000),
        iso8601::Duration::YMDHMS { year, month, day, hour, minute, second, millisecond } => {
            if year != 0 || month != 0 {
                return Err(format!("`{text}` has years or months, which have no fixed length; use days"));
            }
            Ok(u64::from(day) * 86_400_000
                + u64::from(hour) * 3_600_000
                + u64::from(minute) * 60_000
                + u64::from(second) * 1000
                + u64::from(millisecond))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::parse_iso8601_ms;

    #[test]
    fn reads_what_ojs_writes() {
        for (text, ms) in
            [("PT1S", 1000), ("PT0.5S", 500), ("PT5M", 300_000), ("P1DT2H", 93_600_000), ("P1W", 604_800_000)]
        {
            assert_eq!(parse_iso8601_ms(text), Ok(ms), "{text}");
        }
        for bad in ["", "P", "PT", "1s", "PT1", "P1Y", "P1M", "PT-1S", "five minutes"] {
            assert!(parse_iso8601_ms(bad).is_err(), "{bad:?} must be refused");
        }
    }
}
