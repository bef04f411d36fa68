"""Shortcuts of Numba's compiler: they give way to what was there, and the code that they make does the same."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba.core import ir, postproc, types

from trellis.kernels import jit, shortcuts


def weigh(values: Any, least: Any, places: Any) -> Any:
    """Use operators on several types, a tuple, a branch and an array that grows."""
    total, chosen = 0.0, np.zeros(2, np.int64)
    for place in range(values.shape[0]):
        if values[place] >= least:
            total += values[place] * 2
            chosen[place % 2] += places[place][1] - places[place][0]
    return total, chosen


@contextmanager
def nothing() -> Iterator[None]:
    """Leave Numba as it is."""
    yield


def test_the_code_does_what_numba_alone_makes_and_is_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = np.arange(6.0), 2, ((1, 2),) * 6
    with_shortcuts = jit.njit(weigh)
    assert with_shortcuts(*arguments)[0] == 28.0
    monkeypatch.setattr(jit, "quicker", nothing)
    alone = jit.njit(weigh)
    assert alone(*arguments)[1].tolist() == with_shortcuts(*arguments)[1].tolist() == [2, 2]
    (first,), (second,) = with_shortcuts.inspect_asm().values(), alone.inspect_asm().values()
    assert len(_instructions(first)) <= len(_instructions(second))


def _instructions(assembly: str) -> list[str]:
    """Return the instructions without their operands, which have numbers that grow in a process."""
    return [line.split()[0] for line in assembly.splitlines() if line.startswith("\t") and not line.startswith("\t.")]


def test_numba_is_left_as_it_was() -> None:
    before = _methods()
    with suppress(ZeroDivisionError), shortcuts.quicker():
        assert before != _methods()
        raise ZeroDivisionError
    assert before == _methods()


def _methods() -> tuple[object, ...]:
    return types.BaseFunction.get_call_type, ir.Inst._rec_list_vars, postproc.PostProcessor.run


ANOTHER_NUMBA = """
import numba
from numba.core import types

numba.__version__ = "0.1.0"
from trellis.kernels import shortcuts

before = types.BaseFunction.get_call_type
with shortcuts.quicker():
    assert types.BaseFunction.get_call_type is before
"""


def test_other_versions_of_numba_are_left_alone() -> None:
    subprocess.run([sys.executable, "-c", ANOTHER_NUMBA], check=True)


class Room(NamedTuple):
    """Arrays to work in, as those of kernels."""

    read: np.ndarray
    written: np.ndarray
    sizes: np.ndarray


Room.__module__ = "trellis.kernels"  # only those of Trellis are passed by their place


@jit.njit
def _swapped(room: Any) -> Any:
    return Room(room.written, room.read, room.sizes)


@jit.njit
def _write(room: Any, value: Any) -> Any:
    for place in range(room.sizes[0]):
        room.written[place] += room.read[place] * value
    return room.sizes[0]


@jit.njit(inline="always")
def _pass_on(room: Any, value: Any) -> Any:
    given = room
    return _write(given, value)


def _work(room: Any, rounds: Any) -> Any:
    """Pass on what was given, what is made, and a variable that is one or the other."""
    total = _write(room, 1)
    for turn in range(rounds):
        total += _pass_on(room, 2)
        used = room
        if turn % 2:
            used = _swapped(room)
        total += _write(used, 1) + _pass_on(used, 1)
    return total


def test_large_tuples_are_passed_by_their_place() -> None:
    room = Room(np.arange(1, 5), np.zeros(4, np.int64), np.array([4]))
    work = jit.njit(_work)
    assert work(room, 4) == 52
    assert [one.tolist() for one in room] == [[209, 418, 627, 836], [97, 194, 291, 388], [4]]
    inner = next(iter(_write.inner_forms.values())).fndesc
    assert len(work.targetctx.get_arg_packer(inner.argtypes).argument_types) == 2


@jit.njit
def _checked(values: Any, place: Any) -> Any:
    if place >= values.shape[0]:
        raise IndexError("no such place")
    return values[place]


@jit.njit
def _passed_on(values: Any, place: Any) -> Any:
    return _checked(values, place) + 1


def _caught(values: Any, place: Any) -> Any:
    found = np.int64(0)
    try:
        found = _passed_on(values, place)
    except Exception:
        found = np.int64(-1)
    return found + _passed_on(values, 0)


def test_errors_of_inner_functions_reach_their_callers() -> None:
    values = np.arange(3)
    outer = jit.njit(lambda values, place: 2 * _passed_on(values, place))
    assert outer(values, 2) == 6
    with pytest.raises(IndexError, match="no such place"):
        outer(values, 3)
    caught = jit.njit(_caught)
    assert [caught(values, place) for place in (2, 3)] == [4, 0]


def _loop(begin: Any, end: Any, values: Any) -> Any:
    """Go over ranges in ranges, with each kind of step, and use what only some turns assign."""
    total = 0
    for i in range(begin, end):
        for j in range(i):
            if j % 2:
                kept = j
            if j > 1:
                total += kept * values[i, j] + values[-1, 0]
        for j in range(end, begin, -2):
            total += j
        i += 10
        total += i
    return total


@pytest.mark.parametrize(("begin", "end"), [(0, 4), (2, 5), (4, 1), (-2, 3), (3, 3)])
def test_loops_and_variables_are_those_of_python(begin: int, end: int) -> None:
    values = np.arange(25).reshape(5, 5)
    assert jit.njit(_loop)(begin, end, values) == _loop(begin, end, values)
