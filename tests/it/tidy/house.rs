//! The workspace's root and its files.

use std::path::{Path, PathBuf};

/// The workspace's root.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap().to_path_buf()
}

/// Returns all files below `folder` (relative to the root) whose name ends with `ending`, relative to the root and
/// sorted. Build output, the data directory of `dev` and version control are left out.
pub fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(folder)];
    while let Some(folder) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !matches!(name.as_str(), "target" | ".git" | ".turnstone") {
                    open.push(path);
                }
            } else if name.ends_with(ending) {
                found.push(path.strip_prefix(root()).unwrap().to_path_buf());
            }
        }
    }
    found.sort();
    found
}

/// Returns the text of a file, its path given relative to the root.
pub fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Panics with all problems, one a line.
pub fn none(rule: &str, problems: &[String]) {
    assert!(problems.is_empty(), "{rule}\n  {}\n", problems.join("\n  "));
}
