"""Where the next result may begin after each by AFTER MATCH, and which results are kept by that."""

from __future__ import annotations

import numpy as np

from trellis.events.slice import Ints
from trellis.language.syntax import Skip
from trellis.operators.batch import PathBatch


def next_places(batch: PathBatch, skip: Skip, variable: int) -> Ints:
    """Return the first event at which a result may begin that is kept after each of these.

    Parameters
    ----------
    batch
        The results, of which all have events of the variable.
    skip
        The rule of AFTER MATCH.
    variable
        The number of the variable of TO FIRST and TO LAST.
    """
    firsts = batch.firsts.astype(np.int64)
    if skip is Skip.PAST_LAST:
        return batch.lasts.astype(np.int64) + 1
    if skip is Skip.TO_NEXT:
        return firsts + 1
    own = batch if batch.codes is None else batch.of_variable(variable)[0]
    return np.maximum((own.firsts if skip is Skip.TO_FIRST else own.lasts).astype(np.int64), firsts + 1)


class Keeper:
    """Keeps results that come in the order of groups and first events, each beginning where the last kept allows it."""

    def __init__(self) -> None:
        self._last = np.array([-1, -1])  # the group, and the place at which its next result may begin

    def rows_of(self, groups: Ints, firsts: Ints, places: Ints) -> Ints:
        """Return which of the next results are kept: by their groups, first events and places behind them."""
        from trellis.kernels.best.leading import keep_leading

        rows = np.empty(len(groups), np.int64)
        return rows[: keep_leading(groups, firsts, places, self._last, rows)]
