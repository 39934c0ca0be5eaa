//! Names of tools and agents, and references to them (OAS-01 … OAS-14).

/// Checks a name against RFC 1123 in the wording of OpenAgentSpec. The 63-octet limit of a DNS label is not
/// enforced, because the specification allows 253 characters without a dot.
///
/// # Errors
/// The broken rule (`OAS-03` … `OAS-07`) and a sentence.
pub(crate) fn check(name: &str) -> Result<(), (&'static str, String)> {
    let show = crate::shape::shortened(name);
    let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if name.is_empty() {
        return Err(("OAS-05", "a name must not be empty".to_owned()));
    }
    if name.chars().count() > 253 {
        return Err((
            "OAS-03",
            format!("the name `{show}` has {} characters; at most 253 are allowed", name.chars().count()),
        ));
    }
    if let Some(bad) = name.chars().find(|c| !alphanumeric(*c) && !matches!(c, '-' | '.')) {
        let message =
            format!("the name `{show}` has `{}`; only a-z, 0-9, `-` and `.` are allowed", bad.escape_debug());
        return Err(("OAS-04", message));
    }
    if !name.starts_with(alphanumeric) {
        return Err(("OAS-05", format!("the name `{show}` must begin with a letter or digit")));
    }
    if !name.ends_with(alphanumeric) {
        return Err(("OAS-06", format!("the name `{show}` must end with a letter or digit")));
    }
    if name.split('.').any(|label| !label.starts_with(alphanumeric) || !label.ends_with(alphanumeric)) {
        return Err((
            "OAS-07",
            format!("each part of `{show}` between dots must begin and end with a letter or digit"),
        ));
    }
    Ok(())
}

/// The target of a reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reference<'a> {
    /// A bare name: a tool if there is one of that name, else an agent (OAS-09, OAS-12).
    Bare(&'a str),
    /// `oagent://name`: an agent of this server (OAS-10).
    Local(&'a str),
    /// `oagent://host/path/name`: a remote agent (OAS-11).
    Remote {
        /// `host` or `host:port`.
        host: &'a str,
        /// Everything after `oagent://`.
        rest: &'a str,
        /// The last part.
        name: &'a str,
    },
}

impl<'a> Reference<'a> {
    pub(crate) fn parse(text: &'a str) -> Self {
        match text.strip_prefix("oagent://") {
            None => Self::Bare(text),
            Some(rest) => match (rest.split_once('/'), rest.rsplit_once('/')) {
                (Some((host, _)), Some((_, name))) => Self::Remote { host, rest, name },
                _ => Self::Local(rest),
            },
        }
    }

    pub(crate) fn name(self) -> &'a str {
        match self {
            Self::Bare(name) | Self::Local(name) | Self::Remote { name, .. } => name,
        }
    }
}

/// Returns true if the part after `oagent://` is `host[:port]/path/name` and nothing else. It has no user,
/// query or fragment, and no segment that changes the path.
pub(crate) fn is_address(rest: &str) -> bool {
    let mut segments = rest.split('/');
    let host = segments.next().unwrap_or_default();
    let (name, port) = host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port)));
    let digits = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
    !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'))
        && port.is_none_or(digits)
        && segments.all(|part| !matches!(part, "" | "." | "..") && part.chars().all(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAS-03, OAS-04, OAS-05, OAS-06, OAS-07: names up to 253 characters, with the letters of the
    /// specification.
    #[test]
    fn names_follow_the_specification() {
        for good in ["a", "9a", "a-b", "a.b-c.d", &"a".repeat(253)] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for (bad, rule) in [
            ("", "OAS-05"),
            (&*"a".repeat(254), "OAS-03"),
            ("A", "OAS-04"),
            ("a_b", "OAS-04"),
            ("a/b", "OAS-04"),
            ("ä", "OAS-04"),
            ("-a", "OAS-05"),
            (".a", "OAS-05"),
            ("a-", "OAS-06"),
            ("a.", "OAS-06"),
            ("a..b", "OAS-07"),
            ("a.-b", "OAS-07"),
            ("a-.b", "OAS-07"),
        ] {
            assert_eq!(check(bad).unwrap_err().0, rule, "{bad}");
        }
    }

    /// OAS-08, OAS-09, OAS-10, OAS-11: bare, local and remote; a dot does not make a host.
    #[test]
    fn references_have_three_forms() {
        assert_eq!(Reference::parse("hr-agent"), Reference::Bare("hr-agent"));
        assert_eq!(Reference::parse("oagent://a.b.c"), Reference::Local("a.b.c"));
        let rest = "host:81/agents/x";
        assert_eq!(
            Reference::parse("oagent://host:81/agents/x"),
            Reference::Remote { host: "host:81", rest, name: "x" }
        );
        for good in ["h.example/x", "h.example:8443/agents/x", "127.0.0.1:1/a/b-c/x", "h/~a_b/x"] {
            assert!(is_address(good), "{good}");
        }
        for bad in [
            "/x",
            "h//x",
            "h/../x",
            "h/./x",
            "u@h/x",
            "h/a?b/x",
            "h/a#b/x",
            "h:0x1/x",
            "h:/x",
            "h/a b/x",
            "h/%2e/x",
            "h:99999/x",
        ] {
            assert!(!is_address(bad), "{bad}");
        }
    }
}
