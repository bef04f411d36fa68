"""The nodes of the syntax tree, with their places in the text, and walks over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from operator import is_
from typing import Any


@dataclass(frozen=True, slots=True)
class Span:
    """A range `[start, end)` of characters of the query text."""

    start: int
    end: int


NOWHERE = Span(0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node of the syntax tree, with its place in the text."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)


_PARTS: dict[str, tuple[str, ...]] = {}  # of each kind of node by its name


def _parts(node: Node) -> tuple[str, ...]:
    """Return the names of the fields of a node that may hold others."""
    kind = type(node).__qualname__
    if kind not in _PARTS:
        _PARTS[kind] = tuple(f.name for f in fields(node) if f.name != "span")
    return _PARTS[kind]


def children(node: Node) -> Iterator[Node]:
    """Yield the nodes directly below `node`, in the order they are written."""
    for name in _parts(node):
        value = getattr(node, name)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, Node))


def walk(node: Node) -> Iterator[Node]:
    """Yield `node` and everything below it, parents first."""
    yield node
    for child in children(node):
        yield from walk(child)


def rebuild(node: Node, change: Callable[[Node], Node | None]) -> Node:
    """Return `node` with every node for which `change` gives one replaced by it, parents first."""
    changed = change(node)
    if changed is not None:
        return changed
    updates: dict[str, Any] = {}
    for name in _parts(node):
        value = getattr(node, name)
        if isinstance(value, Node):
            new = rebuild(value, change)
            if new is not value:
                updates[name] = new
        elif isinstance(value, tuple):
            parts = tuple(rebuild(v, change) if isinstance(v, Node) else v for v in value)
            if not all(map(is_, parts, value)):
                updates[name] = parts
    return replace(node, **updates) if updates else node


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A column named without a variable, as in `[id]` and GROUP BY."""

    value: str
