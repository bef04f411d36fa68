"""The bound on listing: refusal instead of explosion."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

from trellis.digits import number_text
from trellis.errors import ListingRefused
from trellis.language.bound import BoundQuery

DEFAULT_MAX_TRENDS = 100_000_000


def result_size(bound: BoundQuery, counts: Iterable[int]) -> int:
    """Return the number of rows that LIMIT and OFFSET leave of groups of these sizes."""

    def left(count: int) -> int:
        rest = max(0, count - bound.offset)
        return rest if bound.limit is None else min(rest, bound.limit)

    return sum(left(c) for c in counts) if bound.per_window else left(sum(counts))


def refuse_listing(bound: BoundQuery, counts: Sequence[int], max_trends: int) -> None:
    """Raise `ListingRefused` where listing groups of these sizes would give more results than the bound allows.

    ORDER BY with a LIMIT below the bound is not refused, but goes through all results: a warning says so where they
    are more than the bound.
    """
    rows = result_size(bound, counts)
    if rows <= max_trends:
        total = sum(counts)
        if bound.order_by and total > max_trends:
            warnings.warn(f"ORDER BY goes through all {number_text(total)} results, which may take long", stacklevel=4)
        return
    raise ListingRefused(
        f"the query has {number_text(rows)} results, more than the bound of {max_trends:,} on listing",
        "Count them (trellis count, trends.count(), AGGREGATE), list some (LIMIT, HAVING, a shorter WITHIN, "
        "REPORT maximal), or raise max_trends.",
        rows,
    )
