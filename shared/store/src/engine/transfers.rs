//! Engagements that come from another store: the call.

use super::Engine;
use super::session::Reader;
use super::writer::{Answer, Request};
use crate::{ImportRefusal, StoreError, Transfers};
use async_trait::async_trait;
use turnstone_domain::Timestamp;
use turnstone_domain::record::EngagementRecord;

#[async_trait]
impl<R: Reader> Transfers for Engine<R> {
    async fn import(
        &self,
        record: EngagementRecord,
        at: Timestamp,
    ) -> Result<Result<(), ImportRefusal>, StoreError> {
        match self.request(Request::Import(Box::new((record, at)))).await? {
            Answer::Imported(done) => Ok(done),
            _ => Err(StoreError::Closed),
        }
    }
}
