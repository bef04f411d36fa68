"""The nodes of the syntax tree, with their places in the text, and walks over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from operator import is_


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


_PARTS: dict[type[Node], tuple[str, ...]] = {}


def _parts(node: Node) -> tuple[str, ...]:
    """Return the names of the fields of a node that may hold others."""
    kind = type(node)
    if kind not in _PARTS:
        _PARTS[kind] = tuple(f.name for f in fields(node) if f.name != "span")
    return _PARTS[kind]


def children(node: Node) -> list[Node]:
    """Return the nodes directly below `node`, in the order they are written."""
    found = []
    for name in _parts(node):
        value = getattr(node, name)
        if isinstance(value, Node):
            found.append(value)
        elif isinstance(value, tuple):
            found += [item for item in value if isinstance(item, Node)]
    return found


def walk(node: Node) -> Iterator[Node]:
    """Yield `node` and everything below it, parents first."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += reversed(children(one))


def rebuild(node: Node, change: Callable[[Node], Node | None]) -> Node:
    """Return `node` with every node for which `change` gives one replaced by it, parents first."""
    changed = change(node)
    if changed is not None:
        return changed
    same, parts = True, []
    for name in _parts(node):
        part = value = getattr(node, name)
        if isinstance(value, Node):
            part = rebuild(value, change)
            same = same and part is value
        elif isinstance(value, tuple):
            part = tuple([rebuild(v, change) if isinstance(v, Node) else v for v in value])
            same = same and all(map(is_, part, value))
        parts.append(part)
    return node if same else type(node)(*parts, span=node.span)


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A column named without a variable, as in `[id]` and GROUP BY."""

    value: str
