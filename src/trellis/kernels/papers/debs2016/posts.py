"""DEBS 2016, query 1: the posts with the largest scores, event by event, over lines of posts and of comments.

Every item, a post or a comment, is worth 10 and loses 1 a day for ten days. So items lose their n-th points in the
order in which they came, and ten cursors over the log of arrivals replace a timetable of time-outs.
"""

from __future__ import annotations

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

# A post, beside the columns of `debs_top`: its author, its name in the store of names, its live commenters.
AUTHOR, NAME, NAME_SIZE, COMMENTERS, POST_COLUMNS = (OWN_COLUMNS + i for i in range(5))
AT, OF_POST, BY, ITEM_COLUMNS = 0, 1, 2, 3  # an item: its time, the slot of its post, the user, if that is a commenter
NOBODY = -(2**63)  # of an item whose user is no commenter: the post itself, or a comment of the author's
GONE = np.int64(-1)  # in place of the slot of a post that has died

# The single numbers, after those of `debs_top`.
(
    CHANGES, NEXT_DUE, POSTS, FREE_SLOT, ITEMS, FIRST_ITEM, NAMES, LONGEST, SHOWN, POST_IDS, COMMENT_IDS, PAIRS,
    UNKNOWN_POSTS, UNKNOWN_COMMENTS, REPEATED_POSTS, TO_DEAD_POSTS, NUMBERS,
) = (OWN_NUMBERS + i for i in range(17))  # fmt: skip
EXACT, DEATHS, EVENTS = 0, 1, 2  # what CHANGES may be
POINTS = 10
_ONE = np.uint64(1)


@lean
def run_posts(
    posts_data, comments_data, at, events, sources, promises, numbers, posts, items, cursors, due, live, tier, scores,
    top, shown, post_ids, comment_ids, pairs, names, bars, out,
):  # fmt: skip
    """Go on through the lines of two sources, in the order of time, until something is needed.

    Parameters
    ----------
    posts_data, comments_data
        Whole lines.
    at
        Where to go on in each.
    events, sources
        The next event of each, and what is counted of it: see `debs_lines`.
    promises
        A time of each before which no line will come any more; `NEVER`: none at all.
    numbers ... names
        The state: see `trellis.papers.debs2016.posts`.
    bars
        Seven numbers to write on.
    out
        Where lines are written, from `numbers[OUT]` on.

    Returns
    -------
    int
        Why it returns: see `debs_lines`.
    """
    while True:
        read_next(posts_data, at, 0, POST, events, sources, numbers, bars)
        read_next(comments_data, at, 1, COMMENT, events, sources, numbers, bars)
        longest = max(numbers[LONGEST], events[0, TEXT_SIZE])
        if out.shape[0] - numbers[OUT] < TIME_SIZE + 1 + numbers[K] * (64 + longest):
            return FULL
        source, time, other = next_source(events, promises)
        if other >= 0:
            return WAITS + other
        if source >= 0 and _is_bad(source, events[source], numbers, post_ids, comment_ids):
            events[source, READ] = 0
            sources[source, TAKEN] = time
            continue

        if numbers[NEXT_DUE] <= time:
            if time == NEVER and (numbers[NEXT_DUE] == NEVER or numbers[CHANGES] == EVENTS):
                return DONE
            time = _age(time, numbers, posts, items, cursors, due, live, tier, top, post_ids, pairs, names)
            if time == NEVER:
                continue
        else:
            if _is_full(numbers, posts, items, post_ids, comment_ids, pairs, names, events[0, TEXT_SIZE]):
                return ROOM
            if source == 0:
                _take_post(posts_data, events[0], numbers, posts, items, due, live, tier, top, post_ids, names)
            else:
                _take_comment(
                    events[1], numbers, posts, items, due, live, tier, top, post_ids, comment_ids, pairs, names
                )
            events[source, READ] = 0
            sources[source, TAKEN] = time
        settle(posts, names, numbers, live, tier, scores, top)
        if _differs(numbers, posts, top, shown):
            _write_line(time, numbers, posts, top, shown, names, out)
            numbers[OUT_STAMP] = events[source, STAMP] if source >= 0 else 0
            if numbers[EAGER]:
                return WRITTEN


