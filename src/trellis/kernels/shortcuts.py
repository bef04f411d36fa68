"""Ways round what Numba repeats while it compiles, for as long as a kernel is compiled; the code is the same.

Numba asks for the type of each `+` and each `values[i]` anew, by trying all that it knows for these, and looks through
all instructions of a function after each of its passes, for variables that only generators need, and for each variable
that is assigned twice. Much of what it then writes is for cases that kernels do not have: see `trellis.kernels.items`
and `trellis.kernels.tuples`. It is only left out in the versions of Numba that this was written for.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numba
from numba.core import (
    base,
    callconv,
    compiler_machinery,
    errors,
    inline_closurecall,
    ir,
    lowering,
    postproc,
    ssa,
    targetconfig,
    transforms,
    types,
)
from numba.core.runtime.context import NRTContext
from numba.np import arrayobj

from trellis.kernels.items import get_meminfos, lower_getitem, lower_setitem, refuse_shape
from trellis.kernels.tuples import decorate_function, lower_expression, store_variable

VERSIONS = ("0.68.",)

_KNOWN = numba.__version__.startswith(VERSIONS)
_BARE = frozenset({str, int, bool, float, type(None), ir.Loc, ir.Scope})
_in_pass: Any = errors.new_error_context  # type: ignore[attr-defined]
_call_type: Any = types.BaseFunction.get_call_type
_run: Any = postproc.PostProcessor.run

_get_size: Any = base.BaseContext.get_abi_sizeof

_make_single: Any = ssa._run_ssa

_known: dict[Any, tuple[Any, Any]] = {}
_named: dict[int, set[str]] = {}
_sizes: dict[str, int] = {}


@contextmanager
def quicker() -> Iterator[None]:
    """Have Numba take the shortcuts; to be held with the lock of its compiler."""
    if not _KNOWN:
        yield
        return
    before = [getattr(owner, name) for owner, name, _ in _SHORTCUTS]
    for owner, name, shortcut in _SHORTCUTS:
        setattr(owner, name, shortcut)
    try:
        yield
    finally:
        for (owner, name, _), method in zip(_SHORTCUTS, before, strict=True):
            setattr(owner, name, method)


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


def _size_of(self: Any, kind: Any) -> int:
    """Return how many bytes an LLVM type takes, as it was found before: Numba has a module printed and read for it."""
    text = str(kind)
    if text not in _sizes:
        _sizes[text] = _get_size(self, kind)
    return _sizes[text]


def _process(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """Bring a function in order after a pass; without the variables that live at blocks unless something needs them."""
    if emit_dels or self.func_ir.is_generator:
        _run(self, emit_dels, extend_lifetimes)
        return
    self.func_ir.blocks = transforms.canonicalize_cfg(self.func_ir.blocks)
    self.func_ir.variable_lifetime = postproc.VariableLifetime(self.func_ir.blocks)
    self.func_ir.generator_info = None


def _run_pass(self: Any, index: int, step: Any, state: Any) -> None:
    """Run one pass over a function, without looking through it for what only a wrong pass would leave behind."""
    step.analysis = self._analysis
    with _in_pass("Pass {name}", name=step.name()):
        changed = [step.run_initialization(state), step.run_pass(state), step.run_finalizer(state)]
    if any(changed) and compiler_machinery._pass_registry.get(type(step)).mutates_CFG:
        postproc.PostProcessor(state.func_ir).run()


def _assign_once(blocks: Any) -> Any:
    """Give variables that are assigned several times a name for each."""
    _named.clear()
    return _make_single(blocks)


def _rewrite_blocks(blocks: Any, states: Any, handler: Any) -> Any:
    """Rewrite the statements of a function for one of those variables; only of the blocks that name it."""
    found = {}
    for label, block in blocks.items():
        if label not in _named:
            _named[label] = {one.name for statement in block.body for one in statement.list_vars()}
        if states["varname"] in _named[label]:
            states["label"], states["block"] = label, block
            found[label] = ir.Block(block.scope, block.loc)
            found[label].body = list(ssa._run_ssa_block_pass(states, block, handler))
        else:
            found[label] = block
    return found


class _Copies:
    """Makes copies of the blocks of a function that share its variables, where Numba copies all of them for each."""

    scope: Any = None
    memo: dict[int, Any]

    def deepcopy(self, block: Any) -> Any:
        """Return a copy of a block."""
        if self.scope is None or block.scope is not self.scope:
            self.scope, self.memo = block.scope, {}
        return copy.deepcopy(block, self.memo)


_SHORTCUTS: tuple[tuple[Any, str, Any], ...] = (
    (types.BaseFunction, "get_call_type", _known_call_type),
    (ir.Inst, "_rec_list_vars", _list_variables),
    (postproc.PostProcessor, "run", _process),
    (compiler_machinery.PassManager, "_runPass", _run_pass),
    (ssa, "_run_ssa", _assign_once),
    (ssa, "_run_block_rewrite", _rewrite_blocks),
    (base, "_has_loc", cache(base._has_loc)),
    (base.BaseContext, "get_abi_sizeof", _size_of),
    (lowering.Lower, "lower_getitem", lower_getitem),
    (lowering.Lower, "lower_setitem", lower_setitem),
    (lowering.Lower, "storevar", store_variable),
    (lowering.Lower, "lower_expr", lower_expression),
    (callconv.CPUCallConv, "decorate_function", decorate_function),
    (NRTContext, "get_meminfos", get_meminfos),
    (inline_closurecall, "copy", _Copies()),
    (arrayobj, "raise_with_shape_context", refuse_shape),
)
