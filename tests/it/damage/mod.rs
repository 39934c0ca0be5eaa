//! Damaged rows, loops of crashes, and full disks: what one of them touches fails alone and says why.

mod contradictions;
mod crash_loop;
mod disk_full;
mod doctor;
mod incomplete;
mod matrix;
mod schema;
mod seeded;
mod stage;
