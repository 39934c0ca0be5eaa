#!/usr/bin/env python3
"""A client of the Agent Protocol with nothing but Python's standard library:

    python3 agent_client.py URL agents
    python3 agent_client.py URL lead describe
    python3 agent_client.py URL lead configure temperature=0.2
    python3 agent_client.py URL lead chat "Plan a trip" [--run RUN_ID] [--answer KEY=VALUE ...] [--live]
    python3 agent_client.py URL lead follow REQUEST_ID [--since ID]
    python3 agent_client.py URL lead resume REQUEST_ID KEY=VALUE ...
    python3 agent_client.py URL lead cancel REQUEST_ID
    python3 agent_client.py URL lead runs
    python3 agent_client.py URL lead events RUN_ID
    python3 agent_client.py URL lead artifacts RUN_ID [--to FOLDER]

Events are printed one JSON object a line. The server may be killed at any moment: a request is sent again under the same name,
and a stream goes on after the last event that was read, so every event is printed once."""
import argparse, json, os, sys, time, urllib.error, urllib.parse, urllib.request, uuid

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

    def get(self, path):
        return read(f"{self.url}/{path}")

    def process(self, wait=True, **request):
        return read(f"{self.url}/process?wait={wait}", request)

    def follow(self, request_id, since=None):
        """Prints the events of a request as they come, and answers the last one: its end, or what it waits for."""
        while True:
            headers = {} if since is None else {"Last-Event-ID": str(since)}
            try:
                with open_url(f"{self.url}/getevents/{request_id}?stream=true", None, headers, 60) as stream:
                    last = None
                    for since, name, event in frames(stream):
                        if name is None:
                            last = event
                            print(json.dumps(event), flush=True)
                        elif self.live:  # What a model says while it speaks: it has no number, and is not told again.
                            print(event["content"], end="", file=sys.stderr, flush=True)
                    if last and last["type"] in ("request_completed", "wait_for_input"):
                        return last
            except (OSError, ValueError):
                pass  # The stream broke; the next one begins after the last event.
            time.sleep(0.2)

    def artifacts(self, run_id, folder):
        """Saves the files that were made in a run: the events tell where they are, and the server says what is in them."""
        os.makedirs(folder, exist_ok=True)
        for event in self.get(f"events/{run_id}"):
            if event["type"] == "artifact_generated":
                url = urllib.parse.urljoin(self.url, event["url"])
                path = os.path.join(folder, os.path.basename(event["name"]))
                with open_url(url) as answer, open(path, "wb") as file:
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
            # The question is named: an answer that is sent again, because the reply was lost, is none to the next question.
            self.process(True, type="ResumeWithInput", **name, **question(event), request_keys=keys)
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
    parser.add_argument("--to", default=".")
    parser.add_argument("--answer", action="append", default=[])
    parser.add_argument("--live", action="store_true", help="show on standard error what the model says while it speaks")
    args = parser.parse_args()
    if args.agent == "agents":
        return print(json.dumps(read(args.url + "/")))
    agent, first = Agent(args.url, args.agent, args.live), args.rest[0] if args.rest else None
    if args.wish == "chat":
        sys.exit(0 if agent.chat(first, args.run, pairs(args.answer)) else 1)
    if args.wish == "follow":
        return agent.follow(first, args.since)
    run = {"run_id": args.run} if args.run else {}
    answers = {
        "describe": lambda: agent.get("describe"),
        "configure": lambda: agent.process(type="ConfigureRequest", args=pairs(args.rest), **run),
        "resume": lambda: agent.process(type="ResumeWithInput", request_id=first, request_keys=pairs(args.rest[1:])),
        "cancel": lambda: agent.process(type="CancelRequest", request_id=first),
        "runs": lambda: agent.get("runs"),
        "events": lambda: agent.get(f"events/{first}"),
        "artifacts": lambda: list(agent.artifacts(first, args.to)),
    }
    if args.wish not in answers:
        parser.error(f"{args.wish} is none of chat, follow, {', '.join(answers)}")
    print(json.dumps(answers[args.wish]()))

if __name__ == "__main__":
    main()
