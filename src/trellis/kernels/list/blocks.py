"""Listing any range of ranks of the event graph's paths at the speed of memory.

From most events few paths go on, and the same ones behind every prefix: for events from which at most some hundred do,
these suffixes are laid out once, as a *block*. The walk is depth first down to such events; behind the prefix that led
there every row is a copy of the prefix and one of a suffix. Copies are made in steps of eight values and may run over
the end of a row, which the next row mends: buffers have `SPARE` values to spare. Two habits turn these steps into wide
stores of the machine: indices are unsigned, and all eight values are read before the first is written.

The number of paths that go on from each event (64 bits, saturating: right for ranks below 2**64 - 1) tells which part
of the graph holds a rank, so that a walk begins anywhere: what comes before is skipped whole subtrees at a time.

A task is what `trellis.kernels.count.paths` says. The listing goes through *stretches*: stretch i is the paths of the
task `tasks[i]` from rank `first[i]` on, `size[i]` of them.
"""

from __future__ import annotations

import numpy as np
from numba import njit, uintp

from trellis.kernels.count.paths import _ends, _starts

SPARE = 64  # values at the end of buffers and arrays that a wide copy may read or write in vain
MOST = 1024  # paths from an event that has a block
LOG_MOST = 10
FEWEST = 64  # values worth laying out
LARGEST = np.uint64(2**64 - 1)

# Places in the state of a walk: whole numbers, and numbers of paths.
STRETCH, READY, CURSOR, DEPTH, FRESH, REST, ROWS, VALUES = range(8)
STATE_SIZE = 8
SKIP, LEFT = range(2)
# Places in what tells of the task that was made ready, and of the block of an event.
TASK, BLOCKED = range(2)
AT, ROW, WIDEST, SIZE = range(4)

ZERO, ONE, EIGHT, SIXTEEN = uintp(0), uintp(1), uintp(8), uintp(16)


# --- Counts and blocks of a task -------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _count(lo, hi, first_end, every, offsets, successors, ok, counts):
    """Set `counts[x - lo]` to the number of paths from each event of a task to an end, at most `LARGEST`."""
    for x in range(hi - 1, lo - 1, -1):
        total = np.uint64(0)
        if ok[x]:
            if _ends(x, hi, first_end, every, offsets, successors):
                total = np.uint64(1)
            for i in range(offsets[x], offsets[x + 1]):
                y = successors[i]
                if y >= hi:
                    break
                more = counts[y - lo]
                total += more
                if total < more:
                    total = LARGEST
        counts[x - lo] = total


@njit(cache=True, nogil=True)
def _highest_blocked(lo, hi, offsets, successors, counts, blocks, room):
    """Return the largest power of two, at most `MOST`, such that the blocks of all events with so few paths fit.

    `blocks[x - lo, SIZE]` becomes the number of values of all paths from x, for events with at most `MOST` of them.
    """
    needed = np.zeros(LOG_MOST + 1, np.int64)
    for x in range(hi - 1, lo - 1, -1):
        count = counts[x - lo]
        if count == 0 or count > MOST:
            continue
        size = np.int64(count)
        for i in range(offsets[x], offsets[x + 1]):
            y = successors[i]
            if y >= hi:
                break
            if counts[y - lo]:
                size += blocks[y - lo, SIZE]
        blocks[x - lo, SIZE] = size
        step = 0
        while np.uint64(1) << np.uint64(step) < count:
            step += 1
        needed[step] += size
    total, highest = np.int64(0), np.int64(0)
    for step in range(LOG_MOST + 1):
        total += needed[step]
        if total > room:
            break
        highest = np.int64(1) << step
    return highest


