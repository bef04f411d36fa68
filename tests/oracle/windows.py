"""Windows and partitions: the small worlds in which trends are detected."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from trellis.language import syntax

from .events import Event, Input, OracleError, order_key, same_key
from .matching import exact
from .values import compile_expression

Window = tuple[Any, Any]


@dataclass(frozen=True, slots=True)
class World:
    """The events of one window and partition, in the order (time, event id)."""

    window: Window | None
    partition: tuple[Any, ...]
    events: tuple[Event, ...]

    @property
    def place(self) -> tuple:
        """What worlds are ordered by."""
        start = () if self.window is None else (self.window[0],)
        return (start, tuple(order_key(value) for value in self.partition))


def length(node: syntax.Expression | None, time_kind: str, params: Mapping[str, Any]) -> Any:
    """Read a duration of WITHIN, exactly: microseconds for timestamps, a plain number for numbers."""
    if node is None:
        return None
    read = compile_expression(node, lambda _: None, params)
    value = read.evaluate(None)
    if (time_kind == "time") != (read.kind == "duration"):
        raise OracleError("a duration has a unit exactly where the time is a timestamp or a date")
    if value <= 0:
        raise OracleError("a duration is positive")
    return exact(Decimal(repr(value)) if isinstance(value, float) else value)  # as it is written


def worlds(data: Input, attributes: tuple[str, ...], size: Any, slide: Any) -> list[World]:
    """List the windows and partitions that hold an event, in their order."""
    found: dict[tuple, tuple[Window | None, tuple, list[Event]]] = {}
    for event in data.events:
        values = tuple(partition_value(event, attribute) for attribute in attributes)
        key = tuple(same_key(value) for value in values)
        for window in windows_of(event.time, size, slide, data.time_kind):
            found.setdefault((window, key), (window, values, []))[2].append(event)
    made = [World(window, values, tuple(events)) for window, values, events in found.values()]
    return sorted(made, key=lambda world: world.place)


def partition_value(event: Event, attribute: str) -> Any:
    """Take a partition attribute; -0.0 is 0.0."""
    if attribute not in event.raw:
        raise OracleError(f"no column {attribute} to partition by")
    value = event.raw[attribute]
    return 0.0 if isinstance(value, float) and value == 0 else value


def windows_of(time: Any, size: Any, slide: Any, time_kind: str) -> list[Window | None]:
    """List the windows `[k*slide, k*slide + size)` that hold a time; without SLIDE all is one window."""
    if slide is None:
        return [None]
    rounding = Fraction(math.ulp(abs(time) + float(size))) if time_kind == "float" else 0
    first = math.floor((exact(time) - size - rounding) / Fraction(slide))
    last = math.floor((exact(time) + rounding) / Fraction(slide)) + 1
    bounds = ((_number(k * slide, time_kind), _number(k * slide + size, time_kind)) for k in range(first, last + 1))
    return [(start, end) for start, end in bounds if start <= time < end]


def _number(value: Any, time_kind: str) -> Any:
    if value == int(value) and time_kind in ("time", "int"):
        return int(value)
    if time_kind == "decimal":
        return Decimal(value.numerator) / Decimal(value.denominator)
    return float(value)  # the nearest double
