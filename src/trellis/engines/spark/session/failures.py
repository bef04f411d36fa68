"""Mistakes that a failed job of Spark's is about, found in the text of its exception, where tasks put theirs."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext
from pyspark.sql import SparkSession

from trellis.digits import digits_of, number_of
from trellis.engines.spark.session.jvm import OUT_OF_MEMORY, exit_code, text_of
from trellis.engines.spark.session.raised import translate_error
from trellis.engines.spark.session.session import heap_size
from trellis.errors import (
    DataError,
    GroupTooLarge,
    ListingRefused,
    MemoryExhausted,
    OperatorFailed,
    OverflowInCondition,
    TrellisError,
    UsageError,
)
from trellis.memory import LESS, exhausted

_MARK = re.compile(r"TRELLIS\[([A-Za-z0-9+/=]+)\]")
_TOO_SLOW = "Python worker failed to connect back"
_BEGUN = re.compile(r"Current State: INITIALIZING")  # Spark has read nothing yet but its own logs
_DAMAGED = re.compile(
    r"Failed to read log file \S+|Checkpoint location \S+ is in an inconsistent state|CONCURRENT_STREAM_LOG_UPDATE|"
    r"STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY|STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY|"
    r"CANNOT_LOAD_STATE_STORE[.\w]*|Checksum error: \S+|STDS_[A-Z_]+|"
    r"Error reading (?:delta|snapshot|streaming state) file[^\n]*"
)
_KINDS: dict[str, type[TrellisError]] = {
    kind.__name__: kind
    for kind in (
        TrellisError,
        UsageError,
        DataError,
        OverflowInCondition,
        ListingRefused,
        GroupTooLarge,
        OperatorFailed,
        MemoryExhausted,
    )
}


class TaskMistake(Exception):
    """A mistake in a task; its text holds the error for the driver."""


def refuse_stopped(session: SparkSession) -> None:
    """Refuse work for a session that has been stopped; Spark says nothing about that but an empty assertion."""
    context = getattr(session, "_sc", None)
    if context is not None and context._jsc is None:
        raise UsageError(
            "the Spark session of these events has been stopped", "Start another, read them with it, and detect again."
        )


@contextmanager
def in_task() -> Iterator[None]:
    """Turn a mistake found in a task into an exception that the driver can read."""
    try:
        yield
    except TrellisError as error:
        raise TaskMistake(f"{error} TRELLIS[{_packed(error)}]") from None
    except MemoryError as problem:
        lacked = exhausted(problem, "a Python worker of Spark's")
        raise TaskMistake(f"{lacked} TRELLIS[{_packed(lacked)}]") from None


@contextmanager
def in_driver() -> Iterator[None]:
    """Turn Spark's exception about a mistake in a task, in a compiled condition or in the set-up into that mistake."""
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
    marks = _MARK.findall(text_of(problem))
    if marks:
        return _unpacked(marks[-1])
    code = exit_code(problem)
    if code is not None:
        return _ended_with(code)
    if _is_stopped(problem):
        return UsageError(
            "the Spark session of the events has been stopped", "Start one again, and make the data frame anew."
        )
    return translate_error(problem) or lacking(problem) or exhausted_in(problem) or _of_the_machine(problem)


def _is_stopped(problem: BaseException) -> bool:
    """Return whether pyspark raised this because the JVM of a session is gone; it has no words for that."""
    last = problem.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    own = last is not None and "pyspark" in last.tb_frame.f_globals.get("__name__", "")
    return own and isinstance(problem, AssertionError) and SparkContext._active_spark_context is None


def _ended_with(code: int) -> TrellisError:
    """Return the error about a JVM that has ended before it was asked to."""
    if code == OUT_OF_MEMORY:
        return heap_exhausted("it ended with Spark's code for that")
    how = f"was killed (signal {-code})" if code < 0 else f"has ended (code {code})"
    return TrellisError(
        f"Spark's JVM {how} in the middle of the work",
        "Mostly that is because the machine had no memory left, or somebody ended it. Run it again; a stream goes on "
        "where it was.",
    )


def is_too_busy(problem: BaseException) -> bool:
    """Tell whether Spark gave up because a worker took longer to start than it waits; no setting has it wait longer."""
    return _TOO_SLOW in text_of(problem)


def _of_the_machine(problem: BaseException) -> TrellisError | None:
    """Return the error of a job that failed for the machine, or for the checkpoint or the state of a stream."""
    said = text_of(problem)
    if _TOO_SLOW in said:
        return TrellisError(
            "a Python worker of Spark's did not start within the ten seconds that Spark waits: the machine is too busy",
            "Run it again when less runs there; a stream goes on where it was.",
        )
    if "No space left on device" in said:
        return DataError("there is no room: No space left on device", "Make room, and run it again.")
    if "org/rocksdb" in said or "org.rocksdb" in said:
        return UsageError(
            "streams keep their state in RocksDB, and this Spark has none: its rocksdbjni is absent or cannot be used",
            "Use a Spark that has it, as that of PyPI does.",
        )
    begun = type(problem).__name__ == "StreamingQueryException" and _BEGUN.search(said)
    if not begun and not _DAMAGED.search(said):
        return None
    reason = said.partition("terminated with exception: ")[2] or said
    why = (_DAMAGED.search(said) or [reason.splitlines()[0]])[0].strip()
    return DataError(
        f"the checkpoint of the stream is damaged or incomplete: {why}",
        "Put it back as it was; or begin anew, with another checkpoint and another output.",
    )


