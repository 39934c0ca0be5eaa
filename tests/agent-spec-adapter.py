"""Lets a driver of Agent Spec cases run them on Turnstone. Python's standard library alone.

The driver calls setup(env) with the addresses of its model and tool servers, load(ctx), start(handle, inputs, messages) and
resume(handle, state, turn). The environment has TURNSTONE, the binary, MCP_SERVER, the script of the MCP server that cases
start, and DATABASE_URL for PostgreSQL. With KILL_WAITING the worker is killed with SIGKILL while a case waits, and another one
continues it; on SQLite that is the whole server.
"""
import atexit, json, os, shutil, socket, subprocess, sys, tempfile, threading, time, urllib.error, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOOLS = ["add", "concat", "fail", "lookup", "sleep_ms", "minmax"]
PATIENCE = 60
PYTHON = os.environ.get("MCP_PYTHON", sys.executable)
URL = ""
kill_worker = None


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def request(method, path, body=None, base=None):
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request((base or URL) + path, data=data, method=method, headers={"content-type": "application/json"})
    try:
        with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        text = error.read().decode("utf-8", "replace")
        try:
            return error.code, json.loads(text)
        except ValueError:
            return error.code, text


class Unwrapped(BaseHTTPRequestHandler):
    """The tools of the driver wrap their results: `{"result": ...}`."""
    protocol_version = "HTTP/1.1"
    base = ""

    def log_message(self, *_):
        pass

    def do_POST(self):
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, body = request("POST", self.path, json.loads(sent or b"{}"), base=self.base)
        answer = json.dumps(body["result"] if status == 200 else body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


def setup(env):
    global URL
    Unwrapped.base = env["http"]
    tools = ThreadingHTTPServer(("127.0.0.1", 0), Unwrapped)
    tools.daemon_threads = True
    threading.Thread(target=tools.serve_forever, daemon=True).start()
    place = tempfile.mkdtemp()
    with open(os.path.join(place, "turnstone.toml"), "w") as config:
        config.write('[tool_policy]\nallowed_hosts = ["127.0.0.1"]\nallow_private = true\n')
        config.write('[tool_policy.allowed_commands.python]\nprogram = %s\nargs = [%s, "stdio"]\n'
                     % (json.dumps(PYTHON), json.dumps(os.environ["MCP_SERVER"])))
        for tool in TOOLS:
            config.write('[tools.%s]\ndescription = "A tool of the cases."\nurl = "http://127.0.0.1:%d/tools/%s"\nmethod = "POST"\n'
                         'idempotent = true\nallow_private = true\n' % (tool, tools.server_port, tool))
    port = free_port()
    URL = "http://127.0.0.1:%d" % port
    binary, bind = os.environ["TURNSTONE"], "127.0.0.1:%d" % port
    if os.environ.get("DATABASE_URL"):
        subprocess.run([binary, "migrate"], cwd=place, check=True, stdout=subprocess.DEVNULL)
        commands = [["api", "--bind", bind], ["scheduler"], ["worker"]]
    else:
        commands = [["dev", "--data", os.path.join(place, "data"), "--bind", bind]]
    log = open(os.path.join(place, "log"), "w")

    def begin(command):
        return subprocess.Popen([binary, *command], cwd=place, stdout=log, stderr=log)
    running = [begin(command) for command in commands]

    def stop():
        for process in running:
            process.terminate()
        for process in running:
            process.wait()
        shutil.rmtree(place, ignore_errors=True)
    atexit.register(stop)

    def ready():
        until = time.monotonic() + PATIENCE
        while True:
            try:
                if request("GET", "/readyz")[0] == 200:
                    return
            except OSError:
                pass
            if time.monotonic() > until:
                raise RuntimeError("no server answered; its log:\n" + open(log.name).read()[-3000:])
            time.sleep(0.1)

    def kill():
        running[-1].kill()
        running[-1].wait()
        running[-1] = begin(commands[-1])
        ready()
    global kill_worker
    kill_worker = kill
    ready()


def load(ctx):
    # The cases write the path of Python as `command`, where a document has the name of a program.
    body = {"document": ctx["config_text"].replace(json.dumps(PYTHON), '"python"')}
    if ctx.get("registry"):
        body["registry"] = ctx["registry"]
    if ctx.get("disaggregated_text"):
        body["parts"] = [ctx["disaggregated_text"]]
    status, answer = request("PUT", "/agents/case-" + ctx["case"], body)
    if status >= 300:
        raise ValueError(json.dumps(answer)[:1000])
    return answer["name"]


def start(name, inputs, messages):
    job = {"type": "agentspec.case", "args": [inputs or {}, *messages], "meta": {"agent": name}}
    status, answer = request("POST", "/ojs/v1/jobs", job)
    if status != 201:
        return {"status": "error", "error": json.dumps(answer)[:1000]}
    return wait(answer["job"]["id"])


def wait(job_id):
    until = time.monotonic() + PATIENCE
    while True:
        job = request("GET", "/ojs/v1/jobs/" + job_id)[1]["job"]
        if job["state"] in ("completed", "discarded", "cancelled"):
            return state(job)
        # A job whose parallel flows run as jobs of their own is pending, too, and waits for no answer.
        if job["state"] == "pending" and awaited(job):
            return state(job)
        if time.monotonic() > until:
            raise RuntimeError("the job did not end: " + json.dumps(job)[:1000])
        time.sleep(0.02)


def awaited(job):
    return request("GET", "/engagements/" + job["ext_agent_engagement_id"])[1]["awaiting"]


def state(job):
    engagement = job["ext_agent_engagement_id"]
    said = request("GET", "/engagements/%s/messages?limit=1000" % engagement)[1]["messages"]
    found = {"job": job["id"], "engagement": engagement,
             "messages": [{"role": one["role"], "content": one["content"]} for one in said]}
    if job["state"] == "completed":
        result = job["result"]
        return {**found, "status": "finished", "outputs": result["outputs"], "end_node": result["end_node"]}
    if job["state"] != "pending":
        return {**found, "status": "error", "error": json.dumps(job.get("error"))}
    awaiting = awaited(job)
    if awaiting["kind"] == "review":
        asked = request("GET", "/reviews/" + awaiting["review_id"])[1]["question"]
        pending = {"requests": [{"name": asked["name"], "arguments": asked["inputs"]}]}
        return {**found, "status": "waiting_confirmation", "pending": pending, "awaiting": awaiting}
    if awaiting["kind"] == "tool":
        pending = {"requests": [{"name": awaiting["tool"], "arguments": awaiting["arguments"]}]}
        return {**found, "status": "waiting_tool_result", "pending": pending, "awaiting": awaiting}
    message = next(iter(awaiting["request_keys"].values())) or None
    return {**found, "status": "waiting_user_input", "pending": {"message": message}, "awaiting": awaiting}


def resume(name, before, turn):
    if os.environ.get("KILL_WAITING"):
        kill_worker()
    awaiting = before["awaiting"]
    if turn["type"] == "confirmation":
        body = {"by": awaiting["reviewer"], "reason": turn.get("reason") or "said so"}
        answer = request("POST", "/reviews/%s/%s" % (awaiting["review_id"], turn["decision"]), body)
    else:
        key = next(iter(awaiting["request_keys"]))
        value = turn["reply"] if turn["type"] == "user_input" else turn["results"][awaiting["tool"]]
        body = {"answers": {key: value}, "call_id": awaiting["call_id"]}
        answer = request("POST", "/engagements/%s/answer" % before["engagement"], body)
    if answer[0] >= 300:
        raise RuntimeError(json.dumps(answer[1])[:1000])
    return wait(before["job"])
