//! Durations as clients, operators and documents write them: ISO 8601 such as `PT1.5H`, or short such as `1h30m`.
//!
//! Every member, parameter, flag and key that takes a duration as text is read by [`Span`], so a text has the same length
//! everywhere. A text that is not read whole is refused.

use jiff::SpanRelativeTo;
use jiff::fmt::{friendly, temporal};

/// A length of time in whole milliseconds, not negative. A day has 24 hours. A part of a millisecond counts as a whole one,
/// so that no duration above zero becomes zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Span(i64);

impl Span {
    /// Reads a duration of ISO 8601: weeks, days, hours, minutes and seconds, of which the last may have a fraction.
    ///
    /// # Errors
    /// A sentence with the text and the problem: not ISO 8601, negative, years or months (which have no fixed length), or
    /// longer than 19,998 years.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with("-P") {
            return Err(negative(text));
        }
        // The parser also reads signs and small letters, which ISO 8601 does not have.
        let is_plain =
            |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase() || matches!(byte, b'.' | b',');
        let read = match text.bytes().all(is_plain) {
            true => iso_nanoseconds(text),
            false => Err(UnreadSpan::Form),
        };
        let example = "is not an ISO 8601 duration such as PT30S, PT1.5H or P1DT12H, of at most 19,998 years";
        read.and_then(Self::from_nanoseconds).map_err(|refused| refused.about(text, example))
    }

    /// Reads the short form of operators and documents, such as `90s`, `15m`, `1h30m`, `7d` or `500ms`, or ISO 8601.
    ///
    /// # Errors
    /// As [`Span::parse`].
    pub fn parse_short(text: &str) -> Result<Self, String> {
        if text.starts_with(['P', '-']) {
            return Self::parse(text);
        }
        let is_plain =
            |byte: u8| byte.is_ascii_digit() || byte.is_ascii_lowercase() || matches!(byte, b'.' | b' ');
        let read = match text.bytes().all(is_plain) {
            true => friendly::SpanParser::new()
                .parse_span(text)
                .map_err(|_| UnreadSpan::Form)
                .and_then(nanoseconds),
            false => Err(UnreadSpan::Form),
        };
        let example = "is not a duration such as 90s, 15m, 1h30m, 7d or PT1H, of at most 19,998 years";
        read.and_then(Self::from_nanoseconds).map_err(|refused| refused.about(text, example))
    }

    /// Returns the length in milliseconds.
    #[must_use]
    pub const fn ms(self) -> i64 {
        self.0
    }

    fn from_nanoseconds(nanoseconds: i128) -> Result<Self, UnreadSpan> {
        if nanoseconds < 0 {
            return Err(UnreadSpan::Form);
        }
        let ms = nanoseconds.checked_add(999_999).ok_or(UnreadSpan::Form)?.div_euclid(1_000_000);
        i64::try_from(ms).map(Self).map_err(|_| UnreadSpan::Form)
    }
}

/// The reason why a text is no duration.
enum UnreadSpan {
    Form,
    Calendar,
}

impl UnreadSpan {
    fn about(&self, text: &str, example: &str) -> String {
        let shown: String = text.chars().take(60).collect();
        let why = match self {
            Self::Form => example,
            Self::Calendar => "has years or months, which have no fixed length; use days",
        };
        format!("`{shown}` {why}")
    }
}

fn negative(text: &str) -> String {
    let shown: String = text.chars().take(60).collect();
    format!("`{shown}` is negative; a duration is at least zero")
}

/// Reads ISO 8601. The parser reads fractions of hours, minutes and seconds; a fraction of the last day or week is read as
/// that of an hour, and multiplied.
fn iso_nanoseconds(text: &str) -> Result<i128, UnreadSpan> {
    let read = |text: &str| temporal::SpanParser::new().parse_span(text).map_err(|_| UnreadSpan::Form);
    let hours = match text.bytes().last() {
        Some(b'D') => 24,
        Some(b'W') => 7 * 24,
        _ => return nanoseconds(read(text)?),
    };
    let (date, unit) = text.split_at(text.len() - 1);
    let Some((whole, fraction)) = date.rsplit_once(['.', ',']) else { return nanoseconds(read(text)?) };
    let part = nanoseconds(read(&format!("PT0.{fraction}H"))?)?;
    Ok(nanoseconds(read(&format!("{whole}{unit}"))?)? + part * hours)
}

