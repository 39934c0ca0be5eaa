#!/usr/bin/env bash
# Calls published MCP servers, over stdio and over streamable HTTP: one written with the official Python SDK,
# the published time server, and the published server of the TypeScript SDK that shows everything. It needs python3, node,
# npm, PyPI and the npm registry, so it is no part of the default tests: run it when something about MCP has changed.
#
#   tests/mcp-counterparts.sh
#
# `TURNSTONE=path` uses a binary that is there already; `MCP_VENV=folder` and `MCP_NODE=folder` keep the packages;
# `MCP_WITHOUT=node` leaves the TypeScript SDK out. It ends with 0 when everything passed, 1 when a check failed, and 2
# when it could not run.
set -euo pipefail
cd "$(dirname "$0")/.."

cannot_run() { printf 'CANNOT RUN: %s\n' "$1" >&2; exit 2; }
command -v python3 >/dev/null || cannot_run 'there is no python3'
with_node=true
if [ "${MCP_WITHOUT:-}" = node ]; then
    with_node=false
    echo 'LEFT OUT: the servers of the TypeScript SDK (MCP_WITHOUT=node)'
elif ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    cannot_run 'there is no node with npm; MCP_WITHOUT=node leaves the TypeScript SDK out'
fi
if [ -z "${TURNSTONE:-}" ]; then
    cargo build --quiet -p turnstone-cli || cannot_run 'the program cannot be built'
    TURNSTONE=${CARGO_TARGET_DIR:-$PWD/target}/debug/turnstone
