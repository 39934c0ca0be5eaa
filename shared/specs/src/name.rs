//! Names of tools and agents, and references to them (OAS-01 … OAS-14).

/// Checks a name against RFC 1123 as OpenAgentSpec words it; the 63-octet limit of a DNS label is not enforced, since
/// the specification allows 253 characters without a dot.
///
/// # Errors
/// The rule that is broken (`OAS-03` … `OAS-07`) and a sentence.
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

/// What a reference points at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reference<'a> {
    /// A bare name: a tool if there is one of that name, else an agent (OAS-09, OAS-12).
    Bare(&'a str),
    /// `oagent://name`: an agent of this server (OAS-10).
    Local(&'a str),
    /// `oagent://host/path/name`: an agent elsewhere (OAS-11); the name is the last part.
    Remote(&'a str),
}

impl<'a> Reference<'a> {
    pub(crate) fn parse(text: &'a str) -> Self {
        match text.strip_prefix("oagent://") {
            None => Self::Bare(text),
            Some(rest) => match rest.rsplit_once('/') {
                Some((_, name)) => Self::Remote(name),
                None => Self::Local(rest),
            },
        }
    }

    pub(crate) fn name(self) -> &'a str {
        match self {
            Self::Bare(name) | Self::Local(name) | Self::Remote(name) => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAS-03, OAS-04, OAS-05, OAS-06, OAS-07: names up to 253 characters, of which letters the specification says.
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
        assert_eq!(Reference::parse("oagent://host/agents/x"), Reference::Remote("x"));
    }
}
