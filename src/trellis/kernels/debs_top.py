"""The k best of many rows whose scores keep changing, in two tiers: few that may be among the best, and the rest.

The *tier* holds all rows whose score is at least a threshold, unsorted. The k best are kept in order; when one of them
falls, they are chosen anew from the tier alone. A histogram of the scores tells which threshold makes a tier of the
right size, so that it is seldom made anew. (GraphCEP moves its threshold in steps of 5, and keeps the tier sorted.)

A row is called by a number, from which `numbers[BASE]` is taken away to find it.
"""

from __future__ import annotations

from trellis.kernels.debs_lines import RUN_NUMBERS
from trellis.kernels.debs_tables import lean

# The first columns of rows; the user's own follow.
SCORE, LIVE_AT, TIER_AT, IS_TOP, NEWER, NEWER_TOO, ROW_ID, LABEL, LABEL_SIZE, OWN_COLUMNS = range(10)
# The single numbers, after those of `debs_lines`; the user's own follow.
BASE, LABEL_BASE, K, LIVE, TIER, THRESHOLD, TIER_MOST, TOP, STALE, OWN_NUMBERS = (RUN_NUMBERS + i for i in range(10))

SCORES = 4096  # of the histogram; larger ones share the last place


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
def enter(rows, numbers, live, tier, scores, row, score):
    """Let a row take part, with a score above 0."""
    at = row - numbers[BASE]
    rows[at, SCORE] = score
    rows[at, LIVE_AT] = numbers[LIVE]
    rows[at, TIER_AT] = -1
    rows[at, IS_TOP] = 0
    live[numbers[LIVE]] = row
    numbers[LIVE] += 1
    scores[min(score, SCORES - 1)] += 1
    if score >= numbers[THRESHOLD]:
        _join_tier(rows, numbers, tier, row)


@lean
def change(rows, numbers, tier, scores, row, by):
    """Change the score of a row that takes part, and return the new one; who falls among the best makes them stale."""
    at = row - numbers[BASE]
    score = rows[at, SCORE]
    scores[min(score, SCORES - 1)] -= 1
    score += by
    scores[min(score, SCORES - 1)] += 1
    rows[at, SCORE] = score
    if rows[at, TIER_AT] >= 0:
        if score < numbers[THRESHOLD]:
            _quit_tier(rows, numbers, tier, row)
        if by < 0 and rows[at, IS_TOP]:
            numbers[STALE] = 1
    elif score >= numbers[THRESHOLD]:
        _join_tier(rows, numbers, tier, row)
    return score


@lean
def leave(rows, numbers, live, tier, scores, top, row):
    """Take a row out."""
    at = row - numbers[BASE]
    scores[min(rows[at, SCORE], SCORES - 1)] -= 1
    numbers[LIVE] -= 1
    last = live[numbers[LIVE]]
    live[rows[at, LIVE_AT]] = last
    rows[last - numbers[BASE], LIVE_AT] = rows[at, LIVE_AT]
    if rows[at, TIER_AT] >= 0:
        _quit_tier(rows, numbers, tier, row)
    if rows[at, IS_TOP]:
        numbers[TOP] -= 1
        found = 0
        for place in range(numbers[TOP]):
            found += top[place] == row
            top[place] = top[place + found]
        numbers[STALE] = 1


@lean
def _make_tier(rows, numbers, live, tier, scores):
    """Choose the threshold anew, as high as a tier of the wished size allows."""
    for i in range(numbers[TIER]):
        rows[tier[i] - numbers[BASE], TIER_AT] = -1
    numbers[TIER] = 0
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
def _offer(rows, labels, numbers, top, row):
    """Put a row that is not among the best among them, if it belongs there."""
    if numbers[TOP] < numbers[K]:
        numbers[TOP] += 1
    elif _goes_before(rows, labels, numbers, row, top[numbers[TOP] - 1]):
        rows[top[numbers[TOP] - 1] - numbers[BASE], IS_TOP] = 0
    else:
        return
    top[numbers[TOP] - 1] = row
    rows[row - numbers[BASE], IS_TOP] = 1
    _lift(rows, labels, numbers, top, numbers[TOP] - 1)


@lean
def rise(rows, labels, numbers, top, row):
    """Put a row whose score has grown in its place among the best; nothing to do while they are stale."""
    if numbers[STALE]:
        return
    if not rows[row - numbers[BASE], IS_TOP]:
        _offer(rows, labels, numbers, top, row)
        return
    for place in range(numbers[TOP]):
        if top[place] == row:
            _lift(rows, labels, numbers, top, place)
            return


@lean
def settle(rows, labels, numbers, live, tier, scores, top):
    """Choose the best anew if they are stale."""
    short = numbers[TIER] < min(numbers[K], numbers[LIVE])
    if short or numbers[TIER] > numbers[TIER_MOST]:
        _make_tier(rows, numbers, live, tier, scores)
    if not numbers[STALE]:
        return
    for place in range(numbers[TOP]):
        rows[top[place] - numbers[BASE], IS_TOP] = 0
    numbers[TOP] = 0
    for i in range(numbers[TIER]):
        _offer(rows, labels, numbers, top, tier[i])
    numbers[STALE] = 0
