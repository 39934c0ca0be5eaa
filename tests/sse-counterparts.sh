#!/usr/bin/env bash
# Independent client libraries for server-sent events (httpx-sse and sseclient-py, from PyPI) read every stream of this server,
# and come back in the middle. It needs python3 and PyPI, so it is no part of the default tests, which do the same with a library
# in Rust (tests/it/streams.rs): run it when something about streams has changed.
#
#   tests/sse-counterparts.sh
#
# `TURNSTONE=path` uses a binary that is there already; `SSE_VENV=folder` keeps the packages. It ends with 0 when everything
# passed, 1 when a check failed, and 2 when it could not run.
set -euo pipefail
cd "$(dirname "$0")/.."

cannot_run() { printf 'CANNOT RUN: %s\n' "$1" >&2; exit 2; }
command -v python3 >/dev/null || cannot_run 'there is no python3'
if [ -z "${TURNSTONE:-}" ]; then
    cargo build --quiet -p turnstone-cli || cannot_run 'the program cannot be built'
    TURNSTONE=${CARGO_TARGET_DIR:-$PWD/target}/debug/turnstone
fi
[ -x "$TURNSTONE" ] || cannot_run "there is no program at $TURNSTONE"
place=$(mktemp -d)
venv=${SSE_VENV:-$place/venv}
server=
cleanup() {
    local status=$?
    [ "$status" -ne 1 ] || tail -n 20 "$place/dev.log" 2>/dev/null || true
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$place"
}
trap cleanup EXIT
[ -x "$venv/bin/python" ] || python3 -m venv "$venv" || cannot_run 'python3 has no module venv'
"$venv/bin/pip" install --quiet 'httpx==0.28.1' 'httpx-sse==0.4.1' 'sseclient-py==1.8.0' || cannot_run 'PyPI is out of reach'

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
mkdir "$place/agents"
printf 'kind: "openagentspec:v1/agent"\nname: clerk\ndescription: A test.\nintent: You are clerk.\nowner: tests\n' \
    > "$place/agents/clerk.yaml"
cat > "$place/turnstone.toml" <<TOML
[server]
bind = "127.0.0.1:$port"
data = "$place/data"
[agents]
dir = "agents"
[providers.rehearsal]
kind = "scripted"
script = "$place/script.yaml"
[models]
default_provider = "rehearsal"
default_model = "rehearsal"
TOML
printf 'rules:\n  - answer: {text: "two\\nlines, and a bird"}\n' > "$place/script.yaml"
(cd "$place" && exec "$TURNSTONE" dev >"$place/dev.log" 2>&1) &
server=$!
for _ in $(seq 300); do (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break; sleep 0.1; done

cat > "$place/client.py" <<'PYTHON'
import json, sys
import httpx, sseclient
from httpx_sse import connect_sse

base = sys.argv[1]
http = httpx.Client(timeout=60, trust_env=False)

def ok(what, holds, seen=""):
    if not holds:
        print(f"FAILED: {what}: {seen}")
        sys.exit(1)
    print(f"ok: {what}")

def by_httpx_sse(path, until, last=None, method="GET", **more):
    headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last else {}), **more.pop("headers", {})}
    seen = []
    with connect_sse(http, method, base + path, headers=headers, **more) as source:
        for event in source.iter_sse():
            seen.append((event.event, event.id, event.data))
            if until in event.data:
                break
    return seen

def by_sseclient(path, until, last=None):
    headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last else {})}
    seen = []
    with http.stream("GET", base + path, headers=headers) as answer:
        for event in sseclient.SSEClient(answer.iter_bytes()).events():
            seen.append((event.event, event.id or "", event.data))
            if until in event.data:
                break
    return seen

def ids(seen):
    return [id for event, id, _ in seen if event != "delta"]

first = by_httpx_sse("/agents/clerk/stream_request", "request_completed", method="POST", json={"input": "hello"})
begun = json.loads(first[0][2])
ok("stream_request begins with request_started", begun["type"] == "request_started", begun)
ok("its ids have no gaps", ids(first) == [str(number) for number in range(1, len(ids(first)) + 1)], ids(first))
request, run = begun["request_id"], begun["run_id"]
streams = [
    (f"/agents/clerk/getevents/{request}?stream=True", "request_completed"),
    (f"/agents/clerk/getevents/{run}?stream=True", "request_completed"),
    (f"/engagements/{run}/events?stream=true", '"job.completed"'),
    (f"/ojs/v1/jobs/{request}/events?stream=true", '"job.completed"'),
    (f"/ojs/v1/events?types=*&subject={request}&after=evt_0.0.0", '"job.completed"'),
    (f"/ojs/v1/events/stream?types=*&subject={request}&after=evt_0.0.0", '"job.completed"'),
]
for path, until in streams:
    for read in (by_httpx_sse, by_sseclient):
        whole = read(path, until)
        known = ids(whole)
        rest = ids(read(path, until, known[1]))
        ok(f"{read.__name__} {path.split('?')[0]}", len(known) > 2 and rest == known[2:], (known, rest))
message = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
call = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": message}}
told = by_httpx_sse("/a2a/clerk", "TASK_STATE_COMPLETED", method="POST", json=call, headers={"A2A-Version": "1.0"})
ok("a task of A2A is streamed to its end", "TASK_STATE_COMPLETED" in told[-1][2], told)
PYTHON
"$venv/bin/python" "$place/client.py" "http://127.0.0.1:$port"
echo 'all passed'
