"""The bound on listing: refusal instead of explosion."""

from __future__ import annotations

from trellis.errors import ListingRefused
from trellis.language.bound import BoundQuery

DEFAULT_MAX_TRENDS = 100_000_000


def refuse_listing(bound: BoundQuery, rows: int, max_trends: int) -> None:
    """Raise `ListingRefused` where listing would give (or, for ORDER BY, go through) more than the bound.

    Parameters
    ----------
    bound
        The query.
    rows
        The exact number of results.
    max_trends
        The bound.
    """
    if rows <= max_trends:
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
