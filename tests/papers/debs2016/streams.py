"""Random small files for the DEBS 2016 queries: few ids, equal times, and lines that are not as they should be."""

from __future__ import annotations

import datetime as dt

from hypothesis import strategies as st

START = dt.datetime(2010, 2, 27, 12)
TEXTS = [b"", b"-", b"a", b"b", b"B", b"a,b", b"\xff\xfe", b"\xc3\xa9", b"ab"]
NAMES = [b"Ann", b"B, C", b"", b"\xe9"]
BROKEN = [
    b"x", b"|", b"|||||||||", b"2010-02-30T00:00:00.000+0000|1|2", b"2010-03-01T00:00:00.000+0100|1|2",
    b"2010-03-01T00:00:00.000+0000|1|99999999999999999999", b"2010-03-01T00:00:00.000+0000|1|2|t|e|x|t|n||1",
    b"2010-03-01T00:00:00.000+0000|1|2|text|name|1|1", b"2010-03-01T00:00:00.000+0000|1|2|text|name||",
    b"2010-03-01T00:00:00.000+0000||2", b"2010-03-01 00:00:00.000+0000|1|2|text|name", b"\r",
    b"2010-03-01T25:00:00.000+0000|1|2|text|name", b"2010-03-01T00:00:00.000+0000|1|2|text|name|-1|-1",
]  # fmt: skip


def moment(time: dt.datetime) -> bytes:
    return time.strftime("%Y-%m-%dT%H:%M:%S.").encode() + b"%03d+0000" % (time.microsecond // 1000)


def lines(
    fields: st.SearchStrategy[bytes], gaps: st.SearchStrategy[dt.timedelta], most: int
) -> st.SearchStrategy[bytes]:
    """Files of lines in the order of time, with some that are broken or out of order."""

    @st.composite
    def file(draw: st.DrawFn) -> bytes:
        now, made = START, []
        for gap, rest, what in draw(st.lists(st.tuples(gaps, fields, st.integers(0, 29)), max_size=most)):
            now += gap
            if what == 0:
                made.append(draw(st.sampled_from(BROKEN)))
            time = now - dt.timedelta(hours=7) if what == 1 else now
            made.append(moment(time) + b"|" + rest)
        end = draw(st.sampled_from([b"\n", b"\n\n", b"\r\n", b""]))
        return b"\n".join(made) + (end if made else b"")

    return file()


def cells(*parts: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return st.tuples(*parts).map(b"|".join)


def ids(most: int) -> st.SearchStrategy[bytes]:
    return st.integers(1, most).map(lambda number: b"%d" % number)


def parents(missing: bytes) -> st.SearchStrategy[bytes]:
    return st.one_of(cells(st.just(missing), ids(5)), cells(ids(6), st.just(missing)))


PARENTS = st.one_of(parents(b""), parents(b"-1"))
HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)
DAYS = st.sampled_from([0 * DAY, 0 * DAY, HOUR, DAY, 2 * DAY, DAY - HOUR, 10 * DAY, 4 * DAY + HOUR])
SECONDS = st.sampled_from([0, 0, 1, 1, 2, 5]).map(lambda seconds: dt.timedelta(seconds=seconds))

POSTS = lines(cells(ids(5), ids(4), st.sampled_from(TEXTS), st.sampled_from(NAMES)), DAYS, 8)
COMMENTS = lines(cells(ids(6), ids(4), st.sampled_from(TEXTS), st.sampled_from(NAMES), PARENTS), DAYS, 16)
QUICK_COMMENTS = lines(cells(ids(6), ids(4), st.sampled_from(TEXTS), st.just(b"n"), PARENTS), SECONDS, 8)
LIKES = lines(cells(ids(6), ids(7)), SECONDS, 25)
FRIENDSHIPS = lines(st.one_of(cells(ids(6), ids(6)), cells(ids(6), ids(6), st.just(b""))), SECONDS, 25)
