#!/usr/bin/env bash
# Makes .venv ready: the pinned packages of requirements.lock, and this project, editable. Spark needs Java, so that
# is looked for, too, and installed where it can be.
# Says nothing and takes a moment if nothing has changed since the last time. Otherwise it shows its progress: a bar on a
# terminal, a line at the beginning and at the end elsewhere.
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
stamp=.venv/.ready
log=.venv/setup.log

say() {
    echo "setup: $*" >&2
}

fail() {
    say "$@"
    exit 1
}

# Where the checkout is, and everything that decides what gets installed.
fingerprint() {
    { echo "$root"; cat requirements.lock pyproject.toml scripts/setup.sh; } | cksum
}

find_python() {
    local name
    for name in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    fail "Python 3.11 or newer is needed (on Debian: apt-get install python3 python3-venv);" \
        "if it has another name, say PYTHON=/path/to/python make setup"
}

# Debian ships venv without the part that puts pip into it.
need_venv() {
    local python=$1 version
    "$python" -c 'import ensurepip, venv' 2>/dev/null && return
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        say "installing python$version-venv"
        apt-get update -qq >/dev/null
        apt-get install -y -qq "python$version-venv" >/dev/null 2>&1 || apt-get install -y -qq python3-venv >/dev/null
        "$python" -c 'import ensurepip, venv' 2>/dev/null && return
    fi
    fail "$python cannot make virtual environments; install its venv package (on Debian: apt-get install python3-venv)"
}

# Whether the Java that Spark would take is new enough.
has_java() {
    local java=${JAVA_HOME:+$JAVA_HOME/bin/}java version
    version=$({ "$java" -version 2>&1 || true; } | sed -n 's/.* version "\([0-9]*\).*/\1/p')
    [ "${version:-0}" -ge 17 ]
}

# Only the audit and the experiments run on Spark: without Java, everything else still works.
need_java() {
    has_java && return
    if [ "$(id -u)" = 0 ] && [ -z "${JAVA_HOME:-}" ] && command -v apt-get >/dev/null; then
        say "installing Java"
        apt-get update -qq >/dev/null || true
        apt-get install -y -qq default-jre-headless >/dev/null 2>&1 || true
        has_java && return
    fi
    say "gapless audit needs Java 17 or newer (on Debian: apt-get install default-jre-headless);" \
        "put it on the PATH or name it in JAVA_HOME"
}

# A .venv that was moved, or whose Python is gone or too old, is created again.
is_usable() {
    grep -qsF "$root/.venv/bin/" .venv/bin/pip &&
        .venv/bin/python -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

# Python compiles what it imports when it first does: a third of the time would go into what nobody ever imports.
install() {
    PYTHONUNBUFFERED=1 .venv/bin/python -m pip install --disable-pip-version-check --no-input --no-compile \
        --progress-bar off "$@" >>"$log" 2> >(grep -v '^WARNING' >&2)
}

# Requirements of the lock, with their hashes: "only" the package that is named, or all "but" it.
pinned() {
    awk -v choice="$1" -v name="$2==" \
        '/^[^ ]/ { is_named = index($0, name) == 1 } is_named == (choice == "only")' requirements.lock
}

# The lock names everything, so nothing is resolved, and pip refuses each file whose hash is not in the lock. Spark comes
# as source and is half of all there is: it has a process of its own, and the wheel that is made of it, and thrown away,
# is not compressed.
install_pinned() {
    local spark failed=0 stored='--config-settings="--build-option=--compression=stored"'
    install --no-deps --require-hashes -r <(pinned only pyspark | sed "1s/ / $stored /") &
    spark=$!
    install --no-deps --require-hashes -r <(pinned but pyspark) || failed=1
    wait "$spark" || failed=1
    return "$failed"
}

# Draws how many of the packages pip has found and how many it has installed, until it is killed.
draw_progress() {
    local packages found installed percent bar
    packages=$(grep -c '^[^ #]' requirements.lock)
    while true; do
        found=$(grep -cE '^(Collecting|Processing|Ignoring) ' "$log" || true)
        installed=$(find .venv/lib -maxdepth 3 -name '*.dist-info' | wc -l)
        percent=$(((found + installed) * 50 / packages))
        percent=$((percent > 99 ? 99 : percent))
        bar=$(printf '%*s' $((percent * 30 / 100)) '' | tr ' ' '#')
        printf '\rsetup: [%-30s] %2d %%  %d packages found, %d installed ' "$bar" "$percent" "$found" "$installed" >&2
        sleep 0.3
    done
}

install_everything() {
    local drawing="" failed=0
    say "installing $(grep -c '^[^ #]' requirements.lock) packages into .venv, which takes a minute or two"
    : >"$log"
    if [ -t 2 ]; then
        draw_progress &
        drawing=$!
    fi
    { install_pinned && install --no-deps --no-build-isolation -e .; } || failed=1
    if [ -n "$drawing" ]; then
        kill "$drawing"
        wait "$drawing" 2>/dev/null || true
        printf '\r\033[K' >&2
    fi
    [ "$failed" = 0 ] || fail "pip could not install everything; its messages are above, and all of its output in $log"
}

if [ "$(cat "$stamp" 2>/dev/null)" = "$(fingerprint)" ] && [ -x .venv/bin/gapless ]; then
    exit 0
fi
if ! is_usable; then
    python=$(find_python)
    need_venv "$python"
    rm -rf .venv
    "$python" -m venv .venv
fi
rm -f "$stamp"
install_everything
need_java
fingerprint >"$stamp"
say "ready after $SECONDS s"
