"""REPORT, HAVING and rank: which trends are results, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trellis.language.syntax import Report

from .readings import Cut, Pairs


def reported(trends: Sequence[tuple[Pairs, Cut]], mode: Report) -> list[tuple[Pairs, Cut]]:
    """Keep the trends of one window and partition that the mode reports; `trends` must be all of them.

    Only pairs are compared, not the iterations into which they are cut.
    """
    if mode is Report.ANY:
        return list(trends)
    different = [*dict.fromkeys(pairs for pairs, _ in trends)]
    kept = {*(maximal(different) if mode is Report.MAXIMAL else unextendable(different))}
    return [(pairs, cut) for pairs, cut in trends if pairs in kept]


def maximal(trends: Sequence[Pairs]) -> list[Pairs]:
    """Keep the trends whose pairs are not all in another, longer trend.

    Both are sorted by (time, event id), so a trend that has all the pairs has them in order.
    """
    holders: dict[tuple, int] = {}  # pair -> the trends that have it, as the bits of a number
    for i, trend in enumerate(trends):
        for pair in trend:
            holders[pair] = holders.get(pair, 0) | 1 << i
    kept = []
    for i, trend in enumerate(trends):
        containing = -1
        for pair in trend:
            containing &= holders[pair]
        if containing == 1 << i:
            kept.append(trend)
    return kept


def unextendable(trends: Sequence[Pairs]) -> list[Pairs]:
    """Keep the trends that are not the end or the beginning of a longer one.

    What is put before the first event must be earlier than it, what is put after the last must be later.
    """
    extendable = set()
    for longer in trends:
        for cut in range(1, len(longer)):
            if longer[cut - 1][0].tick < longer[cut][0].tick:
                extendable.add(longer[:cut])
                extendable.add(longer[cut:])
    return [trend for trend in trends if trend not in extendable]


def ranked(trends: Iterable[tuple[Pairs, Cut]], variables: Sequence[str]) -> list[tuple[Pairs, Cut]]:
    """Order by the events, a prefix first, then by the variables in the order of the pattern, then by iterations."""

    def key(trend: tuple[Pairs, Cut]) -> tuple:
        pairs, cut = trend
        return (
            tuple(event.order for event, _ in pairs),
            tuple(variables.index(var) for _, var in pairs),
            cut,
        )

    return sorted(trends, key=key)
