#!/usr/bin/env bash
# The official Python SDK of A2A as a client of this server: card, message, stream, task, list, context, question, cancellation. And
# the same SDK as a server that an agent of this one asks: answer, question, kill -9, cancellation. It needs python3 and PyPI, so it is no part of the default tests: run it when something about A2A has changed.
#
#   tests/a2a-counterparts.sh
#
# `TURNSTONE=path` uses a binary that is there already; `A2A_VENV=folder` keeps the packages. It ends with 0 when everything
# passed, 1 when a check failed, and 2 when it could not run.
set -euo pipefail
cd "$(dirname "$0")/.."

. tests/counterparts.sh
prepare "${A2A_VENV:-}" 'a2a-sdk[http-server]==1.3.0' uvicorn
sdk_port=$(free_port)
agent clerk ''
agent asker 'capabilities: {ask-user: {}}'
agent front 'capabilities: {ask-user: {}, sdk: {}}'
cat >> "$place/turnstone.toml" <<TOML
[remote]
allow_private = true
[remote.agents.sdk]
protocol = "a2a"
url = "http://127.0.0.1:$sdk_port"
TOML
cat > "$place/script.yaml" <<'YAML'
rules:
  - when: {user_contains: "sdk: hello", tool_results: 0}
    answer: {tool_calls: [{name: sdk, arguments: {input: "hello"}}]}
  - when: {user_contains: "sdk: ask", tool_results: 0}
    answer: {tool_calls: [{name: sdk, arguments: {input: "ask"}}]}
  - when: {user_contains: "sdk: wait", tool_results: 0}
    answer: {tool_calls: [{name: sdk, arguments: {input: "wait"}}]}
  - when: {user_contains: "ask me", tool_results: 0}
    answer: {tool_calls: [{name: ask-user, arguments: {request_keys: {city: "Which city?"}}}]}
  - answer: {text: "done as you said"}
YAML

cat > "$place/sdk.py" <<'PYTHON'
import asyncio, sys
import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandlerV2
from a2a.server.routes.agent_card_routes import create_agent_card_routes
from a2a.server.routes.jsonrpc_routes import create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part, Task, TaskState, TaskStatus)
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

port = int(sys.argv[1])
counts = {"begun": 0, "canceled": 0}
go_on = asyncio.Event()

class Echo(AgentExecutor):
    async def execute(self, context, event_queue):
        text = context.get_user_input()
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        if context.current_task is None:
            counts["begun"] += 1
            await event_queue.enqueue_event(Task(id=context.task_id, context_id=context.context_id,
                status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED), history=[context.message]))
            await updater.start_work()
            if text == "ask":
                asked = updater.new_agent_message([Part(text="Which city?")])
                await updater.requires_input(asked)
                return
            if text == "wait":
                await go_on.wait()
        await updater.add_artifact([Part(text=f"the SDK heard {text}")], name="answer")
        await updater.complete()

    async def cancel(self, context, event_queue):
        counts["canceled"] += 1
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()

card = AgentCard(name="sdk", description="An agent of the SDK.", version="1.0.0",
    supported_interfaces=[AgentInterface(url=f"http://127.0.0.1:{port}/rpc", protocol_binding="JSONRPC", protocol_version="1.0")],
    capabilities=AgentCapabilities(streaming=True), default_input_modes=["text/plain"], default_output_modes=["text/plain"],
    skills=[AgentSkill(id="echo", name="echo", description="It echoes.", tags=["test"])])
handler = DefaultRequestHandlerV2(agent_executor=Echo(), task_store=InMemoryTaskStore(), agent_card=card)

async def count(request):
    return JSONResponse(counts)

async def release(request):
    go_on.set()
    return JSONResponse(counts)

routes = create_agent_card_routes(card) + create_jsonrpc_routes(handler, "/rpc")
app = Starlette(routes=routes + [Route("/count", count), Route("/release", release)])
uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")
PYTHON
"$venv/bin/python" "$place/sdk.py" "$sdk_port" >"$place/sdk.log" 2>&1 &
others=$!
reachable "$sdk_port"
start

