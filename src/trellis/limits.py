"""The bound on listing: refusal instead of explosion."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from trellis.errors import ListingRefused
from trellis.language.bound import BoundQuery

DEFAULT_MAX_TRENDS = 100_000_000


def refuse_listing(bound: BoundQuery, counts: Sequence[int], max_trends: int) -> None:
    """Raise `ListingRefused` where listing groups of these sizes would give more results than the bound allows.

    ORDER BY with a LIMIT below the bound is not refused, but goes through all results: a warning says so where they
    are more than the bound.
    """
    from trellis.trends.arrange import result_size

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


def number_text(number: int) -> str:
    """Return a number with all its digits, and its size where they are many."""
    from trellis.trends.numbers import digits_of

    if number < 10**15:
        return f"{number:,}"
    digits = digits_of(number)
    exponent = len(digits) - 1
    return (
        f"{digits} (about {digits[0]}.{digits[1:3]}e{exponent})"
        if exponent < 60
        else (f"about {digits[0]}.{digits[1:3]}e{exponent}")
    )
