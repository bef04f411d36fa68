"""The k best of many rows whose scores keep changing, in two tiers: few that may be among the best, and the rest.

The *tier* holds all rows whose score is at least a threshold, unsorted. The best of it, the k and a few more, are kept
in order. One of them that falls moves down among them, and leaves them where others of the tier may be better; when
fewer than k are left, they are chosen anew from the tier alone. When that has become too small or too large, a
histogram of the scores tells the threshold of a better one. (GraphCEP moves its threshold in steps of 5, and keeps the
tier sorted.)

A row is called by a number, from which `numbers[BASE]` is taken away to find it.
"""

from __future__ import annotations

from trellis.kernels.papers.debs2016.lines import RUN_NUMBERS
from trellis.kernels.papers.debs2016.tables import lean

# The first columns of rows; the user's own follow.
SCORE, LIVE_AT, TIER_AT, IS_TOP, NEWER, NEWER_TOO, ROW_ID, LABEL, LABEL_SIZE, OWN_COLUMNS = range(10)
# The single numbers, after those of `lines`; the user's own follow.
BASE, LABEL_BASE, K, LIVE, TIER, THRESHOLD, TIER_MOST, TOP, LOOK, OWN_NUMBERS = (RUN_NUMBERS + i for i in range(10))

SCORES = 4096  # of the histogram; larger ones share the last place
SPARE = 8  # rows that are kept in order behind the k best


@lean
def _goes_before(rows, labels, numbers, a, b):
    """Whether a row is better: larger score, then smaller label, then newer, newer, larger id."""
    a -= numbers[BASE]
    b -= numbers[BASE]
    if rows[a, SCORE] != rows[b, SCORE]:
        return rows[a, SCORE] > rows[b, SCORE]
    size_a, size_b = rows[a, LABEL_SIZE], rows[b, LABEL_SIZE]
    at_a, at_b = rows[a, LABEL] - numbers[LABEL_BASE], rows[b, LABEL] - numbers[LABEL_BASE]
    for i in range(min(size_a, size_b)):
        if labels[at_a + i] != labels[at_b + i]:
            return labels[at_a + i] < labels[at_b + i]
    if size_a != size_b:
        return size_a < size_b
    if rows[a, NEWER] != rows[b, NEWER]:
        return rows[a, NEWER] > rows[b, NEWER]
    if rows[a, NEWER_TOO] != rows[b, NEWER_TOO]:
        return rows[a, NEWER_TOO] > rows[b, NEWER_TOO]
    if rows[a, ROW_ID] != rows[b, ROW_ID]:
        return rows[a, ROW_ID] > rows[b, ROW_ID]
    return a > b


@lean
def _join_tier(rows, numbers, tier, row):
    at = row - numbers[BASE]
    rows[at, TIER_AT] = numbers[TIER]
    tier[numbers[TIER]] = row
    numbers[TIER] += 1


@lean
def _quit_tier(rows, numbers, tier, row):
    at = rows[row - numbers[BASE], TIER_AT]
    numbers[TIER] -= 1
    last = tier[numbers[TIER]]
    tier[at] = last
    rows[last - numbers[BASE], TIER_AT] = at
    rows[row - numbers[BASE], TIER_AT] = -1


@lean
def enter(rows, numbers, live, tier, row, score):
    """Let a row take part, with a score above 0."""
    at = row - numbers[BASE]
    rows[at, SCORE] = score
    rows[at, LIVE_AT] = numbers[LIVE]
    rows[at, TIER_AT] = -1
    rows[at, IS_TOP] = 0
    live[numbers[LIVE]] = row
    numbers[LIVE] += 1
    if score >= numbers[THRESHOLD]:
        _join_tier(rows, numbers, tier, row)


@lean
def gain(rows, numbers, tier, row, by):
    """Raise the score of a row that takes part."""
    at = row - numbers[BASE]
    rows[at, SCORE] += by
    if rows[at, TIER_AT] < 0 and rows[at, SCORE] >= numbers[THRESHOLD]:
        _join_tier(rows, numbers, tier, row)


@lean
def _place_of(numbers, top, row):
    place = 0
    while top[place] != row:
        place += 1
    return place


