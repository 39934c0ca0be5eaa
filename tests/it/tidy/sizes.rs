//! The length of files. `cargo test -p turnstone-tests --test tidy sizes -- --nocapture` prints it.

use crate::house::{files, none, read};

/// A longer file has more than one reason to change.
const CEILING: usize = 600;

#[test]
fn file_sizes_stay_below_the_ceiling() {
    let mut sizes: Vec<(usize, String)> = files("", ".rs")
        .into_iter()
        .map(|path| (read(&path).lines().count(), path.display().to_string()))
        .collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let lines: usize = sizes.iter().map(|(lines, _)| lines).sum();
    let at = |share: usize| sizes.get(sizes.len() * share / 100).map_or(0, |(lines, _)| *lines);
    println!("{} Rust files, {lines} lines; median {}, 90 % have at most {}", sizes.len(), at(50), at(10));
    println!("the ten longest:");
    for (lines, path) in sizes.iter().take(10) {
        println!("{lines:>6}  {path}");
    }
    let problems: Vec<String> = sizes
        .iter()
        .filter(|(lines, _)| *lines > CEILING)
        .map(|(lines, path)| format!("{path}: {lines} lines; split it by reason to change"))
        .collect();
    none("A file is longer than 600 lines:", &problems);
}
