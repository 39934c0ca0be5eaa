//! The filters of jobs that several commands share.

use crate::commands::since;
use clap::Args;

/// Filters of jobs; a job has to match all of them.
#[derive(Clone, Debug, Default, Args)]
pub struct Filters {
    /// Only jobs with this tag
    #[arg(long, value_name = "TAG")]
    pub tag: Option<String>,
    /// Only jobs of this agent
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Only jobs of this tenant
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<String>,
    /// Only jobs that were enqueued then or later: a time, or how long ago, such as 1h
    #[arg(long, value_name = "TIME", value_parser = since::time)]
    pub since: Option<String>,
    /// Only jobs whose last error has this code
    #[arg(long, value_name = "CODE")]
    pub error_code: Option<String>,
}

impl Filters {
    /// Returns the filters as parameters of a query.
    #[must_use]
    pub fn query(&self) -> Vec<(&'static str, String)> {
        let given = [
            ("tag", &self.tag),
            ("agent", &self.agent),
            ("tenant", &self.tenant),
            ("since", &self.since),
            ("error_code", &self.error_code),
        ];
        given.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect()
    }
}
