"""DEBS 2016, query 2: the comments that the largest communities like, event by event, over lines of three sources.

A community of a comment is a clique of friends among those who like it. A like or a friendship can only make it larger
by one, and then the new clique holds who is new: so only their common friends who like the comment are searched.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.graph.cliques import all_of, connect, counted, peel, search, search_as_published
from trellis.kernels.papers.debs2016.lines import (
    COMMENT,
    DONE,
    EAGER,
    FRIENDSHIP,
    FULL,
    ID,
    LIKE,
    LINES_OUT,
    NEWLINE,
    OUT,
    OUT_STAMP,
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
    write_time,
)
from trellis.kernels.papers.debs2016.tables import FREE, copy_bytes, drop_pair, find, find_pair, lean, put, put_pair
from trellis.kernels.papers.debs2016.top import (
    BASE,
    IS_TOP,
    LABEL,
    LABEL_BASE,
    LABEL_SIZE,
    LIVE_AT,
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
    rise,
    settle,
)

# A comment, beside the columns of `top`: its time, its likes and the last of them. Its score is its range.
WRITTEN_AT, LIKES, LAST_LIKE, COMMENT_COLUMNS = (OWN_COLUMNS + i for i in range(4))
DEGREE, LAST_EDGE, LIKED, LAST_LIKED, MARK, USER_COLUMNS = range(6)  # a user: friends, likes of live comments
TO, BEFORE, EDGE_COLUMNS = range(3)  # a friend of a user, and the one before
# A like, the one before of its comment, those beside it of its user, and its community where these are components.
BY, OF, BEFORE_OF_COMMENT, BEFORE_OF_USER, BEHIND_OF_USER, LEADER, FOLLOWERS, LIKE_COLUMNS = range(8)

# The single numbers, after those of `top`.
(
    SPAN, WAY, USERS, EDGES, FRIENDS, NEXT_COMMENT, FIRST_COMMENT, LIKES_MADE, FREE_LIKE, LIKE_PAIRS, COMMENT_IDS,
    TEXTS, LONGEST, UNKNOWN_COMMENTS, EXPIRED_COMMENTS, REPEATED_LIKES, SELF_FRIENDSHIPS, REPEATED_FRIENDSHIPS,
    SEARCHES, STEPS, NUMBERS,
) = (OWN_NUMBERS + i for i in range(21))  # fmt: skip
CLIQUE, COMPONENT, PUBLISHED = 0, 1, 2  # what WAY may be; PUBLISHED: cliques by the paper's algorithm
NOTHING = -1


class CommunityState(NamedTuple):
    """All that query 2 knows: see the page of the package, and `trellis.papers.debs2016.communities`."""

    numbers: np.ndarray  # int64 (NUMBERS,)
    users: np.ndarray  # int64 (room, columns)
    edges: np.ndarray  # int64 (room, columns)
    comments: np.ndarray  # int64 (room, columns)
    likes: np.ndarray  # int64 (room, columns)
    live: np.ndarray  # int64 (room,)
    tier: np.ndarray  # int64 (room,)
    scores: np.ndarray  # int64 (SCORES,)
    top: np.ndarray  # int64 (k + SPARE,)
    shown: np.ndarray  # uint8 (room,)
    shown_sizes: np.ndarray  # int64 (k,)
    user_ids: np.ndarray  # int64 (power of two, 2)
    comment_ids: np.ndarray  # int64 (power of two, 2)
    friends: np.ndarray  # int64 (power of two, 3)
    pairs: np.ndarray  # int64 (power of two, 3)
    texts: np.ndarray  # uint8 (room,)
    candidates: np.ndarray  # int64 (room,)


@lean
def run_communities(friendships_data, comments_data, likes_data, feed, state, out):
    """Go on through the lines of three sources, in the order of time, until something is needed: see `run_posts`."""
    while True:
        read_next(friendships_data, 0, FRIENDSHIP, feed, state.numbers)
        read_next(comments_data, 1, COMMENT, feed, state.numbers)
        read_next(likes_data, 2, LIKE, feed, state.numbers)
        if out.shape[0] - state.numbers[OUT] < TIME_SIZE + 1 + state.numbers[K] * (2 + state.numbers[LONGEST]):
            return FULL
        source, time, other = next_source(feed.events, feed.promises)
        if other >= 0:
            return WAITS + other
        if source < 0:
            return DONE

        first, end = state.numbers[FIRST_COMMENT], time
        if first < state.numbers[NEXT_COMMENT]:
            end = state.comments[first - state.numbers[BASE], WRITTEN_AT] + state.numbers[SPAN]
        if end < time:
            time = end
            _expire(time, state)
        else:
            if _is_full(feed.events[source], source, state):
                return ROOM
            if source == 0:
                _take_friendship(feed.events[0], state)
            elif source == 1:
                _take_comment(comments_data, feed.events[1], state)
            else:
                _take_like(feed.events[2], state)
            feed.events[source, READ] = 0
            feed.sources[source, TAKEN] = time
        settle(state.comments, state.texts, state.numbers, state.live, state.tier, state.scores, state.top)
        if _differs(state.numbers, state.comments, state.top, state.shown, state.shown_sizes, state.texts):
            _write_line(time, state, out)
            state.numbers[OUT_STAMP] = feed.events[source, STAMP]
            if state.numbers[EAGER]:
                return WRITTEN


@lean
def _is_full(event, source, state):
    """Whether one more event might not find room."""
    if source == 1:
        size = event[TEXT_SIZE]
        return (
            state.numbers[NEXT_COMMENT] - state.numbers[BASE] >= state.comments.shape[0]
            or 10 * state.numbers[COMMENT_IDS] >= 7 * state.comment_ids.shape[0]
            or state.numbers[TEXTS] - state.numbers[LABEL_BASE] + size > state.texts.shape[0]
            or state.numbers[K] * max(1, size) > state.shown.shape[0]
        )
    return (
        state.numbers[USERS] + 2 > state.users.shape[0]
        or 10 * (state.numbers[USERS] + 1) >= 7 * state.user_ids.shape[0]
        or state.numbers[EDGES] + 2 > state.edges.shape[0]
        or 10 * state.numbers[FRIENDS] >= 7 * state.friends.shape[0]
        or (state.numbers[LIKES_MADE] >= state.likes.shape[0] and state.numbers[FREE_LIKE] < 0)
        or 10 * state.numbers[LIKE_PAIRS] >= 7 * state.pairs.shape[0]
    )


@lean
def _user(numbers, users, user_ids, id_):
    """Return the number of a user, who may be new."""
    user = find(user_ids, id_)
    if user == FREE:
        user = numbers[USERS]
        numbers[USERS] += 1
        put(user_ids, id_, user)
        users[user, DEGREE] = 0
        users[user, LAST_EDGE] = NOTHING
        users[user, LIKED] = 0
        users[user, LAST_LIKED] = NOTHING
        users[user, MARK] = 0
    return user


# --- Events -----------------------------------------------------------------------------------------------------


@lean
def _take_comment(data, event, state):
    numbers, comments = state.numbers, state.comments
    number = numbers[NEXT_COMMENT]
    numbers[NEXT_COMMENT] += 1
    numbers[COMMENT_IDS] += put(state.comment_ids, event[ID], number)
    row = number - numbers[BASE]
    size = event[TEXT_SIZE]
    copy_bytes(data, event[TEXT], size, state.texts, numbers[TEXTS] - numbers[LABEL_BASE])
    comments[row, SCORE] = 0
    comments[row, LIVE_AT] = NOTHING
    comments[row, TIER_AT] = NOTHING
    comments[row, IS_TOP] = 0
    comments[row, NEWER] = 0
    comments[row, NEWER_TOO] = 0
    comments[row, ROW_ID] = event[ID]
    comments[row, LABEL] = numbers[TEXTS]
    comments[row, LABEL_SIZE] = size
    comments[row, WRITTEN_AT] = event[TIME]
    comments[row, LIKES] = 0
    comments[row, LAST_LIKE] = NOTHING
    numbers[TEXTS] += size
    numbers[LONGEST] = max(numbers[LONGEST], size)


@lean
def _take_like(event, state):
    comment = find(state.comment_ids, event[ID])
    if comment == FREE:
        state.numbers[UNKNOWN_COMMENTS] += 1
        return
    if comment < state.numbers[FIRST_COMMENT]:
        state.numbers[EXPIRED_COMMENTS] += 1
        return
    user = _user(state.numbers, state.users, state.user_ids, event[USER])
    if find_pair(state.pairs, comment, user) != FREE:
        state.numbers[REPEATED_LIKES] += 1
        return
    row = comment - state.numbers[BASE]
    like = _new_like(state.numbers, state.users, state.comments, state.likes, state.pairs, comment, user)
    before = state.comments[row, SCORE]
    if before == 0:
        enter(state.comments, state.numbers, state.live, state.tier, comment, 1)
        rise(state.comments, state.texts, state.numbers, state.top, comment)
        return
    now = before
    if state.numbers[WAY] == COMPONENT:
        now = _join_friends(state, comment, user, like)
    elif state.users[user, DEGREE] >= before and state.comments[row, LIKES] > before:
        now += _has_clique(state, _friends_who_like(state, comment, user, user, before), before)
    if now > before:
        gain(state.comments, state.numbers, state.tier, comment, now - before)
        rise(state.comments, state.texts, state.numbers, state.top, comment)


@lean
def _new_like(numbers, users, comments, likes, pairs, comment, user):
    like = numbers[FREE_LIKE]
    if like >= 0:
        numbers[FREE_LIKE] = likes[like, OF]
    else:
        like = numbers[LIKES_MADE]
        numbers[LIKES_MADE] += 1
    row = comment - numbers[BASE]
    last = users[user, LAST_LIKED]
    likes[like, BY] = user
    likes[like, OF] = comment
    likes[like, BEFORE_OF_COMMENT] = comments[row, LAST_LIKE]
    likes[like, BEFORE_OF_USER] = last
    likes[like, BEHIND_OF_USER] = NOTHING
    likes[like, LEADER] = like
    likes[like, FOLLOWERS] = 1
    if last >= 0:
        likes[last, BEHIND_OF_USER] = like
    users[user, LAST_LIKED] = like
    users[user, LIKED] += 1
    comments[row, LAST_LIKE] = like
    comments[row, LIKES] += 1
    put_pair(pairs, comment, user, like)
    numbers[LIKE_PAIRS] += 1
    return like


@lean
def _take_friendship(event, state):
    if event[ID] == event[USER]:
        state.numbers[SELF_FRIENDSHIPS] += 1
        return
    a = _user(state.numbers, state.users, state.user_ids, event[ID])
    b = _user(state.numbers, state.users, state.user_ids, event[USER])
    if find_pair(state.friends, min(a, b), max(a, b)) != FREE:
        state.numbers[REPEATED_FRIENDSHIPS] += 1
        return
    put_pair(state.friends, min(a, b), max(a, b), 1)
    state.numbers[FRIENDS] += 1
    _new_edge(state.numbers, state.users, state.edges, a, b)
    _new_edge(state.numbers, state.users, state.edges, b, a)
    if state.users[a, LIKED] > state.users[b, LIKED]:
        a, b = b, a
    like = state.users[a, LAST_LIKED]
    while like >= 0:
        comment = state.likes[like, OF]
        theirs = find_pair(state.pairs, comment, b)
        if theirs != FREE:
            before = now = state.comments[comment - state.numbers[BASE], SCORE]
            if state.numbers[WAY] == COMPONENT:
                now = max(before, _unite(state.likes, like, theirs))
            elif before == 1:
                now = 2
            elif state.comments[comment - state.numbers[BASE], LIKES] > before:
                now += _has_clique(state, _friends_who_like(state, comment, a, b, before - 1), before - 1)
            if now > before:
                gain(state.comments, state.numbers, state.tier, comment, now - before)
                rise(state.comments, state.texts, state.numbers, state.top, comment)
        like = state.likes[like, BEFORE_OF_USER]


@lean
def _new_edge(numbers, users, edges, a, b):
    edges[numbers[EDGES], TO] = b
    edges[numbers[EDGES], BEFORE] = users[a, LAST_EDGE]
    users[a, LAST_EDGE] = numbers[EDGES]
    users[a, DEGREE] += 1
    numbers[EDGES] += 1


@lean
def _expire(time, state):
    """Let all comments leave that take part up to a time."""
    while state.numbers[FIRST_COMMENT] < state.numbers[NEXT_COMMENT]:
        comment = state.numbers[FIRST_COMMENT]
        row = comment - state.numbers[BASE]
        if state.comments[row, WRITTEN_AT] + state.numbers[SPAN] != time:
            return
        if state.comments[row, SCORE] > 0:
            leave(state.comments, state.numbers, state.live, state.tier, state.top, comment)
        like = state.comments[row, LAST_LIKE]
        while like >= 0:
            user = state.likes[like, BY]
            before, behind = state.likes[like, BEFORE_OF_USER], state.likes[like, BEHIND_OF_USER]
            if before >= 0:
                state.likes[before, BEHIND_OF_USER] = behind
            if behind >= 0:
                state.likes[behind, BEFORE_OF_USER] = before
            else:
                state.users[user, LAST_LIKED] = before
            state.users[user, LIKED] -= 1
            drop_pair(state.pairs, comment, user)
            state.numbers[LIKE_PAIRS] -= 1
            next_like = state.likes[like, BEFORE_OF_COMMENT]
            state.likes[like, OF] = state.numbers[FREE_LIKE]  # the free places are a list
            state.numbers[FREE_LIKE] = like
            like = next_like
        state.numbers[FIRST_COMMENT] += 1


# --- Communities ------------------------------------------------------------------------------------------------


@lean
def _are_friends(friends, a, b):
    return find_pair(friends, min(a, b), max(a, b)) != FREE


@lean
def _friends_who_like(state, comment, a, b, least):
    """List who likes a comment and is a friend of a and of b, who may be a, and of enough others; return how many."""
    found = 0
    if state.users[b, DEGREE] < state.users[a, DEGREE]:
        a, b = b, a
    if state.users[a, DEGREE] < state.comments[comment - state.numbers[BASE], LIKES]:
        edge = state.users[a, LAST_EDGE]
        while edge >= 0:
            user = state.edges[edge, TO]
            edge = state.edges[edge, BEFORE]
            known = a == b or (user != b and _are_friends(state.friends, user, b))
            if known and state.users[user, DEGREE] >= least and find_pair(state.pairs, comment, user) != FREE:
                state.candidates[found] = user
                found += 1
        return found
    like = state.comments[comment - state.numbers[BASE], LAST_LIKE]
    while like >= 0:
        user = state.likes[like, BY]
        like = state.likes[like, BEFORE_OF_COMMENT]
        if state.users[user, DEGREE] < least or user in (a, b):
            continue
        if _are_friends(state.friends, user, a) and (a == b or _are_friends(state.friends, user, b)):
            state.candidates[found] = user
            found += 1
    return found


@counted
def _has_clique(state, number, size):
    """Return 1 if some of the candidates are a clique of a size, else 0."""
    numbers, users, edges, candidates = state.numbers, state.users, state.edges, state.candidates
    if number < size:
        return 0
    if size < 2:
        return 1
    numbers[SEARCHES] += 1
    words = (number + 63) >> 6
    rows = np.zeros((number, words), np.uint64)
    for i in range(number):
        users[candidates[i], MARK] = i + 1
    for i in range(number):
        user = candidates[i]
        if users[user, DEGREE] < 2 * number:
            edge = users[user, LAST_EDGE]
            while edge >= 0:
                j = users[edges[edge, TO], MARK] - 1
                if j >= 0:
                    connect(rows, i, j)
                edge = edges[edge, BEFORE]
        else:
            for j in range(i + 1, number):
                if _are_friends(state.friends, user, candidates[j]):
                    connect(rows, i, j)
    for i in range(number):
        users[candidates[i], MARK] = 0
    chosen = all_of(number, words)
    shared, steps = np.zeros(1, np.int64), np.zeros(1, np.int64)
    if numbers[WAY] == PUBLISHED:
        found = search_as_published(rows, chosen, size - 1, size, steps)
    elif peel(rows, chosen, size - 1) < size:
        return 0
    else:
        found = search(rows, chosen, size - 1, size, 0, shared, steps)
    numbers[STEPS] += steps[0]
    return 1 if found >= size else 0


@lean
def _leader(likes, like):
    while likes[like, LEADER] != like:
        likes[like, LEADER] = likes[likes[like, LEADER], LEADER]
        like = likes[like, LEADER]
    return like


@lean
def _unite(likes, a, b):
    """Make one community of those of two likes of a comment; return its size."""
    a, b = _leader(likes, a), _leader(likes, b)
    if a != b:
        if likes[a, FOLLOWERS] < likes[b, FOLLOWERS]:
            a, b = b, a
        likes[b, LEADER] = a
        likes[a, FOLLOWERS] += likes[b, FOLLOWERS]
    return likes[a, FOLLOWERS]


@lean
def _join_friends(state, comment, user, own):
    """Unite a new like with those of friends; return the size of the largest community."""
    numbers, users, edges, comments, likes = state.numbers, state.users, state.edges, state.comments, state.likes
    most = comments[comment - numbers[BASE], SCORE]
    if users[user, DEGREE] < comments[comment - numbers[BASE], LIKES]:
        edge = users[user, LAST_EDGE]
        while edge >= 0:
            theirs = find_pair(state.pairs, comment, edges[edge, TO])
            if theirs != FREE:
                most = max(most, _unite(likes, own, theirs))
            edge = edges[edge, BEFORE]
        return most
    like = comments[comment - numbers[BASE], LAST_LIKE]
    while like >= 0:
        if likes[like, BY] != user and _are_friends(state.friends, user, likes[like, BY]):
            most = max(most, _unite(likes, own, like))
        like = likes[like, BEFORE_OF_COMMENT]
    return most


# --- Lines ------------------------------------------------------------------------------------------------------


@lean
def _differs(numbers, comments, top, shown, shown_sizes, texts):
    """Whether the texts are not those that were shown last; in place of a missing one a dash is shown."""
    begin = 0
    for place in range(numbers[K]):
        size = shown_sizes[place]
        if place < numbers[TOP]:
            row = top[place] - numbers[BASE]
            if comments[row, LABEL_SIZE] != size:
                return True
            text = comments[row, LABEL] - numbers[LABEL_BASE]
            for i in range(size):
                if texts[text + i] != shown[begin + i]:
                    return True
        elif size != 1 or shown[begin] != 45:
            return True
        begin += size
    return False


@lean
def _write_line(time, state, out):
    numbers, comments, shown, texts = state.numbers, state.comments, state.shown, state.texts
    at = write_time(out, numbers[OUT], time)
    begin = 0
    for place in range(numbers[K]):
        if place < numbers[TOP]:
            row = state.top[place] - numbers[BASE]
            size, text = comments[row, LABEL_SIZE], comments[row, LABEL] - numbers[LABEL_BASE]
            copy_bytes(texts, text, size, shown, begin)
        else:
            size = 1
            shown[begin] = 45
        state.shown_sizes[place] = size
        out[at] = 44
        at = copy_bytes(shown, begin, size, out, at + 1)
        begin += size
    out[at] = NEWLINE
    numbers[OUT] = at + 1
    numbers[LINES_OUT] += 1
