"""DEBS 2016, query 1: the posts with the largest scores, event by event, over lines of posts and of comments.

Every item, a post or a comment, is worth 10 and loses 1 per day for ten days. So items lose their n-th points in the
order in which they came, and ten cursors over the log of arrivals replace a timetable of time-outs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.papers.debs2016.lines import (
    COMMENT,
    DAY,
    DONE,
    EAGER,
    FULL,
    ID,
    LINES_OUT,
    NEVER,
    NEWLINE,
    OUT,
    OUT_STAMP,
    PARENT,
    PARENT_IS_POST,
    POST,
    READ,
    ROOM,
    STAMP,
    TAKEN,
    TEXT,
    TEXT_SIZE,
    TIME,
    TIME_SIZE,
    USER,
    WAITS,
    WRITTEN,
    next_source,
    read_next,
    write_number,
    write_time,
)
from trellis.kernels.papers.debs2016.tables import FREE, copy_bytes, drop_pair, find, find_pair, lean, put, put_pair
from trellis.kernels.papers.debs2016.top import (
    LABEL,
    LABEL_SIZE,
    LOOK,
    NEWER,
    NEWER_TOO,
    OWN_COLUMNS,
    OWN_NUMBERS,
    ROW_ID,
    SCORE,
    TIER_AT,
    TOP,
    K,
    enter,
    gain,
    leave,
    lose,
    rise,
    settle,
)

# A post, beside the columns of `top`: its author, its name in the store of names, its live commenters.
AUTHOR, NAME, NAME_SIZE, COMMENTERS, POST_COLUMNS = (OWN_COLUMNS + i for i in range(5))
AT, OF_POST, BY, ITEM_COLUMNS = 0, 1, 2, 3  # an item: its time, the slot of its post, the user, if that is a commenter
NOBODY = -(2**63)  # of an item whose user is not a commenter: the post itself, or a comment of the author's
GONE = np.int64(-1)  # in place of the slot of a post that has died

# The single numbers, after those of `top`.
(
    CHANGES, NEXT_DUE, POSTS, FREE_SLOT, ITEMS, FIRST_ITEM, NAMES, LONGEST, SHOWN, POST_IDS, COMMENT_IDS, PAIRS,
    UNKNOWN_POSTS, UNKNOWN_COMMENTS, REPEATED_POSTS, TO_DEAD_POSTS, NUMBERS,
) = (OWN_NUMBERS + i for i in range(17))  # fmt: skip
EXACT, DEATHS, EVENTS = 0, 1, 2  # what CHANGES may be
POINTS = 10
_ONE = np.uint64(1)


class PostState(NamedTuple):
    """All that query 1 knows: see the page of the package, and `trellis.papers.debs2016.posts` for how it grows."""

    numbers: np.ndarray  # int64 (NUMBERS,)
    posts: np.ndarray  # int64 (room, POST_COLUMNS)
    items: np.ndarray  # int64 (room, ITEM_COLUMNS)
    cursors: np.ndarray  # int64 (POINTS,)
    due: np.ndarray  # int64 (POINTS,)
    live: np.ndarray  # int64 (room,)
    tier: np.ndarray  # int64 (room,)
    scores: np.ndarray  # int64 (SCORES,)
    top: np.ndarray  # int64 (k + SPARE,)
    shown: np.ndarray  # int64 (k,)
    post_ids: np.ndarray  # int64 (power of two, 2)
    comment_ids: np.ndarray  # int64 (power of two, 2)
    pairs: np.ndarray  # int64 (power of two, 3)
    names: np.ndarray  # uint8 (room,)


@lean
def run_posts(posts_data, comments_data, feed, state, out):
    """Go on through the lines of two sources, in the order of time, until something is needed.

    Parameters
    ----------
    posts_data, comments_data : uint8 (bytes,)
        Whole lines.
    feed : LineFeed
        Where each source is read; a promise of `NEVER` says that no line will come any more.
    state : PostState
        What the query knows.
    out : uint8 (room,)
        Where lines are written, from `state.numbers[OUT]` on.

    Returns
    -------
    int
        Why it returns: see the constants of `lines`.
    """
    while True:
        read_next(posts_data, 0, POST, feed, state.numbers)
        read_next(comments_data, 1, COMMENT, feed, state.numbers)
        longest = max(state.numbers[LONGEST], feed.events[0, TEXT_SIZE])
        if out.shape[0] - state.numbers[OUT] < TIME_SIZE + 1 + state.numbers[K] * (64 + longest):
            return FULL
        source, time, other = next_source(feed.events, feed.promises)
        if other >= 0:
            return WAITS + other
        if source >= 0 and _is_bad(source, feed.events[source], state.numbers, state.post_ids, state.comment_ids):
            feed.events[source, READ] = 0
            feed.sources[source, TAKEN] = time
            continue

        if state.numbers[NEXT_DUE] <= time:
            if time == NEVER and (state.numbers[NEXT_DUE] == NEVER or state.numbers[CHANGES] == EVENTS):
                return DONE
            time = _age(time, state)
            if time == NEVER:
                continue
        else:
            if _is_full(state, feed.events[0, TEXT_SIZE]):
                return ROOM
            if source == 0:
                _take_post(posts_data, feed.events[0], state)
            else:
                _take_comment(feed.events[1], state)
            feed.events[source, READ] = 0
            feed.sources[source, TAKEN] = time
        settle(state.posts, state.names, state.numbers, state.live, state.tier, state.scores, state.top)
        if _differs(state.numbers, state.posts, state.top, state.shown):
            _write_line(time, state.numbers, state.posts, state.top, state.shown, state.names, out)
            state.numbers[OUT_STAMP] = feed.events[source, STAMP] if source >= 0 else 0
            if state.numbers[EAGER]:
                return WRITTEN


@lean
def _is_full(state, name_size):
    """Whether one more event might not find room."""
    return (
        (state.numbers[POSTS] >= state.posts.shape[0] and state.numbers[FREE_SLOT] < 0)
        or state.numbers[ITEMS] >= state.items.shape[0]
        or 10 * state.numbers[POST_IDS] >= 7 * state.post_ids.shape[0]
        or 10 * state.numbers[COMMENT_IDS] >= 7 * state.comment_ids.shape[0]
        or 10 * state.numbers[PAIRS] >= 7 * state.pairs.shape[0]
        or state.numbers[NAMES] + name_size > state.names.shape[0]
    )


@lean
def _is_bad(source, event, numbers, post_ids, comment_ids):
    """Whether an event cannot be used, and is to be left out as if it were not there; it is counted."""
    if source == 0:
        repeated = find(post_ids, event[ID]) != FREE
        numbers[REPEATED_POSTS] += repeated
        return repeated
    post = event[PARENT]
    if not event[PARENT_IS_POST]:
        post = find(comment_ids, event[PARENT])
        if post == FREE:
            numbers[UNKNOWN_COMMENTS] += 1
            return True
    unknown = find(post_ids, post) == FREE
    numbers[UNKNOWN_POSTS] += unknown
    return unknown


@lean
def _log(numbers, items, due, time, slot, user):
    """Put an item into the log; whose cursor waits for it, that waits until the item loses its point."""
    items[numbers[ITEMS], AT] = time
    items[numbers[ITEMS], OF_POST] = slot
    items[numbers[ITEMS], BY] = user
    numbers[ITEMS] += 1
    for n in range(POINTS):
        if due[n] == NEVER:
            due[n] = time + (n + 1) * DAY
            numbers[NEXT_DUE] = min(numbers[NEXT_DUE], due[n])


@lean
def _take_post(data, event, state):
    slot = state.numbers[FREE_SLOT]
    if slot >= 0:
        state.numbers[FREE_SLOT] = state.posts[slot, AUTHOR]
    else:
        slot = state.numbers[POSTS]
        state.numbers[POSTS] += 1
    state.numbers[POST_IDS] += put(state.post_ids, event[ID], slot)
    size = event[TEXT_SIZE]
    state.posts[slot, NEWER] = event[TIME]
    state.posts[slot, NEWER_TOO] = -NEVER
    state.posts[slot, ROW_ID] = event[ID]
    state.posts[slot, LABEL] = 0
    state.posts[slot, LABEL_SIZE] = 0
    state.posts[slot, AUTHOR] = event[USER]
    state.posts[slot, NAME] = state.numbers[NAMES]
    state.posts[slot, NAME_SIZE] = size
    state.posts[slot, COMMENTERS] = 0
    state.numbers[NAMES] = copy_bytes(data, event[TEXT], size, state.names, state.numbers[NAMES])
    state.numbers[LONGEST] = max(state.numbers[LONGEST], size)
    _log(state.numbers, state.items, state.due, event[TIME], slot, NOBODY)
    enter(state.posts, state.numbers, state.live, state.tier, slot, POINTS)
    rise(state.posts, state.names, state.numbers, state.top, slot)


@lean
def _take_comment(event, state):
    post = event[PARENT] if event[PARENT_IS_POST] else find(state.comment_ids, event[PARENT])
    slot = find(state.post_ids, post)
    state.numbers[COMMENT_IDS] += put(state.comment_ids, event[ID], post)
    if slot == GONE:
        state.numbers[TO_DEAD_POSTS] += 1
        return
    user = event[USER]
    if user == state.posts[slot, AUTHOR]:
        user = NOBODY
    else:
        known = find_pair(state.pairs, slot, user)
        if known == FREE:
            known = 0
            state.numbers[PAIRS] += 1
            state.posts[slot, COMMENTERS] += 1
        put_pair(state.pairs, slot, user, known + 1)
    state.posts[slot, NEWER_TOO] = event[TIME]
    _log(state.numbers, state.items, state.due, event[TIME], slot, user)
    gain(state.posts, state.numbers, state.tier, slot, POINTS)
    rise(state.posts, state.names, state.numbers, state.top, slot)


@lean
def _age(time, state):
    """Let items lose the points that are due up to a time.

    Returns
    -------
    int
        An instant before that time at which the best are to be looked at, and there is more to lose; or `NEVER`. At
        the time itself there comes an event, and one line for both.
    """
    first, number = state.numbers[FIRST_ITEM], state.numbers[ITEMS]
    while state.numbers[NEXT_DUE] <= time and state.numbers[NEXT_DUE] != NEVER:
        instant, next_due, died = state.numbers[NEXT_DUE], NEVER, False
        for n in range(POINTS):
            while state.due[n] == instant:
                item = np.uint64(state.cursors[n] - first)
                slot = np.uint64(state.items[item, OF_POST])
                score = state.posts[slot, SCORE] = state.posts[slot, SCORE] - 1
                if state.posts[slot, TIER_AT] >= 0:
                    lose(state.posts, state.names, state.numbers, state.tier, state.top, np.int64(slot))
                state.cursors[n] += 1
                item += _ONE
                state.due[n] = state.items[item, AT] + (n + 1) * DAY if item < np.uint64(number) else NEVER
                if n == POINTS - 1:
                    user = state.items[item - _ONE, BY]
                    if user != NOBODY:
                        _forget_comment(state.numbers, state.posts, state.pairs, np.int64(slot), user)
                    if score == 0:
                        _die(state, np.int64(slot))
                        died = True
            next_due = min(next_due, state.due[n])
        state.numbers[NEXT_DUE] = next_due
        looks = state.numbers[LOOK] if state.numbers[CHANGES] == EXACT else state.numbers[CHANGES] == DEATHS and died
        if looks and instant < time:
            return instant
    return NEVER


@lean
def _forget_comment(numbers, posts, pairs, slot, user):
    """Count one live comment of a user less."""
    known = find_pair(pairs, slot, user)
    if known > 1:
        put_pair(pairs, slot, user, known - 1)
    else:
        drop_pair(pairs, slot, user)
        numbers[PAIRS] -= 1
        posts[slot, COMMENTERS] -= 1


@lean
def _die(state, slot):
    leave(state.posts, state.numbers, state.live, state.tier, state.top, slot)
    put(state.post_ids, state.posts[slot, ROW_ID], GONE)
    state.posts[slot, AUTHOR] = state.numbers[FREE_SLOT]  # the free slots are a list
    state.numbers[FREE_SLOT] = slot


@lean
def _differs(numbers, posts, top, shown):
    """Whether the best are not those that were shown last."""
    number = min(numbers[TOP], numbers[K])
    if number != numbers[SHOWN]:
        return True
    for place in range(number):  # noqa: SIM110 (Numba has no any())
        if posts[top[place], ROW_ID] != shown[place]:
            return True
    return False


@lean
def _write_line(time, numbers, posts, top, shown, names, out):
    at = write_time(out, numbers[OUT], time)
    for place in range(numbers[K]):
        if place < numbers[TOP]:
            slot = top[place]
            out[at] = 44
            at = write_number(out, at + 1, posts[slot, ROW_ID])
            out[at] = 44
            at = copy_bytes(names, posts[slot, NAME], posts[slot, NAME_SIZE], out, at + 1)
            out[at] = 44
            at = write_number(out, at + 1, posts[slot, SCORE])
            out[at] = 44
            at = write_number(out, at + 1, posts[slot, COMMENTERS])
            shown[place] = posts[slot, ROW_ID]
        else:
            for _ in range(4):
                out[at] = 44
                out[at + 1] = 45
                at += 2
    numbers[SHOWN] = min(numbers[TOP], numbers[K])
    out[at] = NEWLINE
    numbers[OUT] = at + 1
    numbers[LINES_OUT] += 1


@lean
def pack_names(posts, live, number, names, packed):
    """Copy the names of live posts to another store; return its size."""
    at = 0
    for i in range(number):
        slot = live[i]
        end = copy_bytes(names, posts[slot, NAME], posts[slot, NAME_SIZE], packed, at)
        posts[slot, NAME] = at
        at = end
    return at
