"""Queries that together need the kernels that common queries need: they are run once, and what they compile ships.

To have more of them, add a query here. A kernel is compiled for the types of its arguments, so a case is a kind of
condition, window or result; what the events are matters only where their types do. The tables are small, and the
results do not matter.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from trellis.plan.sizes import Sizes

RISING = "s[i].price > s[i-1].price"
HOPPING = "WITHIN 1 min SLIDE 30 s"
NEARBY = f"{RISING} AND s[i].ts - s[i-1].ts <= 5 min"


@dataclass(frozen=True)
class KernelCase:
    """A query over some sample events, and what is asked of its results besides their number and their rows."""

    events: str
    query: str
    due: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


EXPLORED = (
    KernelCase("types", "PATTERN SEQ(A+ a[], B b) WHERE [kind] WITHIN 10", ("sample",)),
    KernelCase(
        "types", "PATTERN SEQ(A a, NOT(B x), C+ c[]) WHERE c.price < NEXT(c).price AND c.price > a.price WITHIN 10"
    ),
    KernelCase("types", "PATTERN OR(SEQ(A, B), A) REPORT any"),
    KernelCase("types", "PATTERN SEQ(A a, OR(B b, C c)) WITHIN 10 SLIDE 5"),
    KernelCase("types", "PATTERN SEQ(A a, C+ c[]) WHERE LAST(c).price > 2 * a.price AND c[2].price < 15"),
    KernelCase("types", "PATTERN SEQ(A a, NOT(SEQ(B b, C c)), A d) WHERE b.price > a.price"),
    KernelCase("types", "PATTERN SEQ(A a, NOT(SEQ(B b, NOT(C x), A c)), B d)"),
    KernelCase(
        "types", "PATTERN SEQ(A a, C+ c[], B b) WHERE c.price < NEXT(c).price AND b.price < a.price WITHIN 10 SLIDE 5"
    ),
    KernelCase("types", "PATTERN SEQ(A a, C+ c[]) AFTER MATCH SKIP PAST LAST"),
    KernelCase("types", "PATTERN SEQ(A a, B{2} b[])"),
    KernelCase("many types", "PATTERN SEQ(A a, C+ c[]) WHERE LAST(c).price > 2 * a.price LIMIT 3", ("first",)),
    KernelCase("many types", "PATTERN SEQ(A+ a[], C+ c[]) WHERE FIRST(a).price > LAST(c).price LIMIT 1"),
    KernelCase(
        "stock", "PATTERN SEQ(Stock a, OR(Stock b, Stock c))+ g[] WHERE [name] AND b.price > a.price WITHIN 10 s"
    ),
)
"""Patterns of several variables whose matches are explored: one process compiles what listing and counting share."""

CASES = (
    # One Kleene variable: conditions on neighbours, by index and by edges
    KernelCase("stock", f"PATTERN Stock+ s[] WHERE [name] AND {RISING} RETURN s.price, s", ("counts", "first")),
    KernelCase(
        "stock", "PATTERN Stock+ s[] WHERE [name] AND s[i].price > 1.02 * s[i-1].price HAVING LENGTH >= 2", ("sample",)
    ),
    KernelCase("stock", f"PATTERN Stock+ s[] WHERE [name] AND {NEARBY} AND s.volume > 100 LIMIT 5"),
    KernelCase("stock", "PATTERN Stock+ s[] WHERE [name] AND s[i].price != s[i-1].price REPORT any LIMIT 5"),
    KernelCase("stock", f"PATTERN Stock+ s[] WHERE [name] AND {RISING} AND s[i].volume > s[i-1].volume LIMIT 9"),
    KernelCase("stock", f"PATTERN Stock+ s[] WHERE [name] AND {RISING} REPORT any LIMIT 2 OFFSET 4", ("sample",)),
    KernelCase("numbers", f"PATTERN E+ s[] WHERE {RISING}", ("explode",)),
    KernelCase("numbers", "PATTERN E+ s[] WHERE s[i].price > 2 * s[i-1].price"),
    KernelCase("rising", "PATTERN E+ e[] WHERE e[i].price > e[i-1].price"),
    KernelCase("numbers", "PATTERN E+ s[] WHERE s.kind = 'a' HAVING LENGTH = 1 REPORT any"),
    KernelCase("numbers", "PATTERN E+ s[] WHERE s[i].kind = s[i-1].kind AND s[i].price > s[i-1].price"),
    KernelCase("kite", "PATTERN check+ c[] WHERE c[i].src = c[i-1].dest LIMIT 5", ("sample",)),
    KernelCase("stock", "PATTERN Stock+ s[] WHERE [name] AND ABS(s[i].price - s[i-1].price) < 2 LIMIT 5"),
    KernelCase("stock", "PATTERN Stock+ s[] WHERE [name] AND (s[i].price > s[i-1].price OR s[i].volume = 0) LIMIT 5"),
    # Windows and spans
    KernelCase("stock", f"PATTERN Stock+ s[] WHERE [name] AND {RISING} {HOPPING}", ("first", "sample")),
    KernelCase("stock", f"PATTERN Stock+ s[] WHERE [name] AND {RISING} WITHIN 20 s"),
    KernelCase("stock", f"PATTERN Stock+ s[] WHERE [name] AND {NEARBY} {HOPPING}"),
    KernelCase("numbers", f"PATTERN E+ s[] WHERE {RISING} WITHIN 5 SLIDE 5"),
    KernelCase("numbers", f"PATTERN E+ s[] WHERE {RISING} WITHIN 3"),
    KernelCase("kite", "PATTERN check+ c[] WHERE c[i].src = c[i-1].dest HAVING LENGTH >= 3 WITHIN 1 day"),
    KernelCase("many", "PATTERN Stock+ s[] REPORT any WITHIN 70 s"),
    # REPORT, SELECT
    KernelCase("stock", f"PATTERN Stock+ s[] WHERE [name] AND {RISING} REPORT maximal", ("sample",)),
    KernelCase(
        "stock",
        f"PATTERN Stock+ s[] WHERE [name] AND {RISING} HAVING LENGTH >= 2 REPORT maximal {HOPPING}",
    ),
    KernelCase("numbers", f"PATTERN E+ s[] WHERE {RISING} HAVING LENGTH = 2 REPORT maximal"),
    KernelCase("stock", f"PATTERN Stock+ s[] WHERE [name] AND {RISING} SELECT skip-till-next"),
    KernelCase("stock", f"PATTERN Stock+ s[] WHERE [name] AND {RISING} SELECT contiguous"),
    # Aggregates
    KernelCase(
        "stock",
        f"PATTERN Stock+ s[] WHERE [name] AND {RISING} "
        "AGGREGATE COUNT(*), COUNT(s), SUM(s.price), AVG(s.price), MIN(s.volume), MAX(LENGTH)",
    ),
    KernelCase("numbers", f"PATTERN E+ s[] WHERE {RISING} AGGREGATE COUNT(*), SUM(s.price), AVG(s.price), MAX(LENGTH)"),
    KernelCase(
        "stock",
        f"PATTERN Stock+ s[] WHERE [name] AND {RISING} {HOPPING} AGGREGATE COUNT(*), AVG(s.price)",
    ),
    KernelCase(
        "numbers", f"PATTERN E+ s[] WHERE {RISING} RETURN s, AVG(s.price), LAST(s).price - FIRST(s).price AS gain"
    ),
    KernelCase(
        "stock", f"PATTERN Stock+ s[] WHERE [name] AND {RISING} RETURN SUM(s.price), MIN(s.price), AVG(s.volume)"
    ),
    # The best
    KernelCase("stock", f"PATTERN Stock+ s[] WHERE [name] AND {RISING} ORDER BY LENGTH DESC LIMIT 3", ("top",)),
    KernelCase("stock", f"PATTERN Stock+ s[] WHERE [name] AND {RISING} ORDER BY SUM(s.price) DESC LIMIT 3 PER WINDOW"),
    KernelCase(
        "stock",
        f"PATTERN Stock+ s[] WHERE [name] AND {RISING} {HOPPING} "
        "RETURN s.price AS prices ORDER BY LENGTH DESC LIMIT 1 PER WINDOW",
    ),
    KernelCase("many", f"PATTERN Stock+ s[] WHERE {RISING} ORDER BY LENGTH DESC LIMIT 3"),
    KernelCase(
        "many", f"PATTERN Stock+ s[] WHERE {RISING} REPORT any ORDER BY SUM(s.price) LIMIT 2", ("trend", "sample")
    ),
    KernelCase(
        "kite", "PATTERN check+ c[] WHERE c[i].src = c[i-1].dest WITHIN 1 week SLIDE 1 day ORDER BY LENGTH LIMIT 1"
    ),
    # Several variables
    *EXPLORED,
    KernelCase("types", "PATTERN SEQ(A a, B b) WHERE b.price > a.price"),
    KernelCase("types", "PATTERN SEQ(A a, AND(B b, C c)) AGGREGATE COUNT(*), AVG(b.price), MAX(LENGTH)"),
    KernelCase("types", "PATTERN SEQ(A a, AND(B b, C c))"),
    KernelCase("types", "PATTERN SEQ(A a, AND(B b, C c)) AFTER MATCH SKIP PAST LAST"),
    KernelCase("types", "PATTERN SEQ(A a, AND(B b, C c)) ORDER BY c.price - a.price DESC LIMIT 3"),
    KernelCase(
        "types",
        "PATTERN SEQ(A+ a[], B b) WHERE a.price < b.price ORDER BY LENGTH DESC LIMIT 2",
        options={"sizes": Sizes(counted_pairs=-1)},
    ),
    KernelCase(
        "types", "PATTERN SEQ(A a, B b, C c) WHERE c.price > a.price AND 2 * b.price < c.price + a.price", ("sample",)
    ),
    KernelCase(
        "types", "PATTERN SEQ(A a, NOT(B x), C c) WHERE a.kind = c.kind AND x.price > a.price WITHIN 10 SLIDE 5"
    ),
    # The results through each event
    KernelCase("stock", f"PATTERN Stock+ s[] WHERE {RISING} AGGREGATE COUNT(*), SHARE, MAX(LENGTH) PER EVENT"),
    KernelCase("numbers", f"PATTERN E+ s[] WHERE {RISING} AGGREGATE COUNT(*), SUM(s.price), MAX(LENGTH) PER EVENT"),
    KernelCase(
        "numbers",
        "PATTERN E+ s[] WHERE s[i].kind = s[i-1].kind REPORT any WITHIN 5 AGGREGATE COUNT(*), MAX(LENGTH) PER EVENT",
    ),
    # Fixed sequences
    KernelCase(
        "stock",
        "PATTERN T1; T2; T3 WHERE T1.name = T3.name AND T2.name = 'Google' AND T1.price > T2.price "
        "AND T3.price < T2.price WITHIN 30 s",
        ("sample",),
    ),
    KernelCase("numbers", "PATTERN T1; T2; T3 WHERE T1.kind = T3.kind AND T1.price > T2.price", ("sample",)),
    KernelCase(
        "stock", "PATTERN T1; T2; T3 WHERE T1.name = T3.name AND T1.price > T2.price AND T3.price < T2.price LIMIT 9"
    ),
    KernelCase("numbers", "PATTERN T1; T2 WHERE T1.price > T2.price WITHIN 9 AGGREGATE COUNT(*), MAX(T1.price)"),
)
"""All of them; each is counted and listed."""


def run(case: KernelCase) -> None:
    """Count and list the results of a case, and ask what else it asks."""
    import trellis

    events = _tables()[case.events]
    type_column = "type" if "types" in case.events else None
    query = trellis.query(case.query)
    found = query.detect(events, type=type_column, event_id="event_id", engine="local", **case.options)
    total = found.count()
    asks: dict[str, Callable[[], Any]] = {
        "counts": lambda: found.counts().to_arrow(),
        "first": lambda: found.first(2).to_arrow(),
        "top": lambda: found.top(2).to_arrow(),
        "trend": lambda: found.trend(0).to_arrow() if total else None,
        "sample": lambda: found.sample(2).to_arrow(),
        "explode": lambda: found.explode().to_arrow(),
    }
    if total <= 1_000_000 or "LIMIT" in case.query:
        found.to_arrow()
    for name in case.due:
        asks[name]()


@cache
def _tables() -> dict[str, Any]:
    """Return the sample events: prices as floats and as integers, times as such and as numbers, with types or not."""
    import pyarrow as pa

    from trellis.io.generate import generate_table

    numbers = pa.table(
        {
            "time": range(20),
            "event_id": [f"e{i}" for i in range(20)],
            "price": [(7 * i) % 20 for i in range(20)],
            "kind": [("a", "b", "c")[i % 3] for i in range(20)],
        }
    )
    typed = numbers.append_column("type", [[("A", "B", "C")[(i * i // 3) % 3] for i in range(20)]])
    many = [typed.set_column(0, "time", pa.array(range(20 * i, 20 * i + 20))) for i in range(20)]
    ids = pa.array([f"e{i}" for i in range(400)])
    many_types = pa.concat_tables(many).combine_chunks().set_column(1, "event_id", ids)
    return {
        "stock": generate_table("stock", 200, 1, companies=4),
        "many": generate_table("stock", 200, 1, companies=1),
        "kite": generate_table("kite", 200, 1),
        "numbers": numbers,
        "rising": pa.table({"time": range(1_500), "event_id": range(1_500), "price": range(1_500)}),
        "types": typed,
        "many types": many_types,
    }


# --- Beside queries ---------------------------------------------------------------------------------------------


def _arrivals() -> None:
    import trellis

    events = _tables()["numbers"]
    for text in (
        "PATTERN a;b;c WHERE a.price > c.price WITHIN 9",
        f"PATTERN E+ s[] WHERE {RISING} AGGREGATE COUNT(*), SUM(s.price) WITHIN 9 SLIDE 9",
    ):
        trellis.query(text).arrivals(time="time", event_id="event_id").take(events)


def _history() -> None:
    from trellis.archive.archive import Archive
    from trellis.io.generate import generate_table

    table = generate_table("zipf", events=2_000, seed=7)
    with tempfile.TemporaryDirectory(prefix="trellis-") as folder:
        archive = Archive.build(table, f"{folder}/history", time="ts", type="name", event_id="event_id", leaf=50)
        archive.exists("PATTERN SEQ(BB, BC, BD)")
        archive.find("PATTERN SEQ(BB, BC, BD) WITHIN 2 min")
        archive.find("PATTERN SEQ(A, B) WITHIN 2 min", exact=True)


def _graphs() -> None:
    import pyarrow as pa

    from trellis.api.pipeline import execute
    from trellis.graphs import Components, PageRank, Triangles

    edges = pa.table({"source": ["a", "a", "b", "c"], "target": ["b", "c", "c", "a"]})
    for program in (Triangles(), PageRank(), Components()):
        execute(program, edges)


def _plain_arrays() -> None:
    """Sort as many values as are sorted digit by digit; then the same with arrays of Arrow, which nobody may write."""
    import numpy as np

    from trellis.events.columns.ordering import small_argsort
    from trellis.kernels.events.partitions import later_times

    values = np.arange(1 << 13)
    small_argsort(values[::-1])
    values.flags.writeable = False
    small_argsort(values)
    later_times(values, np.array([0, len(values)]))


OTHERS = (_plain_arrays, _arrivals, _history, _graphs)


Step = tuple[str, Callable[[], None]]


def steps() -> list[Step]:
    """Return all that is run to compile, each with its name.

    Two processes begin at the ends, and meet at what needs kernels of its own.
    """
    rest = [case for case in CASES if case not in EXPLORED]
    named: list[Step] = [(case.query, partial(run, case)) for case in EXPLORED]
    named += [(other.__name__.strip("_"), other) for other in OTHERS]
    return named + [(case.query, partial(run, case)) for case in rest]
