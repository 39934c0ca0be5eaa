//! What providers over HTTP have in common: how they are reached, how an answer comes off the wire, and what a failed
//! call means. What they say to each other is in a folder per provider.

mod endpoint;
mod failure;
mod stream;
mod value;
mod wire_names;

pub(super) use endpoint::{Endpoint, Place};
pub(super) use stream::Assembly;
pub(super) use value::{PDF, arguments, count};
pub(super) use wire_names::WireNames;

#[cfg(test)]
pub(super) mod fixture;
