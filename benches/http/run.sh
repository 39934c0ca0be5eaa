#!/usr/bin/env bash
# What the HTTP side costs: enqueueing one by one and by the hundred, and serving jobs, with wrk on loopback, beside what
# the store does on the same disk without HTTP.
#
#   benches/http/run.sh [seconds per subject, default 10]
#
# STORE=postgres://… measures api and scheduler on that (empty, migrated) database; otherwise `turnstone dev` on a new file.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-10}
command -v wrk >/dev/null || { echo "wrk is missing: apt-get install wrk" >&2; exit 1; }
if [ -z "${TURNSTONE:-}" ]; then
    cargo build --release --quiet -p turnstone-cli
    TURNSTONE=$PWD/target/release/turnstone
fi
place=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; wait 2>/dev/null; rm -rf "$place"' EXIT
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
url=http://127.0.0.1:$port

if [ -n "${STORE:-}" ]; then
    export DATABASE_URL=$STORE
    "$TURNSTONE" api --bind "127.0.0.1:$port" >"$place/log" 2>&1 &
    pids+=($!)
    "$TURNSTONE" scheduler >>"$place/log" 2>&1 &
    pids+=($!)
else
    "$TURNSTONE" dev --data "$place/data" --bind "127.0.0.1:$port" >"$place/log" 2>&1 &
    pids+=($!)
fi
for _ in $(seq 1 100); do curl -fsS -o /dev/null "$url/readyz" 2>/dev/null && break; sleep 0.1; done

run() { # title, connections, script, threads
    printf '\n%s\n' "$1"
    wrk --latency -t "$4" -c "$2" -d "${seconds}s" -s "benches/http/$3.lua" "$url" |
        grep -E '50%|99%|Requests/sec|Jobs acknowledged|Non-2xx' || true
}

run "enqueue, one connection" 1 enqueue 1
run "enqueue, 64 connections" 64 enqueue 2
run "enqueue by the hundred, 8 connections (requests; jobs are 100 times that)" 8 batch 2
run "fetch 100 and acknowledge each, 16 connections" 16 serve 2

kill "${pids[@]}"; wait 2>/dev/null || true; pids=()
printf '\nthe store alone, on the same disk:\n'
"$TURNSTONE" bench enqueue ${STORE:+--store "$STORE"}
