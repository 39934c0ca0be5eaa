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

. tests/counterparts.sh
prepare "${SSE_VENV:-}" 'httpx==0.28.1' 'httpx-sse==0.4.1' 'sseclient-py==1.8.0'
agent clerk ''
printf 'rules:\n  - answer: {text: "two\\nlines, and a bird"}\n' > "$place/script.yaml"
start

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
