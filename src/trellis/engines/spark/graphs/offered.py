"""Looks through the code of an operator for what a graph on the cluster does not offer, before anything runs."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from trellis.engines.spark.graphs.distributed import DistributedGraph
from trellis.errors import UsageError, did_you_mean
from trellis.graphs.graph import Graph
from trellis.graphs.operator import Operator

OFFERED = ("directed", *(name for name in vars(DistributedGraph) if hasattr(Graph, name) and name[0] != "_"))
STREAMED = ("state", "restore")  # methods that only streams call


def refuse_unoffered(operator: Operator, name: str) -> None:
    """Refuse an operator that asks its graph for something that only a graph in one process has.

    Raises
    ------
    UsageError
        If it does, with the method and what it asks for.
    """
    for method, code in _methods(type(operator)):
        for asked in _asked_of_graph(code):
            if asked not in OFFERED:
                raise UsageError(
                    f"the operator {name} asks for `graph.{asked}` in `{method}`, which a graph on the cluster does "
                    "not have",
                    did_you_mean(
                        asked, OFFERED, f'It has {", ".join(OFFERED)}. For anything else run with `graphs="local"`.'
                    ),
                )


def _methods(kind: type) -> Iterator[tuple[str, CodeType]]:
    for cls in kind.__mro__[: kind.__mro__.index(Operator)]:
        for name, member in vars(cls).items():
            inner: Any = getattr(member, "fget", None) or getattr(member, "__func__", member)
            if isinstance(inner, FunctionType) and name not in STREAMED:
                yield from ((name, code) for code in _nested(inner.__code__))


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _asked_of_graph(code: CodeType) -> Iterator[str]:
    """Yield the attributes that are read of `self.graph`, or of a variable that it was given to."""
    graphs: set[Any] = set()
    before: tuple[str, Any] = ("", None)
    for step in dis.get_instructions(code):
        if step.opname.startswith(("CACHE", "PUSH_NULL", "PRECALL")):
            continue
        is_graph = before == ("attribute", "graph") or (before[0] == "variable" and before[1] in graphs)
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            if is_graph:
                yield str(step.argval)
            before = ("attribute", step.argval)
        elif step.opname.startswith("STORE_"):
            if is_graph and step.opname.startswith(("STORE_FAST", "STORE_DEREF")):
                graphs.add(step.argval if not isinstance(step.argval, tuple) else step.argval[0])
            before = ("", None)
        elif step.opname.startswith(("LOAD_FAST", "LOAD_DEREF")):
            before = ("variable", step.argval if not isinstance(step.argval, tuple) else step.argval[-1])
        else:
            before = ("", None)
