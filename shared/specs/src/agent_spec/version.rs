//! Versions of Agent Spec, and the version that a document says.

use crate::problem::Problems;
use crate::tree::{Content, Node};

/// A version of the language, in the order of publication.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Version {
    /// Before the first release; no component may be written for it.
    V25_3,
    /// 25.4.1, the first release.
    V25_4_1,
    /// 25.4.2
    V25_4_2,
    /// 26.1.0
    V26_1_0,
    /// 26.1.2
    V26_1_2,
    /// 26.2.0
    V26_2_0,
    /// 26.3.1
    V26_3_1,
}

impl Version {
    /// The version of a document that says none.
    pub const CURRENT: Self = Self::V26_3_1;

    /// Returns the version as documents write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V25_3 => "25.3.0",
            Self::V25_4_1 => "25.4.1",
            Self::V25_4_2 => "25.4.2",
            Self::V26_1_0 => "26.1.0",
            Self::V26_1_2 => "26.1.2",
            Self::V26_2_0 => "26.2.0",
            Self::V26_3_1 => "26.3.1",
        }
    }

    /// Parses a version, the ones before the first release included.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "25.3.0" | "25.3.1" => Self::V25_3,
            "25.4.0" | "25.4.1" => Self::V25_4_1,
            "25.4.2" => Self::V25_4_2,
            "26.1.0" => Self::V26_1_0,
            "26.1.2" => Self::V26_1_2,
            "26.2.0" => Self::V26_2_0,
            "26.3.1" => Self::V26_3_1,
            _ => return None,
        })
    }
}

/// Reads `agentspec_version`, or `air_version` as it was called first (AS-08, AS-09).
pub(super) fn read(root: &Node, problems: &mut Problems) -> Version {
    let Some(node) = root.get("agentspec_version").or_else(|| root.get("air_version")) else {
        let message = format!(
            "`agentspec_version` is missing; {} is assumed, which may change with the next release",
            Version::CURRENT.as_str()
        );
        problems.warning(root.at, "AS-09", message);
        return Version::CURRENT;
    };
    match &node.content {
        Content::Text(text) => match Version::parse(text) {
            Some(version) => {
                if text == "25.4.0" {
                    problems.warning(node.at, "AS-09", "25.4.0 was never published; it is read as 25.4.1");
                }
                return version;
            }
            None => problems.error(node.at, "AS-08", unknown(text)),
        },
        _ => problems.error(node.at, "AS-08", "`agentspec_version` must be a text such as \"26.1.2\""),
    }
    Version::CURRENT
}

fn unknown(text: &str) -> String {
    format!(
        "`agentspec_version`: there is no version `{}`; use one of 25.4.1, 25.4.2, 26.1.0, 26.1.2, 26.2.0, 26.3.1",
        crate::shape::shortened(text)
    )
}
