"""Ways round what Numba repeats while it compiles, for as long as a kernel is compiled; the code is the same.

Numba asks for the type of each `+` and each `values[i]` anew, by trying all that it knows for these, and looks through
all instructions of a function after each of its passes, for variables that only generators need. Without that, kernels
take a fifth less. It is only left out in the versions of Numba that this was written for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numba
from numba.core import ir, postproc, targetconfig, transforms, types

VERSIONS = ("0.68.",)

_KNOWN = numba.__version__.startswith(VERSIONS)
_BARE = frozenset({str, int, bool, float, type(None), ir.Loc, ir.Scope})
_Instruction: Any = ir.Inst
_Function: Any = types.BaseFunction
_PostProcessor: Any = postproc.PostProcessor
_call_type, _rec_list_vars, _run = _Function.get_call_type, _Instruction._rec_list_vars, _PostProcessor.run

_known: dict[Any, tuple[Any, Any]] = {}


@contextmanager
def quicker() -> Iterator[None]:
    """Have Numba take the shortcuts; to be held with the lock of its compiler."""
    if not _KNOWN:
        yield
        return
    _Function.get_call_type, _Instruction._rec_list_vars, _PostProcessor.run = (
        _known_call_type,
        _list_variables,
        _process,
    )
    try:
        yield
    finally:
        _Function.get_call_type, _Instruction._rec_list_vars, _PostProcessor.run = _call_type, _rec_list_vars, _run


def _known_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
    """Return how a function is called with some types, as it was found before."""
    key = (self, context, args, tuple(kws.items()), targetconfig.ConfigStack.top_or_none())
    try:
        known = _known.get(key)
    except TypeError:  # an argument that has no hash
        return _call_type(self, context, args, kws)
    if known is None:
        signature = _call_type(self, context, args, kws)
        if all(kind.is_precise() for kind in args):
            _known[key] = signature, self._impl_keys[signature.args]
        return signature
    signature, implementation = known
    self._impl_keys[signature.args] = implementation
    return signature


def _list_variables(self: Any, value: Any) -> list[Any]:
    """Return the variables of a value of an instruction, as Numba does, with fewer questions."""
    variables: list[Any] = []
    _add_variables(value, variables)
    return variables


def _add_variables(value: Any, variables: list[Any]) -> None:
    kind = type(value)
    if kind in _BARE:
        return
    if kind is ir.Var:
        variables.append(value)
    elif kind is dict:
        for one in value.values():
            _add_variables(one, variables)
    elif kind is list or kind is tuple:
        for one in value:
            _add_variables(one, variables)
    elif isinstance(value, ir.Inst):
        variables.extend(value.list_vars())
    elif isinstance(value, ir.Var):
        variables.append(value)
    elif isinstance(value, (list, tuple)):
        for one in value:
            _add_variables(one, variables)


def _process(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """Bring a function in order after a pass; without the variables that live at blocks unless something needs them."""
    if emit_dels or self.func_ir.is_generator:
        _run(self, emit_dels, extend_lifetimes)
        return
    self.func_ir.blocks = transforms.canonicalize_cfg(self.func_ir.blocks)
    self.func_ir.variable_lifetime = postproc.VariableLifetime(self.func_ir.blocks)
    self.func_ir.generator_info = None
