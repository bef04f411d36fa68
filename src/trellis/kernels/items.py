"""Short code for what kernels do most: read and write single items of arrays, and count references to arrays.

For `values[i]` Numba copies the whole description of the array, to read three numbers of it, in 34 instructions. LLVM
removes nearly all of them again; with the seven that are left there is less to write and less to remove. To count the
references to a tuple of arrays, Numba takes all of these apart.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from numba.core import cgutils, config, lowering
from numba.core import types as all_types
from numba.extending import overload
from numba.np import arrayobj

types: Any = all_types
DATA, _SHAPE, _STRIDES = 4, 5, 6  # the members of an array
_getitem, _setitem = lowering.Lower.lower_getitem, lowering.Lower.lower_setitem


def lower_getitem(self: Any, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
    """Write the code of `value[index]`."""
    array, place = signature.args
    if not _is_item(self.context, array, place):
        return _getitem(self, resty, expr, value, index, signature)
    pointer = _pointer(self, array, value, place, index)
    found = arrayobj.load_item(self.context, self.builder, array, pointer)
    return self.context.cast(self.builder, found, signature.return_type, resty)


def lower_setitem(self: Any, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
    """Write the code of `target[index] = value`."""
    array, place, kind = signature.args
    if not _is_item(self.context, array, place) or self.typeof(target_var.name) != array or kind != array.dtype:
        return _setitem(self, target_var, index_var, value_var, signature)
    value = self.context.cast(self.builder, self.loadvar(value_var.name), self.typeof(value_var.name), kind)
    pointer = _pointer(self, array, target_var, place, index_var)
    return arrayobj.store_item(self.context, self.builder, array, value, pointer)


def _is_item(context: Any, array: Any, place: Any) -> bool:
    """Return whether a place is that of one item, of a plain number."""
    if type(array) is not types.Array or context.enable_boundscheck or config.BOUNDSCHECK:
        return False
    if not isinstance(array.dtype, (types.Number, types.Boolean)):
        return False
    places = place.types if isinstance(place, types.BaseTuple) else (place,)
    return len(places) == array.ndim and all(isinstance(one, types.Integer) for one in places)


def _pointer(lower: Any, array: Any, value: Any, place: Any, index: Any) -> Any:
    """Write the code of where an item lies."""
    context, builder = lower.context, lower.builder
    whole = context.cast(builder, lower.loadvar(value.name), lower.typeof(value.name), array)
    at = context.cast(builder, lower.loadvar(index.name), lower.typeof(index.name), place)
    single = not isinstance(place, types.BaseTuple)
    places = ((place, at),) if single else tuple(zip(place.types, cgutils.unpack_tuple(builder, at), strict=True))
    data = extract(builder, whole, DATA)
    shape = _members(builder, whole, _SHAPE, array.ndim)
    found = [
        one if _is_plain(one) else arrayobj.fix_integer_index(context, builder, kind, one, length)
        for (kind, one), length in zip(places, shape, strict=True)
    ]
    if single and array.layout == "C":
        return builder.gep(data, found)
    if array.layout == "C" and array.ndim == 2:
        return builder.gep(data, [builder.add(builder.mul(found[0], shape[1]), found[1])])
    strides = shape if array.layout in "CF" else _members(builder, whole, _STRIDES, array.ndim)
    return cgutils.get_item_pointer2(context, builder, data, shape, strides, array.layout, found)


def _is_plain(place: Any) -> bool:
    """Return whether a place is a number that does not count from the end."""
    return place.type.width == 64 and getattr(place, "constant", -1) >= 0


def _members(builder: Any, whole: Any, member: int, count: int) -> list[Any]:
    return [extract(builder, whole, member, i) for i in range(count)]


def get_member(self: Any, builder: Any, val: Any, pos: Any) -> Any:
    """Write the code of a member of a structure, by its name or place."""
    return extract(builder, val, self.get_field_position(pos) if isinstance(pos, str) else pos)


def extract(builder: Any, value: Any, *path: int) -> Any:
    """Return a member of a structure; that which was put there, where it is known."""
    while getattr(value, "opname", "") == "insertvalue":
        there = tuple(value.indices)
        if there == path[: len(there)]:
            value, path = value.value, path[len(there) :]
            if not path:
                return value
        elif path == there[: len(path)]:
            break
        else:
            value = value.aggregate
    return builder.extract_value(value, path)


def get_meminfos(self: Any, builder: Any, kind: Any, value: Any) -> list[tuple[Any, Any]]:
    """Return whatever in a value has its references counted, with its type."""
    model = self._context.data_model_manager[kind]
    found = [(kind, model.get_nrt_meminfo(builder, value))] if model.has_nrt_meminfo() else []
    for inner, take in model.traverse(builder):
        if is_counted(self._context.data_model_manager, inner):
            found += get_meminfos(self, builder, inner, take(value))
    return found


@cache
def is_counted(models: Any, kind: Any) -> bool:
    """Return whether anything in a value of a type has its references counted."""
    model = models[kind]
    return model.has_nrt_meminfo() or any(is_counted(models, inner) for inner, _ in model.traverse(None))


def refuse_shape(src_shapes: Any, index_shape: Any) -> None:
    """Refuse to put an array in the place of one of another length."""
    raise NotImplementedError


@overload(refuse_shape)
def _refuse_shape(src_shapes: Any, index_shape: Any) -> Any:
    def refuse(src_shapes: Any, index_shape: Any) -> None:
        raise ValueError("an array cannot be put in the place of one of another length")  # Numba's would build a text

    return refuse
