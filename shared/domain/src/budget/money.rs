//! Amounts of money: whole millionths of a currency, never floating point.

use crate::number::exact_float;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::fmt;
use std::str::FromStr;

/// Millionths per unit of the currency.
const MICROS: i64 = 1_000_000;

/// An amount of money in millionths of a currency. Written as a decimal such as `12.5` or `0.000150`; more than six
/// places are refused and not rounded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Amount(pub i64);

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not an amount of money; write a decimal such as 12.50, with at most six places"
            )
        };
        let (whole, places) = text.split_once('.').unwrap_or((text, ""));
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let places = places.trim_end_matches('0');
        if whole.is_empty() || !digits(whole) || !digits(places) || places.len() > 6 || text.ends_with('.') {
            return Err(wrong());
        }
        let whole: i64 = whole.parse().map_err(|_| wrong())?;
        let part: i64 = format!("{places:0<6}").parse().map_err(|_| wrong())?;
        whole.checked_mul(MICROS).and_then(|micros| micros.checked_add(part)).map(Self).ok_or_else(wrong)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let micros = self.0.unsigned_abs();
        let (whole, part) = (micros / MICROS.unsigned_abs(), micros % MICROS.unsigned_abs());
        let places = format!("{part:06}");
        let shown = places.trim_end_matches('0');
        // Two places at least, as money is written.
        f.pad(&format!("{sign}{whole}.{shown:0<2}"))
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const EXPECTED: &str = "an amount of money such as 12.50, as a number or as text";
        let text = match Value::deserialize(deserializer)? {
            Value::String(text) => text,
            // The shortest text of a number that was written with an exponent is a decimal.
            Value::Number(number) if number.as_str().contains(['e', 'E']) => {
                exact_float(&number).map(|float| float.to_string()).ok_or_else(|| Error::custom(EXPECTED))?
            }
            Value::Number(number) => number.to_string(),
            _ => return Err(Error::custom(format!("expected {EXPECTED}"))),
        };
        text.parse().map_err(Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_exactly_and_shown_as_money() {
        for (text, micros, shown) in [
            ("0.15", 150_000, "0.15"),
            ("12", 12_000_000, "12.00"),
            ("0.000001", 1, "0.000001"),
            ("2.500000", 2_500_000, "2.50"),
            ("0.1234567000", -1, ""),
            ("9223372036854.775807", i64::MAX, "9223372036854.775807"),
        ] {
            let read = text.parse::<Amount>();
            if micros < 0 {
                assert!(read.unwrap_err().contains("six places"), "{text}");
                continue;
            }
            assert_eq!(read.unwrap(), Amount(micros), "{text}");
            assert_eq!(Amount(micros).to_string(), shown);
        }
        for bad in ["", ".5", "5.", "-1", "1e3", "1,5", "NaN", "9223372036854.775808", "1.2.3"] {
            assert!(bad.parse::<Amount>().is_err(), "{bad}");
        }
        assert_eq!(Amount(-1_500_000).to_string(), "-1.50");
    }

    #[test]
    fn numbers_and_texts_mean_the_same() {
        for json in ["0.15", "\"0.15\"", "1.5e-1"] {
            assert_eq!(serde_json::from_str::<Amount>(json).unwrap(), Amount(150_000), "{json}");
        }
        assert_eq!(serde_json::from_str::<Amount>("3").unwrap(), Amount(3_000_000));
        assert_eq!(serde_json::to_string(&Amount(3_000_000)).unwrap(), "\"3.00\"");
        for bad in ["-1", "0.0000001", "true", "[1]", "1e300"] {
            assert!(serde_json::from_str::<Amount>(bad).is_err(), "{bad}");
        }
    }
}
