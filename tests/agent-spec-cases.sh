#!/usr/bin/env bash
# Runs published differential cases of Agent Spec against Turnstone, on SQLite and on PostgreSQL.
#
#   tests/agent-spec-cases.sh CASES DRIVER [DRIVER'S OWN FLAGS]
#
# CASES is a folder of cases, DRIVER a program that takes --cases, --adapter and --results, and serves the models and tools of
# the cases. Neither is part of this repository. `TURNSTONE=path` uses a binary that is there already; STORES="sqlite postgres"
# chooses; RESULTS=folder keeps the results. KILL_WAITING=1 kills the worker with SIGKILL each time a case waits. Cases may start
# MCP_SERVER, a script for MCP_PYTHON; without it, mcp_server.py beside the driver.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ $# -ge 2 ] || usage
cases=$(realpath "$1") driver=$(realpath "$2")
shift 2
[ -d "$cases" ] && [ -f "$driver" ] || usage

tests/install-servers.sh
if [ -z "${TURNSTONE:-}" ]; then
    cargo build --quiet -p turnstone-cli
    TURNSTONE=$PWD/target/debug/turnstone
fi
export TURNSTONE
export MCP_SERVER=${MCP_SERVER:-$(dirname "$driver")/mcp_server.py}
place=$(mktemp -d)
chmod 755 "$place"
results=${RESULTS:-$place/results}
cleanup() {
    [ -f "$place/pg/postmaster.pid" ] && as_postgres "$bin/pg_ctl" -D "$place/pg" -m immediate -s stop || true
    rm -rf "$place"
}
trap cleanup EXIT

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
# PostgreSQL does not run as root.
as_postgres() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }

start_postgres() {
    bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)
    bin=${bin:-$(pg_config --bindir)}
    mkdir -p "$place/pg" "$place/socket"
    [ "$(id -u)" = 0 ] && chown postgres "$place/pg" "$place/socket"
    as_postgres "$bin/initdb" -D "$place/pg" -U postgres -A trust --no-sync >/dev/null
    pg_port=$(free_port)
    as_postgres "$bin/pg_ctl" -D "$place/pg" -s -w -l "$place/socket/log" \
        -o "-p $pg_port -k $place/socket -c listen_addresses=127.0.0.1" start
    export DATABASE_URL="postgres://postgres@127.0.0.1:$pg_port/postgres"
}

failed=0
unset DATABASE_URL
for store in ${STORES:-sqlite postgres}; do
    [ "$store" = postgres ] && start_postgres
    printf '\n== %s\n' "$store"
    python3 "$driver" --cases "$cases" --adapter tests/agent-spec-adapter.py --results "$results/$store" "$@" || failed=1
done
exit $failed
