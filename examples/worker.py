#!/usr/bin/env python3
"""A worker for plain jobs over the OJS HTTP binding alone, with nothing but Python's standard library:
python3 worker.py http://127.0.0.1:8080 mail --id mailer-1
It and the server may be killed at any moment: what it held goes to the next worker when the reservation runs out, an
answer that got lost is sent again. So a handler may run twice for one job, and a job ends once."""
import argparse, json, signal, sys, threading, time, urllib.error, urllib.request

parser = argparse.ArgumentParser()
parser.add_argument("url")
parser.add_argument("queues", nargs="+")
parser.add_argument("--id", default="worker.py")
parser.add_argument("--reserve-ms", type=int, default=30_000)
args, active, stopping = parser.parse_args(), {}, threading.Event()  # active: the token of each job that we hold

def call(path, body):
    """POSTs until the server answers; returns None when it says that the job is not ours (any more)."""
    request = urllib.request.Request(f"{args.url}/ojs/v1/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"})
    while True:
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code != 429:
                refusal = json.load(error)["error"]
                for lost in refusal["details"].get("job_ids", []):
                    active.pop(lost, None)  # Another attempt has it.
                return None if error.code in (404, 409) else sys.exit(refusal["message"])
        except (OSError, ValueError):
            pass  # The server is down, or went down while it answered.
        time.sleep(0.2)

def beat():
    """Renews what we hold, three times within a reservation, and does as the server says."""
    while True:
        held = dict(active)
        said = call("workers/heartbeat", {"worker_id": args.id, "active_jobs": list(held), "ext_lease_tokens": held})
        if said and said["state"] in ("quiet", "terminate"):
            stopping.set()
        time.sleep(min(5.0, args.reserve_ms / 3000) if said else 0.2)

def handle(job):
    """The work itself. A real worker looks at job["type"] here; job.get("checkpoint") is what it saved before."""
    return {"echo": job["args"]}

def outcome(job):
    """How a job is reported: its result, its failure, or (when this worker stops) that another worker may have it."""
    if stopping.is_set():
        return "nack", {"requeue": True}
    try:
        return "ack", {"result": handle(job)}
    except Exception as error:
        return "nack", {"error": {"code": "handler_error", "type": type(error).__name__, "message": str(error)}}

signal.signal(signal.SIGTERM, lambda *_: stopping.set())
threading.Thread(target=beat, daemon=True).start()
while not stopping.is_set():
    asked = {"queues": args.queues, "count": 5, "worker_id": args.id, "visibility_timeout_ms": args.reserve_ms}
    jobs = (call("workers/fetch", asked) or {}).get("jobs", [])
    active.update((job["id"], job["ext_lease_token"]) for job in jobs)
    for job in jobs:
        how, report = outcome(job)
        call(f"workers/{how}", report | {"job_id": job["id"], "worker_id": args.id, "ext_lease_token": job["ext_lease_token"]})
        active.pop(job["id"], None)
    stopping.wait(0 if jobs else 0.2)
