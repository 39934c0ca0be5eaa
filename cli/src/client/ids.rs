//! Short ids at the prompt: the first characters of an id, as long as no other id begins like them.

use super::Client;
use crate::failure::{Exit, Failure};
use turnstone_api::answers::FoundIds;

/// The characters of a whole id.
const WHOLE: usize = 36;

/// The kind of thing that an id names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Named {
    /// A job.
    Job,
    /// An engagement.
    Engagement,
}

impl Named {
    fn word(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Engagement => "engagement",
        }
    }
}

impl Client {
    /// Returns the whole id of a job or an engagement. A text that cannot be the beginning of an id is returned as it is:
    /// the server says what is wrong with it.
    ///
    /// # Errors
    /// No id or more than one begins like this, or the request fails.
    pub async fn whole_id(&self, named: Named, given: &str) -> Result<String, Failure> {
        if !is_short(given) {
            return Ok(given.to_owned());
        }
        let query = [("prefix", given.to_owned()), ("kind", named.word().to_owned())];
        let FoundIds { ids, has_more } = self.get(&["ids"], &query).await?;
        the_only_one(named, given, &ids, has_more)
    }
}

/// Returns true if a text may be the first characters of an id, and not all of them.
fn is_short(text: &str) -> bool {
    (1..WHOLE).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

fn the_only_one(named: Named, given: &str, ids: &[String], has_more: bool) -> Result<String, Failure> {
    let word = named.word();
    match ids {
        [only] => Ok(only.clone()),
        [] => Err(Failure::new(Exit::NotFound, format!("no {word} has an id that begins with {given}"))
            .hint(format!("`turnstone {word} list` shows the ids"))),
        several => {
            let more = if has_more { ", and more" } else { "" };
            let all = several.join(", ");
            Err(Failure::usage(format!("{given} begins the ids of several {word}s: {all}{more}"))
                .hint("give more characters"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_beginning_of_an_id_is_looked_up() {
        assert!(is_short("0190A7b2") && is_short("0190a7b2-1c"));
        for whole in ["", "-x", "job-1", "0190a7b2-1c00-7000-8000-000000000000", "\u{e4}"] {
            assert!(!is_short(whole), "{whole}");
        }
    }

    #[test]
    fn an_ambiguous_beginning_lists_its_candidates() {
        let error = the_only_one(Named::Job, "01", &["01a", "01b"].map(str::to_owned), true).unwrap_err();
        assert_eq!(error.exit, Exit::Usage);
        assert_eq!(error.message, "01 begins the ids of several jobs: 01a, 01b, and more");
        let none = the_only_one(Named::Engagement, "01", &[], false).unwrap_err();
        assert_eq!(
            (none.exit, none.hint.as_deref()),
            (Exit::NotFound, Some("`turnstone engagement list` shows the ids"))
        );
        assert_eq!(the_only_one(Named::Job, "01", &["01a".to_owned()], false).unwrap(), "01a");
    }
}
