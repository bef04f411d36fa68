"""The decorator of kernels: Numba's own, with a cache that ships, and inner functions that cost less to compile.

Numba compiles every function that another calls as if it were also called from Python: it wraps it for that, optimises
it, makes machine code of it and keeps that. Here a kernel that Python calls is an *entry* and gets all that; whatever
an entry calls, down to what Numba itself has written in Python (`np.empty`, `min`), is only linked into it, and
optimised there. Which of the two it is depends on the call, not on the function.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

from llvmlite.binding import (
    Linkage,
    create_new_function_pass_manager,
    create_pass_builder,
    create_pipeline_tuning_options,
    parse_assembly,
)
from numba.core import compiler, config, errors, serialize, sigutils, typing
from numba.core import types as all_types
from numba.core.cgutils import normalize_ir_text
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.target_extension import CPU, jit_registry
from numba.core.types import unliteral  # type: ignore[attr-defined]

from trellis.kernels.cache import KernelCache, NoCache
from trellis.kernels.calls import note_safe
from trellis.kernels.shortcuts import quicker

types: Any = all_types

PATIENCE = 1.0
"""After how many seconds of compiling it is said that it is that which takes so long."""

# Numba calls this for each array that a kernel returns. A function in Python would notice Ctrl-C there, where Numba
# takes for granted that nothing is raised: the caller would get a SystemError. What is known is now told without one.
serialize._numba_unpickle = cache(serialize._numba_unpickle)

_waited = [0.0]
_told = threading.Event()


class KernelFlags(compiler.Flags):
    """The flags that a function is compiled with; equal where whatever it calls is compiled alike.

    Numba keeps what it has compiled of its own functions by the flags of their callers: an entry and an inner function,
    or one that releases the GIL and one that need not, would have them compiled twice.
    """

    __slots__ = ()
    _OWN = frozenset({"no_compile", "no_cpython_wrapper", "no_cfunc_wrapper", "release_gil"})

    def _passed_on(self) -> dict[str, Any]:
        return {name: value for name, value in self._values.items() if name not in self._OWN}

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, KernelFlags) and self._passed_on() == other._passed_on())

    def __hash__(self) -> int:
        return hash((self.nrt, self.error_model))


class _Library(JITCodeLibrary):
    """Code of a kernel."""

    def add_ir_module(self, ir_module: Any) -> None:
        """Take code as Numba has written it; it is checked as a whole."""
        note_safe(ir_module)
        module = parse_assembly(normalize_ir_text(str(ir_module)))
        module.name = ir_module.name
        self.add_llvm_module(module)

    def _optimize_functions(self, module: Any) -> None:
        """Make functions small, so that there is less to link; what is linked is optimised as a whole."""
        module.data_layout = self._codegen._data_layout
        builder, passes = self._codegen._pass_builder(), create_new_function_pass_manager()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        passes.add_instruction_combine_pass()
        passes.add_refprune_pass()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)


class InnerLibrary(_Library):
    """Code that is linked into that of an entry and never runs by itself."""

    def finalize(self) -> None:
        """Leave linking and optimising to the entry, which sees how the code is used."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.external:
                function.linkage = "linkonce_odr"  # others that are linked with it may have it too
        self._finalize_dynamic_globals()
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """Return the code with all that it calls, for one that Numba alone compiles."""
        module = self._final_module.clone()
        for other in _link_inner(module, self, self._linking_libraries):
            module.link_in(other._get_module_for_linking(), preserve=True)
        return module


class EntryLibrary(_Library):
    """Code that runs, with all that it calls."""

    def finalize(self) -> None:
        """Link, optimise and make machine code."""
        self._linking_libraries[:] = _link_inner(self._final_module, self, self._linking_libraries)
        self._final_module.verify()
        super().finalize()

    def _optimize_final_module(self) -> None:
        # Nobody else calls inner functions: one that is called once is put in place of the call, and others get only
        # the arguments that they read, out of all parts of the arrays of their callers. Those that Numba alone compiles
        # are linked by now, too; how it counts references is left as it expects that.
        for function in self._final_module.functions:
            inner = function.linkage == Linkage.linkonce_odr and not function.name.startswith("NRT_")
            if inner and not function.is_declaration:
                function.linkage = "internal"
        self._optimize()

    def _optimize(self) -> None:
        super()._optimize_final_module()

    def _finalize_specific(self) -> None:
        with _nothing_lost():
            super()._finalize_specific()

    def serialize_using_object_code(self) -> tuple[str, bytes, list[str]]:
        """Return machine code and the names of its functions: kernels link inner functions, and need no more of it."""
        self._ensure_finalized()
        functions = (one for one in self.get_defined_functions() if one.linkage != Linkage.internal)
        return self.name, self._get_compiled_object(), [function.name for function in functions]

    @classmethod
    def _unserialize(cls, codegen: Any, state: tuple[str, bytes, list[str]]) -> Any:
        name, code, functions = state
        library = cls(codegen, name)
        library.enable_object_caching()
        library._set_compiled_object(code)
        library._finalize_final_module()
        codegen._engine._defined_symbols.update(functions)
        return library


