"""What counting rests on and what listing would take, for `explain`: known or measured before anything is listed."""

from __future__ import annotations

from fractions import Fraction
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trellis.operators.patterns.operator import PatternOperator
    from trellis.operators.sequences.operator import SequenceOperator
    from trellis.operators.trends.operator import TrendOperator

TRIED = 1 << 22  # trends that are listed to see how quick listing is
POSITION, OFFSET = 4, 4  # bytes for each event of a trend, and for each trend
UNITS = (("years", 365.25 * 86400), ("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))
SIZES = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
RUN_TREE = 1e6  # expected rows of a node up to which a tree plan is run to see what it does
LARGE = 1e6  # from here on a number is told by its exponent


def operator_costs(trends: Any) -> dict[str, str]:
    """Say on what engine trends are counted, and how the successors of events are found there."""
    if trends.engine != "local":
        successors = "as above, in each window and partition by itself"
        return {"engine": trends.engine, "successors": successors, "shuffle": trends.shuffle}
    return {"engine": trends.engine, **_found(trends._operator)}


def _found(operator: TrendOperator | PatternOperator | SequenceOperator) -> dict[str, str]:
    from trellis.operators.trends.operator import TrendOperator

    if isinstance(operator, TrendOperator):
        return {"successors": _successors(operator)}
    from trellis.operators.sequences.operator import SequenceOperator

    if isinstance(operator, SequenceOperator):
        return _sequences(operator)
    vertices, edges = operator.size
    return {"vertices": f"{vertices:,} on results, with {edges:,} edges, in all windows and partitions"}


def _sequences(operator: SequenceOperator) -> dict[str, str]:
    """Say what is left of the candidates, and draw the tree plan with what its nodes had."""
    from trellis.operators.sequences.tree import drawn

    leaves = operator.leaves
    kept = zip(leaves.names, leaves.of_variable, leaves.sizes, strict=True)
    left = ", ".join(f"{name} {len(some):,} of {size:,}" for name, some, size in kept)
    tree = operator.tree()
    ran = max((node.estimate for node in tree.root.walk() if node is not tree.root), default=0.0) <= RUN_TREE
    if ran:
        list(tree.counts())
    return {"candidates": left, "tree_plan": "\n".join(["", *drawn(tree.root, leaves.names, ran, 1)])}


def _successors(operator: TrendOperator) -> str:
    from trellis.operators.trends.direct import COMPLEXITY
    from trellis.operators.trends.direct_count import DirectCounter

    index, direct = operator.index, operator.direct
    if direct is not None and isinstance(operator.counter, DirectCounter):
        return f"direct successors by {direct.method}, not listed: {COMPLEXITY[direct.method]}"
    if index is None:
        graph = operator.graph
        size = graph.offsets.nbytes + graph.successors.nbytes + graph.latest.nbytes
        edges = f"{len(graph.successors):,} edges between {len(operator.events):,} events, {_bytes(size)}"
        how = "" if direct is None else f"; direct successors by {direct.method}: {COMPLEXITY[direct.method]}"
        return f"event graph: {edges}{how}"
    keyed = " within a key" if index.keyed and index.kind != "key" else ""
    parts = f", in {len(index.parts):,} parts" if len(index.parts) > 1 else ""
    return (
        f"attribute index ({index.kind}{keyed}): {index.vertices:,} attribute vertices for {index.parts.size:,} events"
        f"{parts}, {_bytes(index.nbytes)}"
    )


def listing_costs(trends: Any, count: int) -> dict[str, str]:
    """Return the mean length of trends, and the memory and time that listing them all would take."""
    if not count:
        return {"trends": "none to list"}
    names = [v.name for v in trends.plan.bound.variables if not v.absent]
    rows = trends.aggregate(*(f"count(`{name}`) AS named{i}" for i, name in enumerate(names)))
    if trends.engine != "local":
        rows = rows.toArrow()
    named = sum(int(row[f"named{i}_text"]) for row in rows.to_pylist() for i in range(len(names)))
    costs = {
        "mean_length": f"{float(Fraction(named, count)):,.1f} events",
        "memory": f"{_bytes(named * POSITION + count * OFFSET)} as positions if all are kept, else a few MB at a time",
        "time": f"{_duration(named / Fraction(_rate()))} on one core of this machine, as positions",
    }
    if count > trends.max_trends:
        costs["refused"] = f"above {trends.max_trends:,} trends (max_trends); counts, ranks, samples and LIMIT are not"
    return costs


def _rate() -> float:
    """List the trends of a few rising values, and return how many of their events come out in a second."""
    import pyarrow as pa

    from trellis.queries import Query

    values = list(range((4 * TRIED).bit_length() - 1))  # n rising values have 2**(n - 2) trends
    table = pa.table({"ts": values, "id": values, "value": values})
    trends: Any = Query("PATTERN E+ e[] WHERE e[i].value > e[i-1].value").detect(table, time="ts", event_id="id")
    best = 0.0
    for _ in range(2):
        began, named = perf_counter(), 0
        for batch in trends.batches(["events"], positions=True, threads=1):
            named += len(batch.column(0).values)
        best = max(best, named / (perf_counter() - began))
    return best


def _duration(seconds: Fraction) -> str:
    for name, size in UNITS:
        number = seconds / Fraction(size)
        if number >= 2:
            return f"{float(number):,.0f} {name}" if number < LARGE else f"{_power(number)} {name}"
    return f"{float(seconds):.2g} seconds"


def _bytes(size: int) -> str:
    for name, unit in SIZES:
        if size >= unit:
            number = size / Fraction(unit)
            return f"{float(number):,.1f} {name}" if number < LARGE else f"{_power(number)} {name}"
    return f"{size:,} bytes"


def _power(number: Fraction) -> str:
    return f"{float(number):.1e}" if number < 1e300 else f"more than 1e{len(str(int(number))) - 1}"
