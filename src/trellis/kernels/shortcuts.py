"""Ways round what Numba repeats while it compiles, for as long as a kernel is compiled; the code does the same.

Numba asks for the type of each `+` and each `values[i]` anew, by trying all that it knows for these, and looks through
all instructions of a function after each of its passes, for variables that only generators need, and for each variable
that is assigned twice; `trellis.kernels.answers` remembers more. Much of what it then writes is for cases that kernels
do not have: see `trellis.kernels.items`, `tuples`, `unboxing`, `variables`, `calls` and `loops`. It is only left out in
versions of Numba that this was written for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import numba
from numba.core import (
    base,
    callconv,
    callwrapper,
    compiler_machinery,
    errors,
    inline_closurecall,
    interpreter,
    ir,
    lowering,
    postproc,
    ssa,
    targetconfig,
    transforms,
    typed_passes,
    typeinfer,
    types,
    typing,
    untyped_passes,
)
from numba.core.datamodel.models import StructModel
from numba.core.runtime.context import NRTContext
from numba.core.types import StringLiteral  # type: ignore[attr-defined]
from numba.np import arrayobj

from trellis.kernels.answers import (
    ErrorContext,
    forget,
    get_attribute,
    get_value,
    hash_type,
    let_warnings_pass,
    refresh,
    refresh_typing,
)
from trellis.kernels.calls import call_internal, user_function
from trellis.kernels.items import get_member, get_meminfos, lower_getitem, lower_setitem, refuse_shape
from trellis.kernels.loops import lower_expression
from trellis.kernels.tuples import decorate_function
from trellis.kernels.unboxing import add_argument
from trellis.kernels.variables import delete_variable, find_values, store_variable

VERSIONS = ("0.68.",)

_KNOWN = numba.__version__.startswith(VERSIONS)
_NESTED = frozenset({"make_function", "build_list"})
_call_type: Any = types.BaseFunction.get_call_type
_run: Any = postproc.PostProcessor.run

_get_size: Any = base.BaseContext.get_abi_sizeof

_make_single: Any = ssa._run_ssa
_inline: Any = inline_closurecall.InlineClosureCallPass.run
_inline_function: Any = inline_closurecall.InlineWorker.inline_function
_rewrite: Any = typed_passes.NopythonRewrites.run_pass
_mangle: Any = base.BaseContext.mangler
_delete_exits: Any = interpreter.peep_hole_delete_with_exit

_known: dict[Any, tuple[Any, Any]] = {}
_bare: set[type] = set()  # of what has no variables inside
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
        forget()


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
    if kind is ir.Var:
        variables.append(value)
    elif kind in _bare:
        return
    elif kind is ir.Expr:
        _add_each(value._kws.values(), variables)
    elif kind is dict:
        _add_each(value.values(), variables)
    elif kind is list or kind is tuple:
        _add_each(value, variables)
    elif isinstance(value, ir.Inst):
        variables.extend(value.list_vars())
    elif isinstance(value, ir.Var):
        variables.append(value)
    elif isinstance(value, (list, tuple)):
        _add_each(value, variables)
    else:
        _bare.add(kind)


def _add_each(values: Iterable[Any], variables: list[Any]) -> None:
    for one in values:
        kind = type(one)
        if kind is ir.Var:
            variables.append(one)
        elif kind not in _bare:
            _add_variables(one, variables)


def _size_of(self: Any, kind: Any) -> int:
    """Return how many bytes an LLVM type takes, as it was found before: Numba has a module printed and read for it."""
    text = str(kind)
    if text not in _sizes:
        _sizes[text] = _get_size(self, kind)
    return _sizes[text]


def _process(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """Bring a function in order after a pass, if its blocks follow each other in another way than before.

    Which variables live where a block begins is only asked of generators.
    """
    function = self.func_ir
    if function.is_generator:
        _run(self, emit_dels, extend_lifetimes)
        return
    if getattr(function, "edges", None) != _edges(function.blocks):
        function.blocks = transforms.canonicalize_cfg(function.blocks)
        function.edges = _edges(function.blocks)
    function.variable_lifetime = postproc.VariableLifetime(function.blocks)
    function.generator_info = None
    if emit_dels:
        self._insert_var_dels(extend_lifetimes=extend_lifetimes)


def _edges(blocks: Any) -> list[tuple[int, ...]]:
    """Return each block of a function with those that may follow it."""
    return [(label, *block.body[-1].get_targets()) for label, block in blocks.items()]


def _run_pass(self: Any, index: int, step: Any, state: Any) -> None:
    """Run one pass over a function, without looking through it for what only a wrong pass would leave behind."""
    step.analysis = self._analysis
    with ErrorContext("Pass {name}", name=step.name()):
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


def _inline_closures(self: Any) -> None:
    """Put functions that are defined in a function, and lists that become arrays, in their place, if there are any."""
    if any(one.op in _NESTED for one in _expressions(self.func_ir)):
        _inline(self)


def _define_in_scopes(blocks: Any) -> None:
    """Have each scope of a function know all variables; nearly always there is one scope."""
    used: dict[str, Any] = {}
    for block in blocks.values():
        for statement in block.body:
            for one in statement.list_vars():
                used.setdefault(one.name, one)
    for scope in {id(block.scope): block.scope for block in blocks.values()}.values():
        for name in used.keys() - scope.localvars._con.keys():
            scope.localvars.define(name, used[name])


def _without_exits(func_ir: Any) -> Any:
    """Remove what only `with` needs, if there is any."""
    names = next(iter(func_ir.blocks.values())).scope.localvars._con
    return _delete_exits(func_ir) if any(name.startswith("$setup_with") for name in names) else func_ir


def _rewrite_arrays(self: Any, state: Any) -> bool:
    """Make one loop of each expression of whole arrays, if there are any."""
    kinds = state.typemap
    assigned = [one for block in state.func_ir.blocks.values() for one in block.find_insts(ir.Assign)]
    if any(isinstance(kinds.get(one.target.name), types.Array) and _is_of_arrays(one.value) for one in assigned):
        return _rewrite(self, state)
    is_text = any(isinstance(kind, StringLiteral) for kind in kinds.values())  # the name of a field
    return _rewrite(self, state) if is_text else True


def _is_of_arrays(value: Any) -> bool:
    """Return whether a value may be an operation on whole arrays, which calls of kernels look like."""
    return isinstance(value, ir.Expr) and value.op in ("unary", "binop", "call", "build_list")


def _expressions(func_ir: Any) -> Iterator[Any]:
    for block in func_ir.blocks.values():
        for one in block.find_insts(ir.Assign):
            if isinstance(one.value, ir.Expr):
                yield one.value


def _short_name(self: Any, name: str, kinds: Any, *, abi_tags: Any = (), uid: Any = None) -> str:
    """Return the name of a function to LLVM, which is written for each call: with a digest of what it is told by."""
    whole = _mangle(self, name, kinds, abi_tags=abi_tags, uid=uid)
    return _mangle(self, name, (), abi_tags=(hashlib.blake2b(whole.encode(), digest_size=10).hexdigest(),))


def _lower_block(self: Any, block: Any) -> None:
    """Write the code of a block of a function."""
    self.pre_block(block)
    with ErrorContext("lowering at {loc}", loc=block.loc, errcls_=partial(errors.LoweringError, loc=block.loc)):
        for statement in block.body:
            self.loc = statement.loc
            self.lower_inst(statement)
    self.post_block(block)


class _AsItIs:
    """Stands in for the module by which Numba copies blocks."""

    @staticmethod
    def deepcopy(block: Any) -> Any:
        """Return a block."""
        return block


def _inline_call(self: Any, *arguments: Any, **named: Any) -> Any:
    """Put a function in the place of its call; it is read for that, and Numba would copy it twice."""
    module: Any = inline_closurecall
    before, module.copy = module.copy, _AsItIs
    try:
        return _inline_function(self, *arguments, **named)
    finally:
        module.copy = before


_SHORTCUTS: tuple[tuple[Any, str, Any], ...] = (
    (types.BaseFunction, "get_call_type", _known_call_type),
    (types.Type, "__hash__", hash_type),
    (type(types.Type), "__instancecheck__", type.__instancecheck__),  # no class is registered as one of these types
    (typing.BaseContext, "resolve_getattr", get_attribute),
    (typing.BaseContext, "resolve_value_type", get_value),
    (typing.BaseContext, "refresh", refresh_typing),
    (base.BaseContext, "refresh", refresh),
    (errors.WarningsFixer, "catch_warnings", let_warnings_pass),  # type: ignore[attr-defined]
    (typeinfer, "new_error_context", ErrorContext),
    (interpreter, "peep_hole_delete_with_exit", _without_exits),
    (untyped_passes, "fixup_var_define_in_scope", _define_in_scopes),
    (ir.Inst, "_rec_list_vars", _list_variables),
    (postproc.PostProcessor, "run", _process),
    (compiler_machinery.PassManager, "_runPass", _run_pass),
    (ssa, "_run_ssa", _assign_once),
    (ssa, "_run_block_rewrite", _rewrite_blocks),
    (inline_closurecall.InlineClosureCallPass, "run", _inline_closures),
    (typed_passes.NopythonRewrites, "run_pass", _rewrite_arrays),
    (base.BaseContext, "mangler", _short_name),
    (base, "_has_loc", cache(base._has_loc)),
    (base.BaseContext, "get_abi_sizeof", _size_of),
    (lowering.Lower, "lower_getitem", lower_getitem),
    (lowering.Lower, "lower_setitem", lower_setitem),
    (lowering.Lower, "_find_singly_assigned_variable", find_values),
    (lowering.Lower, "storevar", store_variable),
    (lowering.Lower, "delvar", delete_variable),
    (lowering.Lower, "lower_block", _lower_block),
    (StructModel, "get", get_member),
    (base, "user_function", user_function),
    (base.BaseContext, "call_internal", call_internal),
    (lowering.Lower, "lower_expr", lower_expression),
    (callconv.CPUCallConv, "decorate_function", decorate_function),
    (NRTContext, "get_meminfos", get_meminfos),
    (callwrapper._ArgManager, "add_arg", add_argument),
    (inline_closurecall.InlineWorker, "inline_function", _inline_call),
    (arrayobj, "raise_with_shape_context", refuse_shape),
)