@njit(cache=True, nogil=True)
def _lay_out(lo, hi, first_end, every, highest, offsets, successors, counts, blocks, values, lengths):
    """Write the blocks of all events with at most `highest` paths: rows in rank order, one after another."""
    used = rows = np.int64(0)
    for x in range(hi - 1, lo - 1, -1):
        here = x - lo
        if counts[here] == 0 or counts[here] > highest:
            continue
        blocks[here, AT], blocks[here, ROW], widest = used, rows, np.int64(1)
        if _ends(x, hi, first_end, every, offsets, successors):
            values[used], lengths[rows] = x, 1
            used, rows = used + 1, rows + 1
        for i in range(offsets[x], offsets[x + 1]):
            if successors[i] >= hi:
                break
            there = successors[i] - lo
            if counts[there] == 0:
                continue
            at, first = blocks[there, AT], blocks[there, ROW]
            for row in range(first, first + np.int64(counts[there])):
                length = lengths[row]
                values[used] = x
                for k in range(length):
                    values[used + 1 + k] = values[at + k]
                lengths[rows] = length + 1
                at, used, rows = at + length, used + length + 1, rows + 1
            widest = max(widest, blocks[there, WIDEST] + 1)
        blocks[here, WIDEST], blocks[here, SIZE] = widest, used - blocks[here, AT]


@njit(cache=True, nogil=True)
def _lay_out_compactly(lo, hi, first_end, every, highest, offsets, successors, counts, blocks, values, ends, shared):
    """Do what `_lay_out` does, but of each row write only what differs from the row before it in the block.

    `ends` tells where in its block each row ends, `shared` how many events are those of the row before.
    """
    used = rows = np.int64(0)
    for x in range(hi - 1, lo - 1, -1):
        here = x - lo
        if counts[here] == 0 or counts[here] > highest:
            continue
        blocks[here, AT], blocks[here, ROW] = used, rows
        begin, begun = used, 0  # whether a row holds x already
        values[used] = x
        used += 1
        if _ends(x, hi, first_end, every, offsets, successors):
            ends[rows], shared[rows], begun = 1, 0, 1
            rows += 1
        for i in range(offsets[x], offsets[x + 1]):
            if successors[i] >= hi:
                break
            there = successors[i] - lo
            if counts[there] == 0:
                continue
            at, first, size = blocks[there, AT], blocks[there, ROW], blocks[there, SIZE]
            for k in range(size):
                values[used + k] = values[at + k]
            for row in range(first, first + np.int64(counts[there])):
                ends[rows], shared[rows] = used - begin + ends[row], begun + shared[row]
                rows, begun = rows + 1, 1
            used += size
        blocks[here, SIZE] = used - begin


@njit(cache=True, nogil=True)
def make_ready(
    told, task, lo, hi, first_end, every, wanted, offsets, successors, ok,
    counts, blocks, block_values, block_lengths, block_shared,
):  # fmt: skip
    """Count the paths of a task, and lay out blocks of at most as many values as `wanted` rows repay."""
    _count(lo, hi, first_end, every, offsets, successors, ok, counts)
    room, highest = np.int64(min(np.uint64(block_lengths.shape[0] - SPARE), wanted >> np.uint64(1))), np.int64(0)
    if room >= FEWEST:
        highest = _highest_blocked(lo, hi, offsets, successors, counts, blocks, room)
        if block_shared is None:
            _lay_out(
                lo, hi, first_end, every, highest, offsets, successors, counts, blocks, block_values, block_lengths
            )
        else:
            _lay_out_compactly(
                lo, hi, first_end, every, highest, offsets, successors, counts, blocks, block_values, block_lengths,
                block_shared,
            )  # fmt: skip
    told[TASK], told[BLOCKED] = task, highest


