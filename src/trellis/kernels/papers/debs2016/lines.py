"""Lines of the DEBS 2016 files, from bytes to numbers and back; texts and names stay where they lie.

posts          ts|post|user|text|user name
comments       ts|comment|user|text|user name|replied comment|replied post
likes          ts|user|comment
friendships    ts|user|user
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types

from trellis.kernels.jit import njit
from trellis.kernels.papers.debs2016.tables import lean

POST, COMMENT, LIKE, FRIENDSHIP = 0, 1, 2, 3  # kinds of lines
# An event that was read: whether there is one, its line, its time, its ids, its text (a post's: its user name), and
# when it was read, if someone wants to know.
READ, BEGIN, TIME, ID, USER, PARENT, PARENT_IS_POST, TEXT, TEXT_SIZE, STAMP = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
EVENT_FIELDS = 10
# What is counted of each source, the time of the last event that was read, and of the last that was taken.
LINES, MALFORMED, DISORDERED, LATEST, TAKEN, SOURCE_FIELDS = 0, 1, 2, 3, 4, 5
# The first of the single numbers of a query: whether it stops at each line of output and stamps events, how much it has
# written, when the event was read that brought about the last line, and the number of lines.
EAGER, STAMPED, OUT, OUT_STAMP, LINES_OUT, RUN_NUMBERS = 0, 1, 2, 3, 4, 5
# Why a query returns: it is done, the output is full, the state needs room, a line was written and the caller is eager;
# WAITS + s: it needs lines of the source s.
DONE, FULL, ROOM, WRITTEN, WAITS = 0, 1, 2, 3, 4

DAY = 86_400_000  # milliseconds
NEVER = np.int64(2**62)
TIME_SIZE = 28
LAST_YEAR = 9998  # so that what is printed ten days later has a year of four digits
BAR, NEWLINE, RETURN, MINUS, ZERO = 124, 10, 13, 45, 48
_MOST = np.int64(2**63 - 1)
_ONE = np.uint64(1)

_clock_gettime = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.CPointer(types.int64)))
_MONOTONIC = np.int32(1)  # as Python's perf_counter


@lean
def nanoseconds(pair):
    """Return the monotonic clock; `pair` is an array of two numbers to write on."""
    _clock_gettime(_MONOTONIC, pair.ctypes)
    return pair[0] * 1_000_000_000 + pair[1]


@lean
def _digits(data, at, number):
    """Return a number of so many digits, or -1."""
    value = np.int64(0)
    for i in range(np.uint64(at), np.uint64(at + number)):
        digit = np.int64(data[i]) - ZERO
        if digit < 0 or digit > 9:
            return -1
        value = 10 * value + digit
    return value


@lean
def _days(year, month, day):
    """Return the days from 1970-01-01 to a date, or `NEVER` if there is no such date."""
    if month < 1 or month > 12 or day < 1 or day > 31:
        return NEVER
    if day == 31 and (month == 4 or month == 6 or month == 9 or month == 11):
        return NEVER
    leap = (year % 4 == 0 and year % 100 != 0) or year % 400 == 0
    if month == 2 and day > (29 if leap else 28):
        return NEVER
    y = year - 1 if month <= 2 else year
    era = y // 400
    of_era = y - era * 400
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


@lean
def read_time(data, at, end):
    """Return the milliseconds of `YYYY-MM-DDTHH:MM:SS.mmm+0000`, or `NEVER`."""
    if end - at != TIME_SIZE:
        return NEVER
    if data[at + 4] != MINUS or data[at + 7] != MINUS or data[at + 10] != 84 or data[at + 13] != 58:
        return NEVER
    if data[at + 16] != 58 or data[at + 19] != 46 or data[at + 23] != 43 or _digits(data, at + 24, 4) != 0:
        return NEVER
    year, month, day = _digits(data, at, 4), _digits(data, at + 5, 2), _digits(data, at + 8, 2)
    hour, minute, second = _digits(data, at + 11, 2), _digits(data, at + 14, 2), _digits(data, at + 17, 2)
    millis = _digits(data, at + 20, 3)
    if year < 0 or year > LAST_YEAR or hour < 0 or hour > 23 or minute < 0 or minute > 59:
        return NEVER
    if second < 0 or second > 59 or millis < 0:
        return NEVER
    days = _days(year, month, day)
    if days == NEVER:
        return NEVER
    return days * DAY + ((hour * 60 + minute) * 60 + second) * 1000 + millis


@lean
def _read_id(data, at, end):
    """Return whether a field is a whole number of 64 bits, and the number."""
    minus = at < end and data[at] == MINUS
    if minus:
        at += 1
    if at == end or end - at > 19:
        return False, np.int64(0)
    value = np.int64(0)
    for i in range(np.uint64(at), np.uint64(end)):
        digit = np.int64(data[i]) - ZERO
        if digit < 0 or digit > 9 or value > (_MOST - digit) // 10:
            return False, np.int64(0)
        value = 10 * value + digit
    return True, -value if minus else value


@lean
def _read_parent(data, at, end):
    """Return whether a field may be a parent, whether it names one, and its id."""
    if at == end:
        return True, False, np.int64(0)
    good, value = _read_id(data, at, end)
    return good, good and value != -1, value


@lean
def _read_fields(data, begin, end, bars, number, kind, event):
    """Read a line whose bars are known; return whether it is well-formed."""
    if kind == POST:
        if number != 4:
            return False
    elif kind == COMMENT:
        if number != 6:
            return False
    elif number != 2 and not (number == 3 and bars[2] == end - 1):
        return False
    time = read_time(data, begin, bars[0])
    good, first = _read_id(data, bars[0] + 1, bars[1])
    if time == NEVER or not good:
        return False
    good, second = _read_id(data, bars[1] + 1, bars[2] if number > 2 else end)
    if not good:
        return False
    if kind == COMMENT:
        good, of_comment, comment = _read_parent(data, bars[4] + 1, bars[5])
        well, of_post, post = _read_parent(data, bars[5] + 1, end)
        if not good or not well or of_comment == of_post:
            return False
        event[PARENT] = post if of_post else comment
        event[PARENT_IS_POST] = 1 if of_post else 0
    if kind in (POST, COMMENT):
        text, text_end = (bars[3] + 1, end) if kind == POST else (bars[2] + 1, bars[3])
        event[TEXT] = text
        event[TEXT_SIZE] = text_end - text
    event[BEGIN] = begin
    event[TIME] = time
    # A like names its user first.
    event[ID] = second if kind == LIKE else first
    event[USER] = first if kind == LIKE else second
    return True


@lean
def read_event(data, at, kind, event, source, bars):
    """Read on from `at` to the next good line; count the others.

    Returns
    -------
    int
        Where the next line begins. `event[READ]` tells whether there was a good one.
    """
    end = data.shape[0]
    while at < end:
        number = 0
        place = np.uint64(at)  # without a sign, so that it cannot count from the end: a third of the time
        while place < np.uint64(end):
            byte = data[place]
            if byte == BAR:
                if number < 7:
                    bars[number] = np.int64(place)
                number += 1
            elif byte == NEWLINE:
                break
            place += _ONE
        stop = np.int64(place)
        begin, at = at, stop + 1
        if stop > begin and data[stop - 1] == RETURN:
            stop -= 1
        if stop == begin:
            continue
        source[LINES] += 1
        if not _read_fields(data, begin, stop, bars, number, kind, event):
            source[MALFORMED] += 1
        elif event[TIME] < source[LATEST]:
            source[DISORDERED] += 1
        else:
            source[LATEST] = event[TIME]
            event[READ] = 1
            return at
    event[READ] = 0
    return min(at, end)


class LineFeed(NamedTuple):
    """Where each source is read: see the page of the package; `bars` is scratch."""

    at: np.ndarray  # int64 (sources,)
    events: np.ndarray  # int64 (sources, EVENT_FIELDS)
    sources: np.ndarray  # int64 (sources, SOURCE_FIELDS)
    promises: np.ndarray  # int64 (sources,)
    bars: np.ndarray  # int64 (7,)


@lean
def read_next(data, number, kind, feed, numbers):
    """Have the next event of a source read, if it has one."""
    events, bars = feed.events, feed.bars
    if not events[number, READ]:
        feed.at[number] = read_event(data, feed.at[number], kind, events[number], feed.sources[number], bars)
        if numbers[STAMPED] and events[number, READ]:
            events[number, STAMP] = nanoseconds(bars)


@lean
def next_source(events, promises):
    """Return the source of the next event, its time, and a source that might still have an earlier one, or -1."""
    source, time = -1, NEVER
    for i in range(events.shape[0]):
        if events[i, READ] and events[i, TIME] < time:
            source, time = i, events[i, TIME]
    for i in range(events.shape[0]):
        if not events[i, READ] and promises[i] != NEVER:
            earlier = time < promises[i] or (time == promises[i] and source < i)
            if source < 0 or not earlier:
                return source, time, i
    return source, time, -1


@njit(cache=True, nogil=True)
def line_times(data):
    """Return where lines begin and end and their times, to sort them; a malformed one has the time of the one before.

    Returns
    -------
    begins, ends, times
        An end is behind the newline.
    """
    number = 0
    for i in range(data.shape[0]):
        number += data[i] == NEWLINE
    begins = np.empty(number + 1, np.int64)
    ends = np.empty(number + 1, np.int64)
    times = np.empty(number + 1, np.int64)
    found, at, last = 0, 0, -NEVER
    while at < data.shape[0]:
        stop = at
        bar = -1
        while stop < data.shape[0] and data[stop] != NEWLINE:
            if bar < 0 and data[stop] == BAR:
                bar = stop
            stop += 1
        time = read_time(data, at, bar)
        last = last if time == NEVER else time
        begins[found], ends[found], times[found] = at, min(stop + 1, data.shape[0]), last
        found += 1
        at = stop + 1
    return begins[:found], ends[:found], times[:found]


@lean
def _write_digits(out, at, value, number):
    for i in range(number - 1, -1, -1):
        out[at + i] = ZERO + value % 10
        value //= 10
    return at + number


@lean
def write_time(out, at, millis):
    """Write a time as it is read; return where it ends."""
    days = millis // DAY
    rest = millis - days * DAY
    z = days + 719_468
    era = z // 146_097
    of_era = z - era * 146_097
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    year = year_of_era + era * 400 + (1 if month <= 2 else 0)
    at = _write_digits(out, at, year, 4)
    out[at] = MINUS
    at = _write_digits(out, at + 1, month, 2)
    out[at] = MINUS
    at = _write_digits(out, at + 1, of_year - (153 * shifted + 2) // 5 + 1, 2)
    out[at] = 84
    at = _write_digits(out, at + 1, rest // 3_600_000, 2)
    out[at] = 58
    at = _write_digits(out, at + 1, rest // 60_000 % 60, 2)
    out[at] = 58
    at = _write_digits(out, at + 1, rest // 1000 % 60, 2)
    out[at] = 46
    at = _write_digits(out, at + 1, rest % 1000, 3)
    out[at] = 43
    return _write_digits(out, at + 1, 0, 4)


@lean
def write_number(out, at, value):
    """Write a number; return where it ends."""
    if value < 0:
        out[at] = MINUS
        at += 1
        value = -value  # ids have a positive counterpart: see `_read_id`
    size, rest = 1, value // 10
    while rest > 0:
        size += 1
        rest //= 10
    return _write_digits(out, at, value, size)
