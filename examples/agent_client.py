#!/usr/bin/env python3
"""A client of the Agent Protocol with nothing but Python's standard library:

    python3 agent_client.py URL agents
    python3 agent_client.py URL lead describe
    python3 agent_client.py URL lead configure temperature=0.2
    python3 agent_client.py URL lead chat "Plan a trip" [--run RUN_ID] [--answer KEY=VALUE ...] [--live]
    python3 agent_client.py URL lead stream "Plan a trip" [--run RUN_ID] [--live]
    python3 agent_client.py URL lead follow REQUEST_ID [--since ID]
    python3 agent_client.py URL lead resume REQUEST_ID KEY=VALUE ... [--question ID]
    python3 agent_client.py URL lead cancel REQUEST_ID
    python3 agent_client.py URL lead runs
    python3 agent_client.py URL lead events RUN_ID
    python3 agent_client.py URL lead artifacts RUN_ID [--to FOLDER]

Events are printed one JSON object a line. The server may be killed at any moment: a request is sent again under the same name,
and a stream resumes after the last event that was read, so every event is printed once."""
import argparse, http.client, json, os, sys, time, urllib.error, urllib.parse, urllib.request, uuid

def open_url(url, body=None, headers=None, timeout=30):
    """One request, again until the server answers; ends the program when it refuses."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", **(headers or {})}
    if os.environ.get("TURNSTONE_KEY"):
        headers["Authorization"] = "Bearer " + os.environ["TURNSTONE_KEY"]
    while True:
        try:
            return urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=timeout)
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code != 429:
                sys.exit(error.read().decode())
        except OSError:
            pass  # The server is down, or went down while it answered.
        time.sleep(0.2)

def read(url, body=None):
    while True:
        try:
            with open_url(url, body) as answer:
                text = answer.read()
                return json.loads(text) if text else {}
        except (OSError, ValueError):
            time.sleep(0.2)

def frames(stream):
    """The `id`, the name and the `data` of server-sent events, as far as the stream goes."""
    number, event, data = None, None, []
    for line in stream:
        name, _, value = line.decode().rstrip("\r\n").partition(":")
        value = value.removeprefix(" ")
        if name == "id":
            number = value
        elif name == "event":
            event = value
        elif name == "data":
            data.append(value)
        elif not name and data:
            yield number, event, json.loads("\n".join(data))
            event, data = None, []

class Agent:
    def __init__(self, url, name, live=False):
        places = {place["name"]: place["path"] for place in read(url + "/")}
        if name not in places:
            sys.exit(f"there is no agent {name}; there are {', '.join(places)}")
        self.url, self.live = url + places[name], live
        self.since, self.last = None, None  # The number of the event that was read last, and the event.

    def get(self, path):
        return read(f"{self.url}/{path}")

    def process(self, wait=True, **request):
        return read(f"{self.url}/process?wait={wait}", request)

    def hear(self, path, body=None):
        """Prints the events of one stream as they come, and says whether nothing follows before the caller does something."""
        headers = {} if self.since is None else {"Last-Event-ID": str(self.since)}
        try:
            with open_url(f"{self.url}/{path}", body, headers, 60) as stream:
                for number, name, event in frames(stream):
                    if name is None:
                        self.since, self.last = number, event
                        print(json.dumps(event), flush=True)
                    elif name == "reset":  # The server lost events in a fail-over: its stream begins anew.
                        self.since = number
                    elif self.live:  # Text of a model that is still answering: it has no number, and is not repeated.
                        print(event["content"], end="", file=sys.stderr, flush=True)
        except (OSError, ValueError, http.client.HTTPException):
            pass  # The stream broke; the next one begins after the last event.
        return self.last and self.last["type"] in ("request_completed", "wait_for_input")

    def follow(self, request_id, since=None):
        """Prints the events of a request as they come, and answers the last one: its end, or what it waits for."""
        self.since, self.last = since, None
        while not self.hear(f"getevents/{request_id}?stream=true"):
            time.sleep(0.2)
        return self.last

    def stream(self, text, run_id):
        """Sends a text and prints its events, all in one call; a stream that breaks resumes with the next event."""
        name = f"req-{uuid.uuid4()}"
        self.since, self.last = None, None
        over = self.hear("stream_request", {"request_id": name, "input": text, **({"run_id": run_id} if run_id else {})})
        return self.last if over else self.follow(name, self.since)

    def asked(self, request_id):
        """What a request waits for: the newest of its questions."""
        since, newest = 0, {}
        while events := self.get(f"getevents/{request_id}?since={since}"):
            since = events[-1]["id"]
            newest = next((event for event in reversed(events) if event["type"] == "wait_for_input"), newest)
        return newest

    def resume(self, request_id, keys, named):
        """Answers a question. It is named: an answer that is sent again, because the reply was lost, is none to the next one."""
        which = {"call_id": named} if named else question(self.asked(request_id))
        return self.process(True, type="ResumeWithInput", request_id=request_id, request_keys=keys, **which)

    def artifacts(self, run_id, folder):
        """Saves the files that were made in a run: the events tell where they are, and the server says what is in them."""
        os.makedirs(folder, exist_ok=True)
        for event in self.get(f"events/{run_id}"):
            if event["type"] == "artifact_generated":
                url = urllib.parse.urljoin(self.url, event["url"])
                with open_url(url) as answer:
                    # An agent chose the name of the event; in the header the server has made it safe.
                    path = os.path.join(folder, os.path.basename(answer.headers.get_filename() or "artifact"))
                    with open(path, "wb") as file:
                        file.write(answer.read())
                yield {"name": event["name"], "mime_type": event["mime_type"], "path": path}

    def chat(self, text, run_id, answers):
        """Sends a text and stays with it to its end; what the agent asks on the way is answered, or asked of the user."""
        name = {"request_id": f"req-{uuid.uuid4()}"}
        self.process(False, **name, input=text, **({"run_id": run_id} if run_id else {}))
        event = self.follow(name["request_id"])
        while event["type"] == "wait_for_input":
            asked = event["request_keys"]
            keys = {key: answers[key] if key in answers else input(f"{key} ({asked[key]}): ") for key in asked}
            self.resume(name["request_id"], keys, next(iter(question(event).values()), None))
            event = self.follow(name["request_id"], event["id"])
        return event["finish_reason"] == "success"

def question(event):
    """Which question a `wait_for_input` is: the call or the review that asks."""
    return {member: event[member] for member in ("call_id", "review_id") if event.get(member)}

def pairs(texts):
    """KEY=VALUE arguments; a value that is JSON is taken as such."""
    def value(text):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return {key: value(text) for key, _, text in (pair.partition("=") for pair in texts)}

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("agent")
    parser.add_argument("wish", nargs="?", default="describe")
    parser.add_argument("rest", nargs="*")
    parser.add_argument("--run")
    parser.add_argument("--since", type=int)
    parser.add_argument("--question", help="the `call_id` or `review_id` of the question that is answered; else the newest")
    parser.add_argument("--to", default=".")
    parser.add_argument("--answer", action="append", default=[])
    parser.add_argument("--live", action="store_true", help="show on standard error what the model says while it speaks")
    args = parser.parse_args()
    if args.agent == "agents":
        return print(json.dumps(read(args.url + "/")))
    agent, first = Agent(args.url, args.agent, args.live), args.rest[0] if args.rest else None
    if args.wish == "chat":
        sys.exit(0 if agent.chat(first, args.run, pairs(args.answer)) else 1)
    if args.wish == "stream":
        sys.exit(0 if agent.stream(first, args.run).get("finish_reason") == "success" else 1)
    if args.wish == "follow":
        return agent.follow(first, args.since)
    run = {"run_id": args.run} if args.run else {}
    answers = {
        "describe": lambda: agent.get("describe"),
        "configure": lambda: agent.process(type="ConfigureRequest", args=pairs(args.rest), **run),
        "resume": lambda: agent.resume(first, pairs(args.rest[1:]), args.question),
        "cancel": lambda: agent.process(type="CancelRequest", request_id=first),
        "runs": lambda: agent.get("runs"),
        "events": lambda: agent.get(f"events/{first}"),
        "artifacts": lambda: list(agent.artifacts(first, args.to)),
    }
    if args.wish not in answers:
        parser.error(f"{args.wish} is none of chat, stream, follow, {', '.join(answers)}")
    print(json.dumps(answers[args.wish]()))

if __name__ == "__main__":
    main()
