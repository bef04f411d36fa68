"""The operator that counts and lists a fixed sequence by a tree plan."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TypeVar

import numpy as np

from trellis.operators.batch import PathBatch, rank_labels
from trellis.operators.contract import ListRequest
from trellis.operators.matches import ranked_parts
from trellis.operators.sequences.operator import SequenceOperator
from trellis.operators.sequences.structure import SequenceStructure
from trellis.operators.sequences.tree import PLAIN, SWITCHED, TreeMatches, TreePlan
from trellis.plan.choice import CONDENSED
from trellis.properties import cached_property

T = TypeVar("T")


class TreeStructure(SequenceStructure, TreeMatches):
    """The same with a tree plan, which counts by partial matches that it holds."""

    @cached_property
    def tree_plan(self) -> TreePlan:
        """The tree plan."""
        return self.tree(SWITCHED if self.plan.operator.method == CONDENSED else PLAIN)

    @cached_property
    def counts(self) -> list[int]:
        """The exact number of matches of each group."""
        return self._known_counts or self.tree_counts() or self.counts_by_walk()


class TreeOperator(SequenceOperator):
    """Counts and lists by a tree plan, whose partial matches it holds; sums and single matches come from the walk."""

    structure: TreeStructure

    def _make_structure(self) -> TreeStructure:
        return TreeStructure(self.plan, self.events, self.threads)

    def lists_at_once(self) -> bool:
        """Return that they may not: each would hold the partial matches."""
        return False

    def list(self, request: ListRequest[T]) -> Iterator[T]:
        """List the matches with given ranks, those of a window or tile at a time, on one thread."""
        for table, part, (group, low, high) in ranked_parts(
            self.structure.tables(), request.ranges, self.plan.sizes.match_rows
        ):
            labels = partial(rank_labels, [(group, low, high - low)])
            yield request.made(PathBatch.of_table(np.ascontiguousarray(table[:, part]), labels))
