"""Sends the code that a user wrote to Spark's workers itself: they need not have the modules that it stands in."""

from __future__ import annotations

import inspect
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyspark import cloudpickle

_INSTALLED = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def send_along(*things: Any) -> None:
    """Have the modules of some classes, functions and objects be sent by value, unless they are installed here."""
    for thing in things:
        for one in _classes_and_functions(thing):
            module = sys.modules.get(getattr(one, "__module__", None) or "")
            if module is not None and _is_own(module):
                cloudpickle.register_pickle_by_value(module)


def _classes_and_functions(thing: Any) -> Iterable[Any]:
    if thing is None:
        return ()
    if inspect.isclass(thing):
        return thing.__mro__
    if inspect.isroutine(thing):
        return (thing,)
    inner = getattr(thing, "func", None)  # of a partial function
    return (*type(thing).__mro__, *(_classes_and_functions(inner) if inner is not None else ()))


def _is_own(module: Any) -> bool:
    name, file = module.__name__, getattr(module, "__file__", None)
    if file is None or name == "__main__" or name.partition(".")[0] in ("trellis", "pyspark"):
        return False  # what has no file, and `__main__`, goes by value anyway
    return not any(Path(file).is_relative_to(place) for place in _INSTALLED)
