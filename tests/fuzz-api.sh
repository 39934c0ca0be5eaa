#!/usr/bin/env bash
# Fuzzes every endpoint that /openapi.json describes: no 5xx, no status and no media type that is not described, no answer
# that breaks its schema. Installs schemathesis (Python, from PyPI) into a folder of its own below target/ when it is
# missing.
#
#   tests/fuzz-api.sh [seconds, default 300] [schemathesis' own flags]
#
# `TURNSTONE=path` uses a binary that is there already.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-300}
[ $# -gt 0 ] && shift

tools=target/fuzz-api
if [ ! -x $tools/bin/schemathesis ]; then
    python3 -m venv $tools
    $tools/bin/pip install --quiet 'schemathesis==4.*'
fi
if [ -z "${TURNSTONE:-}" ]; then
    cargo build --quiet -p turnstone-cli
    TURNSTONE=$PWD/target/debug/turnstone
fi
place=$(mktemp -d)
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$TURNSTONE" dev --data "$place/data" --bind "127.0.0.1:$port" >"$place/log" 2>&1 &
server=$!
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null; rm -rf "$place"' EXIT
for _ in $(seq 1 200); do curl -fsS -o /dev/null "http://127.0.0.1:$port/readyz" 2>/dev/null && break; sleep 0.1; done

checks=not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance
checks=$checks,response_schema_conformance,unsupported_method,allow_header_conformance
$tools/bin/schemathesis run "http://127.0.0.1:$port/openapi.json" --phases examples,coverage,fuzzing,stateful \
    --max-time "$seconds" --workers 2 --continue-on-failure --checks $checks "$@"
if grep -E 'panicked|ERROR' "$place/log" >&2; then
    echo "the server's log has errors" >&2
    exit 1
fi
