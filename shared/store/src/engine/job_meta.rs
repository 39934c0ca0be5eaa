//! Jobs by a member of their `meta`. SQL does not look into JSON, and a sealed `meta` is opened only here. So the jobs
//! that match everything else are read in parts, and those with another `meta` are left out.

use super::job_filter::{listed, matching, place_of};
use super::rows::{JobRow, get, json};
use super::session::{Arg, Row};
use super::views::{Views, many, many_by_keys};
use crate::{JobFilter, JobsWithMeta, StoreError, sql};
use async_recursion::async_recursion as boxed;
use serde_json::Value;
use std::collections::HashMap;
use turnstone_domain::JobId;

/// The jobs that are read at once.
const AT_ONCE: u32 = 500;
/// The jobs that one call reads, whether they match or not.
const MOST: usize = 10_000;

impl Views {
    /// Jobs by acceptance whose `meta` has [`JobFilter::meta`], at most `limit`. One call reads a bounded number of jobs:
    /// the list continues after [`JobsWithMeta::next_after`] until there is none, and a part of it may be empty.
    #[boxed]
    pub async fn jobs_with_meta(&self, filter: &JobFilter, limit: u32) -> Result<JobsWithMeta, StoreError> {
        let readers = &self.0.readers;
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut after = place_of(readers, filter).await?;
        let (mut kept, mut read) = (Vec::new(), 0);
        let next_after = loop {
            let (text, sort) = listed(filter, after);
            let part = [AT_ONCE.into(), 0_i64.into()];
            let values: Vec<Arg<'_>> = matching(filter).into_iter().chain(sort).chain(part).collect();
            let rows = many(readers, "list jobs", text, &values, JobRow::decode).await?;
            let is_last = rows.len() < AT_ONCE as usize;
            let metas = self.metas(&rows).await?;
            let mut last: Option<JobId> = None;
            for row in rows {
                (after, last) = (Some(row.seq), Some(row.id.clone()));
                read += 1;
                let fits = |(path, wanted): &(String, String)| {
                    metas.get(&row.seq).is_some_and(|meta| has(meta, path, wanted))
                };
                if filter.meta.as_ref().is_none_or(fits) {
                    kept.push(row);
                }
                if kept.len() >= most {
                    break;
                }
            }
            if kept.len() >= most || read >= MOST {
                break last;
            }
            if is_last {
                break None;
            }
        };
        Ok(JobsWithMeta { jobs: self.0.jobs_listed(kept).await?, next_after })
    }

    /// The `meta` of jobs by their numbers, as far as it can be read.
    async fn metas(&self, rows: &[JobRow]) -> Result<HashMap<i64, Value>, StoreError> {
        if rows.is_empty() {
            return Ok(HashMap::new());
        }
        let seqs: Vec<i64> = rows.iter().map(|row| row.seq).collect();
        let meta = |row: &Row| Ok((get::<i64>(row, "job_seq")?, json::<Value>(row, "meta")?));
        let (action, text) = ("read meta", &sql::SELECT_META_BY_JOB);
        let found = many_by_keys(&self.0.readers, action, text, (seqs, &[]), meta).await?;
        Ok(found.into_iter().collect())
    }
}

/// Returns true if a member has this value: a text is compared as it is, anything else by its JSON. Dots in `path` lead
/// into objects, unless the whole path is the name of a member.
fn has(meta: &Value, path: &str, wanted: &str) -> bool {
    let member = meta.get(path).or_else(|| path.split('.').try_fold(meta, |value, name| value.get(name)));
    member.is_some_and(|value| match value {
        Value::String(text) => text == wanted,
        other => serde_json::to_string(other).is_ok_and(|text| text == wanted),
    })
}

#[cfg(test)]
mod tests {
    use super::has;
    use serde_json::json;

    #[test]
    fn members_are_found_by_their_path() {
        let meta = json!({"customer": 42, "user": {"id": "ada"}, "a.b": "dotted", "on": true, "none": null});
        for (path, value) in
            [("customer", "42"), ("user.id", "ada"), ("a.b", "dotted"), ("on", "true"), ("none", "null")]
        {
            assert!(has(&meta, path, value), "{path}");
        }
        for (path, value) in [("customer", "4"), ("user", "ada"), ("user.name", "ada"), ("missing", "null")] {
            assert!(!has(&meta, path, value), "{path}");
        }
    }
}
