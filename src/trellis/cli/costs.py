"""The costs of counting and of listing, for `explain`: known or measured before anything is listed."""

from __future__ import annotations

from fractions import Fraction
from time import perf_counter
from typing import Any

from trellis.digits import bytes_text, short_number
from trellis.errors import DataError, QueryError, TrellisError, UsageError

TRIED = 1 << 22  # trends that are listed to see how quick listing is
FAR_TOO_MANY = 1_000_000  # times as many trends as are listed unless somebody allows more
POSITION, OFFSET = 4, 4  # bytes for each event of a trend, and for each trend
UNITS = (("years", 365.25 * 86400), ("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))


def listing_costs(trends: Any, count: int) -> dict[str, str]:
    """Return the mean length of trends, and the memory and time that listing them all would take."""
    if not count:
        return {"trends": "none to list"}
    refused = {}
    if count > trends.max_trends:
        refused["refused"] = (
            f"above {trends.max_trends:,} trends (max_trends); counts, ranks, samples and LIMIT are not"
        )
    if count > FAR_TOO_MANY * trends.max_trends:  # nobody allows that, and lengths may take longer than counts
        return refused
    try:
        named = _named(trends)
    except (QueryError, UsageError, DataError):
        raise
    except TrellisError as error:
        return {"refused": error.what}
    return {
        "mean_length": f"{float(Fraction(named, count)):,.1f} events",
        "memory": f"{bytes_text(named * POSITION + count * OFFSET)} as positions if all are kept, "
        "else a few MB at a time",
        "time": f"{duration_text(named / Fraction(_rate()))} on one core of this machine, as positions",
    } | refused


def _named(trends: Any) -> int:
    """Return the number of events of all trends together."""
    names = [v.name for v in trends.plan.bound.variables if not v.absent]
    rows = trends.aggregate(*(f"count(`{name}`) AS named{i}" for i, name in enumerate(names)))
    return sum(int(row[f"named{i}_text"]) for row in rows.to_pylist() for i in range(len(names)))


def _rate() -> float:
    """List the trends of a few rising values, and return how many of their events come out in a second."""
    import pyarrow as pa

    from trellis.api.query import Query

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


def duration_text(seconds: Fraction) -> str:
    """Return a time in the largest unit that it has two of."""
    for name, size in UNITS:
        number = seconds / Fraction(size)
        if number >= 2:
            return f"{short_number(number, 0)} {name}"
    return f"{float(seconds):.2g} seconds"
