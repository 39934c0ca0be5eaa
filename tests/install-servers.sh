#!/usr/bin/env bash
# Installs the programs that the tests run: PostgreSQL, Redis, PgBouncer, libfaketime, Python 3 and the sqlite3 shell. The
# tests run this script when one is missing; it does nothing when all are there. It needs Debian or Ubuntu, and root or `sudo -n`.
# Only what is missing is installed, nothing is upgraded, and no service is started now or at the next boot.
#
# While apt-get runs, /usr/sbin/policy-rc.d forbids the start of services. The machine's own file is put back at the end;
# a watcher puts it back when this script is killed, once apt-get has ended; the next start does when both are killed.
set -euo pipefail

say() { printf 'install-servers: %s\n' "$*" >&2; }

# The packages whose programs are not here. The same places are searched by tests/src/servers/find.rs.
missing() {
    if ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 &&
        ! { command -v pg_config >/dev/null 2>&1 && [ -x "$(pg_config --bindir)/initdb" ]; }; then
        echo postgresql
    fi
    PATH="$PATH:/usr/sbin:/usr/local/sbin"
    command -v redis-server >/dev/null 2>&1 || command -v valkey-server >/dev/null 2>&1 || echo redis-server
    command -v pgbouncer >/dev/null 2>&1 || echo pgbouncer
    ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1 || echo faketime
    command -v python3 >/dev/null 2>&1 || echo python3
    command -v sqlite3 >/dev/null 2>&1 || echo sqlite3
}

# Debian's packages start their services unless this program forbids it.
policy=/usr/sbin/policy-rc.d
mark='# Forbids the start of services while tests/install-servers.sh of Turnstone installs packages.'

# Keeps the machine's own file beside ours. Each step is a rename, so that put_back repairs the state after any of them.
forbid_services() {
    printf '#!/bin/sh\n%s\nexit 101\n' "$mark" >"$policy.of-turnstone"
    chmod 755 "$policy.of-turnstone"
    if [ -e "$policy" ] || [ -L "$policy" ]; then
        cp -a "$policy" "$policy.copy-of-turnstone"
        mv -f "$policy.copy-of-turnstone" "$policy.before-turnstone"
    fi
    mv -f "$policy.of-turnstone" "$policy"
}

# Puts the machine's own file back. Does nothing when that has been done.
put_back() {
    if [ -e "$policy.before-turnstone" ] || [ -L "$policy.before-turnstone" ]; then
        mv -f "$policy.before-turnstone" "$policy"
    elif grep -qsxF "$mark" "$policy"; then
        rm -f "$policy"
    fi
    rm -f "$policy.of-turnstone" "$policy.copy-of-turnstone"
}

# Puts the file back when no process of a group is left, however they ended.
watch_group() {
    while kill -0 -- "-$1" 2>/dev/null; do sleep 0.1; done
    put_back
}

wanted=$(missing)
if [ -z "$wanted" ] && ! { [ "$(id -u)" = 0 ] && grep -qsxF "$mark" "$policy"; }; then
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
    say "this machine has no apt-get; install with its own package manager: ${wanted//$'\n'/ }"
    exit 1
fi
if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        exec sudo -n -- "$0"
    fi
    say "neither root nor sudo without a password; ask an administrator to run: apt-get install ${wanted//$'\n'/ }"
    exit 1
fi
# In a session of its own: Ctrl-C and the end of the tests must not reach apt-get.
if [ "${1:-}" != in-own-session ]; then
    exec setsid --wait "$0" in-own-session
fi

# One at a time, also from several checkouts; a process that waited looks again. The watcher and apt-get keep the lock as well.
exec 9>/var/lock/turnstone-install-servers
flock 9
put_back
mapfile -t wanted < <(missing)
if [ "${#wanted[@]}" = 0 ]; then
    exit 0
fi

# The watcher stands outside of this session, and answers before anything is changed.
watcher="$(declare -p policy mark)
$(declare -f put_back watch_group)
echo watching
exec >/dev/null
watch_group $$"
exec 8< <(exec setsid bash -c "$watcher" </dev/null 2>/dev/null)
read -r _ <&8
exec 8<&-
forbid_services

say "installing ${wanted[*]}"
export DEBIAN_FRONTEND=noninteractive
# Without a terminal of its own, dpkg stays in the process group that is watched.
apt=(apt-get -q -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0)
# Old lists may be enough when there is no network.
"${apt[@]}" update >&2 || say "the package lists could not be refreshed; going on with those that are here"
"${apt[@]}" install -y --no-install-recommends --no-upgrade "${wanted[@]}" >&2
put_back

if [ -d /run/systemd/system ]; then
    for package in "${wanted[@]}"; do
        case "$package" in
        postgresql | redis-server | pgbouncer) systemctl --quiet disable "$package" >&2 || true ;;
        esac
    done
fi

left=$(missing)
if [ -n "$left" ]; then
    say "installed, and still not found: ${left//$'\n'/ }"
    exit 1
fi
