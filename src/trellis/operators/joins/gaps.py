"""NOTs whose conditions compare the forbidden event with one end of its gap: the nearest one tells which gaps are free.

Of a NOT behind `a` with `b.price > a.price` the first `b` behind each `a` that is dearer bounds what may come behind
the gap; so the NOT is a comparison of two codes, as it is without conditions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.events.adjacency import Adjacency, encode_rows
from trellis.kernels.join.nearest import first_greater
from trellis.plan.join import JoinTerm
from trellis.plan.positions import neighbour_condition

Ints = NDArray[np.int64]


def nearest_forbidden(
    terms: Sequence[JoinTerm], name: str, columns: Mapping[str, pa.Array], rows: Ints, absent: Ints, bounds: Ints,
    size: int, behind: bool,
) -> Ints | None:  # fmt: skip
    """Return for each candidate the nearest event that a NOT forbids beside it.

    Parameters
    ----------
    terms, name
        What must hold for it, all of the events of one variable beside the NOT's own.
    columns, rows, absent
        The events, those of the variable, and those that the NOT may forbid, in order.
    bounds
        For each event of the variable where the gap begins; where it ends, if `behind` is not set. They never fall.
    size, behind
        The number of events; whether the gap is behind the events or before them.

    Returns
    -------
    The first forbidden event of each gap, `size` without one; or the last one, -1 without. None where the conditions
    are not one comparison of codes.
    """
    conditions = tuple(neighbour_condition(term.condition, name) for term in terms)
    codes = encode_rows(conditions, columns, rows, absent)
    if codes.residual or codes.clauses or codes.differ_next:
        return None
    given, taken = np.flatnonzero(codes.gives), np.flatnonzero(codes.takes)
    places = absent[taken]
    if behind:
        found = _first(codes, given, taken, bounds[given], places)
    else:  # the same, seen from the end
        backwards = _first(codes, given[::-1], taken[::-1], size - bounds[given][::-1], size - 1 - places[::-1])
        found = None if backwards is None else len(taken) - 1 - backwards[::-1]
    if found is None:
        return None
    nearest = np.full(len(rows), size if behind else -1)
    nearest[given] = (np.append(places, size) if behind else np.append(places, -1))[found]
    return nearest


def _first(codes: Adjacency, given: Ints, taken: Ints, starts: Ints, places: Ints) -> Ints | None:
    """Return for each of some events the first of others from its start on that goes with it; as many if none does."""
    keyed = codes.key_next is not None and codes.key_prev is not None
    if len(codes.above) + keyed != 1:
        return None
    if not keyed:
        own, other = codes.below[0][given], codes.above[0][taken]
        return first_greater(own, np.ascontiguousarray(starts), other, np.ascontiguousarray(places))
    assert codes.key_next is not None
    assert codes.key_prev is not None
    own, other = codes.key_prev[given].astype(np.int64), codes.key_next[taken].astype(np.int64)
    order = np.lexsort((places, other))
    width = int(max(starts.max(initial=0), places.max(initial=0))) + 1
    found = np.searchsorted(other[order] * width + places[order], own * width + starts)
    met = (found < len(order)) & (own >= 0)
    met[met] = other[order][found[met]] == own[met]
    return np.where(met, np.append(order, 0)[np.where(met, found, 0)], len(taken))
