"""Runs the short benchmarks and compares them with the committed results: .venv/bin/python scripts/bench_check.py

Compared are ratios to peers, which depend less on the machine than seconds do. A second run decides about a line that
seems to have lost. `--results FILE` takes a run that there is already, `--committed FILE` others to compare with.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.report import machine_class  # noqa: E402
from benchmarks.results import FILE, is_loaded, lines, load  # noqa: E402

LOSS = 0.25
SHORTEST = 0.005  # seconds: below, a ratio is noise


def main() -> None:
    """Compare, print what was lost, and fail if something was."""
    before = json.loads(Path(_given("--committed") or FILE).read_text(encoding="utf-8"))
    if before["machine"] != machine_class():
        raise SystemExit(
            f"the committed results are of another machine ({before['machine']}): run `make bench` here first"
        )
    given = _given("--results")
    if given is None and is_loaded(load()):
        raise SystemExit(f"the machine has other work (load {load()}): a comparison would say nothing")
    now = json.loads(Path(given).read_text(encoding="utf-8")) if given else _run()
    lost = losses(before, now)
    if lost and given is None:
        lost = {key: text for key, text in losses(before, _run()).items() if key in lost}
    print(*(lost.values() or ["nothing was lost"]), sep="\n")
    if lost:
        raise SystemExit(1)


def _given(option: str) -> str | None:
    return sys.argv[sys.argv.index(option) + 1] if option in sys.argv else None


def losses(before: dict[str, Any], now: dict[str, Any]) -> dict[tuple[str, ...], str]:
    """Return the lines whose ratio fell by more than a quarter, and those that are gone, each with a sentence."""
    found = {line.key: line for line in lines(now)}
    wide = bool(before["loaded"] or now["loaded"])
    lost = {}
    for line in lines(before):
        new = found.get(line.key)
        what = " / ".join(line.key)
        if new is None:
            lost[line.key] = f"gone: {what}"
            continue
        if min(line.ours["wall"], new.ours["wall"]) < SHORTEST:
            continue
        old, ratio = line.ratio, new.ratio
        if wide and line.cpu_ratio and new.cpu_ratio:  # other work spoils the clock, less so the processor's time
            old, ratio = line.cpu_ratio, new.cpu_ratio
        if ratio < (1 - LOSS) * old:
            lost[line.key] = f"lost {1 - ratio / old:.0%}: {what}: {old:.3g} times, now {ratio:.3g}"
    return lost


def _run() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.json"
        command = [str(Path(sys.executable).parent / "trellis"), "bench", "short", "--results", str(file)]
        subprocess.run(command, cwd=ROOT, check=True)
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return found


if __name__ == "__main__":
    main()
