"""Text to times: what is read, what is NULL, and that the quick way and the careful way agree."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.errors import UsageError
from trellis.events.times import ISO, NAIVE, TIMESTAMP, parse_by_parts, parse_times

UTC = datetime.UTC


def one(text: str, time_format: str | None = None) -> str | None:
    value = parse_times(pa.array([text]), time_format)[0].as_py()
    return None if value is None else value.replace(tzinfo=value.tzinfo or UTC).isoformat()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-02-29", "2024-02-29T00:00:00+00:00"),
        ("2024-01-02T03:04", "2024-01-02T03:04:00+00:00"),
        ("2024-01-02 03:04:05", "2024-01-02T03:04:05+00:00"),
        ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05+00:00"),
        ("2024-01-02T03:04:05.1", "2024-01-02T03:04:05.100000+00:00"),
        ("2024-01-02T03:04:05.123456Z", "2024-01-02T03:04:05.123456+00:00"),
        ("2024-01-02T03:04:05.123456000", "2024-01-02T03:04:05.123456+00:00"),
        ("2024-01-02T03:04:05+01:30", "2024-01-02T01:34:05+00:00"),
        ("2024-01-02T03:04-18:00", "2024-01-02T21:04:00+00:00"),
        ("1969-12-31T23:59:59.999999", "1969-12-31T23:59:59.999999+00:00"),
        ("0001-01-01", "0001-01-01T00:00:00+00:00"),
        ("9999-12-31T23:59:59", "9999-12-31T23:59:59+00:00"),
        ("2024/01/02 03:04", "2024-01-02T03:04:00+00:00"),
        ("2024/01/02 03:04:05", "2024-01-02T03:04:05+00:00"),
    ],
)
def test_times(text: str, expected: str) -> None:
    assert one(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        " 2024-01-01",
        "2024-01-01 ",
        "2024-01-01\n",
        "2023-02-29",
        "2024-02-30",
        "2024-04-31T00:00",
        "2024-13-01",
        "2024-00-01",
        "2024-01-00",
        "2024-1-1",
        "24-01-01",
        "0000-01-01",
        "0001-01-01T00:00+00:01",
        "9999-12-31T23:59-00:01",
        "2024-01-01T24:00",
        "2024-01-01T00:60",
        "2024-01-01T00:00:60",
        "2024-01-01T00",
        "2024-01-01T",
        "2024-01-01Z",
        "2024-01-01T00:00:00.",
        "2024-01-01T00:00:00.1234567",
        "2024-01-01T00:00:00z",
        "2024-01-01T00:00:00+0100",
        "2024-01-01T00:00:00+18:01",
        "2024-01-01T00:00:00+19:00",
        "2024/01/02",
        "2024/01/02T03:04",
        "2024/01/02 03:04Z",
        "2024/02/30 03:04",
        "2024/01-02 03:04",
        "20240101",
        "1704067200",
    ],
)
def test_no_times(text: str) -> None:
    assert one(text) is None


def test_null_stays_null_and_others_are_unharmed() -> None:
    column = pa.chunked_array([["2024-01-01", None, "bad"], ["2024-01-02T00:00+01:00"], []], pa.string())
    parsed = parse_times(column)
    assert parsed.type == TIMESTAMP
    assert [v.is_valid for v in parsed] == [True, False, False, True]


def test_empty_columns() -> None:
    assert parse_times(pa.chunked_array([], pa.string())).type == TIMESTAMP
    assert len(parse_times(pa.array([], pa.string()))) == 0
    assert parse_times(pa.array([None], pa.string())).null_count == 1
    assert len(parse_times(pa.array([], pa.string()), "yy")) == 0


@given(st.lists(st.datetimes(datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30)), min_size=1))
def test_the_quick_way_and_the_careful_way_agree(moments: list[datetime.datetime]) -> None:
    texts = pa.array([m.isoformat() for m in moments])
    for zone, expected in (("", moments), ("Z", [m.replace(tzinfo=UTC) for m in moments])):
        zoned = pc.binary_join_element_wise(texts, zone, "")
        assert parse_times(zoned).to_pylist() == expected
        assert parse_by_parts(zoned, ISO).to_pylist() == expected


@given(st.text("0123456789-:/.TZ +", max_size=30))
def test_whatever_is_parsed_is_what_python_reads(text: str) -> None:
    parsed = parse_times(pa.array([text]))[0].as_py()
    assert (
        parse_by_parts(pa.array([text.replace("/", "-") if "/" in text and parsed else text]), ISO)[0].as_py() == parsed
    )
    if parsed is not None:
        read = datetime.datetime.fromisoformat(text.replace("/", "-"))
        assert parsed == read


@pytest.mark.parametrize(
    ("texts", "time_format", "naive"),
    [
        (["2024-01-01T10:00", "2024-01-02", None], None, True),
        (["2024/01/01 10:00", "2024-01-01 10:00:01.5"], None, True),
        (["2024-01-01T10:00+00:00", "2024-01-02", "2024-01-01T10:00"], None, False),
        (["2024-01-01T10:00", "2024-01-01T10:00:60Z"], None, True),  # a zone of what is no time
        ([None], None, False),  # nothing is told: the zone is kept open
        (["01.02.2024", None], "dd.MM.yyyy", True),
        (["01.02.2024"], "dd.MM.yyyy[ X]", False),
    ],
)
def test_times_are_naive_where_no_text_has_a_zone(
    texts: list[str | None], time_format: str | None, naive: bool
) -> None:
    whole = pa.array(texts, pa.string())
    for column in (whole, pa.chunked_array([whole.slice(0, 1), whole.slice(1)])):
        assert parse_times(column, time_format).type == (NAIVE if naive else TIMESTAMP)


@pytest.mark.parametrize(
    ("time_format", "text", "expected"),
    [
        ("dd.MM.yyyy HH:mm:ss", "02.01.2024 03:04:05", "2024-01-02T03:04:05+00:00"),
        ("d.M.yyyy H:mm", "2.1.2024 3:04", "2024-01-02T03:04:00+00:00"),
        ("yyyyMMddHHmmss", "20240102030405", "2024-01-02T03:04:05+00:00"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2024-01-02T03:04:05.678+01:00", "2024-01-02T02:04:05.678000+00:00"),
        ("yyyy-MM-dd HH:mm:ss[.SSS]", "2024-01-02 03:04:05", "2024-01-02T03:04:05+00:00"),
        ("MM/dd/yy hh:mm a", "01/02/24 12:05 AM", "2024-01-02T00:05:00+00:00"),
        ("MM/dd/yy hh:mm a", "01/02/24 12:05 pm", "2024-01-02T12:05:00+00:00"),
        ("dd/MMM/yyyy:HH:mm:ss Z", "02/Jan/2024:03:04:05 -0500", "2024-01-02T08:04:05+00:00"),
        ("d MMMM uuuu", "2 December 2024", "2024-12-02T00:00:00+00:00"),
        ("HH 'o''clock' yyyy", "07 o'clock 2024", "2024-01-01T07:00:00+00:00"),
        ("yyyy-MM-dd HH:mm:ss.SSSSSSSSS", "2024-01-02 03:04:05.123456000", "2024-01-02T03:04:05.123456+00:00"),
        ("yyyy-MM-dd HH:mm:ss.SSSSSSSSS", "2024-01-02 03:04:05.123456001", None),
        ("HH:mm", "10:30", "1970-01-01T10:30:00+00:00"),
        ("yyyy-MM-dd HH:mmX", "2024-01-02 03:04Z", "2024-01-02T03:04:00+00:00"),
        ("yyyy-MM-dd HH:mmX", "2024-01-02 03:04+01", "2024-01-02T02:04:00+00:00"),
        ("dd.MM.yyyy", "31.04.2024", None),
        ("dd.MM.yyyy", "01.13.2024", None),
        ("dd.MM.yyyy", "01x12x2024", None),
        ("dd.MM.yyyy HH:mm", "01.12.2024 24:00", None),
        ("dd.MM.yyyy hh:mm a", "01.12.2024 13:00 PM", None),
        ("dd.MM.yyyy HH:mmZ", "01.12.2024 10:00+1900", None),
        ("dd.MM.yyyy", "2024-01-01", None),
    ],
)
def test_time_formats(time_format: str, text: str, expected: str | None) -> None:
    assert one(text, time_format) == expected


KNOWN = "Known: y u M d H h m s S a X x Z, text in single quotes, and [ ] around what may be missing."


@pytest.mark.parametrize(
    ("time_format", "sentence"),
    [
        ("yyyy-QQ", "`QQ` in the time format `yyyy-QQ` is unknown."),
        ("yyy", "`yyy` in the time format `yyy` is unknown."),
        ("yyyy 'x", "The time format `yyyy 'x` holds a lone `'`."),
        ("", "The time format `` names no part of a time."),
        ("--", "The time format `--` names no part of a time."),
        ("yyyy [MM", "The time format `yyyy [MM` names a part of the time twice or leaves a bracket open."),
        ("yyyy yy", "The time format `yyyy yy` names a part of the time twice or leaves a bracket open."),
        ("HH HH", "The time format `HH HH` names a part of the time twice or leaves a bracket open."),
    ],
)
def test_wrong_time_formats(time_format: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_times(pa.array(["x"]), time_format)
    assert str(caught.value) == f"{sentence}\n{KNOWN}"
