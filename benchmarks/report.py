"""What a benchmark found: tables of work, seconds, memory, peers and targets, for a terminal, as Markdown and JSON."""

from __future__ import annotations

import datetime as dt
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from benchmarks.measure import Timing, finished

COLUMNS = ("work", "time", "CPU", "memory", "ratio")
INSIDE = "  "  # before what belongs to the row above


@dataclass(frozen=True)
class Peer:
    """What the work is compared with, on the same input: another way to do it."""

    name: str
    timing: Timing


class Limit(Peer):
    """What no way of doing the work can beat, such as one pass over its bytes."""


@dataclass(frozen=True)
class Target:
    """What the work was to reach: `found` at most, or at least, the bound."""

    bound: float
    unit: str  # s, B (bytes), or a word that stands behind the number, such as times
    found: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether it was reached."""
        return self.found >= self.bound if self.at_least else self.found <= self.bound

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {amount(self.bound, self.unit)}"


def at_most(bound: float, unit: str, found: float) -> Target:
    """Return a target that is met where what was found is no more than the bound."""
    return Target(bound, unit, found)


def at_least(bound: float, unit: str, found: float) -> Target:
    """Return a target that is met where what was found is no less than the bound."""
    return Target(bound, unit, found, at_least=True)


@dataclass(frozen=True)
class Row:
    """A piece of work: how long it took, what memory beyond its input, and beside whom."""

    work: str
    timing: Timing | None = None
    memory: int | None = None
    peers: Sequence[Peer] = ()
    targets: Sequence[Target] = ()

    def __post_init__(self) -> None:
        finished(self)

    def in_line(self, quick: bool) -> str:
        """Return the row in one line, as it is told when it is known."""
        ratios = [f"{_short(peer.timing.wall / self.timing.wall)} × {peer.name}" for peer in self.peers if self.timing]
        judged = [f"{_judged(target, quick)} (target {target})" for target in self.targets]
        return "; ".join([" ".join([self.work, *filter(None, _times(self.timing)[:1])]), *ratios, *judged])


@dataclass(frozen=True)
class Table:
    """Rows under a title; the notes say what else is to be known."""

    title: str
    rows: Sequence[Row]
    notes: Sequence[str] = ()

    @property
    def targets(self) -> list[Target]:
        """All targets."""
        return [target for row in self.rows for target in row.targets]


@dataclass(frozen=True)
class Figure(Table):
    """A figure of a paper: a line for each method over some setting, drawn as such; None where a method gave up.

    `rows` may hold work with targets beside it.
    """

    setting: str = ""
    places: Sequence[float | str] = ()
    unit: str = "s"
    lines: Mapping[str, Sequence[float | None]] = field(default_factory=dict)

    @property
    def heads(self) -> list[str]:
        """The heads of the columns: the setting, and each line."""
        return [self.setting, *self.lines]

    def cells(self) -> Iterator[list[str]]:
        """Yield a row for each place: the setting and what each method took."""
        for i, place in enumerate(self.places):
            told = [line[i] for line in self.lines.values()]
            shown = f"{place:,}" if isinstance(place, int) else str(place)
            yield [shown, *("gave up" if value is None else amount(value, self.unit) for value in told)]


@dataclass(frozen=True)
class Report:
    """The tables of one benchmark, and where and when they were made; a quick run judges no target."""

    name: str
    about: str
    tables: Sequence[Table]
    quick: bool
    machine: dict[str, str] = field(default_factory=lambda: machine())

    @property
    def targets(self) -> list[Target]:
        """All targets."""
        return [target for table in self.tables for target in table.targets]

    @property
    def verdict(self) -> str:
        """How many targets were met."""
        if self.quick:
            return "a quick run: sizes are small and no target is judged"
        met = sum(target.met for target in self.targets)
        missed = len(self.targets) - met
        return f"targets: {met} met" + (f", {missed} NOT met" if missed else "")

    # --- On a terminal ------------------------------------------------------------------------------------------

    def print(self, console: Console) -> None:
        """Print the tables."""
        console.print(Text.assemble((self.name, "bold"), f": {self.about}"))
        for table in self.tables:
            console.print()
            console.print(Text(table.title, "bold"))
            if isinstance(table, Figure):
                console.print(_figure_grid(table), soft_wrap=False)
            if table.rows or not isinstance(table, Figure):
                console.print(_grid(table, self.quick), soft_wrap=False)
            for note in table.notes:
                console.print(Text(note, "dim"))
        console.print(self.verdict)

    # --- For files ----------------------------------------------------------------------------------------------

    def markdown(self) -> str:
        """Return the tables as a page."""
        lines = [f"# {self.name}", "", self.about, ""]
        lines += [f"- {name}: {value}" for name, value in self.machine.items()]
        for table in self.tables:
            lines += ["", f"## {table.title}"]
            if isinstance(table, Figure):
                lines += ["", *_markdown(table.heads, table.cells())]
            if table.rows or not isinstance(table, Figure):
                lines += ["", *_markdown(COLUMNS, _lines(table, self.quick))]
            lines += [line for note in table.notes for line in ("", note)]
        return "\n".join([*lines, "", f"{self.verdict[0].upper()}{self.verdict[1:]}.", ""])

    def data(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "name": self.name, "about": self.about, "quick": self.quick, "machine": self.machine,
            "tables": [
                {"title": table.title, "notes": list(table.notes), "rows": [_row_data(row) for row in table.rows]}
                | (_figure_data(table) if isinstance(table, Figure) else {})
                for table in self.tables
            ],
        }  # fmt: skip


def _row_data(row: Row) -> dict[str, Any]:
    return {
        "work": row.work,
        "timing": row.timing and asdict(row.timing),
        "memory": row.memory,
        "peers": [asdict(peer) | {"limit": isinstance(peer, Limit)} | _ratios(row.timing, peer) for peer in row.peers],
        "targets": [asdict(target) | {"met": target.met} for target in row.targets],
    }


def _ratios(ours: Timing | None, peer: Peer) -> dict[str, float]:
    """Return how many times as long a peer takes: on the clock, and of all cores where that is known."""
    if ours is None or not ours.wall:
        return {}
    of_cores = {"cpu_ratio": peer.timing.cpu / ours.cpu} if ours.cpu and peer.timing.cpu else {}
    return {"ratio": peer.timing.wall / ours.wall} | of_cores


def _figure_data(figure: Figure) -> dict[str, Any]:
    lines = {name: list(line) for name, line in figure.lines.items()}
    return {"setting": figure.setting, "places": list(figure.places), "unit": figure.unit, "lines": lines}


def _markdown(heads: Sequence[str], rows: Iterator[list[str]]) -> list[str]:
    head = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    return head + ["| " + " | ".join(cell.strip() for cell in cells) + " |" for cells in rows]


def _figure_grid(figure: Figure) -> Grid:
    grid = Grid(box=SIMPLE_HEAD, pad_edge=False)
    for i, head in enumerate(figure.heads):
        grid.add_column(head, justify="right" if i else "left")
    for cells in figure.cells():
        grid.add_row(*cells)
    return grid


def _grid(table: Table, quick: bool) -> Grid:
    lines = list(_lines(table, quick))
    used = [i for i in range(len(COLUMNS)) if i == 0 or any(cells[i] for cells in lines)]
    grid = Grid(box=SIMPLE_HEAD, pad_edge=False)
    for i in used:
        grid.add_column(COLUMNS[i], justify="right" if i else "left", no_wrap=i > 0)
    for cells in lines:
        grid.add_row(*(_cell(cells[i]) for i in used), style="dim" if cells[0].startswith(INSIDE) else "")
    return grid


def _cell(text: str) -> Text:
    cell = Text(text)
    cell.highlight_regex(r"(?<=: )met", "not dim green")
    cell.highlight_regex("NOT met", "not dim bold red")
    return cell


def _lines(table: Table, quick: bool) -> Iterator[list[str]]:
    """Yield the cells of each row, and of its peers and targets below it."""
    for row in table.rows:
        yield [row.work, *_times(row.timing), "" if row.memory is None else amount(row.memory, "B"), ""]
        for peer in row.peers:
            kind = "limit" if isinstance(peer, Limit) else "peer"
            ratio = f"{_short(peer.timing.wall / row.timing.wall)} ×" if row.timing else ""
            yield [f"{INSIDE}{kind}: {peer.name}", *_times(peer.timing), "", ratio]
        for target in row.targets:
            yield [f"{INSIDE}target {target}: {_judged(target, quick)}", "", "", "", ""]


def _judged(target: Target, quick: bool) -> str:
    found = amount(target.found, target.unit)
    return found if quick else f"{'met' if target.met else 'NOT met'}, {found}"


def _times(timing: Timing | None) -> tuple[str, str]:
    return ("", "") if timing is None else (amount(timing.wall, "s"), amount(timing.cpu, "s"))


def amount(value: float, unit: str) -> str:
    """Return an amount with its unit, to three digits: `412 ms`, `1.5 s`, `121 MB`, `3.9 times`."""
    if unit == "s":
        scale, name = next(((x, n) for x, n in ((1, "s"), (1e-3, "ms")) if value >= x), (1e-6, "µs"))
        return f"{_short(value / scale)} {name}"
    if unit == "B":
        scale, name = next(
            ((x, n) for x, n in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if abs(value) >= x), (1, "bytes")
        )
        return f"{_short(value / scale)} {name}"
    return f"{_short(value)} {unit}"


def _short(value: float) -> str:
    """Return a number with three digits, or all of its whole part."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    digits = 1 if abs(value) >= 10 else 2
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if float(text) == round(value, 6) else text


# --- Where and when ---------------------------------------------------------------------------------------------


def machine() -> dict[str, str]:
    """Return what the numbers depend on."""
    packages = {"NumPy": "numpy", "Numba": "numba", "Arrow": "pyarrow", "Trellis": "trellis-cep"}
    return {
        "machine": machine_class(),
        "versions": ", ".join(
            [f"Python {platform.python_version()}", *(f"{name} {version(key)}" for name, key in packages.items())]
        ),
        "date": f"{dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M} UTC, load {os.getloadavg()[0]:.1f}",
    }


def machine_class() -> str:
    """Return what machines with comparable times have in common."""
    return f"{cores()} cores of {_cpu()}, {_memory()} of memory"


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def _memory() -> str:
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.0f} GB"