@lean
def lose(rows, labels, numbers, tier, top, row):
    """Take note that the score of a row in the tier has become less; `LOOK` tells whether the k best may differ."""
    at = row - numbers[BASE]
    below = rows[at, SCORE] < numbers[THRESHOLD]
    if below:
        _quit_tier(rows, numbers, tier, row)
    if not rows[at, IS_TOP]:
        return
    place = was = _place_of(numbers, top, row)
    while place + 1 < numbers[TOP] and _goes_before(rows, labels, numbers, top[place + 1], row):
        top[place] = top[place + 1]
        place += 1
    top[place] = row
    if below or (place == numbers[TOP] - 1 and numbers[TIER] > numbers[TOP]):  # others may be better
        rows[at, IS_TOP] = 0
        numbers[TOP] -= 1
        place += 1
    if place != was and was < numbers[K]:
        numbers[LOOK] = 1


@lean
def leave(rows, numbers, live, tier, top, row):
    """Take a row out."""
    at = row - numbers[BASE]
    numbers[LIVE] -= 1
    last = live[numbers[LIVE]]
    live[rows[at, LIVE_AT]] = last
    rows[last - numbers[BASE], LIVE_AT] = rows[at, LIVE_AT]
    if rows[at, TIER_AT] >= 0:
        _quit_tier(rows, numbers, tier, row)
    if rows[at, IS_TOP]:
        place = _place_of(numbers, top, row)
        if place < numbers[K]:
            numbers[LOOK] = 1
        numbers[TOP] -= 1
        for i in range(place, numbers[TOP]):
            top[i] = top[i + 1]


@lean
def _make_tier(rows, numbers, live, tier, scores):
    """Choose the threshold anew, as high as a tier of the wished size allows."""
    for i in range(numbers[TIER]):
        rows[tier[i] - numbers[BASE], TIER_AT] = -1
    numbers[TIER] = 0
    for score in range(SCORES):
        scores[score] = 0
    for i in range(numbers[LIVE]):
        scores[min(rows[live[i] - numbers[BASE], SCORE], SCORES - 1)] += 1
    wished = min(4 * numbers[K] + 32, numbers[LIVE])
    threshold, above = SCORES - 1, scores[SCORES - 1]
    while above < wished:
        threshold -= 1
        above += scores[threshold]
    numbers[THRESHOLD] = max(threshold, 1)
    for i in range(numbers[LIVE]):
        if rows[live[i] - numbers[BASE], SCORE] >= numbers[THRESHOLD]:
            _join_tier(rows, numbers, tier, live[i])
    numbers[TIER_MOST] = max(4 * wished, 2 * numbers[TIER], 256)


@lean
def _lift(rows, labels, numbers, top, place):
    """Move one of the best up to its place."""
    while place > 0 and _goes_before(rows, labels, numbers, top[place], top[place - 1]):
        top[place], top[place - 1] = top[place - 1], top[place]
        place -= 1


@lean
def _insert(rows, labels, numbers, top, row):
    """Put a row at the end of the best, in place of the last one if they are full, and move it up."""
    if numbers[TOP] < numbers[K] + SPARE:
        numbers[TOP] += 1
    else:
        rows[top[numbers[TOP] - 1] - numbers[BASE], IS_TOP] = 0
    top[numbers[TOP] - 1] = row
    rows[row - numbers[BASE], IS_TOP] = 1
    _lift(rows, labels, numbers, top, numbers[TOP] - 1)


@lean
def rise(rows, labels, numbers, top, row):
    """Put a row whose score has grown in its place among the best."""
    at = row - numbers[BASE]
    if rows[at, IS_TOP]:
        _lift(rows, labels, numbers, top, _place_of(numbers, top, row))
    elif rows[at, TIER_AT] >= 0:
        best = numbers[TOP]
        above = best > 0 and _goes_before(rows, labels, numbers, row, top[best - 1])
        if above or (best == numbers[TIER] - 1 and best < numbers[K] + SPARE):  # or there is no other
            _insert(rows, labels, numbers, top, row)


@lean
def settle(rows, labels, numbers, live, tier, scores, top):
    """Choose the best anew if fewer are known than are shown."""
    numbers[LOOK] = 0
    least = min(numbers[K], numbers[LIVE])
    if numbers[TIER] < least or numbers[TIER] > numbers[TIER_MOST]:
        _make_tier(rows, numbers, live, tier, scores)
    if numbers[TOP] >= least:
        return
    for place in range(numbers[TOP]):
        rows[top[place] - numbers[BASE], IS_TOP] = 0
    numbers[TOP] = 0
    for i in range(numbers[TIER]):
        best = numbers[TOP]
        if best < numbers[K] + SPARE or _goes_before(rows, labels, numbers, tier[i], top[best - 1]):
            _insert(rows, labels, numbers, top, tier[i])
