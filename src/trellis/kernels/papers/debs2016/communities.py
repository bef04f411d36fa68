"""DEBS 2016, query 2: the comments that the largest communities like, event by event, over lines of three sources.

A community of a comment is a clique of friends among those who like it. A like or a friendship can only make it larger
by one, and then the new clique holds who is new: so only their common friends who like the comment are searched.
"""

from __future__ import annotations

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

# A comment, beside the columns of `debs_top`: its time, its likes and the last of them. Its score is its range.
WRITTEN_AT, LIKES, LAST_LIKE, COMMENT_COLUMNS = (OWN_COLUMNS + i for i in range(4))
DEGREE, LAST_EDGE, LIKED, LAST_LIKED, MARK, USER_COLUMNS = range(6)  # a user: friends, likes of live comments
TO, BEFORE, EDGE_COLUMNS = range(3)  # a friend of a user, and the one before
# A like, the one before of its comment, those beside it of its user, and its community where these are components.
BY, OF, BEFORE_OF_COMMENT, BEFORE_OF_USER, BEHIND_OF_USER, LEADER, FOLLOWERS, LIKE_COLUMNS = range(8)

# The single numbers, after those of `debs_top`.
(
    SPAN, WAY, USERS, EDGES, FRIENDS, NEXT_COMMENT, FIRST_COMMENT, LIKES_MADE, FREE_LIKE, LIKE_PAIRS, COMMENT_IDS,
    TEXTS, LONGEST, UNKNOWN_COMMENTS, EXPIRED_COMMENTS, REPEATED_LIKES, SELF_FRIENDSHIPS, REPEATED_FRIENDSHIPS,
    SEARCHES, STEPS, NUMBERS,
) = (OWN_NUMBERS + i for i in range(21))  # fmt: skip
CLIQUE, COMPONENT, PUBLISHED = 0, 1, 2  # what WAY may be; PUBLISHED: cliques by the paper's algorithm
NOTHING = -1


@lean
def run_communities(
    friendships_data, comments_data, likes_data, at, events, sources, promises, numbers, users, edges, comments, likes,
    live, tier, scores, top, shown, shown_sizes, user_ids, comment_ids, friends, pairs, texts, candidates, bars, out,
):  # fmt: skip
    """Go on through the lines of three sources, in the order of time, until something is needed: see `run_posts`."""
    while True:
        read_next(friendships_data, at, 0, FRIENDSHIP, events, sources, numbers, bars)
        read_next(comments_data, at, 1, COMMENT, events, sources, numbers, bars)
        read_next(likes_data, at, 2, LIKE, events, sources, numbers, bars)
        if out.shape[0] - numbers[OUT] < TIME_SIZE + 1 + numbers[K] * (2 + numbers[LONGEST]):
            return FULL
        source, time, other = next_source(events, promises)
        if other >= 0:
            return WAITS + other
        if source < 0:
            return DONE

        first = numbers[FIRST_COMMENT]
        if first < numbers[NEXT_COMMENT] and comments[first - numbers[BASE], WRITTEN_AT] + numbers[SPAN] < time:
            time = comments[first - numbers[BASE], WRITTEN_AT] + numbers[SPAN]
            _expire(time, numbers, users, comments, likes, live, tier, top, pairs)
        else:
            if _is_full(
                events[source], source, numbers, users, edges, comments, likes, shown, user_ids, comment_ids, friends,
                pairs, texts,
            ):  # fmt: skip
                return ROOM
            if source == 0:
                _take_friendship(
                    events[0], numbers, users, edges, comments, likes, tier, top, user_ids, friends, pairs,
                    texts, candidates,
                )  # fmt: skip
            elif source == 1:
                _take_comment(comments_data, events[1], numbers, comments, comment_ids, texts)
            else:
                _take_like(
                    events[2], numbers, users, edges, comments, likes, live, tier, top, user_ids, comment_ids,
                    friends, pairs, texts, candidates,
                )  # fmt: skip
            events[source, READ] = 0
            sources[source, TAKEN] = time
        settle(comments, texts, numbers, live, tier, scores, top)
        if _differs(numbers, comments, top, shown, shown_sizes, texts):
            _write_line(time, numbers, comments, top, shown, shown_sizes, texts, out)
            numbers[OUT_STAMP] = events[source, STAMP]
            if numbers[EAGER]:
                return WRITTEN


