//! Numbers of JSON, which keep the digits that were sent.

use serde_json::Number;

/// Returns the number as a float if it is one without loss: its shortest decimal form has the same value. Returns `None` if
/// digits would be lost, or if it is too large.
#[must_use]
pub fn exact_float(number: &Number) -> Option<f64> {
    let float = number.as_f64().filter(|float| float.is_finite())?;
    (decimal(&float.to_string())? == decimal(number.as_str())?).then_some(float)
}

/// Returns true if programs that hold integers of 64 bits and floats lose no digit of a number.
#[must_use]
pub fn is_exact(number: &Number) -> bool {
    number.as_i64().is_some() || number.as_u64().is_some() || exact_float(number).is_some()
}

/// Returns one spelling for all numbers of the same value.
#[must_use]
pub fn one_spelling(number: &Number) -> String {
    let Some((sign, digits, exponent)) = decimal(number.as_str()) else { return number.to_string() };
    match usize::try_from(exponent) {
        _ if digits == "0" => digits,
        Ok(zeros) if digits.len() + zeros <= LONGEST_WHOLE => format!("{sign}{digits}{}", "0".repeat(zeros)),
        _ => match exact_float(number).and_then(Number::from_f64) {
            Some(float) => float.to_string(),
            None => format!("{sign}{digits}e{exponent}"),
        },
    }
}

/// The most digits of a whole number that is spelled with all of them: those of 64 bits.
const LONGEST_WHOLE: usize = 20;

/// Returns the sign, the digits without zeros at their ends, and the power of ten of the last digit. `None` if the exponent is
/// beyond 64 bits.
fn decimal(text: &str) -> Option<(&'static str, String, i64)> {
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let significant = all.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return Some((sign, "0".to_owned(), 0));
    }
    let zeros = all.len() - all.trim_end_matches('0').len();
    let shift = i64::try_from(zeros).ok()? - i64::try_from(fraction.len()).ok()?;
    Some((sign, significant.to_owned(), exponent.parse::<i64>().ok()?.checked_add(shift)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        let number: Number = serde_json::from_str(text).unwrap();
        // Only an exponent gets a sign.
        assert_eq!(number.to_string().replace("e+", "e"), text.replace("E+", "e"), "the digits are kept");
        number
    }

    #[test]
    fn numbers_that_lose_digits_are_known() {
        for exact in [
            "0",
            "-7",
            "1.10",
            "0.1",
            "1e2",
            "2.50e-3",
            "18446744073709551615",
            "1e300",
            "-0.0",
            "100000000000000000000",
        ] {
            assert!(is_exact(&number(exact)), "{exact}");
        }
        for inexact in [
            "12345678901234567890123",
            "1e400",
            "-1e-400",
            "0.12345678901234567891",
            "1e99999999999999999999",
        ] {
            assert!(!is_exact(&number(inexact)), "{inexact}");
        }
    }

    #[test]
    fn one_value_has_one_spelling() {
        for (spellings, one) in [
            (&["1.0", "1", "10e-1"][..], "1"),
            (&["0.50", "5e-1", "0.5"], "0.5"),
            (&["12345678901234567890123.0", "12345678901234567890123"], "12345678901234567890123e0"),
            (&["1e400", "10E+399"], "1e400"),
            (&["9007199254740993"], "9007199254740993"),
            (&["1e17", "100000000000000000"], "100000000000000000"),
            (&["-0.0", "-0", "0"], "0"),
        ] {
            for spelling in spellings {
                assert_eq!(one_spelling(&number(spelling)), one, "{spelling}");
            }
        }
    }
}
