//! A connection whose values are sealed on their way in, and opened on their way out.

use super::{Keyring, found};
use crate::StoreError;
use crate::engine::session::{Args, CommitError, Connection, Durability, Row, Write};
use crate::sql::{self, Text};
use async_trait::async_trait;
use std::sync::Arc;

/// A connection with the keys that seal its values.
pub(crate) struct SealedConnection<C> {
    pub inner: C,
    pub ring: Arc<Keyring>,
}

impl<C: Connection> SealedConnection<C> {
    /// Seals what rows hold. Single values are never sealed: they have no names.
    fn seal<'a>(&self, text: &Text, mut args: Args<'a>) -> Result<Args<'a>, StoreError> {
        if let Args::Rows(columns, _) = &mut args {
            self.ring.seal_columns(text, columns)?;
        }
        Ok(args)
    }

    /// Opens what rows hold, with data keys that other processes have made since.
    async fn open(&mut self, text: &Text, mut rows: Vec<Row>) -> Result<Vec<Row>, StoreError> {
        let found = found(text);
        if self.ring.lacks(found, &rows) {
            let new = self.inner.rows("read data keys", &sql::SELECT_DATA_KEYS, Args::Values(&[])).await?;
            self.ring.learn_rows(&new)?;
        }
        self.ring.open_rows(found, &mut rows);
        Ok(rows)
    }
}

#[async_trait]
impl<C: Connection> Connection for SealedConnection<C> {
    fn is_embedded(&self) -> bool {
        self.inner.is_embedded()
    }

    fn hurry(&mut self, hurried: bool) {
        self.inner.hurry(hurried);
    }

    async fn begin(&mut self, durability: Durability) -> Result<(), StoreError> {
        if !self.ring.can_seal() {
            self.ring.take_up(&mut self.inner).await?;
        }
        self.inner.begin(durability).await
    }

    async fn commit(&mut self, events: Option<i64>) -> Result<(), CommitError> {
        self.inner.commit(events).await
    }

    async fn rollback(&mut self) {
        self.inner.rollback().await;
    }

    async fn outcome(&mut self) -> Result<bool, StoreError> {
        self.inner.outcome().await
    }

    async fn rows(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let args = self.seal(text, args)?;
        let rows = self.inner.rows(action, text, args).await?;
        self.open(text, rows).await
    }

    async fn look(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let args = self.seal(text, args)?;
        let rows = self.inner.look(action, text, args).await?;
        self.open(text, rows).await
    }

    async fn execute(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<u64, StoreError> {
        let args = self.seal(text, args)?;
        self.inner.execute(action, text, args).await
    }

    async fn write(&mut self, mut writes: Vec<Write>) -> Result<(), StoreError> {
        for write in &mut writes {
            self.ring.seal_columns(write.text, &mut write.rows)?;
        }
        self.inner.write(writes).await
    }

    async fn rows_alone(
        &mut self,
        action: &'static str,
        text: &Text,
        args: Args<'_>,
    ) -> Result<Vec<Row>, CommitError> {
        // Such statements make rows of their own, which nothing seals: an encrypted store does not use them.
        self.inner.rows_alone(action, text, args).await
    }
}
