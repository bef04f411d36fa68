"""Calls of one kernel by another, without what only calls by Python need.

After each call Numba asks in nine instructions how it ended, and hands on the reason. Most kernels cannot fail: nothing
is asked of these. Others leave the reason where the caller's caller looks for it.
"""

from __future__ import annotations

from functools import update_wrapper
from typing import Any

from numba.core import base, cgutils, imputils
from numba.core import types as all_types
from numba.core.callconv import RETCODE_OK

types: Any = all_types
_call_internal = base.BaseContext.call_internal
_user_function: Any = imputils.user_function

_safe: set[str] = set()


def note_safe(module: Any) -> None:
    """Remember which functions of a module end well whatever happens."""
    for function in module.functions:
        ends = [block.terminator for block in function.blocks]
        if ends and all(_is_good(end) for end in ends if end.opname == "ret"):
            _safe.add(function.name)


def _is_good(end: Any) -> bool:
    return getattr(end.return_value, "constant", None) == RETCODE_OK.constant


def call_internal(self: Any, builder: Any, fndesc: Any, sig: Any, args: Any) -> Any:
    """Write the code of a call of a function that belongs to Numba."""
    if not _is_plain(builder, sig.return_type):
        return _call_internal(self, builder, fndesc, sig, args)
    return _call(self, builder, self.declare_function(builder.module, fndesc), sig.return_type, sig.args, args)


def user_function(fndesc: Any, libs: Any) -> Any:
    """Return the function that writes the code of a call of a kernel."""
    usual = _user_function(fndesc, libs)

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if not _is_plain(builder, fndesc.restype):
            return usual(context, builder, sig, args)
        function = context.declare_function(builder.module, fndesc)
        found = _call(context, builder, function, fndesc.restype, fndesc.argtypes, args)
        return imputils.impl_ret_new_ref(context, builder, fndesc.restype, found)

    return update_wrapper(write, usual)


def _is_plain(builder: Any, kind: Any) -> bool:
    """Return whether a call is in a kernel, outside of any `try`, and returns a value."""
    own = builder.function.args
    in_kernel = len(own) > 1 and own[1].name == "excinfo"
    return in_kernel and not hasattr(builder, "_CPUCallConv__eh_try_state") and not isinstance(kind, types.Optional)


def _call(context: Any, builder: Any, function: Any, kind: Any, kinds: Any, values: Any) -> Any:
    convention = context.call_conv
    place = room(builder, convention.get_return_type(kind).pointee)
    arguments = convention._get_arg_packer(kinds).as_arguments(builder, values)
    code = builder.call(function, [place, builder.function.args[1], *arguments])
    if function.name not in _safe:
        with cgutils.if_unlikely(builder, builder.icmp_signed("!=", code, RETCODE_OK)):
            builder.ret(code)
    return context.get_returned_value(builder, kind, builder.load(place))


def room(builder: Any, kind: Any) -> Any:
    """Return a place on the stack, which is not emptied."""
    with builder.goto_entry_block():
        return builder.alloca(kind)
