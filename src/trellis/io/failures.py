"""Failures of pyarrow and the system to read or write a file, turned into one clear sentence."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from trellis.errors import DataError, did_you_mean

_LONGEST = 200


@contextmanager
def reading(path: os.PathLike[str], kind: str) -> Iterator[None]:
    """Turn what goes wrong while reading `path` into a `DataError` that names it."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"{os.fspath(path)} cannot be read as {kind}: {reason(error)}.", _hint(error)) from None


@contextmanager
def writing(path: os.PathLike[str]) -> Iterator[None]:
    """Turn what goes wrong while writing `path` into a `DataError` that names it."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        hint = "Free some space, or write elsewhere." if _number(error) in (errno.ENOSPC, errno.EDQUOT) else None
        raise DataError(f"{os.fspath(path)} cannot be written: {reason(error)}.", hint) from None


def check_columns(path: os.PathLike[str], names: Sequence[str], wanted: Iterable[str] | None) -> None:
    """Raise a `DataError` for a wanted column that is not among the names of a file's."""
    for name in wanted or ():
        if name not in names:
            known = f"Its columns: {', '.join(names)}."
            raise DataError(f"{os.fspath(path)} has no column `{name}`.", did_you_mean(name, names, known))


def reason(error: BaseException) -> str:
    """Return why, without a full stop: the system's words for an error of the system, else the first line."""
    number = _number(error)
    if number is not None:
        return os.strerror(number).lower()
    if isinstance(error, UnicodeDecodeError) or re.search(r"utf-?8", str(error), re.IGNORECASE):
        return "it is not UTF-8 text"
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    line = re.sub(r"^(CSV|JSON) (parse|conversion) error:\s*", "", line)
    line = line if len(line) <= _LONGEST else line[:_LONGEST] + " ..."
    return line.rstrip(".")


def _number(error: BaseException) -> int | None:
    number = getattr(error, "errno", None)
    if isinstance(number, int):
        return number
    number = re.search(r"\[errno (\d+)\]", str(error), re.IGNORECASE)
    return int(number.group(1)) if number else None


def _hint(error: BaseException) -> str | None:
    if isinstance(error, UnicodeDecodeError) or "utf8" in str(error).lower():
        return "Save the file as UTF-8."
    return None