@lean
def _is_full(numbers, posts, items, post_ids, comment_ids, pairs, names, name_size):
    """Whether one more event might not find room."""
    return (
        (numbers[POSTS] >= posts.shape[0] and numbers[FREE_SLOT] < 0)
        or numbers[ITEMS] >= items.shape[0]
        or 10 * numbers[POST_IDS] >= 7 * post_ids.shape[0]
        or 10 * numbers[COMMENT_IDS] >= 7 * comment_ids.shape[0]
        or 10 * numbers[PAIRS] >= 7 * pairs.shape[0]
        or numbers[NAMES] + name_size > names.shape[0]
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
def _take_post(data, event, numbers, posts, items, due, live, tier, top, post_ids, names):
    slot = numbers[FREE_SLOT]
    if slot >= 0:
        numbers[FREE_SLOT] = posts[slot, AUTHOR]
    else:
        slot = numbers[POSTS]
        numbers[POSTS] += 1
    numbers[POST_IDS] += put(post_ids, event[ID], slot)
    size = event[TEXT_SIZE]
    posts[slot, NEWER] = event[TIME]
    posts[slot, NEWER_TOO] = -NEVER
    posts[slot, ROW_ID] = event[ID]
    posts[slot, LABEL] = 0
    posts[slot, LABEL_SIZE] = 0
    posts[slot, AUTHOR] = event[USER]
    posts[slot, NAME] = numbers[NAMES]
    posts[slot, NAME_SIZE] = size
    posts[slot, COMMENTERS] = 0
    numbers[NAMES] = copy_bytes(data, event[TEXT], size, names, numbers[NAMES])
    numbers[LONGEST] = max(numbers[LONGEST], size)
    _log(numbers, items, due, event[TIME], slot, NOBODY)
    enter(posts, numbers, live, tier, slot, POINTS)
    rise(posts, names, numbers, top, slot)


@lean
def _take_comment(
    event, numbers, posts, items, due, live, tier, top, post_ids, comment_ids, pairs, names
):  # fmt: skip
    post = event[PARENT] if event[PARENT_IS_POST] else find(comment_ids, event[PARENT])
    slot = find(post_ids, post)
    numbers[COMMENT_IDS] += put(comment_ids, event[ID], post)
    if slot == GONE:
        numbers[TO_DEAD_POSTS] += 1
        return
    user = event[USER]
    if user == posts[slot, AUTHOR]:
        user = NOBODY
    else:
        known = find_pair(pairs, slot, user)
        if known == FREE:
            known = 0
            numbers[PAIRS] += 1
            posts[slot, COMMENTERS] += 1
        put_pair(pairs, slot, user, known + 1)
    posts[slot, NEWER_TOO] = event[TIME]
    _log(numbers, items, due, event[TIME], slot, user)
    gain(posts, numbers, tier, slot, POINTS)
    rise(posts, names, numbers, top, slot)


@lean
def _age(time, numbers, posts, items, cursors, due, live, tier, top, post_ids, pairs, names):
    """Let items lose the points that are due up to a time.

    Returns
    -------
    int
        An instant before that time at which the best are to be looked at, and there is more to lose; or `NEVER`. At
        the time itself there comes an event, and one line for both.
    """
    first, number = numbers[FIRST_ITEM], numbers[ITEMS]
    while numbers[NEXT_DUE] <= time and numbers[NEXT_DUE] != NEVER:
        instant, next_due, died = numbers[NEXT_DUE], NEVER, False
        for n in range(POINTS):
            while due[n] == instant:
                item = np.uint64(cursors[n] - first)
                slot = np.uint64(items[item, OF_POST])
                score = posts[slot, SCORE] = posts[slot, SCORE] - 1
                if posts[slot, TIER_AT] >= 0:
                    lose(posts, names, numbers, tier, top, np.int64(slot))
                cursors[n] += 1
                item += _ONE
                due[n] = items[item, AT] + (n + 1) * DAY if item < np.uint64(number) else NEVER
                if n == POINTS - 1:
                    user = items[item - _ONE, BY]
                    if user != NOBODY:
                        _forget_comment(numbers, posts, pairs, np.int64(slot), user)
                    if score == 0:
                        _die(numbers, posts, live, tier, top, post_ids, np.int64(slot))
                        died = True
            next_due = min(next_due, due[n])
        numbers[NEXT_DUE] = next_due
        looks = numbers[LOOK] if numbers[CHANGES] == EXACT else numbers[CHANGES] == DEATHS and died
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
def _die(numbers, posts, live, tier, top, post_ids, slot):
    leave(posts, numbers, live, tier, top, slot)
    put(post_ids, posts[slot, ROW_ID], GONE)
    posts[slot, AUTHOR] = numbers[FREE_SLOT]  # the free slots are a list
    numbers[FREE_SLOT] = slot


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
