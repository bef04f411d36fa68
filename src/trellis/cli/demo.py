"""`trellis demo`: a guided tour over small generated data, with queries as their papers print them."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.text import Text

from trellis.cli import options as o
from trellis.cli.console import out
from trellis.cli.console import progress as shown_progress
from trellis.cli.show import all_digits, moment, plural

if TYPE_CHECKING:
    import pyarrow as pa

KITE = {"events": 1500, "seed": 7}
STOCK = {"events": 1000, "seed": 7, "rate": 0.05}
LONGEST = 3
ACCOUNTS = 9  # of a chain that are shown

CHECK_KITING = """\
PATTERN check + c[ ]
WHERE   c.type = 'not covered' AND
        c[i].src = c[i - 1].dest
WITHIN  1 week SLIDE 1 day"""

RISING_BY_RATIO = """\
PATTERN stock + s[ ]
WHERE   [id] AND s[i].price > ratio * s[i - 1].price
WITHIN  60 min SLIDE 10 min"""

RISING = """\
PATTERN Stock+ s[]
WHERE [companyID] AND s.price < NEXT(s).price
WITHIN 1 hour SLIDE 30 minutes"""

TOO_MANY = """\
PATTERN Stock+ s[]
WHERE s.price < NEXT(s).price
REPORT any"""

BLOCKS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class TourStop:
    """A stop of the tour: a query, and how one of its trends is shown."""

    title: str
    asks: str
    stream: str
    query: str
    returns: str
    each: str
    key: Callable[[dict[str, Any]], str]
    shown: Callable[[dict[str, Any]], str]
    params: dict[str, str] = field(default_factory=dict)


def demo(
    engine: o.EngineName = o.EngineChoice.SPARK,
    master: o.Master = None,
    progress: o.ShowProgress = True,
) -> None:
    """Take a tour: queries of the papers over small generated streams, one that explodes, a history, social posts."""
    from trellis.events.ties import TOLD

    with tempfile.TemporaryDirectory(prefix="trellis-demo-") as folder, warnings.catch_warnings():
        warnings.filterwarnings("ignore", TOLD)  # generated events meet by chance, and nothing tells their order
        paths = _sample_streams(folder)
        with _engine(o.EngineOptions(master, engine=engine), progress) as run:
            out().print(f"A tour of Trellis on generated events, engine {engine}.\n")
            for number, stop in enumerate(STOPS, start=1):
                _visit(number, stop, paths, run)
            _refuse(len(STOPS) + 1, paths, run)
        visit_history(len(STOPS) + 2, folder)
        visit_network(len(STOPS) + 3)
    _print_next()


class _TourEngine:
    """Runs the queries of the tour on one engine."""

    def __init__(self, options: o.EngineOptions, spark: Any, progress: bool) -> None:
        self.options, self.spark, self.progress = options, spark, progress

    def trends(self, query: str, path: str, params: dict[str, str]) -> Any:
        """Return the trends of a query over a file."""
        import trellis
        from trellis.cli.events import read_events
        from trellis.cli.running import RunRequest, detected
        from trellis.cli.text_columns import text_columns

        events = o.EventOptions(files=[path], event_id="event_id")
        request = RunRequest(trellis.query(query), events, self.options, params)
        data = read_events(events, text_columns(request.query.syntax, params), self.spark)
        return detected(request, data, self.spark)


@contextmanager
def _engine(options: o.EngineOptions, progress: bool) -> Iterator[_TourEngine]:
    from trellis.cli.engine import started

    with ExitStack() as stack:
        with shown_progress(progress) as step:
            step(f"starting {options.engine}")
            spark = stack.enter_context(started(options))
        yield _TourEngine(options, spark, progress)


def _sample_streams(folder: str) -> dict[str, str]:
    from trellis.io.generate import generate_table
    from trellis.io.write import write_table

    paths = {}
    for kind, options in (("kite", KITE), ("stock", STOCK)):
        paths[kind] = os.path.join(folder, f"{kind}.parquet")
        write_table(generate_table(kind, **options), paths[kind])
    return paths


# --- The stops --------------------------------------------------------------------------------------------------


def _visit(number: int, stop: TourStop, paths: dict[str, str], run: _TourEngine) -> None:
    from trellis.cli.running import Stopwatch

    _print_question(number, stop.title, stop.asks, stop.query, stop.params)
    clock = Stopwatch()
    with shown_progress(run.progress) as step:
        step("counting the trends")
        longest_first = f"{stop.query}\nRETURN {stop.returns}\nORDER BY LENGTH DESC LIMIT 1 PER WINDOW"
        trends = run.trends(longest_first, paths[stop.stream], stop.params)
        count, statistics = trends.count(), trends.statistics
        step("listing the longest")
        rows = trends.to_arrow()
    _print_answer(statistics, count, clock.seconds)
    console = out()
    console.print(f"   The longest, each of another {stop.each}:")
    for row in _different(rows, stop.key):
        length = f"{row['length']:>3}"
        when = f"{moment(row['start_time'])} to {moment(row['end_time'])}"
        console.print(Text.assemble(f"   {length}  ", (stop.shown(row), "cyan"), (f"  {when}", "dim")))
    console.print()


def _refuse(number: int, paths: dict[str, str], run: _TourEngine) -> None:
    from trellis.cli.running import Stopwatch
    from trellis.errors import ListingRefused

    _print_question(
        number, "A question that must not be listed", "all rising prices of all companies together, in one window",
        TOO_MANY, {},
    )  # fmt: skip
    clock = Stopwatch()
    with shown_progress(run.progress) as step:
        step("counting the trends")
        trends = run.trends(TOO_MANY, paths["stock"], {})
        try:
            trends.to_arrow()
        except ListingRefused as error:
            refusal = str(error)
        else:
            raise AssertionError("the query has few enough trends to be listed")
        count, statistics = trends.count(), trends.statistics
    console = out()
    console.print("   Listing them is refused:", style="bold")
    console.print(Text("   " + refusal.replace("\n", "\n   "), style="yellow"))
    console.print("   Counted instead, to the last digit:", style="bold")
    _print_answer(statistics, count, clock.seconds)
    console.print()


def _different(rows: pa.Table, key: Callable[[dict[str, Any]], str]) -> list[dict[str, Any]]:
    """Return the longest of the rows, one of each key: overlapping windows hold the same trends."""
    longest: dict[str, dict[str, Any]] = {}
    for row in sorted(rows.to_pylist(), key=lambda row: -row["length"]):
        longest.setdefault(key(row), row)
    return list(longest.values())[:LONGEST]


def accounts(row: dict[str, Any]) -> str:
    """Return the way of the checks from account to account."""
    names = [*row["payers"], row["payee"]]
    if len(names) > ACCOUNTS:
        names = [*names[: ACCOUNTS - 3], "…", *names[-2:]]
    return " → ".join(names)


def company(row: dict[str, Any]) -> str:
    """Return the name of the company whose prices these are."""
    return str(row["name"])


def prices(row: dict[str, Any]) -> str:
    """Return prices as blocks of their height, with the first and the last."""
    values = row["prices"]
    return f"{row['name']:<6} {values[0]:>7.2f} {sparkline(values)} {values[-1]:.2f}"


def sparkline(values: Sequence[float]) -> str:
    """Return numbers as blocks, the least the lowest and the greatest the highest."""
    low, high = min(values), max(values)
    step = (high - low) / (len(BLOCKS) - 1) or 1.0
    return "".join(BLOCKS[round((value - low) / step)] for value in values)


PRICES = "s.price AS prices, FIRST(s).name AS name"
STOPS = (
    TourStop(
        "Check kiting (the ABI paper's Q1)",
        "chains of uncovered checks, each drawn on the account that the one before was paid into",
        "kite", CHECK_KITING, "c.src AS payers, LAST(c).dest AS payee",
        "first account", lambda row: str(row["payers"][0]), accounts,
    ),
    TourStop(
        "Prices that rise by a ratio (the ABI paper's Q2)",
        "trades of a stock, each more than 1 % above the one before",
        "stock", RISING_BY_RATIO, PRICES, "company", company, prices, {"ratio": "1.01"},
    ),
    TourStop(
        "Rising prices (the CET paper's Q3)",
        "trades of a company, each above the one before",
        "stock", RISING, PRICES, "company", company, prices,
    ),
)  # fmt: skip


# --- Output -----------------------------------------------------------------------------------------------------


def _print_question(number: int, title: str, asks: str, query: str, params: dict[str, str]) -> None:
    console = out()
    console.print(Text(f"{number}. {title}", style="bold"))
    console.print(f"   Question: {asks}.\n")
    console.print(Text("      " + query.replace("\n", "\n      "), style="green"))
    given = ", ".join(f"{name} = {value}" for name, value in params.items())
    console.print(f"      with {given}\n" if given else "")


def _print_answer(statistics: dict[str, int], count: int, seconds: float) -> None:
    events, windows = plural(statistics["events"], "event"), plural(statistics["windows"], "window")
    out().print(f"   {events}, {windows}, {all_digits(count)} trends, in {seconds:.1f} s.")


def _print_next() -> None:
    out().print(
        "Try next: trellis generate kite --events 2000 --out kite.parquet\n"
        '          trellis detect "PATTERN check+ c[] WHERE c[i].src = c[i-1].dest HAVING LENGTH >= 3 WITHIN 1 day"'
        " kite.parquet --out chains\n"
        "          trellis --help"
    )


# --- Beside queries ------------------------------------------------------------------------------------------------


NAMES = {"events": 100_000, "seed": 7}
SOCIAL = {"events": 6_000, "seed": 7, "users": 300}
SHOWN = 3


def visit_history(number: int, folder: str) -> None:
    """Ask a history for a pattern that nobody planned."""
    from trellis.archive.archive import Archive
    from trellis.cli.history import timeline
    from trellis.io.generate import generate_table

    console = out()
    console.print(Text(f"{number}. A question of the past", style="bold"))
    console.print("   Question: where three rare names may have come close behind one another, by filters alone.\n")
    text = "PATTERN SEQ(BB, BC, BD) WITHIN 2 min"
    console.print(Text(f"      {text}\n", style="green"))
    table = generate_table("zipf", **NAMES)
    place = os.path.join(folder, "history")
    archive = Archive.build(table, place, time="ts", type="name", event_id="event_id", leaf=50)
    places: Any = archive.find(text)
    exact: Any = archive.find(text, exact=True)
    size = sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(place) for name in names)
    console.print(
        f"   {plural(table.num_rows, 'event')} kept in {size / 1e6:.1f} MB with its filters; "
        f"{plural(places.num_rows, 'place')} where it may be:"
    )
    console.print(Text(f"   {timeline(places, 0, len(archive))}", style="cyan"))
    console.print(
        f"   Exactly, for which {exact.needed / exact.events:.0%} of the events are needed: "
        f"{plural(exact.trends.count(), 'sequence')}.\n"
    )


def visit_network(number: int) -> None:
    """Watch the posts of a social network."""
    from trellis.io.generate.social import lines_of, social
    from trellis.papers.debs2016 import posts

    console = out()
    console.print(Text(f"{number}. The most active posts (query 1 of the DEBS 2016 challenge)", style="bold"))
    console.print(
        "   Question: the three posts with the highest scores, whenever they change; points are lost by the day.\n"
    )
    files = social(**SOCIAL)  # type: ignore[arg-type]
    posts(b"", b"")  # what is compiled at first is not counted
    run = posts(lines_of(files["posts"]), lines_of(files["comments"]))
    lines = run.output.decode().splitlines()
    events = plural(sum(run.events.values()), "event")
    console.print(f"   {events}, {plural(run.lines, 'change')}, in {run.seconds:.1f} s. In the middle:")
    middle = len(lines) // 2
    for line in lines[middle : middle + SHOWN]:
        time, *fields = line.split(",")
        places = [f"{name} {score}" for name, score in zip(fields[1::4], fields[2::4], strict=True)]
        console.print(Text.assemble("   ", (time[:16].replace("T", " "), "dim"), ("  " + ", ".join(places), "cyan")))
    console.print()
