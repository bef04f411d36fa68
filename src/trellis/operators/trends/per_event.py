"""AGGREGATE PER EVENT of one Kleene variable: states over the trends through each event, which are not listed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.events.columns.ordering import rank_codes
from trellis.language.bound import Output
from trellis.operators.per_event import EventNumbers, States, values_of_codes
from trellis.operators.sums import SumColumn
from trellis.operators.trends.through import TrendsThrough
from trellis.operators.weights import weigh
from trellis.operators.wide import WideNumbers


def numbers_through(through: TrendsThrough, outputs: Sequence[Output], columns: Mapping[str, pa.Array]) -> EventNumbers:
    """Return the rows of the trends through each event, counted without listing them."""
    known: dict[Any, States] = {}  # several items need the same
    states = [_states(output, through, columns, known) for output in outputs]
    return EventNumbers(through.groups, through.events, states)


def _states(
    output: Output, through: TrendsThrough, columns: Mapping[str, pa.Array], known: dict[Any, States]
) -> States:
    function = output.function
    if function == "SHARE" or (function == "COUNT" and output.variable is None):
        return _once(known, "COUNT", through.counts)
    if function in ("BEGINS", "ENDS"):
        return through.counts(function)
    if output.column is None:
        if function in ("MIN", "MAX"):
            return pa.array(through.lengths(function == "MAX"))
        lengths = _once(known, "LENGTH", lambda: through.sums(lambda _: np.ones((1, through.size), np.uint64), 1)[0])
        if function == "COUNT":
            return lengths
        none = np.zeros(len(lengths), np.bool_)
        return SumColumn(
            cast(WideNumbers, lengths), cast(WideNumbers, _once(known, "COUNT", through.counts)), none, none
        )
    column = columns[output.column.name]
    if function in ("MIN", "MAX"):
        return values_of_codes(column, through.extremes(rank_codes([column])[0], function == "MAX"))
    return _once(known, output.column.name, lambda: _sums(column, through))


def _once(known: dict[Any, States], key: tuple[str, str] | str, make: Callable[[], States]) -> States:
    if key not in known:
        known[key] = make()
    return known[key]


def _sums(column: pa.Array, through: TrendsThrough) -> SumColumn:
    weight = weigh(column)
    flags = [weight.present]
    if weight.infinite.any():
        flags += [weight.infinite > 0, weight.infinite < 0]
    others = np.stack([flag.astype(np.uint64) for flag in flags])

    def residues(prime: int) -> NDArray[np.uint64]:
        return np.concatenate([weight.modulo(prime)[None], others])

    totals, numbers, *infinite = through.sums(residues, weight.bits)
    plus, minus = [own.positive for own in infinite] or [np.zeros(len(totals), np.bool_)] * 2
    return SumColumn(totals, numbers.magnitudes(), plus, minus, weight.unit)
