"""Mistakes on their way from a task to the driver: whole, and never more than text."""

from __future__ import annotations

import base64
import pickle
import re

import numpy as np
import pytest

from trellis.engines.spark.session.failures import TaskMistake, in_task, mistake_in
from trellis.errors import DataError, ListingRefused, MemoryExhausted, QueryError, TrellisError, UsageError

ERRORS = [
    DataError("what", "hint"),
    UsageError("what"),
    TrellisError("what", "hint"),
    ListingRefused("too many", "less", 7**9999),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_a_mistake_arrives_whole(error: TrellisError) -> None:
    with pytest.raises(TaskMistake) as caught, in_task():
        raise error
    found = mistake_in(RuntimeError(f"Job aborted: {caught.value} at line 7"))
    assert type(found) is type(error)
    assert found is not None
    assert (found.what, found.hint, getattr(found, "count", None)) == (
        error.what, error.hint, getattr(error, "count", None),
    )  # fmt: skip


def test_an_error_of_another_kind_keeps_its_words() -> None:
    with pytest.raises(TaskMistake) as caught, in_task():
        raise QueryError("what", "text", 0, 1)
    assert type(mistake_in(caught.value)) is TrellisError


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, ("raise SystemExit('ran')",)


def test_what_stands_in_the_events_is_never_run() -> None:
    planted = base64.b64encode(pickle.dumps(Evil())).decode()
    assert mistake_in(RuntimeError(f"the id TRELLIS[{planted}] occurs twice")) is None
    with pytest.raises(TaskMistake) as caught, in_task():
        raise DataError(f"the id TRELLIS[{planted}] occurs twice")
    assert isinstance(mistake_in(caught.value), DataError)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            "Job aborted: java.lang.OutOfMemoryError: Java heap space\n\tat x",
            ["(Java heap space)", "spark.driver.memory"],
        ),
        (
            "[UNABLE_TO_ACQUIRE_MEMORY] Unable to acquire 65536 bytes of memory, got 0.",
            ["it asked for 65,536 bytes and got 0", "spark.sql.shuffle.partitions"],
        ),
        ("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)", ["was killed", "local[2]"]),
    ],
)
def test_memory_that_spark_lacks_is_told(said: str, words: list[str]) -> None:
    mistake = mistake_in(Exception(said))
    assert isinstance(mistake, MemoryExhausted)
    assert all(word in str(mistake) for word in words)


def test_memory_that_a_worker_lacks_is_told_with_what_it_took() -> None:
    with pytest.raises(TaskMistake) as caught, in_task():
        np.zeros(1 << 58)
    mistake = mistake_in(caught.value)
    assert isinstance(mistake, MemoryExhausted)
    assert re.search(r"Unable to allocate.*a Python worker of Spark's has taken \d+\.\d GB", mistake.what)
