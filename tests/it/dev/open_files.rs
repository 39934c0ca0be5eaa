//! A worker whose limit of open files is too low for its slots raises the limit or warns. Otherwise its turns would
//! fail like those of an outage.

use crate::program::without_environment;
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use turnstone_tests::{binaries, fleet, wait};

/// Returns the program in a shell that first sets its limits.
fn limited(folder: &Path, limits: &str, arguments: &str) -> Command {
    fleet::install_crypto();
    let mut command = Command::new("sh");
    without_environment(&mut command)
        .args(["-c", &format!("{limits} && exec \"$0\" {arguments}")])
        .arg(binaries::turnstone())
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

#[tokio::test]
async fn the_doctor_finds_a_limit_that_is_too_low_for_the_slots() {
    let folder = turnstone_tests::scratch::folder();
    let provider = "[providers.local]\nkind = 'openai'\nbase_url = 'http://127.0.0.1:1/v1'\n";
    std::fs::write(folder.path().join("turnstone.toml"), provider).unwrap();
    for (files, code) in [(260, 1), (300, 0)] {
        let ran = limited(folder.path(), &format!("ulimit -n {files}"), "doctor").output().await.unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        assert_eq!(ran.status.code(), Some(code), "{said}");
        assert_eq!(said.contains("may open 260 files here, and 64 turns"), files == 260, "{said}");
    }
}

#[tokio::test]
#[cfg_attr(not(target_os = "linux"), ignore = "needs /proc, which Linux has")]
async fn a_worker_raises_its_open_files_or_warns() {
    let folder = turnstone_tests::scratch::folder();
    let dev = "dev --data data --bind 127.0.0.1:0 --slots";
    let mut raised = limited(folder.path(), "ulimit -Sn 100", &format!("{dev} 64")).spawn().unwrap();
    let mut lines = BufReader::new(raised.stdout.take().unwrap()).lines();
    let first = wait::output("the program starts", lines.next_line()).await;
    assert!(first.unwrap().is_some_and(|line| line.starts_with("turnstone listens on")));
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", raised.id().unwrap())).unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert_eq!(files.split_whitespace().nth(3), Some("4424"), "{files}");
    raised.kill().await.unwrap();

    let mut short = limited(folder.path(), "ulimit -n 260", &format!("{dev} 100")).spawn().unwrap();
    let mut lines = BufReader::new(short.stderr.take().unwrap()).lines();
    let reported = async {
        loop {
            let line = lines.next_line().await.unwrap().expect("it warns before it ends");
            if line.contains("may open 260 files here, and 100 turns") && line.contains("LimitNOFILE") {
                return;
            }
        }
    };
    wait::output("the program warns", reported).await;
    short.kill().await.unwrap();
}
