"""Keys of ORDER BY over the results of a pattern, as keys over paths of vertices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.events.columns.ordering import group_codes
from trellis.events.slice import Slice
from trellis.language.bound import BoundQuery, Column, Ordering, Output, OutputKind
from trellis.language.schema import INTEGER
from trellis.language.syntax import Which
from trellis.operators.bindings import counted_events
from trellis.operators.patterns.paths import BoundVertices


class EndKeys:
    """Translates keys that read the length and the ends of results: the first and the last vertex of a path.

    Where the edges of paths are listed, every vertex may give something: sums, least and greatest values and means of
    a variable, and the attributes of single variables anywhere.

    Parameters
    ----------
    bound
        The query.
    events
        The slice.
    vertices
        The event of each vertex, and its variable.
    codes
        The number of each variable.
    ends
        The variables with which results begin, and with which they end.
    listed
        Whether the edges are listed.
    """

    def __init__(
        self, bound: BoundQuery, events: Slice, vertices: BoundVertices, codes: Mapping[str, int],
        ends: Sequence[Set[str]], listed: bool = False,
    ) -> None:  # fmt: skip
        self._bound, self._listed = bound, listed
        self._events, self._vertices, self._codes, self._ends = events, vertices, codes, ends
        self._kleene = {variable.name: variable.kleene for variable in bound.variables}
        self.columns: dict[str, pa.Array] = {}  # of vertices, by the names that translated keys have for them

    def translated(self, orderings: Sequence[Ordering]) -> tuple[Ordering, ...] | None:
        """Return keys as keys over paths, or None where one reads anything else."""
        found = [(ordering, self._output(ordering.output)) for ordering in orderings]
        if any(output is None for _, output in found):
            return None
        return tuple(replace(ordering, output=output) for ordering, output in found if output is not None)

    def _output(self, output: Output) -> Output | None:
        match output.kind:
            case OutputKind.LENGTH | OutputKind.CONSTANT:
                return output
            case OutputKind.ATTRIBUTE if output.column is not None and not output.list:
                column = self._column(output.column)
                return self._single(output) if column is None else replace(output, column=column)
            case OutputKind.AGGREGATE if self._listed and output.function == "COUNT":
                own = counted_events(self._bound, str(output.variable), self._vertices.codes)
                ones = np.ones(len(self._vertices.events), np.int64) if own is None else own.astype(np.int64)
                return self._sum(output, f"count {output.variable}", ones)
            case OutputKind.AGGREGATE if self._listed and output.column is not None and output.value is None:
                return replace(output, column=self._own_values(output.column))
            case OutputKind.EXPRESSION:
                arguments = [self._output(argument) for argument in output.arguments]
                known = tuple(argument for argument in arguments if argument is not None)
                return replace(output, arguments=known) if len(known) == len(arguments) else None
        return None

    def _column(self, column: Column) -> Column | None:
        """Return the attribute as one of the first or the last vertex, if it is."""
        single = not self._kleene[column.var]
        is_first = single or column.which is Which.FIRST or column.nth == 1
        is_last = single or column.which is Which.LAST
        for which, holds, variables in zip((Which.FIRST, Which.LAST), (is_first, is_last), self._ends, strict=True):
            if holds and variables == {column.var}:
                name = f"{column.var}.{column.name}"
                self.columns[name] = self._values(column)
                return replace(column, name=name, which=which, nth=None)
        return None

    def _own_values(self, column: Column) -> Column:
        """Return the attribute of one variable's vertices, which others have not."""
        own = counted_events(self._bound, column.var, self._vertices.codes)
        other = None if own is None else ~own
        name = f"own {column.var}.{column.name}"
        self.columns[name] = self._events.columns[column.name].take(pa.array(self._vertices.events, mask=other))
        return replace(column, name=name)

    def _single(self, output: Output) -> Output | None:
        """Return the attribute of a variable that takes one event as a sum: of its place among all values."""
        column = output.column
        assert column is not None
        in_group = any(v.name == column.var and v.groups for v in self._bound.variables)
        if not self._listed or self._kleene[column.var] or in_group:
            return None
        values = self._events.columns[column.name]
        codes = group_codes([values])[0] if len(values) else np.zeros(0, np.int64)
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        places = np.where(valid, codes + 1, 0)[self._vertices.events]  # unbound is NULL, and comes first
        own = self._vertices.variables == self._codes[column.var]
        return self._sum(output, f"place {column.var}.{column.name}", np.where(own, places, 0))

    def _sum(self, output: Output, name: str, numbers: NDArray[np.int64]) -> Output:
        """Return the sum of what the vertices of a result give."""
        self.columns[name] = pa.array(numbers)
        of = Column("", name, Which.EACH, None, INTEGER)
        return replace(output, kind=OutputKind.AGGREGATE, function="SUM", type=INTEGER, column=of)

    def _values(self, column: Column) -> pa.Array:
        """Return the attribute of the events of a variable; at other vertices, where nothing reads it, one of these."""
        own = self._vertices.variables == self._codes[column.var]
        some = self._vertices.events[np.argmax(own)] if len(own) else 0
        return self._events.columns[column.name].take(pa.array(np.where(own, self._vertices.events, some)))
