#!/usr/bin/env bash
# Installs the servers that the tests start themselves: PostgreSQL, Redis, PgBouncer, and libfaketime. The tests run it
# when one is missing; it does nothing when all are there. It needs Debian or Ubuntu, and root or `sudo -n`.
# Only what is missing is installed, nothing is upgraded, and no service is started now or at the next boot.
set -euo pipefail

say() { printf 'install-servers: %s\n' "$*" >&2; }

# The packages whose programs are not here. The same places are searched by tests/src/servers/programs.rs.
missing() {
    if ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 &&
        ! { command -v pg_config >/dev/null 2>&1 && [ -x "$(pg_config --bindir)/initdb" ]; }; then
        echo postgresql
    fi
    PATH="$PATH:/usr/sbin:/usr/local/sbin"
    command -v redis-server >/dev/null 2>&1 || echo redis-server
    command -v pgbouncer >/dev/null 2>&1 || echo pgbouncer
    ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1 || echo faketime
}

wanted=$(missing)
if [ -z "$wanted" ]; then
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
    say "neither root nor sudo without a password; ask somebody to run: apt-get install ${wanted//$'\n'/ }"
    exit 1
fi

# One at a time, also from several checkouts; whoever waited looks again.
exec 9>/var/lock/turnstone-install-servers
flock 9
mapfile -t wanted < <(missing)
if [ "${#wanted[@]}" = 0 ]; then
    exit 0
fi

# Debian's packages start their services unless this program forbids it.
policy=/usr/sbin/policy-rc.d
put_back() {
    if [ -e "$policy.before-turnstone" ]; then
        mv -f "$policy.before-turnstone" "$policy"
    else
        rm -f "$policy"
    fi
}
if [ -e "$policy" ] && [ ! -e "$policy.before-turnstone" ]; then
    mv "$policy" "$policy.before-turnstone"
fi
trap put_back EXIT
printf '#!/bin/sh\nexit 101\n' >"$policy"
chmod +x "$policy"

say "installing ${wanted[*]}"
export DEBIAN_FRONTEND=noninteractive
apt=(apt-get -q -o DPkg::Lock::Timeout=300)
# Old lists may be enough when there is no network.
"${apt[@]}" update >&2 || say "the package lists could not be refreshed; going on with those that are here"
"${apt[@]}" install -y --no-install-recommends --no-upgrade "${wanted[@]}" >&2

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
