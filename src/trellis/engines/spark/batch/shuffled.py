"""How often answers read events, and how often Spark shuffles each: what `explain` says of a plan on Spark."""

from __future__ import annotations

from dataclasses import replace

from trellis.engines.spark.batch.ranges import can_be_ranged
from trellis.engines.spark.split.split import copies
from trellis.events.clock import Clock
from trellis.language.bound import WindowKind
from trellis.language.schema import Type
from trellis.plan.plan import Plan


def reads(plan: Plan) -> str:
    """Return how often answers read the source."""
    if plan.bound.aggregates or can_be_ranged(plan.bound):
        return "count, counts, aggregate and write read the events once each"
    return "count, counts and aggregate read the events once each; write counts first and reads them twice"


def shuffles(plan: Plan, length: int) -> str:
    """Return how many times Spark shuffles an event, and why; `length` is that of a window batch."""
    inside = [name for name, _ in _inner_partition(plan)]
    counted = f"; to count, by `{'`, `'.join(inside)}`, in which all events of a match are equal" if inside else ""
    return _copies(plan, length) + counted


def _copies(plan: Plan, length: int) -> str:
    bound = plan.bound
    if bound.window.kind is not WindowKind.SLIDING:
        return "each event once"
    clock = Clock(bound.window, bound.known_schema.time_type)
    if not clock.overlaps:
        return "each event once: windows do not overlap"
    held = float(clock.size) / float(clock.slide)
    return (
        f"each event {copies(clock, length):.2f} times, though it lies in {held:,.4g} windows: "
        f"{length:,} windows that follow one another share their events"
    )


def _inner_partition(plan: Plan) -> tuple[tuple[str, Type], ...]:
    """Return the columns in which all events of a match are equal, though the query does not say it in brackets."""
    if plan.sequence is None or plan.bound.after_match is not None:  # which goes over the whole partition
        return ()
    return plan.sequence.partition


def partitioned_inside(plan: Plan) -> Plan:
    """Return a plan that counts with the columns in which all events of a match are equal as a partition.

    Tasks then share the events of a partition. The windows and partitions that are reported are those of the query.
    """
    inside = _inner_partition(plan)
    return replace(plan, bound=replace(plan.bound, partition=(*plan.bound.partition, *inside))) if inside else plan