# --- Wide copies -----------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _read(array, i):
    return (
        array[i], array[i + uintp(1)], array[i + uintp(2)], array[i + uintp(3)],
        array[i + uintp(4)], array[i + uintp(5)], array[i + uintp(6)], array[i + uintp(7)],
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _put(array, i, eight):
    array[i], array[i + uintp(1)], array[i + uintp(2)], array[i + uintp(3)] = eight[0], eight[1], eight[2], eight[3]
    array[i + uintp(4)], array[i + uintp(5)] = eight[4], eight[5]
    array[i + uintp(6)], array[i + uintp(7)] = eight[6], eight[7]


@njit(cache=True, nogil=True)
def copy_wide(target, to, source, begin, length):
    """Copy `length` values; up to seven more are read and written."""
    i, at, stop = uintp(begin), uintp(to), uintp(begin + length)
    while i < stop:
        _put(target, at, _read(source, i))
        i, at = i + EIGHT, at + EIGHT


@njit(inline="always")
def _rows_8(values, used, offsets, row, nodes, depth, wide, block, at, lengths, first, number):
    """Write rows of a prefix of up to 8 events and suffixes of up to 16, `wide` the longest of them."""
    w, s, j, o, d = uintp(used), uintp(at), uintp(first), uintp(row), uintp(depth)
    stop, wider = j + uintp(number), wide > 8
    while j < stop:
        _put(values, w, _read(nodes, ZERO))
        w += d
        _put(values, w, _read(block, s))
        if wider:
            _put(values, w + EIGHT, _read(block, s + EIGHT))
        length = uintp(lengths[j])
        w, s, j, o = w + length, s + length, j + ONE, o + ONE
        offsets[o] = w
    return np.int64(w)


@njit(inline="always")
def _rows_16(values, used, offsets, row, nodes, depth, wide, block, at, lengths, first, number):
    """Write rows of a prefix of up to 16 events and suffixes of up to 16, `wide` the longest of them."""
    w, s, j, o, d = uintp(used), uintp(at), uintp(first), uintp(row), uintp(depth)
    stop, wider = j + uintp(number), wide > 8
    while j < stop:
        _put(values, w, _read(nodes, ZERO))
        _put(values, w + EIGHT, _read(nodes, EIGHT))
        w += d
        _put(values, w, _read(block, s))
        if wider:
            _put(values, w + EIGHT, _read(block, s + EIGHT))
        length = uintp(lengths[j])
        w, s, j, o = w + length, s + length, j + ONE, o + ONE
        offsets[o] = w
    return np.int64(w)


@njit(inline="always")
def _rows_24(values, used, offsets, row, nodes, depth, wide, block, at, lengths, first, number):
    """Write rows of a prefix of up to 24 events and suffixes of up to 16, `wide` the longest of them."""
    w, s, j, o, d = uintp(used), uintp(at), uintp(first), uintp(row), uintp(depth)
    stop, wider = j + uintp(number), wide > 8
    while j < stop:
        _put(values, w, _read(nodes, ZERO))
        _put(values, w + EIGHT, _read(nodes, EIGHT))
        _put(values, w + SIXTEEN, _read(nodes, SIXTEEN))
        w += d
        _put(values, w, _read(block, s))
        if wider:
            _put(values, w + EIGHT, _read(block, s + EIGHT))
        length = uintp(lengths[j])
        w, s, j, o = w + length, s + length, j + ONE, o + ONE
        offsets[o] = w
    return np.int64(w)


@njit(cache=True, nogil=True)
def _rows_of_any_length(values, used, offsets, row, nodes, depth, block, at, lengths, first, number):
    for j in range(first, first + number):
        copy_wide(values, used, nodes, 0, depth)
        length = lengths[j]
        copy_wide(values, used + depth, block, at, length)
        at += length
        used += depth + length
        row += 1
        offsets[row] = used
    return used


@njit(inline="always")
def _write_rows(values, used, offsets, row, nodes, depth, wide, block, at, lengths, first, number):
    """Write `number` rows of a block behind a prefix; return how many values there are then."""
    if wide <= 16:
        if depth <= 8:
            return _rows_8(values, used, offsets, row, nodes, depth, wide, block, at, lengths, first, number)
        if depth <= 16:
            return _rows_16(values, used, offsets, row, nodes, depth, wide, block, at, lengths, first, number)
        if depth <= 24:
            return _rows_24(values, used, offsets, row, nodes, depth, wide, block, at, lengths, first, number)
    return _rows_of_any_length(values, used, offsets, row, nodes, depth, block, at, lengths, first, number)


@njit(inline="always")
def _copy_raised(target, to, source, begin, length, by):
    """Copy `length` values, each raised by a number; up to seven more are read and written."""
    i, at, stop = uintp(begin), uintp(to), uintp(begin + length)
    while i < stop:
        a, b, c, d, e, f, g, h = _read(source, i)
        _put(target, at, (a + by, b + by, c + by, d + by, e + by, f + by, g + by, h + by))
        i, at = i + EIGHT, at + EIGHT


@njit(inline="always")
def _write_compactly(
    values, used, offsets, shared, row, nodes, depth, turn, block, at, ends, block_shared, first, begin, number
):
    """Write what is new in `number` rows of a block behind a prefix, from row `begin` of the block on.

    The row before shares `turn` events of the prefix; none where `begin` is not 0.
    """
    known, before = depth, np.int64(0)  # events of the first row that are in `nodes`, values of the rows before it
    if begin:
        for j in range(first, first + begin):  # each row upon the one before it
            copy_wide(nodes, depth + block_shared[j], block, at + before, ends[j] - before)
            before = np.int64(ends[j])
        known = depth + block_shared[first + begin]
    copy_wide(values, used, nodes, turn, known - turn)
    used += known - turn
    after = np.int64(ends[first + begin + number - 1])
    copy_wide(values, used, block, at + before, after - before)
    _copy_raised(shared, row, block_shared, first + begin, number, depth)
    shared[row] = turn
    _copy_raised(offsets, row + 1, ends, first + begin, number, used - before)
    return used + after - before


# --- The walk --------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _fitting(used, room, each, lengths, first, number):
    """Return how many rows of a block fit, which take their lengths and `each` more."""
    for k in range(number):
        used += each + lengths[first + k]
        if used > room:
            return k
    return number


@njit(cache=True, nogil=True)
def _fitting_compactly(used, room, ends, first, begin, number):
    """Return how many rows fit, of which only what is new is written; `used` counts the head of the first already."""
    before = ends[first + begin - 1] if begin else 0
    for k in range(number):
        if used + ends[first + begin + k] - before > room:
            return k
    return number


@njit(cache=True, nogil=True)
def _walk(
    state, numbers, nodes, places, lo, hi, first_end, single, every, offsets, successors, latest, ok,
    highest, counts, blocks, block_values, block_lengths, block_shared,
    values, ends, shared, row, used,
):  # fmt: skip
    """Write paths of one stretch until it is over or no more fit; return rows, values and whether no more fit."""
    room, rows_room = values.shape[0] - SPARE, ends.shape[0] - SPARE
    depth, cursor, fresh = state[DEPTH], state[CURSOR], state[FRESH]
    skip, left = numbers[SKIP], min(numbers[LEFT], np.uint64(state[REST]))
    wanted, full, over = left, False, False
    few = np.uint64(highest)
    stop = lo + 1 if single else hi
    turn = np.int64(0)  # how many events the next row shares with the one before
    while left > 0:
        if depth == 0:
            while cursor < stop and not _starts(cursor, lo, single, every, ok, latest):
                cursor += 1
            if cursor >= stop:
                over = True
                break
            y, turn = cursor, np.int64(0)
            cursor += 1
        else:
            x = nodes[depth - 1]
            if fresh:
                fresh = 0
                if _ends(x, hi, first_end, every, offsets, successors):
                    if skip > 0:
                        skip -= np.uint64(1)
                    else:
                        begin = np.int64(0) if shared is None else turn
                        if row >= rows_room or used + depth - begin > room:
                            fresh, full = 1, True
                            break
                        copy_wide(values, used, nodes, begin, depth - begin)
                        if shared is not None:
                            shared[row] = turn
                        used += depth - begin
                        row += 1
                        ends[row] = used
                        left -= np.uint64(1)
                        turn = depth
                        continue
            i = places[depth - 1]
            if i >= offsets[x + 1] or successors[i] >= hi:
                depth -= 1
                turn = min(turn, depth)
                continue
            y = np.int64(successors[i])
            places[depth - 1] = i + 1
        here = y - lo
        count = counts[here]
        if count <= skip:
            skip -= count
            continue
        if count > few:
            nodes[depth], places[depth] = y, offsets[y]
            depth, fresh = depth + 1, 1
            continue
        begin, rest = np.int64(skip), np.int64(count - skip)
        number = np.int64(min(np.uint64(rest), left, np.uint64(rows_room - row)))
        at, first, size = blocks[here, AT], blocks[here, ROW], blocks[here, SIZE]
        if shared is None:
            for j in range(begin):
                at += block_lengths[first + j]
            if used + number * depth + size > room:
                number = _fitting(used, room, depth, block_lengths, first + begin, number)
            used = _write_rows(
                values, used, ends, row, nodes, depth, blocks[here, WIDEST], block_values, at, block_lengths,
                first + begin, number,
            )  # fmt: skip
        else:
            head = depth - turn + (block_shared[first + begin] if begin else 0)
            if used + head + size > room:
                number = _fitting_compactly(used + head, room, block_lengths, first, begin, number)
            if number > 0:
                used = _write_compactly(
                    values, used, ends, shared, row, nodes, depth, turn, block_values, at, block_lengths, block_shared,
                    first, begin, number,
                )  # fmt: skip
        row += number
        left -= np.uint64(number)
        turn, skip = depth, np.uint64(0)
        if number < rest:  # the block is to be gone on with
            skip = np.uint64(begin + number)
            if depth == 0:
                cursor -= 1
            else:
                places[depth - 1] -= 1
            if left > 0:
                full = True
                break
    written = wanted - left
    state[DEPTH], state[CURSOR], state[FRESH] = depth, cursor, fresh
    numbers[SKIP], numbers[LEFT] = skip, np.uint64(0) if over else numbers[LEFT] - written
    state[REST] -= np.int64(written)
    return row, used, full


@njit(cache=True, nogil=True)
def fill(
    state, numbers, nodes, places, tasks, first, size, lo, hi, first_end, single, every, offsets, successors, latest,
    ok, told, counts, blocks, block_values, block_lengths, block_shared, values, ends, shared,
):  # fmt: skip
    """Write the next paths until a buffer is full or as many are written as `state[REST]` tells.

    `values` gets the events of the paths one after another and `ends` where each ends, after a 0. Where `shared` is
    not None, it gets the number of leading events that a path shares with the one before it in the buffers and in its
    stretch, and `values` only the others. `state[ROWS]` and `state[VALUES]` tell how many of each.
    """
    row = used = np.int64(0)
    ends[0] = 0
    full = False
    while not full and state[STRETCH] < tasks.shape[0] and state[REST] > 0:
        at = state[STRETCH]
        task = tasks[at]
        if told[TASK] != task:
            make_ready(
                told, task, lo[task], hi[task], first_end[task], every, size[at], offsets, successors, ok,
                counts, blocks, block_values, block_lengths, block_shared,
            )  # fmt: skip
        if not state[READY]:
            state[READY], state[CURSOR], state[DEPTH], state[FRESH] = 1, lo[task], 0, 0
            numbers[SKIP], numbers[LEFT] = first[at], size[at]
        row, used, full = _walk(
            state, numbers, nodes, places, lo[task], hi[task], first_end[task], single, every, offsets, successors,
            latest, ok, told[BLOCKED], counts, blocks, block_values, block_lengths,
            block_shared, values, ends, shared, row, used,
        )  # fmt: skip
        if numbers[LEFT] == 0:
            state[STRETCH] += 1
            state[READY] = 0
    state[ROWS], state[VALUES] = row, used


@njit(cache=True, nogil=True)
def stand_on(path, state, nodes, places, offsets, successors):
    """Let a walk begin with the path given, whatever its rank."""
    length = path.shape[0]
    for d in range(length):
        x = path[d]
        nodes[d], places[d] = x, offsets[x]
        if d + 1 < length:
            inner = np.searchsorted(successors[offsets[x] : offsets[x + 1]], path[d + 1])
            places[d] += inner + 1
    state[DEPTH], state[FRESH], state[CURSOR] = length, 1, path[0] + 1


@njit(cache=True, nogil=True)
def expanded_places(shared, offsets):
    """Return where whole rows begin and end, and where their values are, given what each row shares with the last.

    The values of row r that are new are those from `offsets[r]` to `offsets[r + 1]`. Where a row shares more than the
    last one has, there are no places.
    """
    rows = shared.shape[0]
    whole = np.zeros(rows + 1, np.int64)
    length = np.int64(0)
    for row in range(rows):
        if shared[row] > length or shared[row] < 0:
            whole[rows] = 1
            return whole, np.empty(0, np.int64)
        length = shared[row] + np.int64(offsets[row + 1] - offsets[row])
        whole[row + 1] = whole[row] + length
    places = np.empty(whole[rows], np.int64)
    for row in range(rows):
        at = whole[row]
        for k in range(shared[row]):
            places[at + k] = places[whole[row - 1] + k]
        for k in range(whole[row + 1] - at - shared[row]):
            places[at + shared[row] + k] = offsets[row] + k
    return whole, places