cat > "$place/client.py" <<'PYTHON'
import asyncio, sys, uuid
import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import (CancelTaskRequest, GetTaskRequest, Message, Part, Role, SendMessageConfiguration,
                       ListTasksRequest, SendMessageRequest, TaskState)

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
            ok(f"a context continues {how}", again.context_id == task.context_id and again.id != task.id, again)
            got = await client.get_task(GetTaskRequest(id=task.id))
            ok("a task is read again", got.status.state == TaskState.TASK_STATE_COMPLETED, got)
            page = await client.list_tasks(ListTasksRequest(context_id=task.context_id, include_artifacts=True))
            ok("the tasks of a context are listed", [one.id for one in page.tasks] == [again.id, task.id], page)

        asker = await connect("asker", True)
        task, states, _ = await last(asker, message("ask me"))
        ok("a task asks its user", states[-1] == TaskState.TASK_STATE_INPUT_REQUIRED, states)
        answer = message("Oslo", task_id=task.id, context_id=task.context_id)
        task, states, text = await last(asker, answer)
        ok("the answer resumes it", states[-1] == TaskState.TASK_STATE_COMPLETED, states)

        task, states, _ = await last(asker, message("ask me again"))
        told = await asker.cancel_task(CancelTaskRequest(id=task.id))
        ok("a task is canceled", told.status.state == TaskState.TASK_STATE_CANCELED, told)
        for what, call in (("a second time", asker.cancel_task(CancelTaskRequest(id=task.id))),
                           ("of an unknown task", asker.get_task(GetTaskRequest(id="nope")))):
            try:
                await call
                ok(f"an error {what}", False, "it was answered")
            except Exception as error:
                ok(f"the SDK knows the error {what}: {type(error).__name__}", "Task" in type(error).__name__, error)

asyncio.run(main())
PYTHON
"$venv/bin/python" "$place/client.py" "http://127.0.0.1:$port"

cat > "$place/asking.py" <<'PYTHON'
import json, sys, time, urllib.request

base, sdk, step = sys.argv[1:4]

def call(url, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read() or b"null")

def until(what, state):
    for _ in range(600):
        seen = state()
        if seen is not None:
            return seen
        time.sleep(0.1)
    ok(what, False, "it never came")

def ok(what, holds, seen):
    if not holds:
        print(f"FAILED: {what}: {seen}")
        sys.exit(1)
    print(f"ok: {what}")

def push(text):
    job = call(f"{base}/ojs/v1/jobs", {"type": "a.b", "args": [text], "meta": {"agent": "front"}})
    job = job.get("job", job)
    return job["id"], job.get("ext_agent_engagement_id") or call(f"{base}/ojs/v1/jobs/{job['id']}")["job"]["ext_agent_engagement_id"]

def state(id, *wanted):
    def look():
        seen = call(f"{base}/engagements/{id}")
        return seen if seen["status"] in wanted else None
    return until(f"{id} is {wanted}", look)

def heard(id, words):
    calls = json.dumps(call(f"{base}/engagements/{id}/tool-calls"))
    ok(f"the agent hears: {words}", words in calls, calls)

if step == "before":
    _, id = push("sdk: hello")
    state(id, "completed")
    heard(id, "the SDK heard hello")
    _, id = push("sdk: ask")
    asked = state(id, "waiting-for-input", "failed")
    ok("what an agent of the SDK asks is asked here", asked["awaiting"]["prompt"] == "Which city?", asked)
    call(f"{base}/engagements/{id}/answer", {"answers": {"answer": "Oslo"}})
    state(id, "completed")
    heard(id, "the SDK heard Oslo")
    begun = call(f"{sdk}/count")["begun"]
    ok("each was one task", begun == 2, begun)
    job, id = push("sdk: wait")
    until("it is noted", lambda: "handle" in json.dumps(call(f"{base}/engagements/{id}/tool-calls")) or None)
    call(f"{base}/ojs/v1/jobs/{job}/cancel", {})
    until("the task is canceled there", lambda: call(f"{sdk}/count")["canceled"] or None)
    ok("a cancelled job cancels the task of the SDK", True, None)
    _, id = push("sdk: wait")
    until("it is noted", lambda: "handle" in json.dumps(call(f"{base}/engagements/{id}/tool-calls")) or None)
    print(id, file=open(sys.argv[4], "w"))
else:
    id = open(sys.argv[4]).read().strip()
    call(f"{sdk}/release")
    state(id, "completed")
    heard(id, "the SDK heard wait")
    begun = call(f"{sdk}/count")["begun"]
    ok("a killed server waits for the same task", begun == 4, begun)
PYTHON
asking() { python3 "$place/asking.py" "http://127.0.0.1:$port" "http://127.0.0.1:$sdk_port" "$1" "$place/waiting"; }
asking before
kill -9 "$server"
wait "$server" 2>/dev/null || true
start
asking after
echo 'all passed'