class BranchingLibrary(EntryLibrary):
    """Code that runs and is full of branches."""

    def _optimize(self) -> None:
        """Leave loops as they are, and look less for what is rare in such code, which is no slower for it."""
        options = create_pipeline_tuning_options(min(int(config.OPT), 1))
        options.loop_unrolling = options.loop_interleaving = options.loop_vectorization = False
        options.slp_vectorization = bool(config.SLP_VECTORIZE)
        builder = create_pass_builder(self._codegen._tm, options)
        passes = builder.getModulePassManager()
        passes.add_refprune_pass()
        passes.run(self._final_module, builder)


def _link_inner(module: Any, library: Any, called: list[Any]) -> list[Any]:
    """Link inner functions that are called, however far, each once; return the libraries of others."""
    found, others = dict.fromkeys(called), []
    waiting = list(found)
    for one in waiting:  # which grows
        if not isinstance(one, InnerLibrary):
            others.append(one)
            continue
        module.link_in(one._final_module, preserve=True)
        library._reload_init.update(one._reload_init)
        waiting += [inner for inner in dict.fromkeys(one._linking_libraries) if inner not in found]
        found.update(dict.fromkeys(one._linking_libraries))
    return others


class KernelDispatcher(CPUDispatcher):
    """A kernel with its specialisations: the entries, and those that are linked into other kernels' entries."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._cache = NoCache()
        self.inner_forms: dict[tuple[Any, ...], Any] = {}
        self.neighbours = self.branching = False

    def enable_caching(self) -> None:
        """Keep what is compiled, and take what ships with Trellis."""
        self._cache = KernelCache(self.py_func)

    def compile(self, sig: Any) -> Any:
        """Return the entry for the types of arguments; loaded or compiled if it is not there yet."""
        args, return_type = sigutils.normalize_signature(sig)
        args = tuple(args)
        with global_compiler_lock:
            if args in self.overloads:
                return self.overloads[args].entry_point
            if not self._can_compile:
                raise RuntimeError("compilation disabled")
            found = self._loaded(sig)
            if found is None:
                with _told_if_long(), self._cache.turn():  # in which another process may have compiled it
                    found = self._loaded(sig) or self._compiled(sig, args, return_type)
            self.add_overload(found)
            return found.entry_point

    def _loaded(self, sig: Any) -> Any:
        """Return the code of an entry that was compiled before; None if there is none."""
        with _library_class(EntryLibrary):
            found = self._cache.load_overload(sig, self.targetctx)
        if found is not None:
            self._cache_hits[sig] += 1
        return found

    def _compiled(self, sig: Any, args: tuple[Any, ...], return_type: Any) -> Any:
        """Compile an entry, and keep it."""
        self._cache_misses[sig] += 1
        library = _library_class(BranchingLibrary if self.branching else EntryLibrary)
        with library, _everything_inner(), quicker(), _no_garbage(), _side_by_side(self.neighbours):
            found = self._compile(args, return_type, inner=False)
        _refuse_names(found.signature.return_type, self.py_func.__qualname__)
        self._cache.save_overload(sig, found)
        return found

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return how this kernel is called by another one; compiled for that if it is not there yet.

        A number that is written in a call is like any of its type, or each would have a form of its own. Some functions
        of Numba's ask which one it is.
        """
        signature, args = self._compiler.fold_argument_types(args, kws)
        as_written = self.py_func.__module__.startswith("numba.")
        args = tuple(one if as_written else unliteral(one) for one in args)
        with global_compiler_lock:
            if args not in self.inner_forms:
                found = self._compile(args, None, inner=True)
                found = found._replace(entry_point=object())  # by which callers find it
                self.targetctx.insert_user_function(found.entry_point, found.fndesc, [found.library])
                self.inner_forms[args] = found
        name = self.py_func.__name__
        signatures = [found.signature for found in self.inner_forms.values()]
        template = typing.make_concrete_template(f"CallTemplate({name})", key=name, signatures=signatures)
        return template, signature, args, {}

    def get_overload(self, sig: Any) -> Any:
        """Return the key of the inner function for the types of arguments."""
        return self.inner_forms[tuple(sigutils.normalize_signature(sig)[0])].entry_point

    def _compile(self, args: tuple[Any, ...], return_type: Any, inner: bool) -> Any:
        description, context = self._compiler.targetdescr, self.targetctx
        flags = KernelFlags()
        description.options.parse_as_flags(flags, self.targetoptions)
        flags.no_cfunc_wrapper = True
        flags.no_compile = flags.no_cpython_wrapper = inner
        library = InnerLibrary(context.codegen(), self.py_func.__qualname__) if inner else None
        try:
            with self._compiling_counter:
                found = compiler.compile_extra(
                    description.typing_context, context, self.py_func, args=args, return_type=return_type, flags=flags,
                    locals=self.locals, library=library, pipeline_class=self._compiler.pipeline_class,
                )  # fmt: skip
        except errors.ForceLiteralArg as problem:
            raise problem.bind_fold_arguments(
                lambda args, kws: self._compiler.fold_argument_types(args, kws)[1]
            ) from None
        if found.typing_error is not None:
            raise found.typing_error
        return found


