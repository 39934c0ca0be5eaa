//! The OJS HTTP binding, a folder per concern.

pub(crate) mod answers;
pub(crate) mod attest;
mod control;
mod cron;
mod feed;
pub(crate) mod jobs;
mod operate;
mod queues;
pub(crate) mod routes;
pub(crate) mod schemas;
mod server;
mod webhooks;
mod work;
mod workflows;

pub(crate) use operate::reset::{PATH as RESET, route as reset};
