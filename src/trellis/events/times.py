"""Text that tells a time, made timestamps: ISO 8601, or a pattern as Java and Spark write it."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from trellis.errors import UsageError, warn
from trellis.events.columns.arrow import Array, Chunked, pc

TIMESTAMP, NAIVE = pa.timestamp("us", tz="UTC"), pa.timestamp("us")

_DATE = r"(?P<y>[0-9]{4})-(?P<mo>0[1-9]|1[0-2])-(?P<d>0[1-9]|[12][0-9]|3[01])"
_MINUTE = r"(?P<h>[01][0-9]|2[0-3]):(?P<mi>[0-5][0-9])"
_SECOND = r":(?P<s>[0-5][0-9])(?:\.(?P<f>[0-9]{1,6})0*)?"
_ZONE = r"(?P<z>Z|[+-](?:0[0-9]|1[0-7]):[0-5][0-9]|[+-]18:00)"

ISO = rf"\A{_DATE}(?:[T ]{_MINUTE}(?:{_SECOND})?{_ZONE}?)?\z"
"""ISO 8601 dates and times; from the seventh on, digits of a fraction must be 0. For RE2 and Java alike."""

SLASHED = r"\A[0-9]{4}/[0-9]{2}/[0-9]{2} [0-9]{2}:[0-9]{2}(:[0-9]{2})?\z"
"""`yyyy/MM/dd HH:mm[:ss]`; it is a time if it is one under `ISO` with `-` for `/`."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FULL_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_DIGITS = {"M": "mo", "d": "d", "H": "h", "h": "h12", "m": "mi", "s": "s"}
_ZONES = {
    "X": r"Z|[+-][0-9]{2}(?:[0-9]{2})?",
    "XX": r"Z|[+-][0-9]{4}",
    "XXX": r"Z|[+-][0-9]{2}:[0-9]{2}",
    "x": r"[+-][0-9]{2}(?:[0-9]{2})?",
    "xx": r"[+-][0-9]{4}",
    "xxx": r"[+-][0-9]{2}:[0-9]{2}",
    "Z": r"[+-][0-9]{4}",
}
_KNOWN_LETTERS = "Known: y u M d H h m s S a X x Z, text in single quotes, and [ ] around what may be missing."

_FIRST = np.datetime64("0001-01-01", "us").astype(np.int64)
_END = np.datetime64("10000-01-01", "us").astype(np.int64)

Numbers = npt.NDArray[np.int64]


def parse_times(column: Array | Chunked, time_format: str | None = None) -> Array:
    """Convert text to timestamps, with NULL where it tells no time.

    Parameters
    ----------
    column
        Text.
    time_format
        A pattern such as `dd.MM.yyyy HH:mm:ss`, in the letters of Java and Spark. Without one: ISO 8601
        (`yyyy-MM-dd`, alone or followed by `T` or a blank and `HH:mm[:ss[.ffffff]]`, then perhaps `Z` or an
        offset such as `+01:00`) and `yyyy/MM/dd HH:mm[:ss]`.

    Returns
    -------
    pyarrow.Array
        Timestamps in microseconds: without a zone where there are some and none has one, with a pattern where it has
        no letter for zones; else in UTC, which is also taken for text without a zone. A day that does not exist (30
        February), a fraction finer than microseconds, and years other than 1 to 9999 give NULL.

    Raises
    ------
    UsageError
        If the pattern is wrong.
    """
    pattern = None if time_format is None else java_pattern_to_regex(time_format)
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    parsed = [_parse(chunk.cast(pa.string()), pattern) for chunk in chunks]
    told = {chunk.type for chunk in parsed if chunk.null_count < len(chunk)}
    naive = told == {NAIVE} if pattern is None else not has_zone(pattern)
    type_ = NAIVE if naive else TIMESTAMP
    return pa.concat_arrays([pa.array([], type_), *(chunk.cast(type_) for chunk in parsed)])


def has_zone(pattern: str) -> bool:
    """Return whether times that a pattern of `java_pattern_to_regex` reads have a zone."""
    return "(?P<z>" in pattern


ZONED = r"(Z|[+-][0-9]{2}:?[0-9]{2})\z"


def warn_of_zones(text: Array | Chunked, times: Array | Chunked, name: str) -> None:
    """Warn of texts that tell times, some with a zone and some without; `times` are what they tell."""
    if not pa.types.is_timestamp(times.type) or times.type.tz is None:
        return
    plain = text.cast(pa.string()).filter(pc.is_valid(times))
    plain = plain.filter(pc.match_substring_regex(plain, ":"))  # a date has none either way
    zoned = pc.sum(pc.match_substring_regex(plain, ZONED)).as_py() or 0
    if 0 < zoned < len(plain):
        warn(f"in the column `{name}` {zoned:,} of {len(plain):,} times have a zone; the others are taken as UTC")


