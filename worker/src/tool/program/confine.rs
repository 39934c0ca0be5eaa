//! The limits that the launcher sets for its own process before it becomes the program.

use super::folders::{self, DEVICES};
use super::{Order, ProgramLimits};
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError,
    RulesetStatus, Scope, path_beneath_rules,
};
use rustix::process::{Gid, Resource, Rlimit, Uid, getgid, getrlimit, getuid, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};
use std::ffi::{OsStr, OsString};
use std::io;

/// The version of Landlock whose rights are limited; older kernels limit those that they know.
const LANDLOCK: ABI = ABI::V6;

/// The limits of a program that has no others.
const MEMORY_BYTES: u64 = 4 << 30;
const OPEN_FILES: u64 = 1024;

/// Limits this process.
pub(super) fn confine(order: &Order, program: &OsStr, arguments: &[OsString]) -> Result<(), String> {
    let path = std::env::var_os("PATH");
    let file = folders::found(program, path.as_deref())
        .ok_or_else(|| "there is no such program; an absolute path does not depend on PATH".to_owned())?;
    let limits = &order.limits;
    resources(limits).map_err(|error| format!("its resources cannot be limited: {error}"))?;
    become_user(limits)?;
    drop_rights().map_err(|error| format!("its rights cannot be dropped: {error}"))?;
    let readable = folders::readable(order, &file, arguments);
    let closed = close(limits, &readable, &folders::writable(order));
    let closed = closed.map_err(|error| format!("its files cannot be closed: {error}"))?;
    match closed {
        RulesetStatus::NotEnforced | RulesetStatus::PartiallyEnforced if order.required => {
            Err("the kernel does not close everything that has to be closed to it".to_owned())
        }
        _ => Ok(()),
    }
}

fn resources(limits: &ProgramLimits) -> io::Result<()> {
    for (resource, most) in [
        (Resource::Core, Some(0)),
        (Resource::Data, Some(limits.max_memory_bytes.unwrap_or(MEMORY_BYTES))),
        (Resource::Nofile, Some(limits.max_open_files.unwrap_or(OPEN_FILES))),
        (Resource::Nproc, limits.max_processes),
        (Resource::Cpu, limits.max_cpu_seconds),
    ] {
        let Some(most) = most else { continue };
        // A limit that the worker itself has stays.
        let most = getrlimit(resource).maximum.map_or(most, |own| own.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}

fn become_user(limits: &ProgramLimits) -> Result<(), String> {
    let Some((uid, gid)) = limits.user() else { return Ok(()) };
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    if (getuid(), getgid()) == (uid, gid) {
        return Ok(());
    }
    // The kernel does this for a thread, and this process has one.
    bounded();
    set_thread_groups(&[])
        .and_then(|()| set_thread_res_gid(gid, gid, gid))
        .and_then(|()| set_thread_res_uid(uid, uid, uid))
        .map_err(|error| {
            format!(
                "it cannot run as user {uid} and group {gid} ({error}); give the worker CAP_SETUID, CAP_SETGID and CAP_KILL, \
                 or remove `uid`"
            )
        })
}

/// Removes all capabilities for good, where this process may: a program of root has none either.
fn bounded() {
    for bit in 0..u64::BITS {
        let _ = remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << bit));
    }
    let _ = clear_ambient_capability_set();
}

fn drop_rights() -> io::Result<()> {
    bounded();
    let empty = CapabilitySet::empty();
    let none = CapabilitySets { effective: empty, permitted: empty, inheritable: empty };
    // A filter of system calls may forbid the change where there is nothing to change.
    if capabilities(None) != Ok(none) {
        set_capabilities(None, none)?;
    }
    // No program that it starts gets more rights, also not by the set-user-id bit.
    Ok(set_no_new_privs(true)?)
}

/// Closes everything but these files and, if the limits say so, TCP. Programs of other domains get no signals.
fn close(
    limits: &ProgramLimits,
    readable: &[std::path::PathBuf],
    writable: &[std::path::PathBuf],
) -> Result<RulesetStatus, RulesetError> {
    let mut rules = Ruleset::default().handle_access(AccessFs::from_all(LANDLOCK))?;
    if limits.network == Some(false) {
        rules = rules.handle_access(AccessNet::from_all(LANDLOCK))?;
    }
    let read = AccessFs::from_read(LANDLOCK);
    let status = rules
        .scope(Scope::from_all(LANDLOCK))?
        .create()?
        .add_rules(path_beneath_rules(readable, read))?
        .add_rules(path_beneath_rules(DEVICES, read | AccessFs::WriteFile))?
        .add_rules(path_beneath_rules(writable, AccessFs::from_all(LANDLOCK)))?
        .restrict_self()?;
    Ok(status.ruleset)
}
