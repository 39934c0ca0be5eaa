#!/usr/bin/env bash
# Speaks to MCP servers that are not ours: one written with the official Python SDK, over stdio and over streamable
# HTTP, and the published time server. Needs python3 and PyPI; the default test suite needs neither of them.
#
#   tests/mcp-counterparts.sh
#
# `TURNSTONE=path` uses a binary that is there already; `MCP_VENV=folder` keeps the Python packages.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -z "${TURNSTONE:-}" ]; then
    cargo build --quiet -p turnstone-cli
    TURNSTONE=$PWD/target/debug/turnstone
fi
place=$(mktemp -d)
venv=${MCP_VENV:-$place/venv}
pids=()
cleanup() {
    [ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$place"
}
trap cleanup EXIT
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet 'mcp==2.3.0' 'mcp-server-time==2026.10.19'

cat > "$place/desk.py" <<'PYTHON'
import asyncio, sys
from mcp.server.mcpserver import Context, MCPServer

desk = MCPServer("desk")

@desk.tool()
def multiply(a: int, b: int) -> int:
    """Multiplies two integers."""
    return a * b

@desk.tool()
def refuse(why: str) -> str:
    """Fails for the reason given."""
    raise ValueError(f"refused because {why}")

@desk.tool()
async def doze(seconds: float, ctx: Context) -> str:
    """Sleeps, and reports progress."""
    for step in range(10):
        await asyncio.sleep(seconds / 10)
        await ctx.report_progress(step + 1, 10)
    return f"dozed {seconds}"

if sys.argv[1:]:
    desk.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    desk.run("stdio")
PYTHON

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
passed=0
check() { # WHAT PROGRAM-TEXT < JSON
    python3 -c "import json, sys; it = json.load(sys.stdin)
assert $2, it" || { printf 'FAILED: %s\n' "$1"; exit 1; }
    printf 'ok: %s\n' "$1"
    passed=$((passed + 1))
}

port=$(free_port)
"$venv/bin/python" "$place/desk.py" "$port" >"$place/desk.log" 2>&1 &
pids+=($!)
for _ in $(seq 100); do (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break; sleep 0.1; done

cat > "$place/turnstone.toml" <<TOML
[server]
data = "$place/data"
[providers.rehearsal]
kind = "scripted"
script = "$place/script.yaml"
[models]
default_provider = "rehearsal"
default_model = "rehearsal"
[mcp.pipe]
command = ["$venv/bin/python", "$place/desk.py"]
connect_timeout_ms = 60000
[mcp.web]
url = "http://127.0.0.1:$port/mcp"
allow_private = true
connect_timeout_ms = 60000
[mcp.time]
command = ["$venv/bin/mcp-server-time"]
tools = ["get_current_time"]
connect_timeout_ms = 60000
[mcp.absent]
command = ["$place/absent"]
TOML
cat > "$place/script.yaml" <<'YAML'
rules:
  - when: {tool_results: 0}
    answer: {tool_calls: [{name: pipe.multiply, arguments: {a: 6, b: 7}}]}
  - when: {tool_results: 1}
    answer: {tool_calls: [{name: web.multiply, arguments: {a: 8, b: 9}}]}
  - when: {tool_results: 2}
    answer: {tool_calls: [{name: web.refuse, arguments: {why: of-the-weather}}]}
  - when: {tool_results: 3}
    answer: {tool_calls: [{name: time.get_current_time, arguments: {timezone: UTC}}]}
  - when: {tool_results: 4}
    answer: {tool_calls: [{name: web.doze, arguments: {seconds: 1}}]}
  - when: {}
    answer: {text: done}
YAML

turnstone() { "$TURNSTONE" --config "$place/turnstone.toml" "$@"; }
turnstone mcp check pipe web time -o json > "$place/check.json"
of() { printf "next(s for s in it if s['server'] == '%s')" "$1"; }
names() { printf "[t['name'] for t in %s['tools']]" "$(of "$1")"; }
check 'the SDK over stdio lists its tools' "$(names pipe) == ['pipe.doze', 'pipe.multiply', 'pipe.refuse']" < "$place/check.json"
check 'the SDK over streamable HTTP lists its tools' "$(names web) == ['web.doze', 'web.multiply', 'web.refuse']" < "$place/check.json"
check 'both transports show the same digest' "$(of pipe)['digest'] == $(of web)['digest']" < "$place/check.json"
check 'the time server shows the tool that is allowed' "$(names time) == ['time.get_current_time']" < "$place/check.json"
if turnstone mcp check absent -o json > "$place/absent.json"; then echo 'FAILED: an absent server is in order'; exit 1; fi
check 'an absent server is reported' "it[0]['ok'] is False and 'cannot be started' in it[0]['error']" < "$place/absent.json"

api=$(free_port)
turnstone dev --bind "127.0.0.1:$api" >"$place/dev.log" 2>&1 &
pids+=($!)
for _ in $(seq 100); do (exec 3<>"/dev/tcp/127.0.0.1/$api") 2>/dev/null && break; sleep 0.1; done
ask() { python3 -c 'import sys, urllib.request
body = sys.argv[2].encode() if len(sys.argv) > 2 else None
print(urllib.request.urlopen(urllib.request.Request(sys.argv[1], body, {"content-type": "application/json"})).read().decode())' "http://127.0.0.1:$api$1" "${@:2}"; }
tools='["pipe.multiply", "web.multiply", "web.refuse", "web.doze", "time.get_current_time", "absent.x"]'
job=$(python3 -c 'import json, sys; print(json.dumps({"type": "agent.desk", "args": ["go"], "ext_agent_tools": [{"name": n} for n in json.loads(sys.argv[1])]}))' "$tools")
id=$(ask /ojs/v1/jobs "$job" | python3 -c 'import json, sys; print(json.load(sys.stdin)["job"]["id"])')
for _ in $(seq 600); do
    ask "/ojs/v1/jobs/$id" > "$place/job.json"
    grep -Eq '"state": ?"(completed|discarded|retryable|pending)"' "$place/job.json" && break
    sleep 0.1
done
check 'the job is completed' "it['job']['state'] == 'completed'" < "$place/job.json"
ask "/ojs/v1/jobs/$id/events" > "$place/events.json"
told="' '.join(json.dumps(e['data']) for e in it['events'] if e['name'].startswith('tool.'))"
check 'a call over stdio' "'42' in $told" < "$place/events.json"
check 'a call over streamable HTTP' "'72' in $told" < "$place/events.json"
check 'a failure of a tool is told' "'of-the-weather' in $told" < "$place/events.json"
check 'the time of the published server' "'UTC' in $told" < "$place/events.json"
check 'a call that reports progress' "'dozed 1' in $told" < "$place/events.json"
check 'the absent server is left out with a warning' "any(e['name'] == 'tool.unavailable' and e['data']['name'] == 'absent.x' for e in it['events'])" < "$place/events.json"
printf '%s passed, 0 failed\n' "$passed"