@lean
def _is_full(
    event, source, numbers, users, edges, comments, likes, shown, user_ids, comment_ids, friends, pairs, texts
):  # fmt: skip
    """Whether one more event might not find room."""
    if source == 1:
        size = event[TEXT_SIZE]
        return (
            numbers[NEXT_COMMENT] - numbers[BASE] >= comments.shape[0]
            or 10 * numbers[COMMENT_IDS] >= 7 * comment_ids.shape[0]
            or numbers[TEXTS] - numbers[LABEL_BASE] + size > texts.shape[0]
            or numbers[K] * max(1, size) > shown.shape[0]
        )
    return (
        numbers[USERS] + 2 > users.shape[0]
        or 10 * (numbers[USERS] + 1) >= 7 * user_ids.shape[0]
        or numbers[EDGES] + 2 > edges.shape[0]
        or 10 * numbers[FRIENDS] >= 7 * friends.shape[0]
        or (numbers[LIKES_MADE] >= likes.shape[0] and numbers[FREE_LIKE] < 0)
        or 10 * numbers[LIKE_PAIRS] >= 7 * pairs.shape[0]
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
def _take_comment(data, event, numbers, comments, comment_ids, texts):
    number = numbers[NEXT_COMMENT]
    numbers[NEXT_COMMENT] += 1
    numbers[COMMENT_IDS] += put(comment_ids, event[ID], number)
    row = number - numbers[BASE]
    size = event[TEXT_SIZE]
    copy_bytes(data, event[TEXT], size, texts, numbers[TEXTS] - numbers[LABEL_BASE])
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
def _take_like(
    event, numbers, users, edges, comments, likes, live, tier, top, user_ids, comment_ids, friends, pairs,
    texts, candidates,
):  # fmt: skip
    comment = find(comment_ids, event[ID])
    if comment == FREE:
        numbers[UNKNOWN_COMMENTS] += 1
        return
    if comment < numbers[FIRST_COMMENT]:
        numbers[EXPIRED_COMMENTS] += 1
        return
    user = _user(numbers, users, user_ids, event[USER])
    if find_pair(pairs, comment, user) != FREE:
        numbers[REPEATED_LIKES] += 1
        return
    row = comment - numbers[BASE]
    like = _new_like(numbers, users, comments, likes, pairs, comment, user)
    before = comments[row, SCORE]
    if before == 0:
        enter(comments, numbers, live, tier, comment, 1)
        rise(comments, texts, numbers, top, comment)
        return
    if numbers[WAY] == COMPONENT:
        now = _join_friends(numbers, users, edges, comments, likes, friends, pairs, comment, user, like)
    else:
        now = before
        if users[user, DEGREE] >= before and comments[row, LIKES] > before:
            number = _friends_who_like(
                numbers, users, edges, comments, likes, friends, pairs, comment, user, user, before, candidates
            )
            now += _has_clique(numbers, users, edges, friends, candidates, number, before)
    if now > before:
        gain(comments, numbers, tier, comment, now - before)
        rise(comments, texts, numbers, top, comment)


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
def _take_friendship(
    event, numbers, users, edges, comments, likes, tier, top, user_ids, friends, pairs, texts, candidates
):  # fmt: skip
    if event[ID] == event[USER]:
        numbers[SELF_FRIENDSHIPS] += 1
        return
    a = _user(numbers, users, user_ids, event[ID])
    b = _user(numbers, users, user_ids, event[USER])
    if find_pair(friends, min(a, b), max(a, b)) != FREE:
        numbers[REPEATED_FRIENDSHIPS] += 1
        return
    put_pair(friends, min(a, b), max(a, b), 1)
    numbers[FRIENDS] += 1
    _new_edge(numbers, users, edges, a, b)
    _new_edge(numbers, users, edges, b, a)
    if users[a, LIKED] > users[b, LIKED]:
        a, b = b, a
    like = users[a, LAST_LIKED]
    while like >= 0:
        comment = likes[like, OF]
        theirs = find_pair(pairs, comment, b)
        if theirs != FREE:
            before = now = comments[comment - numbers[BASE], SCORE]
            if numbers[WAY] == COMPONENT:
                now = max(before, _unite(likes, like, theirs))
            elif before == 1:
                now = 2
            elif comments[comment - numbers[BASE], LIKES] > before:
                number = _friends_who_like(
                    numbers, users, edges, comments, likes, friends, pairs, comment, a, b, before - 1, candidates
                )
                now += _has_clique(numbers, users, edges, friends, candidates, number, before - 1)
            if now > before:
                gain(comments, numbers, tier, comment, now - before)
                rise(comments, texts, numbers, top, comment)
        like = likes[like, BEFORE_OF_USER]


@lean
def _new_edge(numbers, users, edges, a, b):
    edges[numbers[EDGES], TO] = b
    edges[numbers[EDGES], BEFORE] = users[a, LAST_EDGE]
    users[a, LAST_EDGE] = numbers[EDGES]
    users[a, DEGREE] += 1
    numbers[EDGES] += 1


@lean
def _expire(time, numbers, users, comments, likes, live, tier, top, pairs):
    """Let all comments leave that take part up to a time."""
    while numbers[FIRST_COMMENT] < numbers[NEXT_COMMENT]:
        comment = numbers[FIRST_COMMENT]
        row = comment - numbers[BASE]
        if comments[row, WRITTEN_AT] + numbers[SPAN] != time:
            return
        if comments[row, SCORE] > 0:
            leave(comments, numbers, live, tier, top, comment)
        like = comments[row, LAST_LIKE]
        while like >= 0:
            user, before, behind = likes[like, BY], likes[like, BEFORE_OF_USER], likes[like, BEHIND_OF_USER]
            if before >= 0:
                likes[before, BEHIND_OF_USER] = behind
            if behind >= 0:
                likes[behind, BEFORE_OF_USER] = before
            else:
                users[user, LAST_LIKED] = before
            users[user, LIKED] -= 1
            drop_pair(pairs, comment, user)
            numbers[LIKE_PAIRS] -= 1
            next_like = likes[like, BEFORE_OF_COMMENT]
            likes[like, OF] = numbers[FREE_LIKE]  # the free places are a list
            numbers[FREE_LIKE] = like
            like = next_like
        numbers[FIRST_COMMENT] += 1


# --- Communities ------------------------------------------------------------------------------------------------


@lean
def _are_friends(friends, a, b):
    return find_pair(friends, min(a, b), max(a, b)) != FREE


@lean
def _friends_who_like(
    numbers, users, edges, comments, likes, friends, pairs, comment, a, b, least, candidates
):  # fmt: skip
    """List who likes a comment and is a friend of a and of b, who may be a, and of enough others; return how many."""
    found = 0
    if users[b, DEGREE] < users[a, DEGREE]:
        a, b = b, a
    if users[a, DEGREE] < comments[comment - numbers[BASE], LIKES]:
        edge = users[a, LAST_EDGE]
        while edge >= 0:
            user = edges[edge, TO]
            edge = edges[edge, BEFORE]
            known = a == b or (user != b and _are_friends(friends, user, b))
            if known and users[user, DEGREE] >= least and find_pair(pairs, comment, user) != FREE:
                candidates[found] = user
                found += 1
        return found
    like = comments[comment - numbers[BASE], LAST_LIKE]
    while like >= 0:
        user = likes[like, BY]
        like = likes[like, BEFORE_OF_COMMENT]
        if users[user, DEGREE] < least or user in (a, b):
            continue
        if _are_friends(friends, user, a) and (a == b or _are_friends(friends, user, b)):
            candidates[found] = user
            found += 1
    return found


@counted
def _has_clique(numbers, users, edges, friends, candidates, number, size):
    """Return 1 if some of the candidates are a clique of a size, else 0."""
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
                if _are_friends(friends, user, candidates[j]):
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
def _join_friends(numbers, users, edges, comments, likes, friends, pairs, comment, user, own):
    """Unite a new like with those of friends; return the size of the largest community."""
    most = comments[comment - numbers[BASE], SCORE]
    if users[user, DEGREE] < comments[comment - numbers[BASE], LIKES]:
        edge = users[user, LAST_EDGE]
        while edge >= 0:
            theirs = find_pair(pairs, comment, edges[edge, TO])
            if theirs != FREE:
                most = max(most, _unite(likes, own, theirs))
            edge = edges[edge, BEFORE]
        return most
    like = comments[comment - numbers[BASE], LAST_LIKE]
    while like >= 0:
        if likes[like, BY] != user and _are_friends(friends, user, likes[like, BY]):
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
def _write_line(time, numbers, comments, top, shown, shown_sizes, texts, out):
    at = write_time(out, numbers[OUT], time)
    begin = 0
    for place in range(numbers[K]):
        if place < numbers[TOP]:
            row = top[place] - numbers[BASE]
            size, text = comments[row, LABEL_SIZE], comments[row, LABEL] - numbers[LABEL_BASE]
            copy_bytes(texts, text, size, shown, begin)
        else:
            size = 1
            shown[begin] = 45
        shown_sizes[place] = size
        out[at] = 44
        at = copy_bytes(shown, begin, size, out, at + 1)
        begin += size
    out[at] = NEWLINE
    numbers[OUT] = at + 1
    numbers[LINES_OUT] += 1
