//! The commands of the pages, run as they are written there.

use crate::program::{Env, Ran, without_environment};
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use turnstone_tests::{binaries, wait};

/// A code block of a page: the words behind its fence, and its text.
#[derive(Clone, Debug)]
pub struct Block {
    pub info: String,
    pub text: String,
}

/// Returns the code blocks of a page from a heading on, up to the next heading of the same level; without a heading, all.
pub fn blocks(page: &str, heading: &str) -> Vec<Block> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(page);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{page}: {error}"));
    let level = heading.split(' ').next().unwrap_or_default();
    let (mut found, mut open, mut inside) = (Vec::new(), None::<Block>, heading.is_empty());
    for line in text.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => open = Some(Block { info: info.to_owned(), text: String::new() }),
            (Some(_), Some(_)) => found.extend(open.take().filter(|_| inside)),
            (Some(block), None) => block.text.extend([line, "\n"]),
            (None, None) if !heading.is_empty() && line.split(' ').next() == Some(level) => {
                inside = line == heading
            }
            (None, None) => {}
        }
    }
    assert!(!found.is_empty(), "{page} has no code below {heading:?}");
    found
}

/// Returns the only block of a page with these words.
pub fn block_with(page: &str, words: &str) -> String {
    let mut found: Vec<Block> =
        blocks(page, "").into_iter().filter(|block| block.text.contains(words)).collect();
    assert_eq!(found.len(), 1, "{page}: {words}: {found:?}");
    found.remove(0).text
}

/// Writes the files that blocks name behind their language, such as `toml turnstone.toml`. A later block replaces an
/// earlier one.
pub fn write_files(folder: &Path, blocks: &[Block]) {
    for block in blocks {
        let Some((language, name)) = block.info.split_once(' ') else { continue };
        if language == "sh" {
            continue;
        }
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, &block.text).unwrap();
    }
}

/// Returns one script of the blocks with this info, in order.
pub fn script(blocks: &[Block], info: &str) -> String {
    blocks.iter().filter(|block| block.info == info).map(|block| block.text.as_str()).collect()
}

/// A shell and every process that it started; they are killed when this is dropped.
struct Group(Option<i32>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.0.and_then(rustix::process::Pid::from_raw) {
            // Nothing is left when the script ended in order.
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
    }
}

/// Runs a script to its end in a folder, with the program in its path; it stops at the first command that fails.
pub async fn run_script(folder: &Path, script: &str, env: Env<'_>) -> Ran {
    let program = binaries::turnstone();
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    let mut command = Command::new("sh");
    let command = without_environment(&mut command)
        .args(["-eu", "-c", script])
        .env("PATH", path)
        .env("HOME", folder)
        .envs(env.iter().copied())
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut shell = command.kill_on_drop(true).spawn().expect("sh runs");
    let group = Group(shell.id().and_then(|pid| i32::try_from(pid).ok()));
    let said = [
        tokio::spawn(read_all(shell.stdout.take().expect("a pipe"))),
        tokio::spawn(read_all(shell.stderr.take().expect("a pipe"))),
    ];
    let status = wait::ends(wait::PATIENCE * 4, shell.wait()).await;
    // A script that fails leaves its server behind, which would keep the pipes open.
    drop(group);
    let [stdout, stderr] = said;
    let (stdout, stderr) = (stdout.await.expect("it is read"), stderr.await.expect("it is read"));
    let Some(status) = status else { panic!("the script does not end:\n{stdout}\n{stderr}") };
    Ran { code: status.expect("its status").code(), stdout, stderr }
}

async fn read_all(mut pipe: impl AsyncRead + Unpin) -> String {
    let mut text = String::new();
    pipe.read_to_string(&mut text).await.expect("UTF-8");
    text
}