UNREADABLE = b"trellis.unreadable."  # metadata of a table: the first text in a column of times that tells no time


def with_parsed_times(table: pa.Table, name: str, times: Array | Chunked) -> pa.Table:
    """Return a table with a column of text replaced by the times that it tells, and its first text that tells none."""
    text = table[name]
    place = table.column_names.index(name)
    table = table.set_column(place, name, times)
    if times.null_count == text.null_count:
        return table
    lost = pc.and_(pc.is_null(times), pc.is_valid(text))
    first = text.filter(lost)[0].as_py()
    metadata = dict(table.schema.metadata or {}) | {UNREADABLE + name.encode(): str(first).encode()}
    return table.replace_schema_metadata(metadata)


def unreadable_text(table: pa.Table, name: str) -> dict[str, object]:
    """Return the first text in a column of times that told none, by the column's name, if it is known."""
    text = (table.schema.metadata or {}).get(UNREADABLE + name.encode())
    return {} if text is None else {name: text.decode()}


def _parse(text: Array, pattern: str | None) -> Array:
    """Return the times of texts; without a zone where none of them has one."""
    if pattern is not None:
        return parse_by_parts(text, pattern)
    slashed = pc.match_substring_regex(text, SLASHED)
    if pc.any(slashed).as_py():
        text = pc.if_else(slashed, pc.replace_substring(text, "/", "-"), text)
    fast = _by_cast(text)
    return fast if fast is not None else parse_by_parts(text, ISO)


def _by_cast(text: Array) -> Array | None:
    """Parse with Arrow's own quick parser, where all is plain; None where it is not."""
    if not pc.all(pc.match_substring_regex(text, ISO)).as_py():
        return None
    for kind in (TIMESTAMP, NAIVE):  # Arrow refuses text without a zone for the one, and text with one for the other
        try:
            times = text.cast(kind)
        except pa.ArrowInvalid:
            continue
        ends = pc.min_max(times.cast(pa.int64())).as_py()
        return times if ends["min"] is None or (ends["min"] >= _FIRST and ends["max"] < _END) else None
    return None


def parse_by_parts(text: Array, pattern: str) -> Array:
    """Cut each text into year, month, ... by the groups of `pattern`, and compute."""
    struct = pc.extract_regex(text, pattern)
    found = pc.is_valid(struct).to_numpy(zero_copy_only=False)
    names = [struct.type.field(i).name for i in range(struct.type.num_fields)]
    parts = {name: pc.fill_null(pc.struct_field(struct, [i]), "") for i, name in enumerate(names)}
    micros, valid = _compute(parts, len(text))
    told = found & valid
    zoned = "z" in parts and pc.any(pc.not_equal(parts["z"], "").filter(pa.array(told))).as_py()
    return pa.array(micros, mask=~told).cast(TIMESTAMP if zoned else NAIVE)


def _compute(parts: dict[str, Array], size: int) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    year = _integers(parts, "yy", size, 0) + 2000 if "yy" in parts else _integers(parts, "y", size, 1970)
    month = _month(parts, size)
    day = _integers(parts, "d", size, 1)
    hour, hour_valid = _hour(parts, size)
    minute, second = _integers(parts, "mi", size, 0), _integers(parts, "s", size, 0)
    months = (year - 1970) * 12 + month - 1
    days = months.astype("M8[M]").astype("M8[D]") + (day - 1)
    offset, offset_valid = _offset(parts, size)
    seconds = days.astype(np.int64) * 86_400 + hour * 3_600 + minute * 60 + second - offset
    micros = seconds * 1_000_000 + _fraction(parts, size)
    valid = (month >= 1) & (month <= 12) & (day >= 1) & (days.astype("M8[M]").astype(np.int64) == months)
    valid &= hour_valid & (minute < 60) & (second < 60) & offset_valid
    return micros, valid & (micros >= _FIRST) & (micros < _END)


def _integers(parts: dict[str, Array], name: str, size: int, default: int) -> Numbers:
    if name not in parts:
        return np.full(size, default, np.int64)
    text = parts[name]
    digits = pc.if_else(pc.equal(text, ""), str(default), text)
    numbers: Numbers = digits.cast(pa.int64()).to_numpy()
    return numbers


def _month(parts: dict[str, Array], size: int) -> Numbers:
    if "mon" not in parts:
        return _integers(parts, "mo", size, 1)
    short = pc.utf8_slice_codeunits(pc.utf8_lower(parts["mon"]), 0, 3)
    month: Numbers = pc.fill_null(pc.index_in(short, pa.array(_MONTHS)), 0).to_numpy().astype(np.int64) + 1
    return month


