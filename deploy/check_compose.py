"""Checks that compose.yaml, as Docker Compose resolved it to JSON on standard input, is the fleet that the docs promise.

Every problem is one line on standard error; the exit code is 1 when there is one. check.sh calls this.
"""

import json
import re
import sys
import tomllib
from pathlib import Path
from urllib.parse import unquote, urlsplit

# How many of each; `migrate` runs once.
FLEET = {"postgres": 1, "redis": 1, "migrate": 1, "api": 1, "scheduler": 2, "worker": 3}
SERVICES = ("api", "scheduler", "worker")
PUBLISHED = {"api"}
NEEDS = {
    "migrate": "service_completed_successfully",
    "postgres": "service_healthy",
    "redis": "service_healthy",
}


def seconds(duration):
    """The seconds of a duration such as 1m30s."""
    factor = {"h": 3600, "m": 60, "s": 1, "ms": 0.001}
    return sum(float(n) * factor[unit] for n, unit in re.findall(r"([\d.]+)(ms|h|m|s)", duration))


def shape(services):
    """Who is there, how often, after whom, and how each is watched and stopped."""
    if set(services) != set(FLEET):
        yield f"the services are {sorted(services)}, not {sorted(FLEET)}"
        return
    for name, service in services.items():
        replicas = service.get("deploy", {}).get("replicas", 1)
        if replicas != FLEET[name]:
            yield f"{name}: {replicas} of them, not {FLEET[name]}"
        if name != "migrate":
            if "healthcheck" not in service:
                yield f"{name}: has no healthcheck"
            if service.get("restart") != "unless-stopped":
                yield f"{name}: is not started again when it ends (restart: unless-stopped)"
        for port in service.get("ports", []):
            if name not in PUBLISHED or port.get("host_ip") != "127.0.0.1":
                yield f"{name}: port {port.get('published')} is open to more than this machine"
    for name in SERVICES:
        waits = {on: how["condition"] for on, how in services[name].get("depends_on", {}).items()}
        if waits != NEEDS:
            yield f"{name}: waits for {waits}, not for {NEEDS}"
    command = " ".join(services["redis"].get("command") or [])
    if "--maxmemory-policy noeviction" not in command:
        yield "redis: may evict keys (--maxmemory-policy noeviction)"


def confinement(services):
    """What a Turnstone process may do to the machine."""
    for name in (*SERVICES, "migrate"):
        service = services[name]
        for key, wanted in {"read_only": True, "cap_drop": ["ALL"], "security_opt": ["no-new-privileges:true"]}.items():
            if service.get(key) != wanted:
                yield f"{name}: {key} is {service.get(key)!r}, not {wanted!r}"


def draining(services, config):
    """Whether a worker can give its leases back before Docker kills it."""
    grace = config.get("worker", {}).get("drain_grace_ms", 10_000) / 1000
    for name in SERVICES:
        stop = seconds(services[name].get("stop_grace_period", "10s"))
        if stop < grace + 10:
            yield f"{name}: is killed after {stop:g} s, drains for {grace:g} s (stop_grace_period: 10 s more at least)"


def secrecy(services, secrets):
    """Checks that secrets are in files only, can be read in the containers, and fit one another."""
    texts = {}
    for name, secret in secrets.items():
        path = Path(secret["file"])
        if not path.is_file():
            yield f"secret {name}: {path} is not a file"
            return
        # A file is mounted with its owner and mode, and the processes inside run as 65532.
        if not path.stat().st_mode & 0o004:
            yield f"secret {name}: {path} cannot be read inside; chmod 644 it and chmod 700 its folder"
            return
        texts[name] = path.read_text().strip()
    for name, service in services.items():
        for key, value in (service.get("environment") or {}).items():
            if any(text and text in str(value) for text in texts.values()):
                yield f"{name}: {key} holds a secret in clear; name its file instead"
    for name in SERVICES:
        if not services[name]["environment"].get("DATABASE_URL", "").startswith("file:/run/secrets/"):
            yield f"{name}: DATABASE_URL is no reference to a secret"
    if not services["api"]["environment"].get("TURNSTONE_SERVER__API_KEYS"):
        yield "api: listens on every address of its container and demands no key (TURNSTONE_SERVER__API_KEYS)"
    if len(texts["api-key"].strip()) < 32:
        yield "secret api-key: has less than 32 characters, and the server refuses it"
    url = urlsplit(texts["database-url"])
    made = services["postgres"]["environment"]
    given = (unquote(url.username or ""), unquote(url.password or ""), url.hostname, url.path.lstrip("/"))
    if given != (made["POSTGRES_USER"], texts["postgres-password"], "postgres", made["POSTGRES_DB"]):
        yield "secret database-url: its user, password, host or database is not that of the service postgres"


def main():
    """Reads, checks, and says what is wrong."""
    compose = json.load(sys.stdin)
    services = compose["services"]
    problems = list(shape(services))
    if set(services) == set(FLEET):
        config = tomllib.loads(Path(compose["configs"]["turnstone"]["file"]).read_text())
        problems += [*confinement(services), *draining(services, config), *secrecy(services, compose["secrets"])]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
