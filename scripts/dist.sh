#!/usr/bin/env bash
# Builds the wheel, with the compiled kernels in it, and tries it in an empty environment without Spark.
# SMOKE=no leaves out the trial.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

most=60000000 # bytes
rm -rf dist build
.venv/bin/python -m trellis.compiled build
.venv/bin/python -m hatchling build -t wheel
wheel=$(echo dist/*.whl)
size=$(stat -c %s "$wheel")
if [ "$size" -gt "$most" ]; then
    echo "$wheel has $size bytes, more than $most." >&2
    exit 1
fi
echo "$wheel: $((size / 1000000)) MB."
[ "${SMOKE:-yes}" = yes ] || exit 0

place=$(mktemp -d)
trap 'chmod -R u+w "$place"; rm -rf "$place"' EXIT
.venv/bin/python -m venv "$place/env"
# The versions of the lock, for which the kernels are compiled; of its packages those that the wheel asks for.
.venv/bin/python -c "
import re
pins = re.findall(r'^(\S+==\S+)', open('requirements.lock').read(), re.MULTILINE)
print(*pins, sep='\n')" >"$place/versions.txt"
"$place/env/bin/python" -m pip --disable-pip-version-check install -qq --no-input -c "$place/versions.txt" "$wheel"
chmod -R a-w "$place/env/lib"
mkdir "$place/home"
cp scripts/smoke.py "$place/home"
(cd "$place/home" && env -i HOME="$place/home" PATH="$place/env/bin:/usr/bin:/bin" "$place/env/bin/python" smoke.py)
