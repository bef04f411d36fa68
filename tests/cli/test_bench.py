"""`trellis bench`: every benchmark runs, and what is measured is judged, printed and written as it is."""

from __future__ import annotations

import gc
import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from benchmarks import Figure, Limit, Peer, Row, Table, Timing, at_least, at_most, best_of, memory_of, suite
from benchmarks.measure import listening
from benchmarks.plot import page as drawn
from benchmarks.report import Report, amount
from tests.cli.cases import assert_mistake, names_in, run
from trellis.io.outputs import check_files

NAMES = list(suite.benchmarks())
MEGABYTE = 1 << 20

REPORT = Report(
    "sample", "What it measures.",
    [
        Table(
            "One table",
            [
                Row(
                    "work", Timing(0.5, 0.9, 3), 2_500_000,
                    [Peer("plain", Timing(2, 2)), Limit("copy", Timing(0.1, 0.1))],
                    [at_most(1, "s", 0.5), at_most(1_000_000, "B", 2_500_000), at_least(3, "times", 4)],
                ),
                Row("more work"),
            ],
            ["A note."],
        )
    ],
    quick=False,
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _nothing_old_to_look_through() -> Iterator[None]:
    """Leave what other tests made out of the search for garbage before each measurement, which would take longest."""
    gc.freeze()
    yield
    gc.unfreeze()


# --- The command ------------------------------------------------------------------------------------------------


def test_without_a_name_they_are_listed() -> None:
    done = run("bench")
    assert done.code == 0
    for name, about in suite.benchmarks().items():
        assert f"{name} " in done.out
        assert about in done.out
    assert "trellis bench all" in done.out
    assert json.loads(run("bench", "--json").out) == {"benchmarks": suite.benchmarks()}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_benchmark_runs(name: str) -> None:
    done = run("bench", name, "--quick", "--json")
    assert done.code == 0, done.err
    (report,) = json.loads(done.out)["benchmarks"]
    assert (report["name"], report["quick"]) == (name, True)
    rows = [row for table in report["tables"] for row in table["rows"]]
    assert any(row["targets"] or row["peers"] for row in rows)
    assert all(row["timing"]["wall"] > 0 for row in rows if row["timing"])


def test_a_run_is_printed_and_written(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    done = run("bench", "index", "--quick", "--out", folder)
    assert done.code == 0, done.err
    files = ["index.html", "index.json", "index.md"]
    assert names_in(folder) == ["_trellis.json", *files]
    check_files(folder, files)  # may be replaced by the next run
    for words in ("cores of", "NumPy argsort of price", "2,000 distinct prices", "≤ 250 ms", "a quick run"):
        assert words in done.out
        assert words in (folder / "index.md").read_text() or words == "a quick run"
    assert "met" not in done.out
    report = json.loads((folder / "index.json").read_text())
    assert (report["name"], report["quick"]) == ("index", True)
    rows = [row for table in report["tables"] for row in table["rows"]]
    assert rows[0]["targets"]
    assert all(row["timing"]["wall"] > 0 for row in rows)
    page = (folder / "index.html").read_text()
    assert "Plotly.newPlot" in page
    assert "<script src" not in page, "the page needs no network"


def test_one_that_fails_leaves_the_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def failing(quick: bool) -> list[Table]:
        raise ValueError("no more")

    monkeypatch.setattr("benchmarks.suite.SHORT", ("cet", "index"))
    monkeypatch.setattr("benchmarks.cet.run", failing)
    done = run("bench", "short", "--quick", "--results", tmp_path / "results.json")
    assert done.code == 1
    assert "cet failed: ValueError: no more" in done.err
    assert "1 of 2 benchmarks failed: cet" in done.err
    assert [one["name"] for one in json.loads((tmp_path / "results.json").read_text())["benchmarks"]] == ["index"]


def test_larger_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert_mistake(run("bench", "cet", "--quick", "--large"), "a run cannot be both quick and large")
    assert_mistake(run("bench", "startup", "--large"), "the benchmark `startup` has no larger sizes")
    asked: list[bool] = []

    def sized(quick: bool, large: bool = False) -> list[Table]:
        asked.append(large)
        return []

    monkeypatch.setattr("benchmarks.cet.run", sized)
    for large in (False, True):
        assert suite.measure("cet", False, lambda _: None, large).tables == []
    assert asked == [False, True]


def test_an_unknown_benchmark() -> None:
    assert_mistake(run("bench", "cuont"), "there is no benchmark `cuont`", "Did you mean `count`?")
    assert_mistake(run("bench", "xyzzy"), "Benchmarks are", "count", "all for all of them")


def test_without_the_source_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trellis.cli.bench.ROOT", tmp_path)
    assert_mistake(run("bench"), "they belong to the source tree, not to the installed package")


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    assert_mistake(run("bench", "startup", "--out", tmp_path / "file"), "file cannot be a directory to write to")
    monkeypatch.setattr("trellis.cli.bench.find_spec", lambda _: None)
    assert_mistake(run("bench", "startup", "--out", tmp_path / "new"), "--out draws plots with plotly")
    assert names_in(tmp_path) == ["file"]


def test_the_results_file_and_what_was_lost(tmp_path: Path) -> None:
    import runpy

    from benchmarks.results import lines, write

    file = tmp_path / "results.json"
    write([REPORT], 0.1, file)
    before = json.loads(file.read_text())
    assert {"machine", "date", "commit", "versions", "load", "loaded"} <= before.keys()
    (line,) = lines(before)  # the limit is no peer
    assert (line.peer, line.ratio, line.cpu_ratio) == ("plain", 4.0, pytest.approx(2 / 0.9))
    losses = runpy.run_path(str(suite.FOLDER.parent / "scripts" / "bench_check.py"))["losses"]
    assert losses(before, before) == {}
    now = json.loads(file.read_text())
    peer = now["benchmarks"][0]["tables"][0]["rows"][0]["peers"][0]
    peer["ratio"] = 3.01
    assert losses(before, now) == {}
    peer["ratio"] = 2.9
    assert "lost 28%" in losses(before, now)[line.key]
    now["benchmarks"][0]["tables"][0]["rows"] = []
    assert "gone" in losses(before, now)[line.key]


def test_bench_check_passes_and_fails(tmp_path: Path) -> None:
    """The command that `make bench-check` runs, over the committed results and a copy of them that has lost."""
    from benchmarks.report import machine_class
    from benchmarks.results import FILE, lines

    committed = {**json.loads(FILE.read_text()), "machine": machine_class()}
    slower = json.loads(json.dumps(committed))
    for table in (table for one in slower["benchmarks"] for table in one["tables"]):
        for peer in (peer for row in table["rows"] for peer in row["peers"]):
            peer.update({name: 0.7 * peer[name] for name in ("ratio", "cpu_ratio") if peer.get(name)})
    for name, results in (("before", committed), ("slower", slower)):
        (tmp_path / f"{name}.json").write_text(json.dumps(results))
    command = [sys.executable, str(suite.FOLDER.parent / "scripts" / "bench_check.py")]
    command += ["--committed", str(tmp_path / "before.json"), "--results"]
    same, lost = (
        subprocess.run([*command, str(tmp_path / f"{name}.json")], capture_output=True, text=True, check=False)
        for name in ("before", "slower")
    )
    assert (same.returncode, same.stdout) == (0, "nothing was lost\n"), same.stderr
    assert lost.returncode == 1
    assert lost.stdout.count("lost 30%") == len(lost.stdout.splitlines()) > len(list(lines(committed))) / 2


# --- What was found ---------------------------------------------------------------------------------------------


def test_targets_are_judged() -> None:
    assert [target.met for target in REPORT.targets] == [True, False, True]
    assert REPORT.verdict == "targets: 2 met, 1 NOT met"
    page = REPORT.markdown()
    lines = [
        "| work | 500 ms | 900 ms | 2.5 MB |  |",
        "| peer: plain | 2 s | 2 s |  | 4 × |",
        "| limit: copy | 100 ms | 100 ms |  | 0.2 × |",
        "| target ≤ 1 s: met, 500 ms |  |  |  |  |",
        "| target ≤ 1 MB: NOT met, 2.5 MB |  |  |  |  |",
        "| target ≥ 3 times: met, 4 times |  |  |  |  |",
        "| more work |  |  |  |  |",
    ]
    assert "\n".join(lines) in page
    assert page.endswith("Targets: 2 met, 1 NOT met.\n")


def test_the_work_is_told_on_a_narrow_terminal() -> None:
    console = Console(file=io.StringIO(), width=80)
    REPORT.print(console)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    for words in ("sample: What it measures.", "more work", "peer: plain", "NOT met, 2.5 MB", "900 ms", "A note."):
        assert words in printed
    assert max(map(len, printed.splitlines())) <= 80


def test_a_figure_is_a_table_a_plot_and_data() -> None:
    lines = {"one": [0.5, 2.0], "other": [0.001, None]}
    figure = Figure("A figure", [], ["Seen."], setting="events", places=[1000, 2000], lines=lines)
    report = Report("figures", "What.", [figure], quick=False)
    wanted = "| events | one | other |\n| --- | --- | --- |\n| 1,000 | 500 ms | 1 ms |\n| 2,000 | 2 s | gave up |"
    assert wanted in report.markdown()
    assert report.data()["tables"][0]["lines"] == lines
    console = Console(file=io.StringIO(), width=80)
    report.print(console)
    assert "gave up" in console.file.getvalue()  # type: ignore[attr-defined]
    assert "lines+markers" in drawn(report)


def test_everything_is_in_the_data() -> None:
    (table,) = REPORT.data()["tables"]
    first, second = table["rows"]
    assert [target["met"] for target in first["targets"]] == [True, False, True]
    assert [(peer["name"], peer["limit"]) for peer in first["peers"]] == [("plain", False), ("copy", True)]
    assert second == {"work": "more work", "timing": None, "memory": None, "peers": [], "targets": []}
    assert set(REPORT.data()["machine"]) == {"machine", "versions", "date"}


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.5, "s", "1.5 s"), (0.4123, "s", "412 ms"), (0.0041234, "s", "4.12 ms"), (6.3e-5, "s", "63 µs"),
        (1234.5, "s", "1,234 s"), (0, "s", "0 µs"), (300e6, "B", "300 MB"), (999, "B", "999 bytes"),
        (2.25e9, "B", "2.25 GB"), (-4096, "B", "-4.10 kB"), (17.96, "times", "18.0 times"), (18, "times", "18 times"),
    ],
)  # fmt: skip
def test_amounts(value: float, unit: str, text: str) -> None:
    assert amount(value, unit) == text


