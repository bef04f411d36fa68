"""The operator for patterns of several variables.

Where conditions look at neighbours only, results are counted and unranked on the attribute indexes of the steps
between variables (`trellis.operators.patterns.indexed`). For the rest the results of some groups at a time become paths
of a graph whose vertices are events bound to variables, and that graph is what the trend operator counts, aggregates
and lists. What comes out are events again, with their variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.events.slice import Ints, Slice
from trellis.language.bound import BoundQuery, Column, NamedOutput, Output, OutputKind
from trellis.language.schema import Kind, Type
from trellis.language.syntax import Which
from trellis.limits import warn_of_all
from trellis.operators.batch import PathBatch
from trellis.operators.bindings import counted_events
from trellis.operators.contract import BestRequest, Counts, Explored, ListRequest, StructuredOperator
from trellis.operators.patterns.end_keys import EndKeys
from trellis.operators.patterns.indexed import IndexedPositions
from trellis.operators.patterns.parts import PatternPart
from trellis.operators.patterns.paths import BoundVertices
from trellis.operators.patterns.structure import PatternStructure
from trellis.operators.per_event import EventNumbers, join_rows
from trellis.operators.sums import SumColumn
from trellis.operators.trends.operator import TrendOperator, picks_sooner
from trellis.plan.plan import Plan
from trellis.plan.spec import SEARCH

if TYPE_CHECKING:
    from trellis.operators.aggregates import Aggregates
    from trellis.operators.ranks import Ranks

T = TypeVar("T")


class PatternOperator(StructuredOperator[PatternStructure]):
    """Matches of any pattern."""

    def _make_structure(self) -> PatternStructure:
        return PatternStructure(self.plan, self.events, self.threads)

    def variant(self, plan: Plan, events: Slice) -> Self:
        """Return an operator for the same results with other output, by the conditions that these were found by."""
        own = self.structure.plan
        bound = replace(plan.bound, conditions=own.bound.conditions)
        return super().variant(replace(own, bound=bound, columns=plan.columns, sizes=plan.sizes), events)

    @property
    def indexed(self) -> IndexedPositions | None:
        """The attribute indexes of the pattern's steps, or None where edges are needed."""
        return self.structure.indexed

    @property
    def _unranking(self) -> IndexedPositions | None:
        """The indexes, if results are unranked on them."""
        indexed = None if self.plan.bound.having else self.indexed
        return indexed if indexed is not None and indexed.in_order else None

    # --- Numbers ----------------------------------------------------------------------------------------------

    def aggregate(self) -> Sequence[Aggregates]:
        """Return the states of AGGREGATE of each group."""
        outputs = [named.output for named in self.plan.bound.aggregates]
        inner = replace(self.plan.bound, aggregates=tuple(NamedOutput("", _inner_output(o)) for o in outputs))
        indexed = None if self._asks_for_members(outputs) else self.indexed
        parts = self.structure.all_parts() if indexed is None else [indexed]
        found = [
            numbers
            for part in parts
            for numbers in part.over_vertices(inner, self._columns(part.vertices, outputs)).aggregate()
        ]
        return [_outer_numbers(outputs, one) for one in found] if any(map(_counts_events, outputs)) else found

    def per_event(self) -> EventNumbers | None:
        """Return the states of AGGREGATE PER EVENT, of all vertices of an event together; None under HAVING."""
        bound = self.plan.bound
        if bound.having or bound.per_event is None:
            return None
        outputs = [named.output for named in bound.aggregates]
        inner = replace(bound, aggregates=tuple(NamedOutput("", _inner_output(o)) for o in outputs))
        var, found = bound.per_event.var, []
        for part in self.structure.all_parts():
            numbers = part.over_vertices(inner, self._columns(part.vertices, outputs)).per_event()
            assert numbers is not None
            if var is not None:
                own = part.vertices.variables[numbers.events] == self.structure.variables.codes[var]
                numbers = numbers.chosen(np.flatnonzero(own))
            states = [
                column.numbers if isinstance(column, SumColumn) and _counts_events(output) else column
                for output, column in zip(outputs, numbers.states, strict=True)
            ]
            events = np.asarray(part.vertices.events)[numbers.events].astype(np.int64)
            found.append(EventNumbers(numbers.groups + part.first, events, states))
        return join_rows(outputs, found, len(self.events))

    def _asks_for_members(self, outputs: Sequence[Output]) -> bool:
        """Return whether it must be known which events lie on results, which an index does not tell."""
        if self.plan.bound.having:
            return True
        columns = [(o.function, self.events.columns[o.column.name]) for o in outputs if o.column is not None]
        return any(
            function in ("MIN", "MAX") or (pa.types.is_floating(column.type) and pc.any(pc.is_inf(column)).as_py())
            for function, column in columns
        )

    def _columns(self, vertices: BoundVertices, outputs: Sequence[Output]) -> dict[str, pa.Array]:
        """Return the values of the vertices' events for each variable alone: NULL at those of other variables."""
        columns: dict[str, pa.Array] = {}
        for output in outputs:
            var, name = _named(output)
            if var is None:
                continue
            own = counted_events(self.plan.bound, var, vertices.codes)
            other = np.zeros(len(vertices.events), np.bool_) if own is None else ~own
            if name is None:
                columns[_key(var, name)] = pa.array(np.ones(len(other), np.int64), mask=other)
            else:
                columns[_key(var, name)] = self.events.columns[name].take(pa.array(vertices.events, mask=other))
        return columns

    # --- Results ----------------------------------------------------------------------------------------------

    def at(self, group: int, ranks: Sequence[int]) -> PathBatch:
        """Return the results of a group with given ranks, of any size, in rising order."""
        indexed = self._unranking
        return self.structure.part(group, group + 1).at(group, ranks) if indexed is None else indexed.at(group, ranks)

    def rank_ends(self, group: int) -> tuple[Ints, NDArray[Any]]:
        """Return the first events of a group's results, rising, and how many results there are up to each of them."""
        indexed = self._unranking
        if indexed is None:
            return super().rank_ends(group)
        vertices, ends = indexed.operator.rank_ends(group)
        events = np.asarray(indexed.vertices.events)[vertices].astype(np.int64)
        last = np.append(events[1:] != events[:-1], True)[: len(events)]
        return events[last], ends[last]

    def at_each(self, chosen: Mapping[int, Ranks]) -> Iterator[PathBatch]:
        """Yield the results of groups with given ranks, in rising order; in bounded batches where there is an index."""
        indexed = self._unranking
        return super().at_each(chosen) if indexed is None else indexed.at_each(chosen)

    def counts_before_listing(self) -> Counts:
        """Return the counts; few events are counted on their paths, which to list needs."""
        self.structure.lists = True
        return self.counts

    @property
    def _index_to_list(self) -> IndexedPositions | None:
        """The indexes, if results are listed on them: of spans, and where graphs do not tell where results begin."""
        graph = self.plan.positions
        if graph is None or not (graph.span or graph.counts_first) or self.structure.by_paths:
            return None
        return self.indexed if self.indexed is not None and self.indexed.in_order else None

    def lists_at_once(self) -> bool:
        """Return whether the paths of all groups are held together, on which threads list."""
        if self._index_to_list is not None:
            return False
        part = next(self.structure.all_parts(), None)
        if part is None or part.last < len(self.events.groups) or not part.holds(None) or part.paths.ambiguous.any():
            return False
        return part.operator.lists_at_once()

    def list(self, request: ListRequest[T]) -> Iterator[T]:
        """List the results with given ranks: some groups at a time, whose paths are held, or few by their ranks."""
        sooner = not self.structure.by_paths and picks_sooner(self.events, request, self.plan.sizes)
        if sooner and (indexed := self._unranking) is not None:
            yield from map(request.made, indexed.at_each(request.ranks()))
            return
        if (indexed := self._index_to_list) is not None:
            yield from indexed.list(request)
            return
        waiting = [one for one in request.ranges if one[1] < one[2]]
        for part in self.structure.parts(sorted({group for group, _, _ in waiting})):
            own = [one for one in waiting if part.first <= one[0] < part.last]
            yield from part.list(replace(request, ranges=own))

    def first(self, begin: int, end: int) -> PathBatch | None:
        """Return the results of all groups from one on, if they are few and need not be counted."""
        from trellis.operators.patterns.first import first_results
        from trellis.operators.patterns.lazily import walk_to_first
        from trellis.operators.trends.unrank import most_first

        indexed, sizes, pairs = self._unranking, self.plan.sizes, self.events.pairs
        few = end <= sizes.found_alone or "counts" not in vars(self.structure)  # else the whole graph serves all calls
        if indexed is None and few:
            searched = self.plan.operator.method == SEARCH and pairs > sizes.small_pairs
            if end <= sizes.walked_firsts and (searched or pairs > sizes.counted_pairs):
                steps = 64 * pairs if searched else pairs // 2
                walked = walk_to_first(self.plan, self.events, self.structure.exploration, begin, end, steps)
                if walked is not None:
                    return walked
            if pairs > sizes.counted_pairs:
                return first_results(self, begin, end)
        if indexed is None or end - begin > sizes.found_alone or end > most_first(len(indexed.vertices.events)):
            return None
        if not picks_sooner(self.events, ListRequest([(0, begin, end)], lambda some: some), sizes):
            return None
        found = indexed.operator.first_on_index(begin, end)
        return None if found is None else found.on(*indexed.vertices)

    def best(self, request: BestRequest[T]) -> Iterator[T]:
        """List the best results alone, where they can be searched on the indexes or on graphs of them; else all."""
        found = self._search_best(request)
        if found is None and self.plan.join is not None:
            from trellis.operators.joins.best import search_best_of_plan

            best = search_best_of_plan(request, self.plan, self.events)
            found = None if best is None else [*best.pieces(self.plan.sizes.batch_values)]
        if found is None and self.indexed is None and self.events.pairs > self.plan.sizes.counted_pairs:
            from trellis.operators.patterns.best import best_by_pivots

            best = best_by_pivots(self.structure, request.bound, request.per_group)
            found = None if best is None else [*best.pieces(self.plan.sizes.batch_values)]
        if found is None and self.structure.is_far and self.events.pairs > self.plan.sizes.counted_pairs:
            from trellis.operators.patterns.best_first import best_first

            best = best_first(self.structure, request.bound, request.per_group, partial(self._best_of_part, request))
            found = None if best is None else [*best.pieces(self.plan.sizes.batch_values)]
        return self._best_of_parts(request) if found is None else map(request.make, found)

    def _best_of_parts(self, request: BestRequest[T]) -> Iterator[T]:
        """Yield the best results of some groups at a time, or all of them where that is quicker or must be."""
        total, warned = sum(self.counts), False
        for part in self.structure.all_parts():
            if not len(part.paths.events):
                continue
            found = self._search_part(request, part, total)
            if found is not None:
                yield from map(request.make, found)
                continue
            if not warned:
                warn_of_all(total, request.max_trends)
                warned = True
            yield from part.list(request.all_of(part.operator.counts, part.first))

    def _best_of_part(self, request: BestRequest[T], part: PatternPart) -> Iterator[PathBatch]:
        """Yield the best results of all groups of a part together, or all of them."""
        counts = part.operator.counts
        plain = BestRequest[PathBatch](request.bound, lambda batch: batch, request.max_trends, False, request.threads)
        found = self._search_part(plain, part, sum(counts))
        if found is None:
            warn_of_all(sum(counts), request.max_trends)
            yield from part.list(plain.all_of(counts, part.first))
        else:
            yield from found

    def _search_part(self, request: BestRequest[Any], part: PatternPart, total: int) -> Sequence[PathBatch] | None:
        """Return the best results of a part of `total` results, or None where all are to be listed."""
        if np.asarray(part.paths.ambiguous).any() or request.bound.limit is None:
            return None
        operator = self._keyed(request.bound, part, part.ends, listed=True)
        if operator is None:
            return None
        found = operator.search_best(replace(request, bound=operator.plan.bound, max_trends=total))
        return None if found is None else [batch.on(*part.vertices, part.first) for batch in found]

    def _search_best(self, request: BestRequest[T]) -> Sequence[PathBatch] | None:
        """Return the best results, or None where all are to be listed."""
        indexed = self._unranking
        if indexed is None:
            return None
        for edges in {False, indexed.structure.tasks.single}:  # first events share the edges between vertices
            operator = self._keyed(request.bound, indexed, self._ends, edges)
            found = None if operator is None else operator.search_best(replace(request, bound=operator.plan.bound))
            if found is not None:
                return [batch.on(*indexed.vertices) for batch in found]
        return None

    @property
    def _ends(self) -> Sequence[Set[str]]:
        """The variables with which results may begin, and with which they may end, where the plan has positions."""
        graph = self.plan.positions
        assert graph is not None
        return [{graph.positions[p].variable for p in places} for places in (graph.firsts, graph.lasts)]

    def _keyed(
        self, bound: BoundQuery, part: IndexedPositions | PatternPart, ends: Sequence[Set[str]], listed: bool = False
    ) -> TrendOperator | None:
        """Return the operator over the vertices of results with the keys of ORDER BY; None where one reads more."""
        keys = EndKeys(bound, self.events, part.vertices, self.structure.variables.codes, ends, listed)
        orderings = keys.translated(bound.order_by)
        bound = bound if orderings is None else replace(bound, order_by=orderings)
        if isinstance(part, IndexedPositions):
            return None if orderings is None else part.over_vertices(bound, keys.columns, listed)
        return None if orderings is None else part.over_vertices(bound, keys.columns)

    def leading(self, bound: BoundQuery) -> tuple[PathBatch, Ints] | None:
        """Return the results that AFTER MATCH keeps, on their graphs, and the groups that ranks tell; or None."""
        from trellis.operators.trends.leading import Places

        after = bound.after_match
        assert after is not None

        def kept_of(part: IndexedPositions | PatternPart, ends: Sequence[Set[str]], listed: bool) -> PathBatch | None:
            operator = self._keyed(bound, part, ends, listed)
            aim = -1 if after.var is None else self.structure.variables.codes[after.var]
            places = Places(after.skip, part.vertices.events, part.vertices.variables == aim)
            return None if operator is None else operator.leading_to(operator.plan.bound, places)

        found: list[PathBatch] = []
        by_ranks: list[Ints] = []
        pairs, sizes, indexed = self.events.pairs, self.plan.sizes, self._unranking
        if indexed is not None and pairs > sizes.pairs_of_graph:
            kept = kept_of(indexed, self._ends, False)
            if kept is not None:
                return kept.on(*indexed.vertices), np.empty(0, np.int64)
        if self.structure.indexed is not None and pairs > sizes.graph_edges:
            return None
        for part in self.structure.all_parts():
            kept = kept_of(part, part.ends, True)
            if kept is None:
                return None
            ambiguous = np.asarray(part.paths.ambiguous)
            if ambiguous.any():
                kept = kept.take(np.flatnonzero(~ambiguous[kept.groups]))
            found.append(kept.on(*part.vertices, part.first))
            by_ranks.append(part.first + np.flatnonzero(ambiguous))
        return PathBatch.concat(found), np.concatenate([np.empty(0, np.int64), *by_ranks])

    def explored(self) -> Explored:
        """Return the work of the exploration that counted, or tried to."""
        return self.structure.explored

    def describe(self) -> dict[str, str]:
        """Say how many vertices and edges counting needed."""
        structure = self.structure
        if structure.indexed is not None:
            return {"vertices": f"{len(structure.indexed.vertices.events):,} on indexes of steps, without edges"}
        _ = self.counts
        if structure.on_paths is not None:
            vertices, edges = structure.on_paths
            return {"vertices": f"{vertices:,} on results, with {edges:,} edges, in all windows and partitions"}
        if structure.pivot_counts is not None:
            return {"vertices": "none: the events around each pivot are read"}
        if most := structure.explored.vertices:
            return {"vertices": f"{most:,} matches so far in the largest window and partition"}
        return {"vertices": "those of indexes for each first event, without edges"}


