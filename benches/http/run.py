#!/usr/bin/env python3
"""What the HTTP side costs: enqueueing one by one and by the hundred, and serving jobs, with wrk on loopback.

    benches/http/run.py [--seconds 8] [--rounds 3] [--store postgres://...] [--program target/release/turnstone]

Without --store it measures `turnstone dev` on a new file in the current directory. With it, it migrates that database and
measures `api` and `scheduler`. Each figure is the median of the rounds with the range, beside its aim.
"""

import argparse
import http.client
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
JSON = {"Content-Type": "application/openjobspec+json"}
# Jobs that wait at least while single ones are read and started, and those that are served in a second meanwhile.
WAITING, SERVED = 50_000, 10_000


class Server:
    """The program under test; its processes end with the block."""

    def __init__(self, program, store, folder):
        self.program, self.store, self.folder = program, store, folder
        self.log = open(os.path.join(folder, "log"), "w+", encoding="utf-8")
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.processes = []

    def __enter__(self):
        bind = ["--bind", f"127.0.0.1:{self.port}"]
        if self.store:
            self.environment = dict(os.environ, DATABASE_URL=self.store)
            migrated = subprocess.run(
                [self.program, "migrate"], env=self.environment, capture_output=True, text=True, check=False
            )
            if migrated.returncode != 0:
                sys.exit(f"the database was not migrated:\n{migrated.stdout}{migrated.stderr}")
            self.start(["api", *bind])
            self.start(["scheduler"])
        else:
            self.environment = None
            self.start(["dev", "--data", os.path.join(self.folder, "data"), *bind])
        self.wait()
        return self

    def start(self, words):
        command = [self.program, *words]
        self.processes.append(
            subprocess.Popen(command, env=self.environment, stdout=self.log, stderr=self.log)
        )

    def wait(self):
        """Waits until the server is ready, or says why it is not."""
        for _ in range(100):
            if any(process.poll() is not None for process in self.processes):
                break
            try:
                if self.call("GET", "/readyz")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        self.log.seek(0)
        said = self.log.read()
        self.__exit__()
        sys.exit(f"the server did not start:\n{said}")

    def call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, path, None if body is None else json.dumps(body), JSON)
        response = connection.getresponse()
        read = response.read()
        connection.close()
        return response.status, read

    def __exit__(self, *_):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()


def wrk(server, seconds, script, connections, threads, *arguments):
    """Runs a script of this folder and returns what it printed at its end, by name."""
    command = ["wrk", "-t", str(threads), "-c", str(connections), "-d", f"{seconds}s"]
    command += ["-s", f"{script}.lua", server.url, "--", *arguments]
    printed = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=True).stdout
    figures = {name: float(value) for name, value in re.findall(r"^figure (\w+) ([\d.]+)$", printed, re.M)}
    if figures.get("errors", 0) > 0 or figures.get("requests", 0) == 0:
        sys.exit(f"{script}: {figures.get('errors', 0):.0f} requests failed\n{printed}")
    return figures


