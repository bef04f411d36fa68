# Installs a Debian package where that is allowed. To be sourced, not run.
# shellcheck shell=bash

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

# apt_install WHY PACKAGE...: says why, and installs the first of the packages that can be had.
# Fails, silently, where there is no apt-get or it would need a password; and where none can be installed.
apt_install() {
    local log package
    command -v apt-get >/dev/null && as_root true 2>/dev/null || return 1
    echo "$1: installing it with apt-get." >&2
    shift
    log=$(mktemp)
    as_root apt-get -q update >"$log" 2>&1 || true # an old list may still do
    for package in "$@"; do
        if as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends \
            -o DPkg::Lock::Timeout=120 install "$package" >>"$log" 2>&1; then
            echo "Installed $package with apt-get." >&2
            rm -f "$log"
            return 0
        fi
    done
    grep -E '^(E|W|Err):' "$log" | sort -u | head -n 5 >&2 || true
    rm -f "$log"
    return 1
}
