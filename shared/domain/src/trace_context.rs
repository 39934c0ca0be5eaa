//! W3C trace context and baggage as a caller sends them (RS-05). What is malformed counts as absent, and is no error.

use std::collections::BTreeMap;

/// The longest baggage that is read, in bytes (W3C Baggage §3.3).
const MOST_BAGGAGE: usize = 8192;
/// The most members of a baggage.
const MOST_MEMBERS: usize = 64;

/// Returns true if a text is a `traceparent`: version, trace id, parent id and flags in lower-case hex, ids not all
/// zero.
#[must_use]
pub fn is_traceparent(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let hex = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let some = |part: &str| part.bytes().any(|byte| byte != b'0');
    match parts.as_slice() {
        [version, trace, parent, flags, rest @ ..] => {
            // A later version may add parts; version 00 has none.
            let known = if *version == "00" { rest.is_empty() } else { *version != "ff" };
            known
                && hex(version, 2)
                && hex(trace, 32)
                && hex(parent, 16)
                && hex(flags, 2)
                && some(trace)
                && some(parent)
        }
        _ => false,
    }
}

/// Returns the members of a `baggage`, without their properties; values stay percent-encoded. `None` when it is
/// malformed.
#[must_use]
pub fn baggage(text: &str) -> Option<BTreeMap<String, String>> {
    if text.len() > MOST_BAGGAGE {
        return None;
    }
    let members: Option<BTreeMap<String, String>> = text
        .split(',')
        .map(|member| {
            let (key, value) = member.split(';').next()?.split_once('=')?;
            let (key, value) = (key.trim(), value.trim());
            let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
            let visible = |c: char| c.is_ascii_graphic() && !"\"\\".contains(c);
            let fits = !key.is_empty() && key.chars().all(token) && value.chars().all(visible);
            fits.then(|| (key.to_owned(), value.to_owned()))
        })
        .collect();
    members.filter(|members| members.len() <= MOST_MEMBERS)
}

/// Returns a `baggage` without the members of this key; the others stay as they were sent.
#[must_use]
pub fn without(text: &str, key: &str) -> String {
    let key_of =
        |member: &str| member.split(';').next()?.split_once('=').map(|(name, _)| name.trim().to_owned());
    let kept = text.split(',').filter(|member| key_of(member).as_deref() != Some(key));
    kept.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_taken_out_of_the_baggage() {
        let sent = "a=1;ttl=3,ossa.session.id=s-1 , b=2";
        assert_eq!(without(sent, "ossa.session.id"), "a=1;ttl=3, b=2");
        assert_eq!(without("ossa.session.id=s-1", "ossa.session.id"), "");
    }

    /// RS-05: a malformed context counts as absent.
    #[test]
    fn only_well_formed_contexts_are_taken() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert!(is_traceparent(good) && is_traceparent(&good.replacen("00", "01", 1)));
        assert!(is_traceparent(&format!("{}-more", good.replacen("00", "cc", 1))));
        for bad in [
            "",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
        ] {
            assert!(!is_traceparent(bad), "{bad}");
        }
        let members = baggage("ossa.session.id=s1 , ossa.tenant.id=t%201;ttl=3").unwrap();
        assert_eq!((&*members["ossa.session.id"], &*members["ossa.tenant.id"]), ("s1", "t%201"));
        for bad in ["", "=x", "a", "a=b,,c=d", "a=\"b\"", "ä=b"] {
            assert_eq!(baggage(bad), None, "{bad}");
        }
        assert_eq!(baggage(&format!("a={}", "x".repeat(MOST_BAGGAGE))), None);
    }
}
