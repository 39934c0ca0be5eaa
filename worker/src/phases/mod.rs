//! The seven phases, one file each (OSSA §1), and the verdict on a complete turn.

mod circuit;
pub mod emit;
pub mod exec;
pub mod infer;
pub mod init;
pub mod norm;
pub mod persist;
pub mod resol;
pub mod verdict;
