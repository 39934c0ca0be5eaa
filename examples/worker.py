#!/usr/bin/env python3
"""A worker for plain jobs over the OJS HTTP binding alone, with nothing but Python's standard library.

    python3 worker.py http://127.0.0.1:8080 mail --id mailer-1

It may be killed at any moment, and so may the server. What it held goes to the next worker when the reservation runs
out; an answer that got lost is sent again. So a handler may run twice for one job, and a job ends once."""
import argparse, json, signal, threading, time, urllib.error, urllib.request

parser = argparse.ArgumentParser()
parser.add_argument("url")
parser.add_argument("queues", nargs="+")
parser.add_argument("--id", default="worker.py")
parser.add_argument("--count", type=int, default=5)
parser.add_argument("--reserve-ms", type=int, default=30_000)
args = parser.parse_args()
active, stopping = set(), threading.Event()


def call(path, body):
    """POSTs until the server answers; returns None when it says that the job is not ours (any more)."""
    data = json.dumps(body).encode()
    while True:
        request = urllib.request.Request(f"{args.url}/ojs/v1/{path}", data, {"Content-Type": "application/openjobspec+json"})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code in (404, 409):
                return None
            if error.code < 500 and error.code != 429:
                raise
        except (OSError, ValueError):
            pass  # The server is down, or went down while it answered.
        time.sleep(0.2)


def beat():
    """Renews what we hold, three times within a reservation, and does as the server says."""
    while True:
        said = call("workers/heartbeat", {"worker_id": args.id, "active_jobs": list(active)}) or {}
        if said.get("state") in ("quiet", "terminate"):
            stopping.set()
        time.sleep(min(5.0, args.reserve_ms / 3000))


def handle(job):
    """The work itself. A real worker looks at job["type"] here; job.get("checkpoint") is what it saved before."""
    return {"echo": job["args"]}


signal.signal(signal.SIGTERM, lambda *_: stopping.set())
threading.Thread(target=beat, daemon=True).start()
while not stopping.is_set():
    asked = {"queues": args.queues, "count": args.count, "worker_id": args.id, "visibility_timeout_ms": args.reserve_ms}
    jobs = (call("workers/fetch", asked) or {}).get("jobs", [])
    active.update(job["id"] for job in jobs)
    for job in jobs:
        report = {"job_id": job["id"], "worker_id": args.id}
        if stopping.is_set():
            call("workers/nack", report | {"requeue": True})
        else:
            try:
                call("workers/ack", report | {"result": handle(job)})
            except Exception as error:
                call("workers/nack", report | {"error": {"code": "handler_error", "type": type(error).__name__, "message": str(error)}})
        active.discard(job["id"])
    if not jobs:
        stopping.wait(0.2)