fn nanoseconds(span: jiff::Span) -> Result<i128, UnreadSpan> {
    if span.get_years() != 0 || span.get_months() != 0 {
        return Err(UnreadSpan::Calendar);
    }
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| UnreadSpan::Form)?;
    Ok(length.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(text: &str) -> Result<i64, String> {
        Span::parse(text).map(Span::ms)
    }

    #[test]
    fn a_duration_of_iso_8601_is_read_whole() {
        for (text, expected) in [
            ("PT1S", 1_000),
            ("PT0.5S", 500),
            ("PT0,5S", 500),
            ("PT5M", 300_000),
            ("PT0.5M", 30_000),
            ("PT1.5H", 5_400_000),
            ("PT1H30.5M", 5_430_000),
            ("PT1H30M15.25S", 5_415_250),
            ("P1DT2H", 93_600_000),
            ("P1W", 604_800_000),
            ("P1W2DT3H", 788_400_000),
            ("P0.5D", 43_200_000),
            ("P1,5W", 907_200_000),
            ("P1W0.25D", 626_400_000),
            ("PT36H", 129_600_000),
            ("PT4294967296S", 4_294_967_296_000),
            ("P0D", 0),
            ("PT0.0001S", 1),
            ("PT0.0005S", 1),
            ("PT0.333333333H", 1_200_000),
        ] {
            assert_eq!(ms(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn another_text_is_refused_with_the_problem() {
        for text in [
            "",
            "P",
            "PT",
            "1s",
            "PT1",
            "P1",
            "P1S",
            "PT1D",
            "P1D12H",
            "P1DT",
            "T1H",
            "PT1H1H",
            "PT1M1H",
            "P1D1W",
            "PT1.5H30M",
            "PT1.5.5H",
            "P1.5D1H",
            "P1.5W1D",
            "P1.5DT1H",
            "P.5D",
            "P1.D",
            "PT.5S",
            "PT1.S",
            "pt1s",
            "PT1s",
            "+PT1S",
            " PT1S",
            "PT1S ",
            "PT-1S",
            "P1.5W1.5D",
            "P1-1D",
            "P0003-06-04T12:30:05",
            "PT१S",
            "five minutes",
        ] {
            let why = ms(text).unwrap_err();
            assert!(why.contains("is not an ISO 8601 duration"), "{text}: {why}");
        }
        for (text, why) in [
            ("P1Y", "no fixed length"),
            ("P1M", "no fixed length"),
            ("P1Y2M3DT4H", "no fixed length"),
            ("-PT1S", "is negative"),
            ("PT99999999999999S", "at most 19,998 years"),
            ("P9999999999999999999D", "at most 19,998 years"),
            ("PT99999999999999999999999H", "at most 19,998 years"),
        ] {
            assert!(ms(text).unwrap_err().contains(why), "{text}: {:?}", ms(text));
        }
    }

    #[test]
    fn the_short_form_has_a_unit() {
        let ms = |text: &str| Span::parse_short(text).map(Span::ms);
        for (text, expected) in [
            ("90s", 90_000),
            ("500ms", 500),
            ("15m", 900_000),
            ("1h30m", 5_400_000),
            ("1.5h", 5_400_000),
            ("7d", 604_800_000),
            ("4w", 2_419_200_000),
            ("30 d", 2_592_000_000),
            ("PT1.5H", 5_400_000),
        ] {
            assert_eq!(ms(text), Ok(expected), "{text}");
        }
        for text in
            ["", "90", "s", "-1s", "1s ago", "1s2h", "1M", "3mo", "2y", "ten", "99999999999999999999h"]
        {
            assert!(ms(text).is_err(), "{text}: {:?}", ms(text));
        }
    }

    /// Returns the whole part and the fraction of a number of units, if it ends after at most nine digits.
    fn decimal(ms: u64, unit: u64, mark: char) -> Option<String> {
        let mut rest = ms % unit;
        let mut digits = String::new();
        while rest != 0 && digits.len() < 9 {
            rest *= 10;
            digits.push_str(&(rest / unit).to_string());
            rest %= unit;
        }
        let mark = if digits.is_empty() { String::new() } else { mark.to_string() };
        (rest == 0).then(|| format!("{}{mark}{digits}", ms / unit))
    }

    proptest! {
        #[test]
        fn every_way_to_write_a_duration_is_read_as_the_same(ms in 0_u64..50_000_000_000_000, comma: bool) {
            let mark = if comma { ',' } else { '.' };
            let (second, minute, hour, day) = (1_000, 60_000, 3_600_000, 86_400_000);
            let number = |ms, unit| decimal(ms, unit, mark);
            let mut texts = Vec::new();
            for (unit, before, after) in
                [(second, "PT", "S"), (minute, "PT", "M"), (hour, "PT", "H"), (day, "P", "D"), (7 * day, "P", "W")]
            {
                texts.extend(number(ms, unit).map(|count| format!("{before}{count}{after}")));
            }
            let seconds = number(ms % minute, second);
            texts.extend(seconds.as_ref().map(|left| format!("PT{}M{left}S", ms / minute)));
            texts.extend(seconds.as_ref().map(|left| format!("PT{}H{}M{left}S", ms / hour, ms % hour / minute)));
            let weeks = format!("P{}W{}DT{}H", ms / (7 * day), ms / day % 7, ms % day / hour);
            texts.extend(seconds.map(|left| format!("{weeks}{}M{left}S", ms % hour / minute)));
            texts.extend(number(ms % day, hour).map(|left| format!("P{}DT{left}H", ms / day)));
            for text in texts {
                prop_assert_eq!(Span::parse(&text).map(Span::ms), Ok(ms.cast_signed()), "{}", text);
            }
        }

        #[test]
        fn a_text_is_read_or_refused_and_never_panics(text in "-?P?[0-9PTYMWDHS.,]{0,20}") {
            if let Ok(span) = Span::parse(&text) {
                prop_assert!(span.ms() >= 0 && text.starts_with('P') && text.bytes().any(|byte| byte.is_ascii_digit()));
            }
        }
    }
}
