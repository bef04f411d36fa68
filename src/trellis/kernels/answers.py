"""Answers to what Numba asks again and again while it infers types, kept for as long as a kernel is compiled.

It computes the hash of a tuple of arrays from all that these are made of, each time it looks the type up; it asks all
templates for the type of each attribute, and imports forty modules before each function to see whether they are there.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from numba.core import base, errors, types, typing

_in_context: Any = errors.new_error_context  # type: ignore[attr-defined]
_get_attribute: Any = typing.BaseContext.resolve_getattr
_get_value: Any = typing.BaseContext.resolve_value_type
_refresh: Any = base.BaseContext.refresh
_refresh_typing: Any = typing.BaseContext.refresh

_hashes: dict[int, tuple[Any, int]] = {}  # with the types themselves, or another one could take the place of one
_found: dict[Any, Any] = {}
_sizes: dict[Any, int] = {}
_nothing = nullcontext()


def forget() -> None:
    """Forget all answers."""
    _hashes.clear()
    _found.clear()
    _sizes.clear()


def hash_type(self: Any) -> int:
    """Return the hash of a type."""
    known = _hashes.get(id(self))
    if known is None:
        known = _hashes[id(self)] = self, hash(self.key)
    return known[1]


def get_attribute(self: Any, kind: Any, name: str) -> Any:
    """Return the type of an attribute of values of a type."""
    key = kind, name
    if key not in _found:
        found = _get_attribute(self, kind, name)
        if isinstance(found, types.BoundFunction):  # which remembers how it was called
            return found
        _found[key] = found
    return _found[key]


def get_value(self: Any, value: Any) -> Any:
    """Return the type of a constant; a function that is built in is not asked whether it is anything else."""
    if type(value) is not type(len):
        return _get_value(self, value)
    if value not in _found:
        _found[value] = _get_value(self, value)
    return _found[value]


def refresh(self: Any) -> None:
    """Take what was declared since the last time, if anything was."""
    if _has_more(self) or _has_more(self.typing_context):
        _found.clear()
        _refresh(self)


def refresh_typing(self: Any) -> None:
    """Take the types of what was declared since the last time, if anything was."""
    if _has_more(self):
        _found.clear()
        _refresh_typing(self)


def _has_more(context: Any) -> bool:
    """Return whether a context has not taken all that was declared."""
    size = sum(
        len(getattr(registry, name))
        for registry, loader in context._registries.items()
        for name in loader.registry_items
    )
    before, _sizes[context] = _sizes.get(context), size
    return before != size


def let_warnings_pass(self: Any, filename: Any = None, lineno: Any = None) -> Any:
    """Leave warnings as they are: kernels cause none whose place had to be corrected."""
    return _nothing


class ErrorContext:
    """A line that an error of Numba is told with, if there is one."""

    __slots__ = ("_text", "_values")

    def __init__(self, text: str, **values: Any) -> None:
        self._text, self._values = text, values

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is not None:
            with _in_context(self._text, **self._values):
                raise error
