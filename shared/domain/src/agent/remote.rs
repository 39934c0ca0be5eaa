//! Agents on other Turnstone servers: their addresses, and the headers of a call (OAS-11, OAS-14).

use std::fmt::Write as _;

/// The number of agents above the called engagement, over all servers.
pub const DEPTH: &str = "turnstone-delegation-depth";
/// The tokens that it may spend.
pub const TOKEN_BUDGET: &str = "turnstone-token-budget";
/// The end user's id, percent-encoded.
pub const USER: &str = "turnstone-user";
/// The end user's email, percent-encoded.
pub const USER_EMAIL: &str = "turnstone-user-email";

/// All of them; trusted only from configured peers.
pub const HEADERS: [&str; 4] = [DEPTH, TOKEN_BUDGET, USER, USER_EMAIL];

/// Encodes a text for a header: everything but letters, digits and `-._~@+` is percent-encoded.
#[must_use]
pub fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~@+".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Reads [`encoded`]; `None` when it is not well formed.
#[must_use]
pub fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                let digits = std::str::from_utf8(&digits).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_survive_a_header() {
        for text in ["u-17", "Ann Ö", "a/b?c=d%20", "x\r\ny", ""] {
            let there = encoded(text);
            assert!(there.is_ascii() && !there.contains(['\r', '\n', ' ']), "{there}");
            assert_eq!(decoded(&there).as_deref(), Some(text));
        }
        for bad in ["%", "%4", "%zz", "%ff"] {
            assert_eq!(decoded(bad), None, "{bad}");
        }
    }
}