def _packed(error: TrellisError) -> str:
    """Return an error as text; plain JSON, since the text of an exception may also hold what stands in the events."""
    kind = type(error).__name__ if type(error).__name__ in _KINDS else "TrellisError"
    count = getattr(error, "count", None)
    about = {"kind": kind, "what": error.what, "hint": error.hint, "count": None if count is None else digits_of(count)}
    return base64.b64encode(json.dumps(about).encode()).decode()


def _unpacked(text: str) -> TrellisError | None:
    try:
        about = json.loads(base64.b64decode(text))
        kind = _KINDS[about["kind"]]
        if issubclass(kind, ListingRefused | GroupTooLarge):
            return kind(about["what"], about["hint"], None if about["count"] is None else number_of(about["count"]))
        return kind(about["what"], about["hint"])
    except (ValueError, KeyError, TypeError):
        return None


# --- Not enough memory ---------------------------------------------------------------------------------------------


_JAVA = re.compile(r"OutOfMemoryError: ([^\n]*)|(UNABLE_TO_ACQUIRE_MEMORY|GC overhead limit exceeded)[^\n]*")
_LOST = re.compile(r"Python worker exited unexpectedly \(crashed\)")
_ASKED = re.compile(r"Unable to acquire (\d+) bytes of memory, got (\d+)")
_HEAP = "spark.driver.memory (on a cluster: spark.executor.memory)"


def exhausted_in(problem: BaseException) -> MemoryExhausted | None:
    """Return the error of a job of Spark's that lacked memory, if it failed for that.

    Returns
    -------
    trellis.errors.MemoryExhausted or None
        What ran out, how much it had, and what to try.
    """
    said = str(problem)
    if found := _JAVA.search(said):
        asked = _ASKED.search(said)
        much = f": it asked for {int(asked[1]):,} bytes and got {int(asked[2]):,}" if asked else ""
        return heap_exhausted((found[1] or found[2] or "").strip(), much)
    if _LOST.search(said):
        return MemoryExhausted(
            "a Python worker of Spark's was killed; mostly that is because the machine had no memory left for it",
            f"Leave it more: lower {_HEAP}, or fewer tasks at once (--master local[2]). {LESS}",
        )
    return None


def heap_exhausted(what: str, much: str = "") -> MemoryExhausted:
    """Return the error about a JVM whose heap is full: what Java says about it, and how much it asked for."""
    return MemoryExhausted(
        f"Spark's JVM has not enough memory ({what}){much}; it had {_heap()}",
        f"Give it more with --conf {_HEAP}, such as `--conf spark.driver.memory=4g`, or more and smaller tasks "
        f"with --conf spark.sql.shuffle.partitions. {LESS}",
    )


def _heap() -> str:
    """Return how large the heap is, as far as it is known."""
    told = heap_size()
    return "a heap of unknown size" if told is None else f"a heap of {told}"


# --- The Python of workers -----------------------------------------------------------------------------------------


NEEDED = ("numba", "numpy", "pyarrow")
"""The packages that a worker needs besides those of Python and Spark; Trellis itself is sent to it."""

_NEEDED = f"{', '.join(NEEDED[:-1])} and {NEEDED[-1]}"
_WHERE = "The README says how to run on a cluster, and what an executor needs."
_MISSING = re.compile(r"^ModuleNotFoundError: No module named '((?!trellis\.)[^'.]+)", re.MULTILINE)
_UNFIT = re.compile(r"^ImportError: ((?!.*trellis).+)$", re.MULTILINE)
_VERSIONS = re.compile(r"PYTHON_VERSION_MISMATCH\][^\n]*?(\d+\.\d+)[^\n]*?(\d+\.\d+)")
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]*)".*?: (?:error=\d+, )?(.+)')
_NO_PYTHON = re.compile(r"reading the port number from pyspark\.daemon's stdout")


def lacking(problem: BaseException) -> UsageError | None:
    """Return the error about a package or version that workers lack, if a job of Spark's failed for that.

    Returns
    -------
    trellis.errors.UsageError or None
        What is wrong and what to do.
    """
    said = str(problem)
    if found := _VERSIONS.search(said):
        what = f"Spark's workers run Python {found[1]}, and this is Python {found[2]}"
        return UsageError(what, _name("another one"))
    if found := _MISSING.search(said):
        return UsageError(f"the Python of Spark's workers has no package `{found[1]}`", _missing_hint(found[1]))
    if found := _UNFIT.search(said):
        what = f"a package of the Python of Spark's workers is too old or broken: {found[1].rstrip('.')}"
        return UsageError(what, f"Install {_NEEDED} there in the versions that are here. {_WHERE}")
    if found := _NO_PROGRAM.search(said):
        return UsageError(f"Spark's workers cannot run `{found[1]}`: {found[2]}", _name("the Python they have"))
    if _NO_PYTHON.search(said):
        return UsageError("the Python of Spark's workers does not start", _name("one that does"))
    return None


def _missing_hint(package: str) -> str:
    if package == "trellis":
        return _name("this Python", "Install it there, or name")
    return f"Install {_NEEDED} there, or send an environment that has them along. {_WHERE}"


def _name(which: str, beginning: str = "Name") -> str:
    return f"{beginning} {which}, by PYSPARK_PYTHON or --conf spark.pyspark.python. {_WHERE}"
