//! Rules for an enqueue request beyond its form. Each may refuse a job and changes nothing (OJS middleware §3).

use crate::OjsError;
use turnstone_domain::NewJob;

/// A rule.
type Rule = fn(&NewJob) -> Result<(), OjsError>;

/// All rules; the first that refuses decides.
const RULES: [Rule; 1] = [promised_arguments];

/// Checks a job against all rules.
///
/// # Errors
/// 422 of the first rule that refuses it.
pub fn check(job: &NewJob) -> Result<(), OjsError> {
    RULES.iter().try_for_each(|rule| rule(job))
}

/// A client that sets `meta.ojs_validate` wants a job without arguments refused.
fn promised_arguments(job: &NewJob) -> Result<(), OjsError> {
    let requested = job.envelope.meta.get("ojs_validate").is_some_and(|value| value.as_str() == "true");
    let empty = job.envelope.args.parse::<Vec<serde::de::IgnoredAny>>().is_ok_and(|args| args.is_empty());
    if requested && empty {
        let message = "args is empty, and meta.ojs_validate asks to refuse a job without arguments";
        return Err(OjsError::validation("args", message));
    }
    Ok(())
}
