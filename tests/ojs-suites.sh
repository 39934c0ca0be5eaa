#!/usr/bin/env bash
# Runs published OJS conformance cases against Turnstone, on SQLite and on PostgreSQL: one after the other with a reset
# before each case, then eight at a time on a server that keeps everything.
#
#   tests/ojs-suites.sh SUITES RUNNER [RUNNER'S OWN FLAGS]
#
# SUITES is a folder of cases, RUNNER a program that takes --url, --suites, --reset-url, --jobs and --isolate. Neither is
# part of this repository. `TURNSTONE=path` uses a binary that is there already; STORES="sqlite postgres" chooses.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ $# -ge 2 ] || usage
suites=$(realpath "$1") runner=$(realpath "$2")
shift 2
[ -d "$suites" ] && [ -f "$runner" ] || usage

tests/install-servers.sh
if [ -z "${TURNSTONE:-}" ]; then
    cargo build --quiet -p turnstone-cli
    TURNSTONE=$PWD/target/debug/turnstone
fi
place=$(mktemp -d)
chmod 755 "$place"
pids=()
cleanup() {
    kill "${pids[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
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

wait_for() {
    for _ in $(seq 1 200); do
        if curl -fsS -o /dev/null "$1/readyz" 2>/dev/null; then return; fi
        sleep 0.1
    done
    echo "no server answered at $1; its log:" >&2
    cat "$place"/*.log >&2
    exit 1
}

start_sqlite_server() {
    "$TURNSTONE" dev --data "$place/data" --bind "127.0.0.1:$port" --enable-reset >"$place/dev.log" 2>&1 &
    pids+=($!)
}

start_postgres_server() {
    start_postgres
    "$TURNSTONE" migrate >"$place/migrate.log" 2>&1
    "$TURNSTONE" api --bind "127.0.0.1:$port" --enable-reset >"$place/api.log" 2>&1 &
    pids+=($!)
    "$TURNSTONE" scheduler >"$place/scheduler.log" 2>&1 &
    pids+=($!)
}

failed=0
for store in ${STORES:-sqlite postgres}; do
    port=$(free_port)
    url=http://127.0.0.1:$port
    "start_${store}_server"
    wait_for "$url"
    printf '\n== %s, one after the other, reset before each\n' "$store"
    python3 "$runner" --suites "$suites" --url "$url" --reset-url "$url/ojs/v1/admin/reset" "$@" || failed=1
    printf '\n== %s, eight at a time, kept\n' "$store"
    python3 "$runner" --suites "$suites" --url "$url" --jobs 8 --isolate "$@" || failed=1
done
exit $failed
