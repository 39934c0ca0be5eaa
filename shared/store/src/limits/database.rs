//! Limits that processes share through their database: a row per bucket, changed only if it is still as it was read.
//!
//! The rows are not part of any turn's transaction: a hot bucket must not make commits wait for one another.

use super::bucket::{Bucket, Terms};
use super::{Admission, Grant, Limit, LimitKey, RateLimits};
use crate::StoreError;
use crate::engine::rows::Fields;
use crate::engine::session::{Arg, Args, Readers};
use crate::sql::{self, Text};
use async_trait::async_trait;
use turnstone_domain::Timestamp;

/// The most attempts on a bucket that others keep changing; then the caller has to come again.
const TRIES: usize = 8;
/// The wait after which a caller comes again when concurrent callers changed the bucket first.
const BUSY_MS: i64 = 20;
/// A row that was not used for this long is full again, or has no user.
const REMEMBERED_MS: i64 = 86_400_000;

/// The limits, over connections on which each statement is a transaction.
pub(crate) struct DatabaseLimits(Readers);

/// The known state before a call is admitted.
struct KnownLimit {
    bucket: Option<Bucket>,
    held_until: Timestamp,
}

impl DatabaseLimits {
    pub(crate) fn new(connections: Readers) -> Self {
        Self(connections)
    }

    async fn read(&self, bucket: &str, hold: &str) -> Result<KnownLimit, StoreError> {
        let action = "read a rate limit";
        let rows = self
            .0
            .read(action, &sql::SELECT_RATE_LIMITS, Args::Values(&[bucket.into(), hold.into()]))
            .await?;
        let mut known = KnownLimit { bucket: None, held_until: Timestamp(0) };
        for row in &rows {
            let int = |column: &'static str| match row.int(column) {
                Ok(value) => Ok(value.unwrap_or(0)),
                Err(message) => Err(StoreError::Unreadable { column: column.to_owned(), message }),
            };
            if row.text("name").is_ok_and(|name| name == Some(hold)) {
                known.held_until = Timestamp(int("held_until")?);
            } else {
                let (requests, tokens) = (int("requests")?, int("tokens")?);
                known.bucket = Some(Bucket { requests, tokens, as_of: Timestamp(int("as_of")?) });
            }
        }
        Ok(known)
    }

    /// Returns true when the statement changed a row.
    async fn changed(&self, action: &'static str, text: &Text, args: &[Arg<'_>]) -> Result<bool, StoreError> {
        Ok(!self.0.read(action, text, Args::Values(args)).await?.is_empty())
    }

    /// Writes the bucket if it is still as it was read.
    async fn write(&self, name: &str, read: Option<Bucket>, new: Bucket) -> Result<bool, StoreError> {
        let action = "take out of a rate limit";
        let to = [name.into(), new.requests.into(), new.tokens.into(), new.as_of.0.into()];
        let Some(read) = read else {
            self.forget(new.as_of).await?;
            return self.changed(action, &sql::INSERT_RATE_LIMIT, &to).await;
        };
        let [name, requests, tokens, as_of] = to;
        let from = [read.requests.into(), read.tokens.into(), read.as_of.0.into()];
        let [was_requests, was_tokens, was_as_of] = from;
        let args = [name, requests, tokens, as_of, was_requests, was_tokens, was_as_of];
        self.changed(action, &sql::UPDATE_TAKEN_RATE_LIMIT, &args).await
    }

    async fn forget(&self, now: Timestamp) -> Result<(), StoreError> {
        let before = [now.plus_ms(-REMEMBERED_MS).0.into()];
        self.changed("forget old rate limits", &sql::DELETE_OLD_RATE_LIMITS, &before).await.map(|_| ())
    }
}

#[async_trait]
impl RateLimits for DatabaseLimits {
    async fn admit(
        &self,
        key: &LimitKey,
        limit: &Limit,
        tokens: i64,
        now: Timestamp,
    ) -> Result<Admission, StoreError> {
        let (terms, name, hold) = (Terms::of(limit), key.bucket(), key.hold());
        for _ in 0..TRIES {
            let known = self.read(&name, &hold).await?;
            if known.held_until > now {
                return Ok(Admission::Wait { until: known.held_until, held: true });
            }
            let bucket = known.bucket.unwrap_or_else(|| Bucket::full(&terms, now));
            let (bucket, wait) = bucket.take(&terms, tokens, now);
            if let Some(until) = wait {
                return Ok(Admission::Wait { until, held: false });
            }
            if self.write(&name, known.bucket, bucket).await? {
                return Ok(Admission::Granted(Grant::of(tokens)));
            }
        }
        Ok(Admission::Wait { until: now.plus_ms(BUSY_MS), held: false })
    }

    async fn settle(
        &self,
        key: &LimitKey,
        limit: &Limit,
        grant: Grant,
        used: i64,
        _: Timestamp,
    ) -> Result<(), StoreError> {
        if limit.tokens_per_minute.is_none() || grant.left(used) == 0 {
            return Ok(());
        }
        let (name, back) = (key.bucket(), Terms::of(limit).cost(grant.left(used)));
        let args = [name.as_str().into(), back.into()];
        self.changed("settle a rate limit", &sql::UPDATE_SETTLED_RATE_LIMIT, &args).await.map(|_| ())
    }

    async fn hold(&self, key: &LimitKey, until: Timestamp, now: Timestamp) -> Result<(), StoreError> {
        let name = key.hold();
        let args = [name.as_str().into(), now.0.into(), until.0.into()];
        self.changed("hold a model", &sql::INSERT_HELD_RATE_LIMIT, &args).await.map(|_| ())
    }
}
