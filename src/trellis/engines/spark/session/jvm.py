"""Spark's JVM as a process: what an exception of it says, and whether it has ended."""

from __future__ import annotations

import subprocess
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]

OUT_OF_MEMORY = 52  # the code with which Spark ends a JVM that has no memory left
_PATIENCE = 20.0  # seconds that a JVM takes to end after its last word
_CUT_OFF = (Py4JError, OSError, EOFError)


def text_of(problem: BaseException) -> str:
    """Return the text of an exception; a Java one is asked of the JVM for it, which may have ended."""
    try:
        return str(problem)
    except _CUT_OFF:
        return type(problem).__name__


def exit_code(problem: BaseException) -> int | None:
    """Return the code with which this process's JVM has ended, if an exception can be due to that.

    Returns
    -------
    int or None
        Below 0: the signal that killed it. None: it lives, or is not a child of this process.
    """
    process = _process()
    if process is None or not _is_cut_off(problem):
        return None
    try:
        return process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        return None


def _is_cut_off(problem: BaseException) -> bool:
    """Tell whether an exception says no more than that nobody answers."""
    if type(problem).__name__ == "Py4JJavaError":
        return text_of(problem) == type(problem).__name__
    return isinstance(problem, _CUT_OFF)


def _process() -> subprocess.Popen[bytes] | None:
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    return getattr(gateway, "proc", None)