def fill(server, jobs):
    """Enqueues plain jobs by the thousand, and returns the id of one of them."""
    many = {"jobs": [{"type": "bench.plain", "args": ["x" * 200], "options": {"queue": "waiting"}}] * 1000}
    for _ in range(jobs // 1000):
        status, said = server.call("POST", "/ojs/v1/jobs/batch", many)
        if status != 201:
            sys.exit(f"jobs were not accepted: {said}")
    return json.loads(said)["jobs"][-1]["id"]


def urgent(server, seconds):
    """Enqueues an urgent job 20 times a second; returns milliseconds from acceptance to start."""
    job = {"type": "bench.urgent", "args": [], "options": {"queue": "waiting", "priority": 100}}
    ids, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        ids.append(json.loads(server.call("POST", "/ojs/v1/jobs", job)[1])["job"]["id"])
        time.sleep(0.05)
    time.sleep(1)
    waits = []
    for job_id in ids:
        shown = json.loads(server.call("GET", f"/ojs/v1/jobs/{job_id}")[1])["job"]
        if "started_at" not in shown:
            sys.exit("an urgent job did not start")
        waits.append(milliseconds(shown["started_at"]) - milliseconds(shown["created_at"]))
    return waits


def milliseconds(text):
    seconds, fraction = re.fullmatch(r"[-\d]+T([\d:]+)(?:\.(\d+))?Z", text).groups()
    hours, minutes, rest = (int(part) for part in seconds.split(":"))
    return ((hours * 60 + minutes) * 60 + rest) * 1000 + float(f"0.{fraction or 0}") * 1000


def waiting(server, seconds, figures):
    """Reads and starts single jobs while thousands wait and workers serve them, one after another: a worker that has fetched
    a hundred starts no urgent job before their end."""
    job = fill(server, WAITING + SERVED * (2 * seconds + 3))
    found = {}

    def serve():
        found["served"] = wrk(server, 2 * seconds + 2, "serve", 16, 1, "waiting", "1")

    serving = threading.Thread(target=serve)
    serving.start()
    time.sleep(0.5)
    read = wrk(server, seconds, "read", 1, 1, job)
    starts = sorted(urgent(server, seconds))
    serving.join()
    figures("50,000 waiting, GET of a job, p99", "ms", read["p99_ms"])
    figures("50,000 waiting, start of an urgent job, p99", "ms", starts[len(starts) * 99 // 100])


def measured(server, seconds, figures):
    """One round."""
    one = wrk(server, seconds, "enqueue", 1, 1)
    figures("enqueue, one connection, p50", "ms", one["p50_ms"])
    figures("enqueue, one connection, p99", "ms", one["p99_ms"])
    figures("enqueue, 64 connections", "jobs/s", wrk(server, seconds, "enqueue", 64, 2)["per_s"])
    figures("enqueue by the hundred, 8 connections", "jobs/s", 100 * wrk(server, seconds, "batch", 8, 2)["per_s"])
    served = wrk(server, seconds, "serve", 16, 2, "bench", "100")
    figures("fetch 100, acknowledge each, 16 connections", "jobs/s", served["acknowledged_per_s"])
    waiting(server, seconds, figures)


# Figures with aims: SQLite's and PostgreSQL's; rates have to be reached, times not exceeded.
AIMS = {
    "enqueue, one connection, p50": (0.5, 0.8),
    "enqueue, one connection, p99": (1.5, 2.5),
    "enqueue by the hundred, 8 connections": (45_000, 55_000),
    "fetch 100, acknowledge each, 16 connections": (8_000, 8_000),
    "50,000 waiting, GET of a job, p99": (20, 20),
    "50,000 waiting, start of an urgent job, p99": (100, 100),
}


def shown(name, unit, rounds, is_postgres):
    """A line with the median, the range, and whether the aim is met."""
    median = statistics.median(rounds)
    digits = ".2f" if unit == "ms" else ",.0f"
    line = f"{name:48} {median:>10{digits}} {unit} ({min(rounds):{digits}} to {max(rounds):{digits}})"
    if name not in AIMS:
        return line
    aim = AIMS[name][is_postgres]
    met = median <= aim if unit == "ms" else median >= aim
    return f"{line}, aim {'≤' if unit == 'ms' else '≥'} {aim:,}: {'met' if met else 'missed'}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=int, default=8, help="of each subject in each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--store", help="postgres://… of a database that holds nothing else")
    parser.add_argument("--program", default="target/release/turnstone", help="a release build")
    asked = parser.parse_args()
    if not shutil.which("wrk"):
        sys.exit("wrk is missing: apt-get install wrk")
    if not os.path.exists(asked.program):
        sys.exit(f"{asked.program} is missing: cargo build --release -p turnstone-cli")
    rounds = {}

    def figures(name, unit, value):
        rounds.setdefault((name, unit), []).append(value)

    for _ in range(asked.rounds):
        with tempfile.TemporaryDirectory(dir=".") as folder, Server(asked.program, asked.store, folder) as server:
            measured(server, asked.seconds, figures)
    for (name, unit), values in rounds.items():
        print(shown(name, unit, values, bool(asked.store)))


main()
