"""Early results: those that newly arrived events complete, given at once where nothing later can undo them.

A match under skip-till-any stays one, whatever else comes, if no NOT is asked; and where every match is a result (of a
fixed sequence, and under REPORT any) it is one as soon as the last of its events has arrived. Each is found once, by
the latest of its events that is new: what is behind that was held before, what is before it may be any.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from trellis.errors import DataError, UsageError
from trellis.events.adjacency import meets_condition
from trellis.events.prepare import prepare
from trellis.events.slice import Slice
from trellis.events.sorting import column_of
from trellis.events.variables import usable_events
from trellis.language.bound import BoundQuery, WindowKind
from trellis.operators.batch import PathBatch
from trellis.operators.contract import ListRequest, NotComparable
from trellis.operators.patterns.newly import listed, parts_with_new, with_new
from trellis.operators.sequences.candidates import SequenceCandidates
from trellis.operators.sequences.operator import SequenceOperator
from trellis.operators.sequences.structure import SequenceStructure
from trellis.plan.layers import early_positions
from trellis.plan.plan import Plan
from trellis.results.numbers import count_columns
from trellis.results.rows import RowMaker
from trellis.streams.calendar import Calendar, Number
from trellis.streams.decisions import windows_schema
from trellis.streams.query import StandingQuery

NEW = "__arrived"
WATERMARK, EARLY = "watermark", "early"  # when results are given


def why_not_early(plan: Plan, in_order: bool) -> str | None:
    """Return why results cannot be given before a watermark decides them; None if they can.

    `in_order`: no event is earlier than one that came before, so that NOT between events is decided by the last.
    """
    bound, sequence = plan.bound, plan.sequence
    asked = refused_early(bound)
    if asked is not None:
        return f"{asked} needs all results of a window"
    if sequence is None:
        if not in_order and early_positions(plan) is not None:
            return None
        return "a later event can change its results: not so for fixed sequences, and under REPORT any without NOT"
    if sequence.absent[-1] or (any(sequence.absent) and not in_order):
        return "an event that NOT forbids may still come"
    return None


def refused_early(bound: BoundQuery) -> str | None:
    """Return the clause that asks for all results, if one does."""
    clauses = {
        "AGGREGATE": bool(bound.aggregates),
        "ORDER BY": bool(bound.order_by),
        "LIMIT": bound.limit is not None or bool(bound.offset),
        "AFTER MATCH": bound.after_match is not None,
    }
    return next((name for name, there in clauses.items() if there), None)


@dataclass(frozen=True)
class Completed:
    """The results that new events complete, in batches, and a row of `_windows` for each group with too many."""

    results: Iterator[pa.RecordBatch]
    unlisted: pa.Table | None


def may_complete(plan: Plan, new: pa.Table) -> bool:
    """Return whether one of the events, none of which is before others that are held, may be the last of a match."""
    if plan.sequence is None:
        return True
    last = plan.sequence.variables[-1]
    only = replace(plan.bound, variables=tuple(v for v in plan.bound.variables if v.name == last))
    columns = {name: column_of(new, name) for name in plan.columns}
    usable = usable_events(only, plan.constant, columns, new.num_rows)[last]
    for condition in plan.sequence.inferred:
        if condition.variables == (last,):
            usable = usable & meets_condition(condition, columns, usable)
    return bool(usable.any())


def completed(query: StandingQuery, held: pa.Table, since: Number | None, in_order: bool) -> Iterator[Completed]:
    """Yield the results with an event that is `NEW`, as the table of all events says.

    Parameters
    ----------
    query, held
        A query that is `early`, and all events that may be in its results.
    since
        The time up to which events may have been missed, as a number of the query's time line; None if none were.
    in_order
        Whether no new event is before one that was held.
    """
    plan = query.plan
    wide = replace(plan, columns=(*plan.columns, NEW))
    events = prepare(wide, held, query.on_bad_rows).events
    if since is not None:
        events = _seen(events, plan, since)
    new = events.columns[NEW].to_numpy(zero_copy_only=False)
    events = with_new(events, new)
    maker = RowMaker(plan, events)

    def made(matches: PathBatch) -> pa.RecordBatch:
        return maker.batch(matches.without_ranks())

    try:
        if plan.sequence is None:
            for part in parts_with_new(plan, events, new, in_order):
                results: Iterator[pa.RecordBatch] = map(made, listed(part, query.max_trends))
                yield Completed(results, _unlisted(maker, part.operator.counts, query.max_trends, part.first))
            return
        variables = plan.sequence.variables
        for place in [len(variables) - 1] if in_order else range(len(variables)):
            only = {variables[place]: new} | dict.fromkeys(variables[place + 1 :], ~new)
            leaves = SequenceCandidates.find(wide, plan.sequence, events, only=only)
            operator = SequenceOperator(plan, events, structure=SequenceStructure(plan, events, leaves=leaves))
            counts = operator.counts
            ranges = [(group, 0, count) for group, count in enumerate(counts) if 0 < count <= query.max_trends]
            results = operator.list(ListRequest(ranges, made)) if ranges else iter(())
            yield Completed(results, _unlisted(maker, counts, query.max_trends, 0))
    except NotComparable:
        raise DataError(
            "a number that a condition computes is too large for 64 bits", "Compare smaller numbers."
        ) from None


def _seen(events: Slice, plan: Plan, since: Number) -> Slice:
    """Return a slice without results for which events may have been missed."""
    if plan.bound.window.kind is WindowKind.SPAN:
        return replace(events, begins=events.times > since)
    groups = events.groups
    wanted = Calendar(plan.bound).line.clock.starts(groups.number) > since
    return replace(events, groups=type(groups)(groups.lo[wanted], groups.hi[wanted], groups.number[wanted]))


def _unlisted(maker: RowMaker, counts: list[int], most: int, first: int) -> pa.Table | None:
    """Return groups with more results as rows of `_windows`, from the `first` on; those of a span begin at no event."""
    many = np.array([group for group, count in enumerate(counts) if count > most], np.int64)
    if not len(many):
        return None
    schema, size = windows_schema(maker.bound), len(many)
    columns = [*maker.lead(many + first)]
    if maker.bound.window.kind is WindowKind.SPAN:
        columns += [pa.nulls(size, schema.field(name).type) for name in ("start_time", "event")]
    columns += [*count_columns([counts[group] for group in many.tolist()]), pa.repeat(False, size)]
    columns += [pa.repeat(0, size)] if len(columns) < len(schema) else []
    return pa.Table.from_arrays(columns, schema=schema)


def check_emit(emit: str, plan: Plan, on_bad_rows: str) -> str | None:
    """Return why the results of a query wait for the watermark although they are wanted early; None if they do not.

    Raises
    ------
    UsageError
        If `emit` is no such word, or the query asks for what early results cannot have.
    """
    if emit not in (WATERMARK, EARLY):
        raise UsageError(f"emit is `{emit}`", f"It is `{WATERMARK}` or `{EARLY}`.")
    if emit == WATERMARK:
        return None
    clause = refused_early(plan.bound)
    if clause is not None:
        raise UsageError(
            f"{clause} needs all results of a window, and early ones come before these are known",
            f"Leave it out, or leave out emit={EARLY} (--emit {EARLY}).",
        )
    if on_bad_rows != "error":
        raise UsageError(
            "of events with the same id it is not known which is the first while results are given early",
            f"Leave out on_bad_rows='{on_bad_rows}' (--on-bad-rows), or emit={EARLY} (--emit {EARLY}).",
        )
    return why_not_early(plan, in_order=False)
