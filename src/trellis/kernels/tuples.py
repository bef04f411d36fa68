"""Named tuples of many arrays as arguments of kernels: where they lie is passed, in place of each of their members.

An array is seven numbers or more to Numba, and a tuple of arrays so many for each. A function with five such tuples has
four hundred arguments, which each call takes apart and each function puts together again: half of what is written of a
function that mostly calls others. A kernel reads a tuple when it begins, so nobody sees that it was not passed whole,
and what it was given it passes on as it is.
"""

from __future__ import annotations

from typing import Any

from numba.core import callconv, cgutils, lowering
from numba.core import types as all_types
from numba.core.datamodel import models
from numba.extending import register_model

types: Any = all_types
FEW = 16
"""As many numbers are passed one by one."""

_lower = lowering.Lower.lower_expr
_decorate = callconv.CPUCallConv.decorate_function


class _Placed(models.DataModel):
    """A named tuple of Trellis that is passed by its place if it is large."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind)
        own = kind.instance_class.__module__.startswith("trellis.")
        self.is_placed = own and _size(super().get_argument_type()) > FEW

    def get_argument_type(self) -> Any:
        """Return the types of the arguments that the tuple is passed as."""
        return self.get_value_type().as_pointer() if self.is_placed else super().get_argument_type()

    def as_argument(self, builder: Any, value: Any) -> Any:
        """Write the code that makes arguments of a tuple."""
        if not self.is_placed:
            return super().as_argument(builder, value)
        return place_of(value) or cgutils.alloca_once_value(builder, value)

    def from_argument(self, builder: Any, value: Any) -> Any:
        """Write the code that makes a tuple of arguments."""
        if not self.is_placed:
            return super().from_argument(builder, value)
        found = builder.load(value)
        found.place = value
        return found


@register_model(types.NamedTuple)
class _PlacedTuple(_Placed, models.TupleModel):
    """One of members of different types."""


@register_model(types.NamedUniTuple)
class _PlacedUniTuple(_Placed, models.UniTupleModel):
    """One of members of the same type."""


def _size(kind: Any) -> int:
    return sum(map(_size, kind)) if isinstance(kind, tuple) else 1


def place_of(value: Any) -> Any:
    """Return where the tuple lies that was passed and that a value is, if it is one."""
    is_read = getattr(value, "opname", "") == "load" and not hasattr(value, "place")  # from a variable
    return getattr(value.operands[0] if is_read else value, "place", None)


def lower_expression(self: Any, resty: Any, expr: Any) -> Any:
    """Write the code of an expression; of `named.member` without reading the other members."""
    if expr.op == "getattr":
        kind = self.typeof(expr.value.name)
        if isinstance(kind, types.BaseNamedTuple) and expr.attr in kind.fields:
            place = place_of(self._blk_local_varmap.get(expr.value.name)) or self.varmap.get(expr.value.name)
            if place is not None:
                at = kind.fields.index(expr.attr)
                found = self.builder.load(cgutils.gep_inbounds(self.builder, place, 0, at))
                found = self.context.cast(self.builder, found, kind[at], resty)
                self.incref(resty, found)
                return found
    return _lower(self, resty, expr)


def decorate_function(self: Any, fn: Any, args: Any, fe_argtypes: Any, noalias: bool = False) -> None:
    """Name the arguments of a function; nobody writes where a tuple lies, and nobody remembers the place."""
    _decorate(self, fn, args, fe_argtypes, noalias)
    passed = self._get_arg_packer(fe_argtypes)._unflattener.unflatten(self.get_arguments(fn))
    for kind, one in zip(fe_argtypes, passed, strict=True):
        if getattr(self.context.data_model_manager[kind], "is_placed", False):
            one.add_attribute("captures(none)")
            one.add_attribute("noalias")
