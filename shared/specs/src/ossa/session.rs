//! `spec.state`: the mode in which the agent keeps state (RS-28 … RS-30). `none` is `stateless` and
//! `persistent` is `long_running`.

use crate::problem::Problems;
use crate::tree::Node;
use std::ops::RangeInclusive;
use turnstone_domain::agent::session::LONGEST_RETENTION_MS;
use turnstone_domain::agent::{Isolation, StateMode, StateOptions};
use turnstone_domain::duration::Span;

/// The numbers of seconds that state may be kept: up to a hundred years.
const TTL_SECONDS: RangeInclusive<f64> = 1.0..=3_155_760_000.0;

/// Reads the section.
pub(super) fn read(section: &Node, problems: &mut Problems) -> StateOptions {
    let text = |path: &[&str]| section.at_path(path).and_then(Node::text);
    let enabled = section.get("enabled").and_then(Node::flag);
    let mode = match (text(&["mode"]), enabled) {
        (_, Some(false)) => StateMode::Stateless,
        (Some("long_running" | "persistent"), _) => StateMode::LongRunning,
        (Some("session"), _) | (None, Some(true)) => StateMode::Session,
        _ => StateMode::Stateless,
    };
    let isolation = text(&["isolation_level"])
        .and_then(|word| Isolation::ALL.into_iter().find(|level| level.as_str() == word));
    let ttl = section.get("ttl_seconds").or_else(|| section.get("ttl"));
    let ttl_seconds = ttl.and_then(Node::number);
    if let Some(node) = ttl.filter(|_| ttl_seconds.is_none_or(|seconds| !TTL_SECONDS.contains(&seconds))) {
        let message = "`spec.state.ttl` must be a number of seconds from 1 to 3155760000";
        problems.error(node.at, "OSSA-state", message);
    }
    let retention_ms = section.at_path(&["storage", "retention"]).and_then(|node| retention(node, problems));
    StateOptions {
        retention_ms,
        mode,
        isolation: isolation.unwrap_or_default(),
        // `as` saturates. A part of a second counts as a whole one.
        ttl_seconds: ttl_seconds.map(|seconds| seconds.ceil() as i64),
        storage: text(&["storage", "type"]).or_else(|| text(&["storage", "backend"])).map(str::to_owned),
    }
}

/// Reads a time such as `30d`, `12h`, `90m`, `3600s`, `4w`, or one of ISO 8601 such as `P30D`.
fn retention(node: &Node, problems: &mut Problems) -> Option<i64> {
    let text = node.text()?.trim();
    let read = Span::parse_short(text).ok().map(Span::ms);
    let read = read.filter(|ms| (1_000..=LONGEST_RETENTION_MS).contains(ms));
    if read.is_none() {
        let message = format!(
            "`spec.state.storage.retention` must be a time such as 30d, 12h or P30D, of a second at least and of 36500 \
             days at most, not `{text}`"
        );
        problems.error(node.at, "OSSA-state", message);
    }
    read
}
