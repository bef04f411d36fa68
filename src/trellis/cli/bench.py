"""`trellis bench`: the benchmarks of the source tree, with their peers and targets, as tables and files."""

from __future__ import annotations

import gc
import importlib
import json as texts
import sys
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

import trellis
from trellis.cli import options as o
from trellis.cli.console import out, print_error, print_warning, shown_path
from trellis.cli.console import progress as shown_progress
from trellis.cli.show import print_facts
from trellis.errors import UsageError, did_you_mean

ALL, SHORT = "all", "short"
ROOT = Path(trellis.__file__).parents[2]

Name = Annotated[
    str | None, typer.Argument(metavar="NAME", help="The benchmark to run, short or all; without it they are listed.")
]


@dataclass(frozen=True)
class BenchOptions:
    """The options about what is measured, and where it is written."""

    quick: bool = o.option(False, "Small sizes, once each: shows that it works, and judges no target.")
    large: bool = o.option(False, "Sizes nearer to the papers', for benchmarks that have them: takes much longer.")
    folder: Path | None = o.option(
        None, "Write what was found into this directory too: JSON, Markdown and a page with plots for each benchmark. "
        "Those of an earlier run are replaced.", "DIR", "--out", rich_help_panel="Output",
    )  # fmt: skip
    results: Path | None = o.option(
        None,
        "Write everything into this one file, too: the results file, which the documents have their figures from.",
        "FILE", rich_help_panel="Output",
    )  # fmt: skip


@o.takes_options
def bench(
    how: BenchOptions,
    name: Name = None,
    progress: o.ShowProgress = True,
    json: o.Json = False,
) -> None:
    """Measure Trellis beside its peers, and say whether it meets its targets.

    Times are the best of several runs after everything is compiled: on the clock, and of all cores (CPU). A ratio says
    how many times as long the peer takes.
    """
    suite = _suite()
    known: dict[str, str] = suite.benchmarks()
    if name is None:
        _print_known(known, json)
        return
    names = _chosen(name, known, suite.SHORT)
    if how.large:
        _check_large(suite, names, how.quick)
    if how.folder is not None:
        _check_folder(how.folder, [file for one in names for file in suite.files_of(one)])
    load = suite.load()
    if suite.is_loaded(load):
        print_warning(f"the machine has other work (load {load}): seconds are too many, and ratios are rough")
    if not json:
        print_facts(out(), suite.machine())
    reports, seconds, failed = [], {}, []
    for one in names:
        gc.collect()
        gc.freeze()  # what the benchmarks before have left is not looked through again while the next one is timed
        begun = time.monotonic()
        try:
            report = _measured(suite, one, how, progress and not json, silent=json)
        except Exception as problem:
            if len(names) == 1:
                raise
            failed.append(one)
            print_error(f"{one} failed: {type(problem).__name__}: {problem}")
            continue
        seconds[one] = f"{time.monotonic() - begun:.0f} s"
        reports.append(report)
        if how.results is not None:
            suite.write_results([report], load, how.results)
    if json:
        out().print(texts.dumps({"benchmarks": [report.data() for report in reports]}, ensure_ascii=False))
    elif len(names) > 1:
        print_facts(out(), seconds)
    if failed:
        print_error(f"{len(failed)} of {len(names)} benchmarks failed: {', '.join(failed)}")
        raise typer.Exit(1)


def _suite() -> Any:
    """Return the module that finds and runs the benchmarks."""
    if not (ROOT / "benchmarks" / "suite.py").is_file():
        raise UsageError(
            "the benchmarks are not here: they belong to the source tree, not to the installed package",
            "Get the source of Trellis, run `make` there, and then `.venv/bin/trellis bench`.",
        )
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    return importlib.import_module("benchmarks.suite")


def _chosen(name: str, known: dict[str, str], short: tuple[str, ...]) -> list[str]:
    if name in (ALL, SHORT):
        return list(known if name == ALL else short)
    if name not in known:
        hint = did_you_mean(name, [*known, ALL], f"Benchmarks are {', '.join(known)}, and {ALL} for all of them.")
        raise UsageError(f"there is no benchmark `{name}`", hint)
    return [name]


def _check_large(suite: Any, names: list[str], quick: bool) -> None:
    """Refuse larger sizes of what has none."""
    if quick:
        raise UsageError("a run cannot be both quick and large", "Leave out --quick or --large.")
    without = [name for name in names if not suite.has_large(name)]
    if without:
        raise UsageError(f"the benchmark `{without[0]}` has no larger sizes", "Leave out --large.")


def _check_folder(folder: Path, files: list[str]) -> None:
    """Refuse a folder that cannot be written, or files of others in it, before any work."""
    from trellis.io.outputs import check_files

    if find_spec("plotly") is None:
        raise UsageError(
            "--out draws plots with plotly, which is not installed", "Run `make`, or `pip install plotly`."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder} cannot be a directory to write to: {error.strerror}") from None
    check_files(folder, files)


def _measured(suite: Any, name: str, how: BenchOptions, tell: bool, silent: bool) -> Any:
    """Run a benchmark, print each row as it is known, and write and print the tables."""

    def print_row(row: Any) -> None:
        if not silent:
            out().print(row.in_line(how.quick))

    with shown_progress(tell) as step:
        report = suite.measure(name, how.quick, lambda what: step(f"{name}: {what}"), how.large, print_row)
    paths = [] if how.folder is None else suite.write(report, how.folder)
    if not silent:
        out().print()
        report.print(out())
        if paths:
            out().print(f"written: {', '.join(shown_path(str(path)) for path in paths)}")
    return report


def _print_known(known: dict[str, str], json: bool) -> None:
    if json:
        out().print(texts.dumps({"benchmarks": known}, ensure_ascii=False))
        return
    print_facts(out(), known)
    out().print(
        f"\nRun one with `trellis bench NAME`, some minutes of them with `trellis bench {SHORT}`, or all of them with "
        f"`trellis bench {ALL}`."
    )
