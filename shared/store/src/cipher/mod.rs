//! Encryption at rest: what clients, models and tools said is sealed before it reaches the database, and opened on
//! its way back. Of the engine, only its connections use it.
//!
//! | part | is |
//! |---|---|
//! | [`EncryptionKeys`] | the keys of the configuration: one that seals, others that still open |
//! | [`SealingKey`](key::SealingKey) | seals a text for one place (table, column, row) and opens it there and nowhere else |
//! | [`Keyring`] | the data keys: random, kept in the table `data_keys`, each sealed with a key of the configuration |
//! | [`SealedConnection`] | a connection whose values are sealed |
//! | [`sealing`] | seals what rows say is sealed, and opens it in the rows of statements that name its table |
//!
//! A new key of the configuration seals the data keys again, one or two rows, and never a value (envelope
//! encryption). Values that were stored before a key was configured stay in the clear, and are read as they are.

#[cfg(test)]
mod guard;
mod key;
mod keyring;
mod keys;
mod sealed;
mod sealing;

pub use keys::EncryptionKeys;

pub(crate) use keyring::{DataKey, Keyring, finding};
pub(crate) use sealed::SealedConnection;
pub(crate) use sealing::{Found, found, of_table as sealed_of};
