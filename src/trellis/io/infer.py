"""Which type a column of text has: one rule, the same in this process and on Spark."""

from __future__ import annotations

import pyarrow as pa

from trellis.events.columns.arrow import Chunked, pc
from trellis.events.times import parse_times

INTEGER = r"\A-?(0|[1-9][0-9]*)\z"
NUMBER = r"\A(-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|nan|NaN|-?inf|-?Infinity)\z"
COMMA = r"\A-?[0-9]+,[0-9]+\z"  # a number with a comma, as `trellis.io.csv_files` reads it
BOOLEAN = r"\A(?i:true|false)\z"

_HEAD = 100


def infer_column(column: Chunked) -> Chunked:
    r"""Give a column of text the one type that all its values have.

    The first of these that holds for all values that are not NULL (an empty string is a value) decides:

    1. no values: text, or where there is no row at all, which tells nothing of the column, null;
    2. all match `INTEGER` (no leading zeros, no `+`): int64 if all fit, otherwise text, since a double
       would merge long ids;
    3. all match `NUMBER`: float64 (too large becomes infinite, as in Spark's cast);
    4. all match `BOOLEAN`, in any case: bool;
    5. all are times as `parse_times` reads them (they match `times.ISO`, or `times.SLASHED`, and the
       day exists): timestamp in microseconds, UTC;
    6. otherwise: text.

    Blanks are part of a value, so ` 5` is text. The expressions are anchored with `\A` and `\z` and read the
    same in RE2 and Java.

    Parameters
    ----------
    column
        All of the column, from all files: the rule is about all values together.

    Returns
    -------
    pyarrow.ChunkedArray
        The values in their type.
    """
    if len(column) == 0:
        return pa.chunked_array([], pa.null())
    values = column.drop_null()
    if len(values) == 0:
        return column
    if _all_match(values, INTEGER):
        return _integers(column)
    if _all_match(values, NUMBER):
        return column.cast(pa.float64())
    if _all_match(values, BOOLEAN):
        return pc.equal(pc.utf8_lower(column), "true")
    return infer_times(column)


def infer_times(column: Chunked) -> Chunked:
    """Make timestamps of text if every value is a time; otherwise give it back as it is."""
    head = column.drop_null().slice(0, _HEAD)
    if len(head) == 0 or parse_times(head).null_count:
        return column
    times = parse_times(column)
    return pa.chunked_array([times]) if times.null_count == column.null_count else column


def infer_most(column: Chunked, *, numbers: bool) -> Chunked:
    """Make times of text if more than half of its values are, with NULL for the others.

    Parameters
    ----------
    column
        Text.
    numbers
        Whether numbers are times too, as in CSV, where they are text at first.

    Returns
    -------
    pyarrow.ChunkedArray
        Timestamps or numbers, or the text itself where no kind has the majority.
    """
    present = len(column) - column.null_count
    times = parse_times(column)
    if 2 * (len(times) - times.null_count) > present:
        return pa.chunked_array([times])
    if not numbers or present == 0:
        return column
    numeric = pc.if_else(pc.match_substring_regex(column, NUMBER), column, pa.scalar(None, pa.string()))
    return infer_column(numeric) if 2 * (len(numeric) - numeric.null_count) > present else column


def _all_match(values: Chunked, pattern: str) -> bool:
    return _match(values.slice(0, _HEAD), pattern) and _match(values, pattern)


def _match(values: Chunked, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(values, pattern)).as_py())


def _integers(column: Chunked) -> Chunked:
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column
