//! The end-to-end suites, in one program so that the dependencies are linked once.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod bad_input;
mod budget;
mod cancel;
mod chaos;
mod crash;
mod demo;
mod dev;
mod drain;
mod main_job;
mod retry;
mod review;
mod store;
