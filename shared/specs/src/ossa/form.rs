//! Checks of names and versions against the patterns of the schema.

use crate::suggest;
use turnstone_domain::duration::Span;
use turnstone_domain::error::ErrorClass;

/// Accepts `ossa/v0.2.9`, `ossa/v0.2.10-dev`, `ossa/v1`, `ossa/v1.0`, by the schema's pattern.
pub(super) fn api_version(text: &str) -> Result<(), String> {
    let accepted = || {
        let rest = text.strip_prefix("ossa/v")?;
        let (core, suffix) = rest.split_once('-').map_or((rest, None), |(core, suffix)| (core, Some(suffix)));
        let parts: Vec<&str> = core.split('.').collect();
        let digits = |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
        let minor = |part: &str| !part.is_empty() && part.chars().all(|c| ('2'..='9').contains(&c));
        let core = match parts.as_slice() {
            ["1", rest @ ..] => rest.len() <= 1 && rest.iter().all(digits),
            ["0", second, rest @ ..] => {
                minor(second) && (1..=2).contains(&rest.len()) && rest.iter().all(digits)
            }
            _ => false,
        };
        let word = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric());
        let suffix = suffix.is_none_or(|suffix| word(suffix.strip_prefix("dev-").unwrap_or(suffix)));
        (core && suffix).then_some(())
    };
    accepted().ok_or_else(|| "must be a version such as `ossa/v0.2.9`".to_owned())
}

/// Accepts `metadata.name`: a DNS label of at most 253 characters; unlike in OpenAgentSpec it holds no dot.
pub(super) fn agent_name(text: &str) -> Result<(), String> {
    let dotted = text.contains('.');
    crate::name::check(text).map_err(|(_, message)| message)?;
    if dotted { Err("must not contain a dot".to_owned()) } else { Ok(()) }
}

/// Accepts semantic versioning 2.0.0.
pub(super) fn semver(text: &str) -> Result<(), String> {
    let accepted = || {
        let (rest, build) = text.split_once('+').map_or((text, None), |(rest, build)| (rest, Some(build)));
        let (core, pre) = rest.split_once('-').map_or((rest, None), |(core, pre)| (core, Some(pre)));
        let number = |part: &str| {
            !part.is_empty()
                && part.chars().all(|c| c.is_ascii_digit())
                && (part == "0" || !part.starts_with('0'))
        };
        let word =
            |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let numeric = |part: &str| part.chars().all(|c| c.is_ascii_digit());
        let pre =
            pre.is_none_or(|pre| pre.split('.').all(|part| word(part) && (!numeric(part) || number(part))));
        let build = build.is_none_or(|build| build.split('.').all(word));
        (core.split('.').count() == 3 && core.split('.').all(number) && pre && build).then_some(())
    };
    accepted().ok_or_else(|| "must be a semantic version such as `1.0.0`".to_owned())
}

/// Accepts `x.y.z` without a suffix.
pub(super) fn plain_version(text: &str) -> Result<(), String> {
    if text.contains(['-', '+']) { Err("must be a version such as `1.0.0`".to_owned()) } else { semver(text) }
}

/// Accepts `1.0`, the version of a capability.
pub(super) fn short_version(text: &str) -> Result<(), String> {
    let digits = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
    let accepted = text.split_once('.').is_some_and(|(major, minor)| digits(major) && digits(minor));
    if accepted { Ok(()) } else { Err("must be a version such as `1.0`, in quotes".to_owned()) }
}

/// Accepts OSSA's sixteen error codes.
pub(super) fn error_code(text: &str) -> Result<(), String> {
    if ErrorClass::parse(text).is_some() {
        return Ok(());
    }
    let hint = suggest::hint(text, ErrorClass::ALL.iter().map(|code| code.as_str()));
    Err(format!(
        "is not an error code of OSSA{hint}; there are {}",
        ErrorClass::ALL.map(ErrorClass::as_str).join(", ")
    ))
}

/// Accepts at most 2000 characters.
pub(super) fn description(text: &str) -> Result<(), String> {
    at_most(text, 2000)
}

/// Accepts a label's value: at most 63 characters.
pub(super) fn label(text: &str) -> Result<(), String> {
    at_most(text, 63)
}

fn at_most(text: &str, limit: usize) -> Result<(), String> {
    let length = text.chars().count();
    if length <= limit {
        Ok(())
    } else {
        Err(format!("has {length} characters; at most {limit} are allowed"))
    }
}

/// Accepts three capital letters.
pub(super) fn currency(text: &str) -> Result<(), String> {
    let accepted = text.len() == 3 && text.chars().all(|c| c.is_ascii_uppercase());
    if accepted { Ok(()) } else { Err("must be three capital letters such as `USD`".to_owned()) }
}

/// Accepts `30s`, `5m`, `1h`.
pub(super) fn interval(text: &str) -> Result<(), String> {
    let wrong = |_| "must be a time such as `30s`, `5m` or `1h`".to_owned();
    Span::parse_short(text).map(|_| ()).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_schema() {
        for good in [
            "ossa/v0.2.9",
            "ossa/v0.2.10",
            "ossa/v0.3.0-dev",
            "ossa/v0.22.9",
            "ossa/v1",
            "ossa/v1.0",
            "ossa/v0.2.9-rc1",
        ] {
            assert_eq!(api_version(good), Ok(()), "{good}");
        }
        for bad in [
            "ossa/v0.10.0",
            "ossa/v0.2.9-rc.1",
            "ossa/v1.0.0",
            "ossa/v2",
            "ossa/0.2.9",
            "v0.2.9",
            "ossa/v0.2",
            "ossa/v0.2.9-",
        ] {
            assert!(api_version(bad).is_err(), "{bad}");
        }
        for good in ["1.0.0", "0.2.10-rc.1+build.5"] {
            assert_eq!(semver(good), Ok(()), "{good}");
        }
        for bad in ["1.0", "v1.0.0", "01.0.0", "1.0.0-", "1.0.0-01", ""] {
            assert!(semver(bad).is_err(), "{bad}");
        }
        assert!(agent_name("a.b").is_err() && agent_name("a-b").is_ok());
        assert!(short_version("1.0").is_ok() && short_version("1.0.0").is_err());
        assert!(interval("30s").is_ok() && interval("s").is_err() && interval("30").is_err());
    }
}
