#!/usr/bin/env bash
# Run the tests in three processes, one for what uses Spark, which often waits, and two for the rest, so that two cores are
# busy and there is one Spark session; types are checked beside them. Spark gets all that it asks for, by the highest
# number of `nice` for the others: it leaves them half, and it would be alone at the end, on less than two cores. All of them,
# and Spark's workers, share what Numba compiles, each kernel once. Arguments: a marker expression that chooses tests
# (default: all), then whatever pytest takes.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

chosen="${1:-slow or not slow}"
shift || true
log="$(mktemp)"
types="$(mktemp)"
export NUMBA_CACHE_DIR="${NUMBA_CACHE_DIR:-$PWD/.numba_cache/${NUMBA_OPT:-3}}"
unset PYTHONDONTWRITEBYTECODE # or each process, and each worker of Spark's, would compile all modules and tests again
trap 'rm -f "$log" "$types"' EXIT
trap 'kill 0' INT TERM

# The tests that use Spark take its fixture by name, so that other files need not be imported to look for them.
files=()
given=no
for argument in "$@"; do
    [ ! -e "${argument%%::*}" ] || given=yes
done
[ "$given" = yes ] || mapfile -t files < <(grep -rliE spark --include='test_*.py' tests)

nice -n 19 .venv/bin/python -m mypy --no-error-summary >"$types" 2>&1 &
checked=$!
.venv/bin/python -m pytest -m "($chosen) and spark" "${files[@]}" "$@" >"$log" 2>&1 &
with_spark=$!
nice -n 19 .venv/bin/python -m pytest -n 2 --dist worksteal -m "($chosen) and not spark" "$@"
rest=$?
wait "$with_spark"
spark=$?
wait "$checked"
right=$?
echo "With Spark:"
cat "$log"
[ "$right" = 0 ] || { echo "Types:" && cat "$types"; }
for code in "$rest" "$spark" "$right"; do
    [ "$code" = 0 ] || exit "$code"
done
