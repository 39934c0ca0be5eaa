//! The messages about a server that does not answer while something is watched.

use super::Client;
use crate::failure::Failure;

/// The outage of a server, if there is one.
#[derive(Debug, Default)]
pub struct Outage {
    is_on: bool,
}

impl Outage {
    /// Prints that the request is tried again, at the first failure of an outage.
    pub fn begins(&mut self, client: &Client, failure: &Failure) {
        if !std::mem::replace(&mut self.is_on, true) {
            client.output.remark(&format!("{}; trying again", failure.message));
        }
    }

    /// Prints that the server answers again, at the first answer after an outage.
    pub fn is_over(&mut self, client: &Client) {
        if std::mem::take(&mut self.is_on) {
            client.output.remark(&format!("{} answers again", client.address()));
        }
    }
}