def _hour(parts: dict[str, Array], size: int) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    if "h12" not in parts:
        hour = _integers(parts, "h", size, 0)
        return hour, hour < 24
    hour = _integers(parts, "h12", size, 12)
    valid = (hour >= 1) & (hour <= 12)
    afternoon = 0
    if "a" in parts:
        afternoon = pc.equal(pc.utf8_lower(parts["a"]), "pm").to_numpy(zero_copy_only=False) * 12
    return hour % 12 + afternoon, valid


def _fraction(parts: dict[str, Array], size: int) -> Numbers:
    if "f" not in parts:
        return np.zeros(size, np.int64)
    micros: Numbers = pc.utf8_rpad(parts["f"], 6, "0").cast(pa.int64()).to_numpy()
    return micros


def _offset(parts: dict[str, Array], size: int) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """Return the seconds that the zone is ahead of UTC, and whether such a zone exists."""
    if "z" not in parts:
        return np.zeros(size, np.int64), np.ones(size, np.bool_)
    digits = pc.replace_substring(parts["z"], ":", "")
    signed = pc.if_else(pc.is_in(digits, pa.array(["", "Z"])), "+0000", digits)
    numbers = pc.utf8_slice_codeunits(pc.utf8_rpad(signed, 5, "0"), 1).cast(pa.int64()).to_numpy()
    hours, minutes = numbers // 100, numbers % 100
    sign = np.where(pc.starts_with(signed, "-").to_numpy(zero_copy_only=False), -1, 1)
    valid = (minutes < 60) & (hours * 60 + minutes <= 18 * 60)
    return sign * (hours * 3_600 + minutes * 60), valid


def java_pattern_to_regex(time_format: str) -> str:
    """Translate a pattern such as `dd.MM.yyyy HH:mm` to a regular expression with a group for each part.

    Raises
    ------
    UsageError
        If it holds an unknown letter, an open quote or bracket, or the same part twice.
    """
    tokens = [m.group() for m in re.finditer(r"'(?:[^']|'')*'|([A-Za-z])\1*|.", time_format, re.DOTALL)]
    regex = r"\A" + "".join(_token_to_regex(token, time_format) for token in tokens) + r"\z"
    return _checked(regex, time_format)


def _token_to_regex(token: str, time_format: str) -> str:
    if token.isascii() and token[0].isalpha():
        return _letters_to_regex(token, time_format)
    if token in "[]":
        return "(?:" if token == "[" else ")?"
    if token == "''":
        return "'"
    if len(token) > 1:
        return re.escape(token[1:-1].replace("''", "'"))
    if token in "'#{}":
        raise UsageError(f"The time format `{time_format}` holds a lone `{token}`.", _KNOWN_LETTERS)
    return re.escape(token)


def _letters_to_regex(token: str, time_format: str) -> str:
    letter, width = token[0], len(token)
    if token in _ZONES:
        return f"(?P<z>{_ZONES[token]})"
    if letter == "a" and width == 1:
        return "(?P<a>(?i:am|pm))"
    if letter == "M" and width in (3, 4):
        return f"(?P<mon>(?i:{'|'.join(_MONTHS) if width == 3 else _FULL_MONTHS}))"
    if letter in "yu" and width in (1, 2, 4):
        return "(?P<yy>[0-9]{2})" if width == 2 else "(?P<y>[0-9]{4})"
    if letter == "S" and width <= 9:
        return f"(?P<f>[0-9]{{{min(width, 6)}}}){'0' * (width - 6)}"
    if letter in _DIGITS and width <= 2:
        return f"(?P<{_DIGITS[letter]}>[0-9]{{{width},2}})"
    raise UsageError(f"`{token}` in the time format `{time_format}` is unknown.", _KNOWN_LETTERS)


def _checked(regex: str, time_format: str) -> str:
    names = re.findall(r"\?P<(\w+)>", regex)
    if not names:
        raise UsageError(f"The time format `{time_format}` names no part of a time.", _KNOWN_LETTERS)
    parts = [{"yy": "y", "mon": "mo", "h12": "h"}.get(name, name) for name in names]
    twice = len(parts) != len(set(parts))
    try:
        pc.extract_regex(pa.array([""]), regex)
    except pa.ArrowInvalid:
        twice = True
    if twice:
        what = f"The time format `{time_format}` names a part of the time twice or leaves a bracket open."
        raise UsageError(what, _KNOWN_LETTERS)
    return regex
