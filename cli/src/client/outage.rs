//! The words about a server that is away while something is watched.

use super::Client;
use crate::failure::Failure;

/// The outage of a server, if there is one.
#[derive(Debug, Default)]
pub struct Outage {
    is_on: bool,
}

impl Outage {
    /// Says that the request is tried again, at the first failure of an outage.
    pub fn goes_on(&mut self, client: &Client, failure: &Failure) {
        if !std::mem::replace(&mut self.is_on, true) {
            client.output.remark(&format!("{}; trying again", failure.message));
        }
    }

    /// Says that the server is back, at the first answer after an outage.
    pub fn is_over(&mut self, client: &Client) {
        if std::mem::take(&mut self.is_on) {
            client.output.remark(&format!("{} answers again", client.address()));
        }
    }
}
