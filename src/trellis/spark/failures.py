"""Mistakes found by a task, carried to the driver inside the text of Spark's exception."""

from __future__ import annotations

import base64
import pickle
import re
from collections.abc import Iterator
from contextlib import contextmanager

from trellis.errors import TrellisError
from trellis.spark.compile import translate_error

_MARK = re.compile(r"TRELLIS\[([A-Za-z0-9+/=]+)\]")


class TaskMistake(Exception):
    """A mistake in a task; its text holds the error for the driver."""


@contextmanager
def in_task() -> Iterator[None]:
    """Turn a mistake found in a task into an exception that the driver can read."""
    try:
        yield
    except TrellisError as error:
        packed = base64.b64encode(pickle.dumps(error)).decode()
        raise TaskMistake(f"{error} TRELLIS[{packed}]") from None


@contextmanager
def in_driver() -> Iterator[None]:
    """Turn Spark's exception about a mistake in a task, or in a compiled condition, into that mistake."""
    try:
        yield
    except TrellisError:
        raise
    except Exception as problem:
        mistake = mistake_in(problem)
        if mistake is None:
            raise
        raise mistake from None


def mistake_in(problem: BaseException) -> TrellisError | None:
    """Return the mistake that an exception of Spark's is about, if it is about one."""
    text = str(problem)
    found = _MARK.search(text)
    if found:
        error = pickle.loads(base64.b64decode(found.group(1)))
        return error if isinstance(error, TrellisError) else None
    return translate_error(problem)
