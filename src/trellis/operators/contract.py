"""The contract of operators: what can be asked of the results of a slice, and what each answer promises.

An operator is made for a plan and a slice. It never knows which engine runs it: the same class works in this process,
in Spark's Python workers and in streams. `trellis.make` makes the one that the plan names.

The results of each group (a window of a partition) have *ranks* 0, 1, ... in the order of their events: by the first
event in which two results differ, a result before its own extensions, and where all events are the same by variables.
All answers agree on this order, so a rank names a result: `at` gives what `list` gives there, on any machine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from trellis.events.slice import Ints, Slice
from trellis.language.bound import BoundQuery
from trellis.limits import warn_of_all
from trellis.plan.plan import Plan

if TYPE_CHECKING:
    from trellis.operators.aggregates import Aggregates
    from trellis.operators.batch import EventWords, PathBatch, RankRange
    from trellis.operators.per_event import EventNumbers
    from trellis.operators.ranks import Ranks

T = TypeVar("T")
Counts = list[int]


@dataclass(frozen=True)
class ListRequest(Generic[T]):
    """A request to list results: which, and how.

    Attributes
    ----------
    ranges
        Groups in rising order, each with the first rank and the one after the last.
    make
        Turns each batch into what is wanted of it. It is called on the thread that listed the batch, so that making
        rows is shared by all threads.
    threads
        How many threads may list.
    compact
        Whether batches come in the compact form: see `PathBatch.shared`.
    positions_only
        Whether nothing of the events but their positions comes out, so that batches can be larger.
    words
        Events as words, if nothing else of them comes out. An operator that can lists these in place of positions.
    """

    ranges: Sequence[RankRange]
    make: Callable[[PathBatch], T]
    threads: int = 1
    compact: bool = False
    positions_only: bool = False
    words: EventWords | None = None

    @property
    def rows(self) -> int:
        """The number of results."""
        return sum(end - begin for _, begin, end in self.ranges)

    def ranks(self) -> dict[int, Ranks]:
        """Return the ranks of each group that has any, for `at_each`."""
        from trellis.operators.ranks import Ranks

        return {group: Ranks.of(range(begin, end)) for group, begin, end in self.ranges if begin < end}

    def made(self, batch: PathBatch) -> T:
        """Make of a batch what the request wants, in the form that it asks for."""
        return self.make(batch.compacted() if self.compact else batch)


@dataclass(frozen=True)
class BestRequest(Generic[T]):
    """A request for results that may be among the first of an ORDER BY.

    Attributes
    ----------
    bound
        The query, whose ORDER BY, LIMIT and OFFSET count.
    make, threads, positions_only
        As in `ListRequest`.
    max_trends
        The bound on listing: a warning says where more results than that have to be listed.
    per_group
        Whether the best of each group are wanted, or those of all groups together.
    """

    bound: BoundQuery
    make: Callable[[PathBatch], T]
    max_trends: int
    per_group: bool
    threads: int = 1
    positions_only: bool = False

    def all_of(self, counts: Sequence[int], first: int = 0) -> ListRequest[T]:
        """Return the request for all results of groups that have so many, from group `first` on."""
        ranges = [(group, 0, count) for group, count in enumerate(counts, first)]
        return ListRequest(ranges, self.make, self.threads, positions_only=self.positions_only)


class Explored(NamedTuple):
    """The work of an exploration of matches so far: nothing where another way was taken.

    Attributes
    ----------
    vertices, bytes
        The matches so far of one group, at most, that it told apart, and the bytes that they took, about.
    steps
        The steps from one of them to another, or past it, of all groups.
    """

    vertices: int = 0
    steps: int = 0
    bytes: int = 0


class NotComparable(Exception):
    """A condition cannot be decided by comparing two codes, on the events at hand: another operator must be taken."""


class QueryOperator(ABC):
    """Answers questions about the results of one slice.

    Constructing one does no work beyond what decides whether it can run at all (`NotComparable`); the rest is done
    when it is first asked for, and kept. An operator may be used by several threads one after another, and answers
    its own requests on as many as they allow.

    An operator can be pickled, before or after it has answered something; what is quick to make again is left out.

    Parameters
    ----------
    plan
        The plan of the query.
    events
        The sorted events, with their groups.
    threads
        How many threads may count.
    """

    def __init__(self, plan: Plan, events: Slice, threads: int = 1) -> None:
        self.plan, self.events, self.threads = plan, events, threads

    # --- Numbers ----------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def counts(self) -> Counts:
        """The exact number of results of each group, of any size; nothing is listed."""

    @abstractmethod
    def aggregate(self) -> Sequence[Aggregates] | None:
        """Return for each group the number of its results and a state for each item of the plan's AGGREGATE.

        Sums are exact; states of groups can be joined. None where only listing tells them.
        """

    def per_event(self) -> EventNumbers | None:
        """Return the states of AGGREGATE PER EVENT, a row for each event of a group that is in a result.

        None where only listing tells them.
        """
        return None

    # --- Results by rank --------------------------------------------------------------------------------------

    @abstractmethod
    def at(self, group: int, ranks: Sequence[int]) -> PathBatch:
        """Return the results of a group with given ranks, in rising order, without those before them.

        The ranks are below the group's count. They may be of any size, unless the operator says that such a rank is
        too large to be found (`TrellisError`).
        """

    def at_each(self, chosen: Mapping[int, Ranks]) -> Iterator[PathBatch]:
        """Yield the results of groups, in rising order, with given ranks, in rising order.

        Where an operator holds many results at a time, batches are bounded as those of `list` are.
        """
        for group, ranks in chosen.items():
            yield self.at(group, list(ranks))

    def rank_ends(self, group: int) -> tuple[Ints, NDArray[Any]]:
        """Return the first events of a group's results, rising, and how many results there are up to each of them.

        The numbers are int64, or objects where they are too large. They are looked for among the ranks, those of all
        first events at the same time, in as many steps as a rank has bits.
        """
        from trellis.operators.ranks import numbers_of, ranks_of

        count = self.counts[group]
        low = numbers_of([0], count)[: min(count, 1)]
        high = low + (count - 1)
        begins, ends = (self.at(group, ranks_of(ranks)).firsts.astype(np.int64) for ranks in (low, high))
        behind, events = [high + 1], [ends]  # of the last first event, and of those that are found
        while len(low):
            open_ = begins != ends
            low, high, begins, ends = low[open_], high[open_], begins[open_], ends[open_]
            near = (high - low == 1).astype(np.bool_)
            behind, events = [*behind, high[near]], [*events, begins[near]]
            low, high, begins, ends = low[~near], high[~near], begins[~near], ends[~near]
            middle = (low + high) // 2
            here = self.at(group, ranks_of(middle)).firsts.astype(np.int64) if len(low) else begins
            low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
            begins, ends = np.concatenate([begins, here]), np.concatenate([here, ends])
            order = np.argsort(low)
            low, high, begins, ends = low[order], high[order], begins[order], ends[order]
        found = np.concatenate(events)
        order = np.argsort(found)
        return found[order], np.concatenate(behind)[order]

    # --- Lists ------------------------------------------------------------------------------------------------

    def first(self, begin: int, end: int) -> PathBatch | None:
        """Return the results of all groups, one after another, from one on, if they are few and need not be counted."""
        return None

    def counts_before_listing(self) -> Counts:
        """Return the counts where the results will be listed next: an operator may find both at once."""
        return self.counts

    @abstractmethod
    def list(self, request: ListRequest[T]) -> Iterator[T]:
        """List the results with given ranks, without those before them, as the request makes them.

        Batches come in the order of the ranges and ranks, however many threads list, and whoever stops early leaves no
        thread behind. A batch names a bounded number of events (or one result) and is never empty; so memory does not
        grow with the results. An algorithm with an order of its own says so, and gives ranks with its results.
        """

    def best(self, request: BestRequest[T]) -> Iterator[T]:
        """List the results that may be in the result of ORDER BY, in the order (group, rank).

        Those that are in it are among them; an operator that can search the best ones gives no others.
        """
        warn_of_all(sum(self.counts), request.max_trends)
        return self.list(request.all_of(self.counts))

    def leading(self, bound: BoundQuery) -> tuple[PathBatch, Ints] | None:
        """Return the results that AFTER MATCH keeps, in the order of groups, without listing those that it skips.

        With them come the groups of which only ranks or listing tell; None where these are all.

        Parameters
        ----------
        bound
            The query with AFTER MATCH, and with the ORDER BY that chooses among the results of one first event.
        """
        return None

    def leading_of_firsts(self) -> Iterator[PathBatch] | None:
        """Return the result of the least rank of each first event, in the order (group, rank) and without their ranks.

        None where that is not known without listing others.
        """
        return None

    # --- Copies -----------------------------------------------------------------------------------------------

    @abstractmethod
    def variant(self, plan: Plan, events: Slice) -> QueryOperator:
        """Return the same kind of operator for the same results with other output.

        `plan` differs in what is returned, aggregated or ordered by, for trends also in HAVING of LENGTH, and `events`
        in its columns. What is already built is shared.
        """

    def prepare(self) -> None:
        """Build all that listing needs, before copies of this are pickled and given to others."""
        _ = self.counts

    def lists_at_once(self) -> bool:
        """Return whether several threads may list different ranks at the same time; what they need is then built."""
        return False

    # --- Words ------------------------------------------------------------------------------------------------

    def explored(self) -> Explored:
        """Return the work of the exploration that counted, or tried to."""
        return Explored()

    @abstractmethod
    def describe(self) -> dict[str, str]:
        """Return facts for `explain`, with numbers: a few names with a text each."""


class OperatorStructure(Protocol):
    """The results of a slice, as far as they do not depend on the output, so that variants share them."""

    @property
    def counts(self) -> Counts:
        """The exact number of results of each group."""


S = TypeVar("S", bound=OperatorStructure)


class StructuredOperator(QueryOperator, Generic[S]):
    """An operator with a structure.

    Parameters
    ----------
    plan, events, threads
        See `QueryOperator`.
    structure
        What was built before for the same results; by default it is made.
    """

    def __init__(self, plan: Plan, events: Slice, threads: int = 1, structure: S | None = None) -> None:
        super().__init__(plan, events, threads)
        self.structure: S = structure or self._make_structure()

    @abstractmethod
    def _make_structure(self) -> S:
        """Return the structure; most of it is built when it is needed."""

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is made again where it is needed."""
        return state_of(self, "plan", "events", "threads", "structure")

    def variant(self, plan: Plan, events: Slice) -> Self:
        """Return an operator for the same results with other output."""
        return type(self)(plan, events, self.threads, self.structure)

    @property
    def counts(self) -> Counts:
        """The exact number of results of each group."""
        return self.structure.counts


def state_of(thing: Any, *names: str) -> dict[str, Any]:
    """Return the attributes of an object that a pickle keeps, as far as they are known."""
    return {name: value for name, value in vars(thing).items() if name in names}
