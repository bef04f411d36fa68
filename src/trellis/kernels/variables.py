"""Variables of kernels that are values to LLVM, in place of room that is written and read.

Numba gives a variable room on the stack as soon as two blocks of a function use it, empties it first, reads it before
it is written, and empties it in the end: for references, which few have. LLVM removes all of that again.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from numba.core import ir, lowering
from numba.core.analysis import compute_cfg_from_blocks

from trellis.kernels.items import is_counted
from trellis.kernels.tuples import place_of

_find: Any = lowering.Lower._find_singly_assigned_variable
_store, _delete = lowering.Lower.storevar, lowering.Lower.delvar


def find_values(self: Any) -> None:
    """Find the variables that are values: assigned once, before any use, and without references or in one block."""
    function = self.func_ir
    self.assigned = assigned = Counter[str]()
    place = {}
    for label, block in function.blocks.items():
        for one in block.body:
            if isinstance(one, ir.Assign):
                assigned[one.target.name] += 1
                place[one.target.name] = label
    if function.is_generator or self._disable_sroa_like_opt:
        _find(self)
        return
    used_in = function.variable_lifetime.usedefs.usemap  # but for variables of the block itself
    once = {name for name, number in assigned.items() if number == 1}
    several = once & set().union(*used_in.values())
    waiting = {name for name in several if not _has_references(self, name)}
    if waiting:
        above = compute_cfg_from_blocks(function.blocks).dominators()
        for label, used in used_in.items():
            waiting -= {
                name for name in used & waiting if place[name] not in above.get(label, ()) or place[name] >= label
            }
    self._singly_assigned_vars, self._blk_local_varmap = once - several | waiting, {}


def _has_references(lower: Any, name: str) -> bool:
    return lower.context.enable_nrt and is_counted(lower.context.data_model_manager, lower.typeof(name))


def store_variable(self: Any, value: Any, name: str, argidx: int | None = None) -> None:
    """Write the code that gives a variable its value; if that was passed, it is known where it lies."""
    if name in self._singly_assigned_vars or _has_references(self, name):
        _store(self, value, name, argidx)
        place = place_of(value)
        if place is not None and name in self.varmap and self.assigned[name] == 1:
            self.getvar(name).place = place
    else:
        self._alloca_var(name, self.typeof(name))
        self.builder.store(value, self.getvar(name))


def delete_variable(self: Any, name: str) -> None:
    """Write the code at the end of a variable: none, if it has no references."""
    if _has_references(self, name):
        _delete(self, name)
    elif name not in self._blk_local_varmap:
        self._singly_assigned_vars.discard(name)
