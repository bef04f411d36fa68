"""Arguments that Python gives a kernel: a function for each type of arrays and tuples reads them where they stay.

For each array Numba writes sixty instructions: it empties a place, twice, has the array described there, reads all of
that, puts it together and takes it apart. That was two fifths of the code of all kernels, and what was optimised most
was how they are called.
"""

from __future__ import annotations

import hashlib
from typing import Any

from numba.core import callwrapper, cgutils
from numba.core import types as all_types
from numba.np.numpy_support import as_dtype

from trellis.kernels.calls import room

types: Any = all_types
ir: Any = cgutils.ir
_add: Any = callwrapper._ArgManager.add_arg
_NUMBERS = (types.Integer, types.Float, types.Boolean, types.NoneType)
_MEMINFO, _ITEMSIZE = 0, 3  # members of an array
_MISMATCH = "can't unbox array from PyObject into native value.  The object maybe of a different type"


def add_argument(self: Any, obj: Any, kind: Any) -> Any:
    """Write the code that reads an argument, and what is to be done with it in the end."""
    if not _is_read(kind) or isinstance(kind, _NUMBERS):
        return _add(self, obj, kind)
    context, builder = self.context, self.builder
    place = room(builder, context.get_value_type(kind))
    failed = builder.call(_reader(context, builder.module, kind), [obj, place])
    with cgutils.if_unlikely(builder, failed):
        builder.branch(self.nextblk)

    def release() -> None:
        if context.enable_nrt:
            builder.call(_releaser(context, builder.module, kind), [place])

    self.cleanups.append(release)
    block = builder.append_basic_block(f"arg{self.arg_count}.err")
    with builder.goto_block(block):
        release()
        builder.branch(self.nextblk)
    self.nextblk = block
    self.arg_count += 1
    value = builder.load(place)
    value.place = place
    return value


def _is_read(kind: Any) -> bool:
    """Return whether values of a type are arrays, numbers and tuples of these."""
    if isinstance(kind, types.BaseTuple):
        return all(map(_is_read, kind))
    return type(kind) is types.Array or isinstance(kind, _NUMBERS)


def _reader(context: Any, module: Any, kind: Any) -> Any:
    """Return the function that reads an object of Python to a place, and returns whether it failed."""
    function, builder = _function(context, module, kind, "read", ir.IntType(1), context.get_value_type(types.pyobject))
    if builder is not None:
        api = context.get_python_api(builder)
        read = _read_tuple if isinstance(kind, types.BaseTuple) else _read_array
        read(context, builder, api, kind, *function.args)
    return function


def _function(context: Any, module: Any, kind: Any, name: str, returned: Any, *given: Any) -> tuple[Any, Any]:
    """Return a function of a module for a type; with a builder if it is still to be written."""
    name = f"trellis.{name}.{hashlib.blake2b(str(kind).encode(), digest_size=10).hexdigest()}"
    if name in module.globals:
        return module.globals[name], None
    function = ir.Function(module, ir.FunctionType(returned, [*given, context.get_value_type(kind).as_pointer()]), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    return function, ir.IRBuilder(function.append_basic_block("entry"))


def _read_array(context: Any, builder: Any, api: Any, kind: Any, obj: Any, place: Any) -> None:
    adapt = api.nrt_adapt_ndarray_from_python if context.enable_nrt else api.numba_array_adaptor
    failed = cgutils.is_not_null(builder, adapt(obj, builder.bitcast(place, api.voidptr)))
    with builder.if_then(builder.not_(failed), likely=True):
        size = builder.load(cgutils.gep_inbounds(builder, place, 0, _ITEMSIZE))
        with builder.if_then(builder.icmp_signed("==", size, size.type(as_dtype(kind.dtype).itemsize)), likely=True):
            builder.ret(cgutils.false_bit)
    api.err_set_string("PyExc_TypeError", _MISMATCH)
    builder.ret(cgutils.true_bit)


def _read_tuple(context: Any, builder: Any, api: Any, kind: Any, obj: Any, place: Any) -> None:
    size = api.tuple_size(obj)
    with builder.if_then(builder.icmp_signed("!=", size, size.type(len(kind))), likely=False):
        api.err_set_string("PyExc_ValueError", f"size mismatch for tuple, expected {len(kind)} element(s)")
        builder.ret(cgutils.true_bit)
    for i, member in enumerate(kind):
        item, at = api.tuple_getitem(obj, i), cgutils.gep_inbounds(builder, place, 0, i)
        if isinstance(member, _NUMBERS):
            native = api.to_native_value(member, item)
            builder.store(native.value, at)
            failed = native.is_error
        else:
            failed = builder.call(_reader(context, builder.module, member), [item, at])
        with builder.if_then(failed, likely=False):
            builder.ret(cgutils.true_bit)
    builder.ret(cgutils.false_bit)


def _releaser(context: Any, module: Any, kind: Any) -> Any:
    """Return the function that gives back whatever was read to a place."""
    function, builder = _function(context, module, kind, "release", ir.VoidType())
    if builder is not None:
        _release(context, builder, kind, function.args[0])
        builder.ret_void()
    return function


def _release(context: Any, builder: Any, kind: Any, place: Any) -> None:
    if isinstance(kind, types.BaseTuple):
        for i, member in enumerate(kind):
            _release(context, builder, member, cgutils.gep_inbounds(builder, place, 0, i))
    elif not isinstance(kind, _NUMBERS):
        info = builder.load(cgutils.gep_inbounds(builder, place, 0, _MEMINFO))
        context.nrt.decref(builder, types.MemInfoPointer(types.voidptr), info)
