#!/usr/bin/env bash
# Prints the home of a Java that Spark can run on (17 or newer), and remembers it in .venv/java_home.
# Looks at JAVA_HOME, the PATH and /usr/lib/jvm; finding none, installs one with apt-get if it may.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/apt.sh

oldest=17
remembered=.venv/java_home

# home_and_version COMMAND: the home and the version of one Java, "HOME<tab>17"; nothing if it does not run.
home_and_version() {
    { "$1" -XshowSettings:properties -version 2>&1 || true; } | awk -F ' = ' '
        $1 ~ /java\.home$/ { home = $2 }
        $1 ~ /java\.specification\.version$/ { version = $2 }
        END { if (home != "" && version != "") printf "%s\t%d\n", home, version }'
}

# first_fit COMMAND...: the home of the first that is new enough.
first_fit() {
    local candidate home version
    for candidate in "$@"; do
        IFS=$'\t' read -r home version < <(home_and_version "$candidate") || continue
        if [ "$version" -ge "$oldest" ]; then
            echo "$home"
            return 0
        fi
    done
    return 1
}

# lowest_fit COMMAND...: the home of the oldest that is new enough, the one that Spark has been tried with longest.
lowest_fit() {
    local candidate home
    home=$(for candidate in "$@"; do home_and_version "$candidate"; done |
        awk -F '\t' -v oldest="$oldest" '$2 >= oldest { print $2 "\t" $1 }' | sort -n | head -n 1 | cut -f 2)
    [ -n "$home" ] && echo "$home"
}

find_java() {
    first_fit ${JAVA_HOME:+"$JAVA_HOME/bin/java"} java || lowest_fit /usr/lib/jvm/*/bin/java
}

# is_remembered: whether an earlier answer still holds, so that Java need not be asked again.
is_remembered() {
    local home
    [ -r "$remembered" ] || return 1
    home=$(<"$remembered")
    [ -x "$home/bin/java" ] && [ "${JAVA_HOME:-$home}" = "$home" ]
}

if is_remembered; then
    cat "$remembered"
    exit
fi
if ! home=$(find_java); then
    apt_install "No Java $oldest or newer here" \
        openjdk-17-jre-headless openjdk-21-jre-headless default-jre-headless || true
    if ! home=$(find_java); then
        echo "Spark needs Java $oldest or newer and none was found: install one, for example with" \
            "'sudo apt-get install openjdk-17-jre-headless' ('default-jre-headless' on newer systems)," \
            "or set JAVA_HOME to the one you have." >&2
        exit 1
    fi
fi
{ echo "$home" >"$remembered"; } 2>/dev/null || true # it may be someone else's .venv, or none yet
echo "$home"
