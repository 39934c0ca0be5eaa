//! The daily spending limits of all engagements with an agent (`constraints.cost`, `llm.cost_tracking`).

use crate::problem::Problems;
use crate::tree::Node;
use turnstone_domain::agent::Spending;
use turnstone_domain::budget::Amount;

/// Returns the daily limits of the manifest. A threshold up to 1 is a part of the whole, a larger one a
/// percentage.
pub(super) fn spending(root: &Node, problems: &mut Problems) -> Spending {
    let Some(spec) = root.get("spec") else { return Spending::default() };
    let cost = |key: &str| spec.at_path(&["constraints", "cost", key]);
    let per_day = cost("maxCostPerDay").and_then(|node| Some((node, node.number()?)));
    let amount = per_day.and_then(|(node, number)| match number.to_string().parse::<Amount>() {
        Ok(amount) => Some(amount.0),
        Err(why) => {
            let message = format!("`spec.constraints.cost.maxCostPerDay`: {why}");
            problems.error(node.at, "OSSA-constraints", message);
            None
        }
    });
    let tracked = spec.at_path(&["llm", "cost_tracking", "enabled"]).and_then(Node::flag) != Some(false);
    let threshold = spec.at_path(&["llm", "cost_tracking", "budget_alert_threshold"]).and_then(Node::number);
    Spending {
        cost_budget: None,
        tokens_per_day: cost("maxTokensPerDay").and_then(Node::integer),
        cost_per_day: amount,
        currency: cost("currency").and_then(Node::text).map(str::to_owned),
        warn_at: threshold.filter(|_| tracked).and_then(percentage),
    }
}

fn percentage(threshold: f64) -> Option<i64> {
    let percent = if threshold <= 1.0 { threshold * 100.0 } else { threshold };
    // `as` saturates; a value outside the range is clamped.
    (percent > 0.0).then(|| (percent.round() as i64).clamp(1, 100))
}

#[cfg(test)]
mod tests {
    use super::percentage;

    #[test]
    fn a_threshold_is_a_part_or_a_percentage() {
        assert_eq!(percentage(0.8), Some(80));
        assert_eq!(percentage(1.0), Some(100));
        assert_eq!(percentage(75.0), Some(75));
        assert_eq!(percentage(500.0), Some(100));
        assert_eq!(percentage(0.0), None);
        assert_eq!(percentage(f64::NAN), None);
    }
}
