"""Plain data as bytes and back, so that state can be kept without trusting whoever wrote it: tagged JSON, no pickle."""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from trellis.errors import UsageError

TAG = "!"  # the first item of a JSON list that is not a list here

_AS_TEXT: dict[type, tuple[str, Callable[[Any], str], Callable[[str], Any]]] = {
    bytes: ("bytes", lambda value: base64.b64encode(value).decode(), base64.b64decode),
    dt.datetime: ("datetime", dt.datetime.isoformat, dt.datetime.fromisoformat),
    dt.date: ("date", dt.date.isoformat, dt.date.fromisoformat),
    Decimal: ("decimal", str, Decimal),
}
_AS_LIST: dict[type, tuple[str, Callable[[list[Any]], Any]]] = {
    tuple: ("tuple", tuple),
    set: ("set", set),
    frozenset: ("frozenset", frozenset),
}


def to_bytes(value: Any, what: str) -> bytes:
    """Return plain data as bytes.

    Parameters
    ----------
    value
        None, truth values, numbers, texts, bytes, times, NumPy numbers and arrays, and lists, tuples, sets, deques and
        dictionaries of these.
    what
        What it is, for the message if it is not plain.

    Raises
    ------
    UsageError
        If some of it is of another kind.
    """
    return json.dumps(_tagged(value, what), separators=(",", ":")).encode()


def from_bytes(data: bytes) -> Any:
    """Return the value that `to_bytes` wrote."""
    return _plain(json.loads(data))


def _tagged(value: Any, what: str) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is list:
        items = [_tagged(item, what) for item in value]
        return [TAG, "list", *items] if value and value[0] == TAG else items
    if kind in _AS_TEXT:
        name, write, _ = _AS_TEXT[kind]
        return [TAG, name, write(value)]
    if kind in _AS_LIST:
        return [TAG, _AS_LIST[kind][0], *(_tagged(item, what) for item in value)]
    if kind in (dict, Counter):
        return [TAG, "dict" if kind is dict else "counter", *_items(value, what)]
    if kind is defaultdict and value.default_factory in (None, int, float, list, set, dict):
        factory = getattr(value.default_factory, "__name__", "")
        return [TAG, "defaultdict", factory, *_items(value, what)]
    if kind is deque:
        return [TAG, "deque", value.maxlen, *(_tagged(item, what) for item in value)]
    if kind is dt.timedelta:
        return [TAG, "timedelta", value.days, value.seconds, value.microseconds]
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return [TAG, "array", value.dtype.str, list(value.shape), data]
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        return [TAG, "number", value.dtype.str, value.item()]
    raise UsageError(
        f"{what} holds a {kind.__name__}, which cannot be kept between the batches of a stream",
        "Keep plain data: numbers, texts, times, and lists, sets and dictionaries of these; or write `state` and "
        "`restore`.",
    )


def _items(value: dict[Any, Any], what: str) -> list[Any]:
    return [[_tagged(key, what), _tagged(item, what)] for key, item in value.items()]


def _plain(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    if not value or value[0] != TAG:
        return [_plain(item) for item in value]
    _, name, *rest = value
    for known, _, read in _AS_TEXT.values():
        if name == known:
            return read(rest[0])
    for known, make in _AS_LIST.values():
        if name == known:
            return make([_plain(item) for item in rest])
    return _OTHERS[name](rest)


def _pairs(items: list[Any]) -> dict[Any, Any]:
    return {_plain(key): _plain(item) for key, item in items}


_FACTORIES: dict[str, Any] = {"": None, "int": int, "float": float, "list": list, "set": set, "dict": dict}
_OTHERS: dict[str, Callable[[list[Any]], Any]] = {
    "list": lambda rest: [_plain(item) for item in rest],
    "dict": _pairs,
    "counter": lambda rest: Counter(_pairs(rest)),
    "defaultdict": lambda rest: defaultdict(_FACTORIES[rest[0]], _pairs(rest[1:])),
    "deque": lambda rest: deque([_plain(item) for item in rest[1:]], rest[0]),
    "timedelta": lambda rest: dt.timedelta(*rest),
    "array": lambda rest: np.frombuffer(base64.b64decode(rest[2]), rest[0]).reshape(rest[1]).copy(),
    "number": lambda rest: np.dtype(rest[0]).type(rest[1]),
}
