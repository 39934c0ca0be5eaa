# The common part of the scripts that run clients and servers of other projects against this program. Sourced by
# a2a-counterparts.sh and sse-counterparts.sh, in the folder of the project. It makes
#
#   TURNSTONE   the program, built unless it was given
#   place       a folder of its own, with a configuration whose provider says what $place/script.yaml says; removed at the end
#   venv        a Python environment with the packages that were asked for, in $1 when that names a folder
#   port        where the program will listen
#
# and ends with 2 when something is missing. `start` starts the program; processes in $others are ended with it.

cannot_run() { printf 'CANNOT RUN: %s\n' "$1" >&2; exit 2; }
cleanup() {
    local status=$?
    [ "$status" -ne 1 ] || tail -n 20 "$place/dev.log" 2>/dev/null || true
    for process in $server $others; do kill "$process" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$place"
}
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
reachable() {
    for _ in $(seq 300); do (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return; sleep 0.1; done
    cannot_run "no server listens on port $1"
}
start() {
    (cd "$place" && exec "$TURNSTONE" dev >>"$place/dev.log" 2>&1) &
    server=$!
    reachable "$port"
}
# agent NAME LINES: a document.
agent() {
    printf 'kind: "openagentspec:v1/agent"\nname: %s\ndescription: A test.\nintent: You are %s.\nowner: tests\n%s\n' \
        "$1" "$1" "$2" > "$place/agents/$1.yaml"
}
# prepare VENV PACKAGE...
prepare() {
    command -v python3 >/dev/null || cannot_run 'there is no python3'
    if [ -z "${TURNSTONE:-}" ]; then
        cargo build --quiet -p turnstone-cli || cannot_run 'the program cannot be built'
        TURNSTONE=${CARGO_TARGET_DIR:-$PWD/target}/debug/turnstone
    fi
    [ -x "$TURNSTONE" ] || cannot_run "there is no program at $TURNSTONE"
    place=$(mktemp -d)
    server=
    others=
    trap cleanup EXIT
    venv=${1:-$place/venv}
    shift
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv" || cannot_run 'python3 has no module venv'
    "$venv/bin/pip" install --quiet "$@" || cannot_run 'PyPI is out of reach'
    port=$(free_port)
    mkdir "$place/agents"
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
}
