//! Measured figures, and their aims.

use serde::Serialize;

/// One line of the report.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// The name of the figure.
    pub name: String,
    /// The unit of the values.
    pub unit: &'static str,
    /// The median of the values.
    pub median: f64,
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// Every value.
    pub values: Vec<f64>,
    /// The median of an earlier run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<f64>,
    /// The median as a share of the clean rate of the same run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_of_clean: Option<f64>,
    /// The aim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aim: Option<&'static str>,
    /// True when the median meets the aim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub met: Option<bool>,
}

impl Figure {
    /// A figure of these values.
    pub fn of(name: impl Into<String>, unit: &'static str, values: Vec<f64>) -> Self {
        let values: Vec<f64> = values.into_iter().map(|value| (value * 1e3).round() / 1e3).collect();
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (sorted.first().copied(), sorted.last().copied());
        Self {
            name: name.into(),
            unit,
            median: median(&sorted),
            low: low.unwrap_or_default(),
            high: high.unwrap_or_default(),
            values,
            before: None,
            share_of_clean: None,
            aim: None,
            met: None,
        }
    }

    /// Says how it compares with the clean rate.
    pub fn beside(self, clean: f64) -> Self {
        let share = (clean > 0.0).then(|| (self.median / clean * 1e3).round() / 1e3);
        Self { share_of_clean: share, ..self }
    }

    /// Says what it was before.
    pub fn after(self, before: f64) -> Self {
        Self { before: Some(before), ..self }
    }

    /// Says what it should be.
    pub fn aiming(self, aim: &'static str, holds: impl FnOnce(&Self) -> bool) -> Self {
        let met = holds(&self);
        Self { aim: Some(aim), met: Some(met), ..self }
    }
}

/// The median of sorted values; 0 of nothing.
pub fn median(sorted: &[f64]) -> f64 {
    let (low, high) = (sorted.get(sorted.len().saturating_sub(1) / 2), sorted.get(sorted.len() / 2));
    low.zip(high).map_or(0.0, |(low, high)| f64::midpoint(*low, *high))
}
