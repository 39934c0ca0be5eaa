//! A fresh PostgreSQL data folder, made once per machine and version and copied from then on.

use super::programs::{as_server_user, give_to_server_user, postgres_dir, server_user, user_id};
use super::supervised::private_folder;
use crate::binaries::target_dir;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The version of the recipe below, to be raised with every change, so that older templates are not used.
const RECIPE: u32 = 3;

/// The data folder's name in the template and in each server's own folder.
pub(super) const DATA: &str = "data";

/// The product's own role: it owns its databases and is no superuser, as in a careful operator's
/// installation.
pub(super) const ROLE: &str = "turnstone";

/// Returns a fresh data folder with the name [`DATA`], to be copied; it is made if necessary.
pub(super) fn template() -> PathBuf {
    // Example: postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)
    let version =
        succeeded("postgres", Command::new(postgres_dir().join("postgres")).arg("--version").output());
    let version = version.split_whitespace().nth(2).expect("a version");
    let folder = target_dir().join("servers");
    std::fs::create_dir_all(&folder).expect("a folder in target");
    let name = format!("postgres-{version}-of-user-{}-{RECIPE}", user_id());
    let template = folder.join(&name);
    let lock = File::create(folder.join(format!("{name}.lock"))).expect("the template's lock");
    lock.lock().expect("the template's lock is given back");
    if !template.exists() {
        let private = private_folder("template");
        give_to_server_user(&private);
        initialise(&private.join(DATA), major(version));
        let almost = folder.join(format!("{name}.almost"));
        if almost.exists() {
            std::fs::remove_dir_all(&almost).expect("the rest of an interrupted run");
        }
        succeeded("cp", Command::new("cp").arg("-a").arg(&private).arg(&almost).output());
        std::fs::rename(&almost, &template).expect("the template's name");
        std::fs::remove_dir_all(&private).expect("the private folder");
    }
    template.join(DATA)
}

/// Returns the major version: `15.18`, `17beta2` → 15, 17.
fn major(version: &str) -> u32 {
    let digits = version.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().unwrap_or_else(|_| panic!("{version} is no version of PostgreSQL"))
}

fn initialise(data: &Path, major: u32) {
    let mut refused = None;
    for locale in locales(major) {
        let mut initdb = as_server_user(&postgres_dir().join("initdb"));
        initdb.args(["--username=postgres", "--auth=trust", "--no-sync", "--encoding=UTF8"]).args(locale);
        // The server's user may have no access to the tests' directory.
        let output = initdb.arg("--pgdata").arg(data).current_dir("/").output();
        refused = (!output.as_ref().is_ok_and(|output| output.status.success())).then_some(output);
        if refused.is_none() {
            break;
        }
    }
    if let Some(output) = refused {
        succeeded("initdb", output);
    }

    let mut single = as_server_user(&postgres_dir().join("postgres"));
    single.args(["--single", "-D"]).arg(data).arg("postgres").current_dir("/");
    single.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut single = single.spawn().expect("postgres runs");
    let mut sql = single.stdin.take().expect("a pipe to postgres");
    writeln!(sql, "CREATE ROLE {ROLE} LOGIN").expect("postgres reads");
    drop(sql);
    succeeded("postgres --single", single.wait_with_output());
}

/// Returns the locales for `initdb`, the best first. Most operators' databases sort like a language. One that
/// sorted by bytes would hide a dependency of the product on that.
fn locales(major: u32) -> Vec<Vec<String>> {
    let listed = Command::new("locale").arg("-a").output().map(|output| output.stdout).unwrap_or_default();
    let listed = String::from_utf8_lossy(&listed);
    let find = |wanted: fn(&str) -> bool| listed.lines().find(|name| wanted(&name.to_lowercase()));
    // The character classes, on which every language of UTF-8 agrees.
    let plain = find(|name| matches!(name, "c.utf-8" | "c.utf8")).unwrap_or("C");
    let language = find(|name| name.starts_with("en_us.utf")).or_else(|| {
        find(|name| name.contains(".utf") && !name.starts_with("c.") && !name.starts_with("posix"))
    });
    let of_system = vec![format!("--locale={}", language.unwrap_or(plain))];
    let of_icu = vec![
        format!("--locale={plain}"),
        "--locale-provider=icu".to_owned(),
        "--icu-locale=en-US".to_owned(),
    ];
    // `--locale-provider` came with PostgreSQL 15, and a server may have been built without ICU.
    if major >= 15 { vec![of_icu, of_system] } else { vec![of_system] }
}

/// Returns the output of a program; panics with its error output when it failed.
pub(super) fn succeeded(program: &str, output: std::io::Result<Output>) -> String {
    let output = output.unwrap_or_else(|error| panic!("{program} does not run: {error}"));
    let complaint = String::from_utf8_lossy(&output.stderr);
    let user = server_user().map(|user| format!(" as user {user}")).unwrap_or_default();
    assert!(output.status.success(), "{program} failed{user} ({}): {complaint}", output.status);
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}
