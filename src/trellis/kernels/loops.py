"""Loops over ranges of integers, one after another, in the fewest instructions.

Numba counts the turns of any range by a division, and fails if the step is zero; here the step is one.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils
from numba.core import types as all_types

from trellis.kernels.calls import room
from trellis.kernels.items import extract
from trellis.kernels.tuples import lower_expression as lower_other

types: Any = all_types
_ITEM, _LEFT = 0, 3  # members of an iterator: where the next item lies, and how many are left


def lower_expression(self: Any, resty: Any, expr: Any) -> Any:
    """Write the code of an expression: the beginning of a loop, its next turn, or anything else."""
    match expr.op:
        case "call" if resty == types.range_state64_type and len(expr.args) < 3 and _is_range(self, expr):
            values = [
                self.context.cast(self.builder, self.loadvar(one.name), self.typeof(one.name), types.int64)
                for one in expr.args
            ]
            start = self.context.get_constant(types.int64, 0)
            return _struct(self, resty, [*[start, *values][-2:], self.context.get_constant(types.int64, 1)])
        case "getiter" if resty == types.range_iter64_type:
            state = self.loadvar(expr.value.name)
            start, stop, step = (extract(self.builder, state, i) for i in range(3))
            if getattr(step, "constant", None) == 1:
                item, left = room(self.builder, start.type), room(self.builder, start.type)
                self.builder.store(start, item)
                self.builder.store(self.builder.sub(stop, start), left)
                return _struct(self, resty, [item, stop, step, left])
        case "iternext" if self.typeof(expr.value.name) == types.range_iter64_type:
            return _next(self, resty, self.loadvar(expr.value.name))
        case "pair_first" | "pair_second" if not self.context.enable_nrt or resty in (types.int64, types.boolean):
            return extract(self.builder, self.loadvar(expr.value.name), int(expr.op == "pair_second"))
    return lower_other(self, resty, expr)


def _is_range(lower: Any, expr: Any) -> bool:
    kind = lower.typeof(expr.func.name)
    return getattr(kind, "typing_key", None) is range and not expr.kws and expr.vararg is None


def _next(lower: Any, kind: Any, iterator: Any) -> Any:
    """Write the code of the next turn: whether there is one, and its item."""
    builder = lower.builder
    places = [extract(builder, iterator, member) for member in (_ITEM, _LEFT)]
    item, left = (builder.load(place) for place in places)
    is_there = builder.icmp_signed(">", left, left.type(0))
    with builder.if_then(is_there):
        builder.store(builder.sub(left, left.type(1), flags=["nsw"]), places[1])
        builder.store(builder.add(item, extract(builder, iterator, 2)), places[0])
    return _struct(lower, kind, [item, is_there])


def _struct(lower: Any, kind: Any, members: list[Any]) -> Any:
    found = cgutils.get_null_value(lower.context.get_value_type(kind))
    for place, member in enumerate(members):
        found = lower.builder.insert_value(found, member, place)
    return found
