//! `tests/install-servers.sh` with a fake apt-get, killed while that runs. The script sees a private copy of the
//! folders that it changes.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use turnstone_tests::servers::find::in_path;
use turnstone_tests::wait::until;

/// The programs that the script uses. Its PATH has no others, so Redis is missing.
const PROGRAMS: [&str; 13] =
    ["bash", "chmod", "cp", "flock", "grep", "id", "ls", "mount", "mv", "rm", "setsid", "sh", "touch"];

/// Begins to install, and ends when it is released.
const APT_GET: &str = "#!/bin/sh\nlast=\nfor last; do :; done\n[ \"$last\" = update ] && exit 0\ntouch \"$ROOM/begun\"\n\
                       until [ -e \"$ROOM/may-end\" ] || [ ! -e \"$ROOM\" ]; do \"$ROOM/real/sleep\" 0.02; done\ntouch \"$ROOM/ended\"\n";

/// Logs each pause of the watcher.
const SLEEP: &str = "#!/bin/sh\necho >>\"$ROOM/pauses\"\nexec \"$ROOM/real/sleep\" \"$@\"\n";

/// The policy of the machine's owner.
const OWN: &str = "#!/bin/sh\n# The owner's.\nexit 0\n";

/// A folder that replaces `/usr/sbin` and `/var/lock` for the script.
struct Room(tempfile::TempDir);

impl Room {
    fn new() -> Self {
        let room = Self(turnstone_tests::scratch::folder());
        for folder in ["bin", "real", "sbin", "lock"] {
            std::fs::create_dir(room.path(folder)).unwrap();
        }
        for (folder, program) in PROGRAMS.map(|name| ("bin", name)).into_iter().chain([("real", "sleep")]) {
            let place = in_path(program).unwrap_or_else(|| panic!("{program} is missing"));
            symlink(place.canonicalize().unwrap(), room.path(folder).join(program)).unwrap();
        }
        room.program("bin/sleep", SLEEP);
        room.program("bin/apt-get", APT_GET);
        room
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn program(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
        std::fs::set_permissions(self.path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Starts the script as root of a namespace in which the folders are replaced.
    fn start(&self) -> Child {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("install-servers.sh");
        let replaced =
            "mount --bind \"$ROOM/sbin\" /usr/sbin && mount --bind \"$ROOM/lock\" /var/lock && exec \"$0\"";
        Command::new(in_path("unshare").unwrap())
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", replaced])
            .arg(script)
            .env("PATH", self.path("bin"))
            .env("ROOM", self.0.path())
            .stdin(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Returns the policy, or an empty text without one.
    fn policy(&self) -> String {
        std::fs::read_to_string(self.path("sbin/policy-rc.d")).unwrap_or_default()
    }

    fn forbids(&self) -> bool {
        self.policy().contains("Turnstone") && self.policy().ends_with("exit 101\n")
    }

    /// Waits until the watcher has checked again that apt-get runs.
    async fn is_watched(&self) {
        let pauses = || std::fs::read_to_string(self.path("pauses")).unwrap_or_default().len();
        let before = pauses();
        until("the watcher looks twice", async || pauses() >= before + 2).await;
        assert!(self.forbids(), "apt-get still runs, and a service may start:\n{}", self.policy());
    }

    async fn has(&self, name: &str) {
        until(name, async || self.path(name).exists()).await;
    }

    /// Releases apt-get, and waits until the policy is this one and no other file is left.
    async fn ends_with(&self, policy: &str) {
        std::fs::write(self.path("may-end"), "").unwrap();
        until("the policy is put back", async || self.policy() == policy).await;
        let left = async || std::fs::read_dir(self.path("sbin")).unwrap().count();
        until("no other file is left", async || left().await == usize::from(!policy.is_empty())).await;
        assert!(self.path("ended").exists(), "the policy was put back before apt-get had ended");
    }
}

/// Kills a script while apt-get runs.
async fn killed(room: &Room) {
    let mut script = room.start();
    room.has("begun").await;
    assert!(room.forbids(), "a service may start:\n{}", room.policy());
    script.kill().unwrap();
    script.wait().unwrap();
}

#[tokio::test]
#[cfg_attr(no_namespaces, ignore = "needs a user namespace, which this system forbids")]
async fn a_killed_installation_restores_the_machines_own_policy() {
    let room = Room::new();
    room.program("sbin/policy-rc.d", OWN);
    killed(&room).await;
    room.is_watched().await;
    room.ends_with(OWN).await;
}

#[tokio::test]
#[cfg_attr(no_namespaces, ignore = "needs a user namespace, which this system forbids")]
async fn a_killed_installation_leaves_no_policy_where_there_was_none() {
    let room = Room::new();
    killed(&room).await;
    room.is_watched().await;
    room.ends_with("").await;
}

#[tokio::test]
#[cfg_attr(no_namespaces, ignore = "needs a user namespace, which this system forbids")]
async fn the_next_installation_repairs_an_earlier_one() {
    let room = Room::new();
    room.program("sbin/policy-rc.d", OWN);
    killed(&room).await;
    // The files that remain when the watcher was killed as well.
    let left = ["policy-rc.d", "policy-rc.d.before-turnstone"].map(|name| room.path("sbin").join(name));
    let left = left.map(|file| (std::fs::read_to_string(&file).unwrap(), file));
    room.ends_with(OWN).await;
    for (text, file) in &left {
        std::fs::write(file, text).unwrap();
    }
    std::fs::remove_file(room.path("ended")).unwrap();
    // Redis is still missing, so the installation fails after it has restored the policy.
    assert_eq!(room.start().wait().unwrap().code(), Some(1));
    assert_eq!(room.policy(), OWN);
    room.ends_with(OWN).await;
}
