#!/usr/bin/env bash
# Makes .venv, or brings it up to date: the packages pinned in requirements.lock, then Trellis itself, editable.
# PYTHON names the interpreter to use; without it, the first Python 3.11 or newer on the PATH.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/apt.sh

venv=.venv

stop() {
    echo "$*" >&2
    exit 1
}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    local candidate
    if [ -n "${PYTHON:-}" ]; then
        is_new_enough "$PYTHON" || stop "PYTHON=$PYTHON is not a Python 3.11 or newer that runs."
        echo "$PYTHON"
        return
    fi
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if is_new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    stop "Trellis needs Python 3.11 or newer and none was found on the PATH:" \
        "install one, or name it: make PYTHON=/path/to/python3."
}

has_venv() {
    "$1" -c 'import ensurepip, venv' 2>/dev/null
}

make_venv() {
    local python version
    python=$(find_python)
    version=$("$python" -c 'import sys; print("{}.{}".format(*sys.version_info))')
    if ! has_venv "$python"; then
        apt_install "Python $version has no venv module here" "python$version-venv" python3-venv || true
        has_venv "$python" || stop "Python $version cannot make a virtual environment:" \
            "install its venv module with 'sudo apt-get install python$version-venv'."
    fi
    echo "Making $venv with Python $version." >&2
    rm -rf "$venv"
    "$python" -m venv "$venv"
}

install() {
    "$venv/bin/python" -m pip --disable-pip-version-check install -qq --no-input "$@" ||
        stop "pip could not install the packages: see its message above, and run make again once that is fixed."
}

if ! { is_new_enough "$venv/bin/python" && "$venv/bin/python" -m pip --version >/dev/null 2>&1; }; then
    make_venv
fi
echo "Installing the packages of requirements.lock (a few minutes the first time)." >&2
# Kernels are compiled while the larger part of the packages is still installed: these are all that this needs. Were the
# list too short, nothing but time would be lost, since what was not compiled then is compiled in the end.
for_kernels="lark llvmlite numba numpy pandas pyarrow python-dateutil pytz six tzdata"
parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT
awk -v parts="$parts" -v first=" $for_kernels " '
    /^[A-Za-z]/ { split($0, pin, "=="); part = index(first, " " pin[1] " ") ? "first" : "rest" }
    part { print > (parts "/" part) }' requirements.lock
# Most of what pip would compile to bytecode, one file after another, is never imported: tests of packages, for one.
install_part() { install --no-compile --no-deps --require-hashes -r "$parts/$1"; }
install_part rest &
rest=$!
unset PYTHONDONTWRITEBYTECODE # set in many containers: each process would compile the modules that it imports again
install_part first
PYTHONPATH=src "$venv/bin/python" -m trellis.compiled build || true
wait $rest
install --no-deps --no-build-isolation --editable .
packages=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
(cd "$packages" && exec "$OLDPWD/$venv/bin/python" -m compileall -q -j 0 -x '/tests?/' "$OLDPWD/src" \
    lark llvmlite numba numpy pandas py4j pyarrow pyspark rich typer) || true
"$venv/bin/python" -m trellis.compiled build ||
    echo "The kernels could not be compiled ahead: see the message above. They will be when they are needed." >&2