fi
[ -x "$TURNSTONE" ] || cannot_run "there is no program at $TURNSTONE"
place=$(mktemp -d)
venv=${MCP_VENV:-$place/venv}
node_home=${MCP_NODE:-$place/node}
pids=()
cleanup() {
    local status=$?
    [ "$status" -ne 1 ] || tail -n 20 "$place"/*.log 2>/dev/null || true
    [ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$place"
}
trap cleanup EXIT
[ -x "$venv/bin/python" ] || python3 -m venv "$venv" || cannot_run 'python3 has no module venv'
"$venv/bin/pip" install --quiet 'mcp==2.3.0' 'mcp-server-time==2026.10.19' || cannot_run 'PyPI is out of reach'
everything=$node_home/node_modules/@modelcontextprotocol/server-everything/dist/index.js
if $with_node; then
    mkdir -p "$node_home"
    npm install --silent --no-fund --no-audit --prefix "$node_home" '@modelcontextprotocol/server-everything@2026.8.31' \
        || cannot_run 'the npm registry is out of reach'
fi

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

reachable() { # PORT WHAT
    for _ in $(seq 200); do (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return; sleep 0.1; done
    echo "FAILED: $2 does not listen on port $1 within 20 s"
    exit 1
}
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
reachable "$port" 'the server of the Python SDK'
node_port=$(free_port)
if $with_node; then
    PORT=$node_port node "$everything" streamableHttp >"$place/everything.log" 2>&1 &
    pids+=($!)
    reachable "$node_port" 'the server of the TypeScript SDK'
fi

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
if $with_node; then cat >> "$place/turnstone.toml" <<TOML
[mcp.every]
command = ["node", "$everything"]
connect_timeout_ms = 60000
[mcp.everyweb]
url = "http://127.0.0.1:$node_port/mcp"
allow_private = true
connect_timeout_ms = 60000
TOML
fi
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
YAML
tools='["pipe.multiply", "web.multiply", "web.refuse", "web.doze", "time.get_current_time", "absent.x"]'
if $with_node; then
    cat >> "$place/script.yaml" <<'YAML'
  - when: {tool_results: 5}
    answer: {tool_calls: [{name: every.get-sum, arguments: {a: 1000, b: 337}}]}
  - when: {tool_results: 6}
    answer: {tool_calls: [{name: everyweb.get-sum, arguments: {a: 2000, b: 674}}]}
  - when: {tool_results: 7}
    answer: {tool_calls: [{name: everyweb.trigger-long-running-operation, arguments: {duration: 1, steps: 5}}]}
  - when: {tool_results: 8}
    answer: {tool_calls: [{name: every.get-structured-content, arguments: {location: Chicago}}]}
  - when: {tool_results: 9}
    answer: {tool_calls: [{name: everyweb.get-tiny-image, arguments: {}}]}
  - when: {tool_results: 10}
    answer: {tool_calls: [{name: every.get-env, arguments: {}}]}
YAML
    tools=${tools%]}', "every.get-sum", "everyweb.get-sum", "everyweb.trigger-long-running-operation", "every.get-structured-content", "everyweb.get-tiny-image", "every.get-env"]'
fi
printf '  - when: {}\n    answer: {text: done}\n' >> "$place/script.yaml"

turnstone() { "$TURNSTONE" --config "$place/turnstone.toml" "$@"; }
servers=(pipe web time)
if $with_node; then servers+=(every everyweb); fi
turnstone mcp check "${servers[@]}" -o json > "$place/check.json"
of() { printf "next(s for s in it if s['server'] == '%s')" "$1"; }
names() { printf "[t['name'] for t in %s['tools']]" "$(of "$1")"; }
check 'the SDK over stdio lists its tools' "$(names pipe) == ['pipe.doze', 'pipe.multiply', 'pipe.refuse']" < "$place/check.json"
check 'the SDK over streamable HTTP lists its tools' "$(names web) == ['web.doze', 'web.multiply', 'web.refuse']" < "$place/check.json"
check 'both transports show the same digest' "$(of pipe)['digest'] == $(of web)['digest']" < "$place/check.json"
check 'the time server shows the tool that is allowed' "$(names time) == ['time.get_current_time']" < "$place/check.json"
if $with_node; then
    check 'the TypeScript SDK over stdio lists its tools' "'every.get-sum' in $(names every)" < "$place/check.json"
    check 'the TypeScript SDK over streamable HTTP shows the same digest' "$(of every)['digest'] == $(of everyweb)['digest']" < "$place/check.json"
fi
if turnstone mcp check absent -o json > "$place/absent.json"; then echo 'FAILED: an absent server is in order'; exit 1; fi
check 'an absent server is reported' "it[0]['ok'] is False and 'cannot be started' in it[0]['error']" < "$place/absent.json"

api=$(free_port)
# The program itself and not the function: what is killed at the end has to be the program. The variable is a secret that no
# server may see.
DESK_API_KEY=witness-5531 "$TURNSTONE" --config "$place/turnstone.toml" dev --bind "127.0.0.1:$api" >"$place/dev.log" 2>&1 &
pids+=($!)
reachable "$api" 'turnstone dev'
ask() { python3 -c 'import sys, urllib.request
body = sys.argv[2].encode() if len(sys.argv) > 2 else None
print(urllib.request.urlopen(urllib.request.Request(sys.argv[1], body, {"content-type": "application/json"})).read().decode())' "http://127.0.0.1:$api$1" "${@:2}"; }
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
if $with_node; then
    check 'a call of the TypeScript SDK over stdio' "'1337' in $told" < "$place/events.json"
    check 'a call of the TypeScript SDK over streamable HTTP' "'2674' in $told" < "$place/events.json"
    check 'its operation that reports progress' "'Long running operation completed' in $told" < "$place/events.json"
    check 'structured content' "'temperature' in $told" < "$place/events.json"
    engagement=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["job"]["ext_agent_engagement_id"])' < "$place/job.json")
    ask "/engagements/$engagement/messages" > "$place/messages.json"
    check 'a picture' "'image/png' in json.dumps(it)" < "$place/messages.json"
    check 'a server sees its environment without secrets' "'PATH' in $told and 'witness-5531' not in json.dumps(it)" < "$place/events.json"
fi
printf '%s passed, 0 failed\n' "$passed"
