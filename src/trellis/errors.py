"""The errors of Trellis: each says what is wrong, where, and what to do.

All errors that a user can cause derive from `TrellisError`; the command line prints them without a traceback and
exits with code 2.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
import unicodedata
import warnings
from collections.abc import Iterable

PACKAGE = os.path.dirname(__file__) + os.sep
WIDEST = 120  # characters of a line that a message shows
_PART = 3  # letters from which on a name may be meant as a part of a longer one


class TrellisError(Exception):
    """A mistake that the user can fix: in a query, an option, a file or the data.

    Parameters
    ----------
    what
        One sentence that says what is wrong.
    hint
        What to do about it, if that is known.
    """

    def __init__(self, what: str, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        return self.what if self.hint is None else f"{self.what}\n{self.hint}"

    def _render_traceback_(self) -> list[str]:
        """Return the lines that a notebook shows: the message alone; with `TRELLIS_DEBUG` its own traceback."""
        if os.environ.get("TRELLIS_DEBUG", "") not in ("", "0"):
            raise NotImplementedError("the notebook shows the whole traceback")
        return [f"{type(self).__name__}: {self}"]

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(kind: type[TrellisError], args: tuple[object, ...], state: dict[str, object]) -> TrellisError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class QueryError(TrellisError):
    """A mistake in the text of a query; shows line, column and a caret under the place.

    Parameters
    ----------
    what
        One sentence that says what is wrong.
    text
        The whole query text.
    start, end
        The range of characters that the caret underlines.
    hint
        What to do about it.
    """

    def __init__(self, what: str, text: str, start: int, end: int, hint: str | None = None) -> None:
        super().__init__(what, hint)
        self.text = text
        self.start = min(max(start, 0), len(text))
        self.end = max(end, self.start)

    @property
    def line(self) -> int:
        """The line of the place, from 1."""
        return self.text.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        """The column of the place, from 1, in characters."""
        return self.start - (self.text.rfind("\n", 0, self.start) + 1) + 1

    def __str__(self) -> str:
        begin = self.text.rfind("\n", 0, self.start) + 1
        stop = self.text.find("\n", self.start)
        line = self.text[begin : stop if stop >= 0 else len(self.text)].rstrip("\r")
        place = self.start - begin
        left = max(0, place - WIDEST // 2) if len(line) > WIDEST else 0
        if len(line) > WIDEST:
            line, place = _cut(line, left), place - left + (left > 0)
        indent = "".join("\t" if c == "\t" else " " * _width(c) for c in line[:place])
        caret = "^" * max(1, sum(_width(c) for c in line[place : place + self.end - self.start]))
        number = str(self.line)
        rows = [
            f"line {self.line}, column {self.column}: {self.what}",
            f"  {number} | {line}".rstrip(),
            f"  {' ' * len(number)} | {indent}{caret}",
        ]
        if self.hint is not None:
            rows.append(self.hint)
        return "\n".join(rows)


def _cut(line: str, left: int) -> str:
    """Return the part of a long line that begins at `left`, with dots where something is left out."""
    return ("…" if left else "") + line[left : left + WIDEST] + ("…" if left + WIDEST < len(line) else "")


def _width(character: str) -> int:
    """How many columns of a terminal a character takes."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class QuerySyntaxError(QueryError):
    """The text is not a query."""


class BindError(QueryError):
    """The query does not fit the columns, types or parameters it was given."""


class UsageError(TrellisError):
    """An option or argument is wrong."""


class OutOfRange(UsageError, IndexError):
    """There is no result at the position that was asked for."""


class DataError(TrellisError):
    """The events are wrong: a missing file, a bad row, a repeated id."""


class GroupTooLarge(DataError):
    """One window of one partition does not fit a machine, which has `count` bytes free."""

    def __init__(self, what: str, hint: str | None = None, count: int | None = None) -> None:
        super().__init__(what, hint)
        self.count = count


class OverflowInCondition(DataError):
    """A condition computed an integer that does not fit 64 bits."""


class OperatorFailed(TrellisError):
    """Code that a user wrote, an operator or a predicate, has raised an exception; in this process it is the cause."""


class MemoryExhausted(TrellisError):
    """There was not enough memory: says how much was taken, and what to try."""


class ListingRefused(TrellisError):
    """Listing would give more results than the bound allows; `count` is the exact number."""

    def __init__(self, what: str, hint: str | None = None, count: int | None = None) -> None:
        super().__init__(what, hint)
        self.count = count


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known name that `name` was probably meant to be, or None where none is as near as `cutoff`."""
    known = set(known)
    candidates = sorted(c for c in known if 0.6 * len(c) <= len(name) <= len(c) / 0.6)
    folded = {c.casefold(): c for c in reversed(candidates)}
    if name.casefold() in folded:
        return folded[name.casefold()]
    if longer := _longer(name, known):
        return longer[0]
    close = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=cutoff)
    return folded[close[0]] if close else None


def _longer(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names that have `name` as a part, as `amount_paid` has `amount`, the shortest first."""
    if len(name) < _PART:
        return []
    parts = {c for c in known if name.casefold() in re.split(r"[\W_]+", c.casefold())}
    return sorted(parts, key=lambda c: (len(c), c))


def did_you_mean(name: object, known: Iterable[str], otherwise: str | None = None) -> str | None:
    """Return a hint `Did you mean ...?`, or `otherwise` where nothing is near, or what was given is no text."""
    if not isinstance(name, str):
        return otherwise
    known = set(known)
    near = nearest(name, known)
    longer = _longer(name, known)
    if near in longer and near.casefold() != name.casefold():
        return f"Did you mean {' or '.join(f'`{one}`' for one in longer[:3])}?"
    return f"Did you mean `{near}`?" if near is not None else otherwise


class TrellisWarning(UserWarning):
    """Something that its user may not have meant; the answer is what was asked for."""


def warn(message: str) -> None:
    """Warn of something at the line that called Trellis, the only one that its user knows."""
    level = place = 2  # of the caller
    frame = sys._getframe(1)
    while frame.f_back is not None:
        level += 1
        place = level if frame.f_code.co_filename.startswith(PACKAGE) else place
        frame = frame.f_back
    warnings.warn(message, TrellisWarning, stacklevel=place)