def _refuse_names(kind: Any, name: str) -> None:
    """Refuse to give Python a named tuple: its class is called for it, and so is whatever handles Ctrl-C.

    Numba takes for granted that such a call raises nothing, and the process would end with a segmentation fault.
    """
    if isinstance(kind, types.BaseNamedTuple):
        raise TypeError(f"`{name}` is called by Python and returns the named tuple {kind}: return a plain one")
    if isinstance(kind, types.BaseTuple):
        for member in kind:
            _refuse_names(member, name)


@contextmanager
def _everything_inner() -> Iterator[None]:
    """Have what Numba has written in Python be inner functions too, while an entry is compiled."""
    before = jit_registry.pop(CPU)  # a dictionary whose keys cannot be overwritten
    jit_registry[CPU] = njit
    try:
        yield
    finally:
        del jit_registry[CPU]
        jit_registry[CPU] = before


@contextmanager
def _library_class(library: type[EntryLibrary]) -> Iterator[None]:
    """Have code be compiled or loaded into a library of ours."""
    codegen = CPUDispatcher.targetdescr.target_context.codegen()
    codegen._library_class = library
    try:
        yield
    finally:
        codegen._library_class = JITCodeLibrary


@contextmanager
def _side_by_side(statements: bool) -> Iterator[None]:
    """Have LLVM put statements together that do the same with neighbours in memory, as Numba does not."""
    before = config.SLP_VECTORIZE
    config.SLP_VECTORIZE = int(statements or before)
    try:
        yield
    finally:
        config.SLP_VECTORIZE = before


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Collect no garbage: a compiler makes millions of objects that stay, and a quarter of its time would go there.

    Afterwards they count as old, or all of them would be looked through at once.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if not gc.get_freeze_count():  # nobody else has set objects aside
                gc.freeze()
                gc.unfreeze()
            gc.enable()


@contextmanager
def _nothing_lost() -> Iterator[None]:
    """Raise what is raised where LLVM asks for machine code, or hands it over: ctypes would print that, and go on.

    It is there that Python notices a Ctrl-C that came while LLVM was at work.
    """
    found: list[Any] = []
    before, sys.unraisablehook = sys.unraisablehook, found.append  # nothing in Python, which could be interrupted too
    try:
        yield
    finally:
        sys.unraisablehook = before
        lost = [one for one in found if "ctypes callback" in (one.err_msg or "")]
        for other in [one for one in found if one not in lost]:
            before(other)
        if lost:
            raise lost[0].exc_value from None


@contextmanager
def _told_if_long() -> Iterator[None]:
    """Say once that kernels are compiled, as soon as that has taken long."""
    begin = time.perf_counter()
    timer = threading.Timer(max(PATIENCE - _waited[0], 0.0), _tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        _waited[0] += time.perf_counter() - begin


def _tell() -> None:
    if not _told.is_set() and sys.stderr is not None:  # else it would be printed among the results
        _told.set()
        with suppress(OSError, ValueError):  # nobody reads it, or it is closed
            print("Trellis: compiling, first time only.", file=sys.stderr, flush=True)


def njit(
    function: Callable[..., Any] | None = None, *, cache: bool = False, neighbours: bool = False,
    branching: bool = False, **options: Any,
) -> Any:  # fmt: skip
    """Make a kernel of a function, as Numba's decorator of this name does.

    Parameters
    ----------
    function
        The function; without it, a decorator is returned.
    cache
        Whether what is compiled is kept.
    neighbours
        Whether statements that do the same with neighbours in memory become one: they stand one behind another.
    branching
        Whether it is full of branches, with whatever it calls: then a fifth of the time would go to loops, for
        nothing.
    options
        Those of Numba.
    """
    if function is None:
        return lambda function: njit(function, cache=cache, neighbours=neighbours, branching=branching, **options)
    if config.DISABLE_JIT:
        return function
    kernel = KernelDispatcher(function, {}, {"boundscheck": None, **options, "nopython": True})
    kernel.neighbours, kernel.branching = neighbours, branching
    if cache:
        kernel.enable_caching()
    return kernel
