#!/usr/bin/env bash
# The official Python SDK of A2A as a client of this server: card, message, stream, task, context, question, cancellation. It
# needs python3 and PyPI, so it is no part of the default tests: run it when something about A2A has changed.
#
#   tests/a2a-counterparts.sh
#
# `TURNSTONE=path` uses a binary that is there already; `A2A_VENV=folder` keeps the packages. It ends with 0 when everything
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
venv=${A2A_VENV:-$place/venv}
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
"$venv/bin/pip" install --quiet 'a2a-sdk==1.3.0' || cannot_run 'PyPI is out of reach'

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
mkdir "$place/agents"
for agent in clerk asker; do
    tools=$([ $agent = asker ] && echo 'capabilities: {ask-user: {}}' || true)
    printf 'kind: "openagentspec:v1/agent"\nname: %s\ndescription: A test.\nintent: You are %s.\nowner: tests\n%s\n' \
        $agent $agent "$tools" > "$place/agents/$agent.yaml"
done
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
cat > "$place/script.yaml" <<'YAML'
rules:
  - when: {user_contains: "ask me", tool_results: 0}
    answer: {tool_calls: [{name: ask-user, arguments: {request_keys: {city: "Which city?"}}}]}
  - answer: {text: "done as you said"}
YAML
(cd "$place" && exec "$TURNSTONE" dev >"$place/dev.log" 2>&1) &
server=$!
for _ in $(seq 300); do (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break; sleep 0.1; done

cat > "$place/client.py" <<'PYTHON'
import asyncio, sys, uuid
import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import (CancelTaskRequest, GetTaskRequest, Message, Part, Role, SendMessageConfiguration,
                       SendMessageRequest, SubscribeToTaskRequest, TaskState)

base = sys.argv[1]

def message(text, **more):
    said = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[Part(text=text)], **more)
    return SendMessageRequest(message=said, configuration=SendMessageConfiguration())

async def last(client, request):
    task, states, text = None, [], ""
    async for told in client.send_message(request):
        kind = told.WhichOneof("payload")
        if kind == "task":
            task = told.task
            states.append(task.status.state)
            text = "".join(part.text for artifact in task.artifacts for part in artifact.parts) or text
        elif kind == "status_update":
            states.append(told.status_update.status.state)
        elif kind == "artifact_update":
            said = "".join(part.text for part in told.artifact_update.artifact.parts)
            text = text + said if told.artifact_update.append else said
    return task, states, text

def ok(what, holds, seen):
    if not holds:
        print(f"FAILED: {what}: {seen}")
        sys.exit(1)
    print(f"ok: {what}")

async def main():
    async with httpx.AsyncClient(timeout=60) as http:
        async def connect(agent, streaming):
            card = await A2ACardResolver(http, f"{base}/a2a/{agent}").get_agent_card()
            ok(f"the card of {agent} is read", card.name == agent, card)
            return ClientFactory(ClientConfig(httpx_client=http, streaming=streaming)).create(card)

        for streaming in (False, True):
            client = await connect("clerk", streaming)
            task, states, text = await last(client, message("hello"))
            how = "as a stream" if streaming else "at once"
            ok(f"a message is answered {how}", states[-1] == TaskState.TASK_STATE_COMPLETED, states)
            ok(f"the answer is there {how}", text == "done as you said", text)
            again, states, _ = await last(client, message("more", context_id=task.context_id))
            ok(f"a context goes on {how}", again.context_id == task.context_id and again.id != task.id, again)
            got = await client.get_task(GetTaskRequest(id=task.id))
            ok("a task is read again", got.status.state == TaskState.TASK_STATE_COMPLETED, got)

        asker = await connect("asker", True)
        task, states, _ = await last(asker, message("ask me"))
        ok("a task asks its user", states[-1] == TaskState.TASK_STATE_INPUT_REQUIRED, states)
        answer = message("Oslo", task_id=task.id, context_id=task.context_id)
        task, states, text = await last(asker, answer)
        ok("the answer lets it go on", states[-1] == TaskState.TASK_STATE_COMPLETED, states)

        task, states, _ = await last(asker, message("ask me again"))
        told = await asker.cancel_task(CancelTaskRequest(id=task.id))
        ok("a task is canceled", told.status.state == TaskState.TASK_STATE_CANCELED, told)
        for what, call in (("a second time", asker.cancel_task(CancelTaskRequest(id=task.id))),
                           ("of nobody", asker.get_task(GetTaskRequest(id="nope")))):
            try:
                await call
                ok(f"an error {what}", False, "it was answered")
            except Exception as error:
                ok(f"the SDK knows the error {what}: {type(error).__name__}", "Task" in type(error).__name__, error)

asyncio.run(main())
PYTHON
"$venv/bin/python" "$place/client.py" "http://127.0.0.1:$port"
echo 'all passed'
