"""The picture `through`: each event of a partition, by the share of trends that pass through it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from trellis.arguments import whole_number
from trellis.errors import ListingRefused, UsageError, did_you_mean
from trellis.operators.trends.unrank import sampled_ranks
from trellis.report.parts import MOST_EVENTS, check_column, measure_of
from trellis.report.style import QUIET, plotly, styled
from trellis.results.display import exact_values, number, python_values, value_text
from trellis.results.named import lead_rows
from trellis.results.rows import lead_schema
from trellis.results.trend import IDS

MOST_TRENDS = 10_000
EXACT = 1 << 53  # numbers from here on are no numbers to a browser
LARGEST = 26  # pixels of the event through which most trends pass


@dataclass(frozen=True)
class Passing:
    """The events of a partition that trends pass through.

    Parameters
    ----------
    events
        One row per event.
    counts
        The trends through each of them, of those that were looked at.
    looked_at
        How many trends were looked at.
    total
        How many trends the partition has, in all windows.
    """

    events: pa.Table
    counts: list[int]
    looked_at: int
    total: int


def passing(results: Any, partition: Mapping[str, Any] | None, most: int) -> Passing | None:
    """Return the events that the trends of a partition pass through; None where it has no trend.

    All trends are looked at where there are no more than `most`. More are counted PER EVENT, without a list; only where
    events have no ids, or nothing but a list tells the numbers, a sample of `most` is looked at.
    """
    bound = results.plan.bound
    names = [name for name, _ in bound.partition]
    counts = results.counts().to_arrow()
    if not counts.num_rows:
        return None
    lead = [field.name for field in lead_schema(bound)]
    rows = lead_rows(counts.select(lead)) if lead else [{}] * counts.num_rows
    shown = [dict(zip(names, row, strict=True)) for row in zip(*(python_values(counts[n]) for n in names), strict=True)]
    shown = shown or [{}] * len(rows)
    if partition is not None and not isinstance(partition, Mapping):
        raise UsageError(f"partition is {partition!r}", "Give its values by name: partition={'account': 'A'}.")
    wanted = shown[0] if partition is None else dict(partition)
    for name in wanted:
        if name not in names:
            raise UsageError(f"`{name}` is not in the partition of the query", did_you_mean(name, names, None))
    mine = [place for place, row in enumerate(shown) if all(repr(row[n]) == repr(v) for n, v in wanted.items())]
    sizes = [exact_values(counts, "count")[place] for place in mine]
    if not sizes:
        return None
    total = sum(sizes)
    if total > most and bound.schema.event_id is not None:
        with suppress(ListingRefused):
            return _counted(results, shown[mine[0]], total)
    picks = (
        {place: list(range(size)) for place, size in enumerate(sizes)}
        if total <= most
        else sampled_ranks(sizes, most, seed=0)
    )
    found = results.picked_events({results.group_of(rows[mine[place]]): list(ranks) for place, ranks in picks.items()})
    first: dict[str, int] = {}
    through: list[int] = []
    order: list[int] = []
    for row, name in enumerate(map(repr, python_values(found[IDS]))):
        if name not in first:
            first[name] = len(through)
            through.append(0)
            order.append(row)
        through[first[name]] += 1
    return Passing(found.take(pa.array(order, pa.int64())), through, min(total, most), total)


def _counted(results: Any, partition: Mapping[str, Any], total: int) -> Passing:
    """Return the events of a partition with the exact numbers of trends through them, however large."""
    rows = results.per_event("count(*)").to_arrow()
    names = [*partition]
    own = zip(*(python_values(rows[name]) for name in names), strict=True) if names else [()] * rows.num_rows
    wanted = tuple(map(repr, partition.values()))
    counts: dict[str, int] = {}
    for values, event, count in zip(own, python_values(rows["event"]), exact_values(rows, "count"), strict=True):
        if tuple(map(repr, values)) == wanted:
            counts[repr(event)] = counts.get(repr(event), 0) + int(count)
    events = results.partition_events(partition, MOST_EVENTS)
    ids = events[results.plan.bound.schema.event_id]
    keys = [*map(repr, python_values(ids))]
    places = [place for place, key in enumerate(keys) if key in counts]
    found = events.append_column(IDS, ids).take(pa.array(places, pa.int64()))
    return Passing(found, [counts[keys[place]] for place in places], total, total)


def through(
    results: Any, partition: Mapping[str, Any] | None = None, y: str | None = None, most: int = MOST_TRENDS
) -> Any:
    """Return the events of a partition over time, each sized and coloured by the share of trends through it.

    Parameters
    ----------
    results
        The results.
    partition
        The partition; by default the first one that has a trend.
    y
        The attribute that is drawn upwards; by default the first number that the conditions compare.
    most
        How many trends are listed to look at; more are counted, or, where that cannot be, a sample of so many is looked
        at, and the title says so.
    """
    go = plotly()
    name, time = y or measure_of(results), results.plan.bound.schema.time
    found = passing(results, partition, whole_number(most, "the number of trends"))
    figure = go.Figure()
    if found is None:
        return styled(figure, "no trends", time, name)
    check_column(found.events, name)
    values = {n: python_values(found.events[n])[0] for n, _ in results.plan.bound.partition}
    around = results.partition_events(values, MOST_EVENTS)
    figure.add_trace(
        go.Scatter(
            x=python_values(around[time]), y=python_values(around[name]), mode="markers", name="events",
            marker={"color": QUIET, "size": 5},
        )
    )  # fmt: skip
    shares = [count / found.looked_at for count in found.counts]
    labels = [
        f"{value_text(event)}: {number(count)} of {number(found.looked_at)}"
        for event, count in zip(python_values(found.events[IDS]), found.counts, strict=True)
    ]
    figure.add_trace(
        go.Scatter(
            x=python_values(found.events[time]), y=python_values(found.events[name]), mode="markers",
            name="share of trends", text=labels,
            customdata=[count if count < EXACT else str(count) for count in found.counts],
            hovertemplate="%{text}<extra></extra>",
            marker={
                "color": shares, "colorscale": "Cividis", "cmin": 0,
                "colorbar": {"title": "share", "tickformat": ".3~p"},
                "size": [6 + (LARGEST - 6) * (share / max(shares)) ** 0.5 for share in shares],
            },
        )
    )  # fmt: skip
    sample = "" if found.looked_at == found.total else f", by a sample of {number(found.looked_at)}"
    where = "".join(f"{n} = {value_text(v)}: " for n, v in values.items())
    return styled(
        figure, f"{where}share of {number(found.total)} trends that pass through each event{sample}", time, name
    )
