#!/usr/bin/env python3
"""Builds five documents with pyagentspec, runs them on Turnstone, and loads again what Turnstone exports.

    pip install pyagentspec
    turnstone dev            # with [tool_policy] allowed_hosts = ["127.0.0.1"], allow_private = true
    python3 examples/agent_spec.py http://127.0.0.1:8080

The models are a scripted server of this program, so that it costs nothing.
"""
import json, sys, threading, time, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pyagentspec.agent import Agent
from pyagentspec.flows.edges import ControlFlowEdge, DataFlowEdge
from pyagentspec.flows.flow import Flow
from pyagentspec.flows.nodes import AgentNode, BranchingNode, EndNode, InputMessageNode, LlmNode, StartNode
from pyagentspec.llms import OpenAiCompatibleConfig
from pyagentspec.managerworkers import ManagerWorkers
from pyagentspec.property import StringProperty
from pyagentspec.serialization import AgentSpecDeserializer, AgentSpecSerializer
from pyagentspec.tools import ServerTool

TURNSTONE = sys.argv[1].rstrip("/") if len(sys.argv) > 1 else "http://127.0.0.1:8080"


class Model(BaseHTTPRequestHandler):
    """Answers by the system prompt, and by the outcomes of tools that the request holds."""

    def log_message(self, *_):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        outcomes = [one["content"] for one in asked["messages"] if one["role"] == "tool"]
        system = asked["messages"][0]["content"] if asked["messages"][0]["role"] == "system" else ""
        offered = [tool["function"]["name"] for tool in asked.get("tools", [])]
        message = {"role": "assistant", "content": "Boats float."}
        if "boss" in system and not outcomes:
            message = call("send_message", {"recipient": "worker", "message": "look at the boats"})
        elif "clock" in offered and not outcomes:
            message = call("clock", {})
        elif "submit_result" in offered:
            message = call("submit_result", {"city": "Rome"})
        body = {"model": "scripted", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 5}}
        answer = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


def call(name, arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]}


def request(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(TURNSTONE + path, data=data, method=method, headers={"content-type": "application/json"})
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return json.loads(answer.read() or b"null")


def flow(name, nodes, edges, data=()):
    control = [ControlFlowEdge(name="%s-%s-%s" % (a.name, b or "", c.name), from_node=a, from_branch=b, to_node=c) for a, b, c in edges]
    filled = [DataFlowEdge(name="%s.%s-%s.%s" % (a.name, x, b.name, y), source_node=a, source_output=x, destination_node=b, destination_input=y)
              for a, x, b, y in data]
    return Flow(name=name, start_node=nodes[0], nodes=nodes, control_flow_connections=control, data_flow_connections=filled)


def documents(url):
    """Five documents: name, component, inputs, the user's messages, and what the result or the last message is to be."""
    llm = OpenAiCompatibleConfig(name="model", model_id="scripted", url=url)
    text = lambda title: StringProperty(title=title)

    desk = Agent(name="example-desk", llm_config=llm, system_prompt="You are a {{role}}.")
    yield desk, {"role": "sailor"}, [], "Boats float."

    clock = ServerTool(name="clock", description="Returns the time", inputs=[], outputs=[text("time")])
    timed = Agent(name="example-timed", llm_config=llm, system_prompt="Tell the time first.", tools=[clock])
    yield timed, {}, [], "Boats float."

    topic = StartNode(name="start", inputs=[text("topic")])
    write = LlmNode(name="write", llm_config=llm, prompt_template="Write about {{topic}}.")
    end = EndNode(name="end", outputs=[text("generated_text")])
    yield (flow("example-writing", [topic, write, end], [(topic, None, write), (write, None, end)],
                [(topic, "topic", write, "topic"), (write, "generated_text", end, "generated_text")]),
           {"topic": "boats"}, [], {"generated_text": "Boats float."})

    start = StartNode(name="start", inputs=[])
    ask = InputMessageNode(name="ask", message="Shall I?", outputs=[text("word")])
    pick = BranchingNode(name="pick", mapping={"yes": "go"}, inputs=[text("word")])
    helper = Agent(name="helper", llm_config=llm, system_prompt="Find a city.", outputs=[text("city")], human_in_the_loop=False)
    work = AgentNode(name="work", agent=helper)
    went, stayed = EndNode(name="went", outputs=[text("city")]), EndNode(name="stayed", outputs=[StringProperty(title="city", default="none")])
    yield (flow("example-asking", [start, ask, pick, work, went, stayed],
                [(start, None, ask), (ask, None, pick), (pick, "go", work), (pick, "default", stayed), (work, None, went)],
                [(ask, "word", pick, "word"), (work, "city", went, "city")]),
           {}, ["yes"], {"city": "Rome"})

    boss = Agent(name="boss", description="leads", llm_config=llm, system_prompt="You are the boss.")
    worker = Agent(name="worker", description="works", llm_config=llm, system_prompt="You work.")
    yield ManagerWorkers(name="example-team", group_manager=boss, workers=[worker]), {}, [], "Boats float."


def run(name, inputs, replies):
    """Runs a document with the user's replies; returns its outputs, or the message with which it waits."""
    job = request("POST", "/ojs/v1/jobs", {"type": "example", "args": [inputs], "meta": {"agent": name}})["job"]["id"]
    while True:
        now = request("GET", "/ojs/v1/jobs/" + job)["job"]
        if now["state"] == "completed":
            return now["result"]["outputs"]
        if now["state"] in ("discarded", "cancelled"):
            raise SystemExit("%s: %s" % (name, now.get("error")))
        if now["state"] == "pending":
            engagement = now["ext_agent_engagement_id"]
            awaiting = request("GET", "/engagements/" + engagement)["awaiting"]
            if not replies:
                return awaiting["prompt"]
            answers = {key: replies.pop(0) for key in awaiting["request_keys"]}
            request("POST", "/engagements/%s/answer" % engagement, {"answers": answers, "call_id": awaiting["call_id"]})
        time.sleep(0.05)


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for component, inputs, replies, expected in documents("http://127.0.0.1:%d/v1" % server.server_port):
        name = request("POST", "/agents", json.loads(AgentSpecSerializer().to_json(component)))["name"]
        found = run(name, inputs, list(replies))
        if found != expected:
            raise SystemExit("%s: expected %r, got %r" % (name, expected, found))
        exported = request("GET", "/agents/%s?format=agent-spec" % name)
        loaded = AgentSpecDeserializer().from_json(json.dumps(exported))
        if type(loaded) is not type(component):
            raise SystemExit("%s: exported as a %s" % (name, type(loaded).__name__))
        print("%s: %s" % (name, json.dumps(found)))


if __name__ == "__main__":
    main()
