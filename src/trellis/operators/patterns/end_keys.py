"""Keys of ORDER BY over the results of a pattern, as keys over paths of vertices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

import numpy as np
import pyarrow as pa

from trellis.events.slice import Slice
from trellis.language.bound import BoundQuery, Column, Ordering, Output, OutputKind
from trellis.language.syntax import Which
from trellis.operators.patterns.paths import BoundVertices


class EndKeys:
    """Translates keys that read the length and the ends of results: the first and the last vertex of a path.

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
    """

    def __init__(
        self, bound: BoundQuery, events: Slice, vertices: BoundVertices, codes: Mapping[str, int],
        ends: Sequence[Set[str]],
    ) -> None:  # fmt: skip
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
                return None if column is None else replace(output, column=column)
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

    def _values(self, column: Column) -> pa.Array:
        """Return the attribute of the events of a variable; at other vertices, where nothing reads it, one of these."""
        own = self._vertices.variables == self._codes[column.var]
        some = self._vertices.events[np.argmax(own)] if len(own) else 0
        return self._events.columns[column.name].take(pa.array(np.where(own, self._vertices.events, some)))
