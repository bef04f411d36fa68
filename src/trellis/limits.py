"""The bound on listing: refusal instead of explosion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trellis.digits import number_text
from trellis.errors import ListingRefused, warn
from trellis.language.bound import BoundQuery, Output, OutputKind
from trellis.language.syntax import Which

DEFAULT_MAX_TRENDS = 100_000_000


def result_size(bound: BoundQuery, counts: Iterable[int]) -> int:
    """Return the number of rows that LIMIT and OFFSET leave of groups of these sizes; they must not be PER item."""

    def left(count: int) -> int:
        rest = max(0, count - bound.offset)
        return rest if bound.limit is None else min(rest, bound.limit)

    return sum(left(c) for c in counts) if bound.per_window else left(sum(counts))


def may_refuse(bound: BoundQuery, groups: int, max_trends: int) -> bool:
    """Return whether it takes the counts of so many groups to know that `refuse_listing` has nothing to say."""
    if bound.limit is None or bound.limit_per or bound.limit * (groups if bound.per_window else 1) > max_trends:
        return True
    return bool(bound.order_by) and _is_of_one(bound) and not can_be_searched(bound)


def refuse_listing(bound: BoundQuery, counts: Sequence[int], max_trends: int) -> None:
    """Raise `ListingRefused` where listing groups of these sizes would give more results than the bound allows.

    ORDER BY with a LIMIT below the bound is not refused, even if its keys are such that it has to go through all
    results: a warning says so where they are more than the bound.
    """
    refuse_rows(sum(counts) if bound.limit_per else result_size(bound, counts), max_trends)
    if bound.order_by and _is_of_one(bound) and not can_be_searched(bound):
        warn_of_all(sum(counts), max_trends)


def _is_of_one(bound: BoundQuery) -> bool:
    """Return whether a pattern has one variable; the operators of others warn themselves."""
    return sum(not variable.absent for variable in bound.variables) == 1


def warn_of_all(results: int, max_trends: int) -> None:
    """Warn that ORDER BY goes through all results, if these are more than the bound on listing."""
    if results > max_trends:
        warn(f"ORDER BY goes through all {number_text(results)} results, which may take long")


def can_be_searched(bound: BoundQuery) -> bool:
    """Return whether the first results by the keys of ORDER BY can be found without the others, as far as these tell.

    The keys must add up along a trend (its length, a sum), or be attributes of its first, last or n-th event, or the
    gain from the first to the last; the first key may be any arithmetic of both ends (`is_of_ends`). A mean, or a least
    or greatest value can only be the last key, the latter also the first. Values can prevent it all the same: infinite
    ones, or very many trends that are equal by a sum of doubles, which is rounded, before another key.
    """
    keys = [o.output for o in bound.order_by if o.output.kind is not OutputKind.CONSTANT]
    of_ends = bool(keys) and is_of_ends(keys[0]) and all(map(_adds_up, keys[1:-1]))
    return (of_ends and (len(keys) == 1 or _adds_up(keys[-1]) or is_extreme(keys[-1]))) or adds_up(bound)


def adds_up(bound: BoundQuery) -> bool:
    """Return whether the keys of ORDER BY can be searched on a graph, as far as they tell."""
    keys = [o.output for o in bound.order_by if o.output.kind is not OutputKind.CONSTANT]
    while len(keys) > 1 and is_extreme(keys[0]):
        keys = keys[1:]
    return all(map(_adds_up, keys[:-1])) and all(_adds_up(k) or k.function in ("MIN", "MAX", "AVG") for k in keys[-1:])


def is_extreme(output: Output) -> bool:
    """Return whether an item is the least or greatest value of a trend."""
    return output.kind is OutputKind.AGGREGATE and output.function in ("MIN", "MAX")


def _adds_up(output: Output) -> bool:
    if output.kind is OutputKind.EXPRESSION:
        ends = {a.column.which for a in output.arguments if a.kind is OutputKind.ATTRIBUTE and a.column is not None}
        return output.function == "-" and ends == {Which.FIRST, Which.LAST}
    return output.kind in (OutputKind.LENGTH, OutputKind.ATTRIBUTE) or output.function in ("SUM", "COUNT")


def is_of_ends(output: Output) -> bool:
    """Return whether an item is computed of attributes of the first event and one of the last, which it goes with.

    That is arithmetic in which the last event's attribute stands once, and divides only by itself.
    """
    return _lasts_in(output) == 1


def _lasts_in(output: Output) -> int | None:
    """Return how often an attribute of the last event stands in an item; None where anything else does."""
    if output.kind is OutputKind.CONSTANT:
        return 0
    if output.kind is OutputKind.ATTRIBUTE and output.column is not None and not output.list:
        if output.column.which is Which.LAST:
            return 1
        return 0 if output.column.which is Which.FIRST or output.column.nth == 1 else None
    if output.kind is not OutputKind.EXPRESSION or output.function not in ("+", "-", "*", "/", "negative"):
        return None
    found = [_lasts_in(argument) for argument in output.arguments]
    if output.function == "/" and found[1] and output.arguments[1].kind is not OutputKind.ATTRIBUTE:
        return None
    return None if None in found else sum(number or 0 for number in found)


def refuse_rows(rows: int, max_trends: int) -> None:
    """Raise `ListingRefused` where so many rows are requested and the bound does not allow it."""
    if rows <= max_trends:
        return
    raise ListingRefused(
        f"the query has {number_text(rows)} results, more than the bound of {max_trends:,} on listing",
        "Count them (trellis count, trends.count(), AGGREGATE), list some (LIMIT, HAVING, a shorter WITHIN, "
        "REPORT maximal), or raise max_trends (--max-trends).",
        rows,
    )