# --- How it is measured -----------------------------------------------------------------------------------------


class Clock:
    """A clock that only moves when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def perf_counter(self) -> float:
        return self.now

    def process_time(self) -> float:
        return 2 * self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that moves only when the measured function sleeps."""
    clock = Clock()
    monkeypatch.setattr("benchmarks.measure.time", clock)
    return clock


def test_the_best_run_counts_and_not_the_first(clock: Clock) -> None:
    naps = iter([1.0, 8.0, 2.0, 4.0])
    assert best_of("naps", lambda: clock.sleep(next(naps))) == Timing(2.0, 4.0, 3, 3.0)


def test_what_a_run_is_given_takes_no_part(clock: Clock) -> None:
    told: list[str] = []

    def make() -> float:
        clock.sleep(5.0)
        return 3.0

    with listening(told.append):
        timing = best_of("work", clock.sleep, given=make, quick=True, warm=lambda: clock.sleep(7.0))
    assert timing == Timing(3.0, 6.0, 1)
    assert told == ["work: compiling", "work: run 1"]


def filling(megabytes: int) -> Callable[[], int]:
    """Hold an array, and for a moment fill another one."""
    held = np.ones(64 * MEGABYTE, np.uint8)
    return lambda: int(np.ones(megabytes * MEGABYTE, np.uint8)[0] + held[0])


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize("megabytes", [10, 100])
def test_memory_is_what_the_work_takes_beyond_its_input(megabytes: int) -> None:
    ballast = np.ones(200 * MEGABYTE, np.uint8)  # what this process holds does not count
    found = memory_of("filling", filling, megabytes)
    assert len(ballast)
    assert abs(found - megabytes * MEGABYTE) < MEGABYTE
