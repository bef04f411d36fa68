#!/usr/bin/env bash
# Run the tests in two processes, one for what uses Spark and one for the rest, so that two cores are busy and there is
# one Spark session. Arguments: a marker expression that chooses tests (default: all), then whatever pytest takes.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

chosen="${1:-slow or not slow}"
shift || true
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
trap 'kill 0' INT TERM

.venv/bin/python -m pytest -m "($chosen) and spark" "$@" >"$log" 2>&1 &
with_spark=$!
.venv/bin/python -m pytest -m "($chosen) and not spark" "$@"
rest=$?
wait "$with_spark"
spark=$?
echo "With Spark:"
cat "$log"
exit $((rest != 0 ? rest : spark))
