//! The seven phases, one file each (OSSA §1).

pub mod emit;
pub mod exec;
pub mod infer;
pub mod init;
pub mod norm;
pub mod persist;
pub mod resol;