# --- AGGREGATE --------------------------------------------------------------------------------------------------


def _named(output: Output) -> tuple[str | None, str | None]:
    """Return the variable and the attribute that an aggregate speaks of."""
    if output.column is not None:
        return output.column.var, output.column.name
    return (output.variable, None) if output.function == "COUNT" else (None, None)


def _key(var: str, name: str | None) -> str:
    return var if name is None else f"{var}.{name}"


def _inner_output(output: Output) -> Output:
    """Return an aggregate over the vertices of one variable; COUNT(v) is the number of ones that are added."""
    var, name = _named(output)
    if var is None:
        return output
    if name is None:
        column = Column(var, _key(var, None), Which.EACH, None, Type(Kind.INTEGER))
        return Output(OutputKind.AGGREGATE, Type(Kind.INTEGER), function="SUM", column=column)
    assert output.column is not None
    return replace(output, column=replace(output.column, name=_key(var, name)))


def _outer_numbers(outputs: list[Output], numbers: Aggregates) -> Aggregates:
    states = [_outer_state(output, state) for output, state in zip(outputs, numbers.states, strict=True)]
    return replace(numbers, states=tuple(states))


def _outer_state(output: Output, state: Any) -> Any:
    return state.number if _counts_events(output) else state


def _counts_events(output: Output) -> bool:
    return output.function == "COUNT" and output.variable is not None
