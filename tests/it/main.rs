//! The end-to-end suites, in one program so that the dependencies are linked once.

mod budget;
mod cancel;
mod chaos;
mod crash;
mod main_job;
mod retry;
mod review;
