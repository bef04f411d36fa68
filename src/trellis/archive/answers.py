"""Answers to the text of a question: the question is bound and compiled, searched in the leaves, and made rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.archive.contents import Contents
from trellis.archive.events import schema_of
from trellis.archive.keys import KeyIntervals, walk
from trellis.archive.leaves import Answer, Ints, LeafIntervals, Leaves, Policy, Question, Reading, SpanLimit
from trellis.archive.reading import POSITION, schema_with_ids
from trellis.archive.search import LeafSearch
from trellis.archive.step_sequences import StepSequence, is_plain, step_sequences_of
from trellis.archive.store import Manifest
from trellis.archive.tree import FilterTree
from trellis.archive.values import LeafValues, wanted_names
from trellis.archive.walking import ChosenLeaves, WalkedTree, check_algorithm
from trellis.errors import UsageError, did_you_mean
from trellis.events.columns.windows import DoubleWindows
from trellis.language import syntax as s
from trellis.language.binder import bind
from trellis.language.bound import BoundQuery, WindowKind
from trellis.language.parser import parse
from trellis.language.schema import Kind, Schema
from trellis.plan.automaton import build_automaton
from trellis.properties import cached_property
from trellis.providers import provided

POLICIES = {s.Select.ANY: Policy.ANY, s.Select.NEXT: Policy.NEXT, s.Select.CONTIGUOUS: Policy.CONTIGUOUS}
REMEMBERED = 1024  # texts
STARTS = ("every", "after")
LEAVES_WORTH_A_WALK = 10_000


@dataclass(frozen=True)
class Text:
    """The text of a question, bound to the events, and its step sequences."""

    bound: BoundQuery
    sequences: tuple[StepSequence, ...]
    plain: bool = True  # whether the sequences say all of the pattern

    @property
    def partition(self) -> list[str]:
        """The columns of its partition."""
        return [name for name, _ in self.bound.partition]

    @property
    def untyped(self) -> bool:
        """Whether any name fits some step."""
        return any(sequence.untyped for sequence in self.sequences)

    @property
    def names(self) -> frozenset[str] | None:
        """The names of all events that may matter, where not every event does: under `contiguous` and without types."""
        types = [variable.type for variable in self.bound.variables]
        words = [
            node.policy for node in s.walk(self.bound.pattern) if isinstance(node, s.PolicyStep | s.Kleene | s.Group)
        ]
        if None in types or s.Select.CONTIGUOUS in (self.bound.select, *words):
            return None
        return frozenset(str(type_) for type_ in types)

    @property
    def forbidden(self) -> frozenset[str]:
        """All names that it forbids somewhere."""
        return frozenset().union(*(names for sequence in self.sequences for names in sequence.forbidden))


@dataclass(frozen=True)
class QuestionOptions:
    """The options of a question: see `Archive.find`."""

    policy: str | None = None
    same_leaf: str = "maybe"
    begin: Any = None
    end: Any = None
    first: int | None = None
    last: int | None = None
    within_events: int | None = None
    level: int = 0
    starts: str = "every"
    pairs: bool = False
    minimal: bool = False
    limit: int | None = None
    algorithm: str = "auto"

    def check(self) -> None:
        """Refuse options that are wrong or do not go together."""
        check_algorithm(self.algorithm)
        if self.level < 0:
            raise UsageError("a level is 0 or more")
        if self.same_leaf not in tuple(Reading):
            raise UsageError(f"same_leaf is `{self.same_leaf}`", "It is `maybe` or `no`.")
        if self.policy is not None and self.policy not in tuple(Policy):
            hint = did_you_mean(self.policy, list(Policy), f"Policies are {', '.join(Policy)}.")
            raise UsageError(f"there is no policy `{self.policy}`", hint)
        if self.first is not None and self.last is not None and self.first > self.last:
            raise UsageError(f"the positions from {self.first} to {self.last} are none", "Give the lower one first.")
        if self.starts not in STARTS:
            raise UsageError(f"starts is `{self.starts}`", "It is `every` or `after`.")
        if self.within_events is not None and self.within_events < 0:
            raise UsageError("a span of events is 0 or more")
        if (self.starts == "after") + self.pairs + self.minimal > 1:
            raise UsageError("starts=after, pairs and minimal are different lists", "Ask for one of them.")
        if self.limit is not None and self.limit < 0:
            raise UsageError("a limit is 0 or more")


class Answerer:
    """Answers questions by the leaves of a history."""

    def __init__(self, manifest: Manifest, contents: Contents, tree: Callable[[], FilterTree]) -> None:
        self.manifest, self.contents, self._tree = manifest, contents, tree
        self._texts: dict[tuple[str, str], Text] = {}
        self._prepared: dict[tuple[str, str], Any] = {}
        self._by_tree: dict[Question, bool] = {}

    @cached_property
    def leaves(self) -> Leaves:
        """The leaves, as questions see them."""
        entries = self.contents.entries
        return Leaves(
            self.contents.filters, self.manifest.capacity, np.asarray(entries["at"]),
            np.asarray(entries["at"] + entries["events"] - 1), np.asarray(entries["since"]),
            np.asarray(entries["until"]),
            LeafValues(entries, self.contents.filters, frozenset(self.manifest.values)),
        )  # fmt: skip

    @cached_property
    def tree_index(self) -> WalkedTree:
        """The tree over the leaves, to be walked."""
        return WalkedTree.of(self._tree(), self.contents.entries, self.contents.filters)

    @cached_property
    def _has_nodes(self) -> bool:
        return self._tree().height > 0

    def walks(self, question: Question) -> bool:
        """Return whether a walk is expected to cost less than slices; in small histories nothing is measured."""
        if len(self.leaves) < LEAVES_WORTH_A_WALK or not self._has_nodes:
            return False
        untyped = any(one.untyped for one in question.sequences)
        return _remembered(self._by_tree, question, lambda: not untyped and self.tree_index.pays(question, self.leaves))

    def _leaves_for(self, text: Text, question: Question, options: QuestionOptions) -> Leaves:
        """Return the leaves, or those that a walk of the tree leaves of them."""
        by_tree = options.algorithm == "tree" or (options.algorithm == "auto" and self.walks(question))
        if not by_tree or self._is_by_key(text, question, options):
            return self.leaves
        if options.level or text.untyped:  # blocks that are no nodes, and leaves that none can deny
            return replace(self.leaves, index=self.tree_index.anew())
        return self.tree_index.narrowed(question, self.leaves)

    @cached_property
    def schema(self) -> Schema:
        """The schema of the events."""
        manifest = self.manifest
        return schema_of(manifest.arrow, manifest.time, manifest.type, manifest.event_id, manifest.tie_breakers)

    # --- Questions --------------------------------------------------------------------------------------------

    def text(self, pattern: object, params: Mapping[str, Any] | None) -> Text:
        """Bind and compile a text, or a query's; the last few are remembered."""
        written = str(pattern)

        def compiled() -> Text:
            bound = bind(parse(written), written, self.schema, params, None)
            types = {variable.name: variable.type for variable in bound.variables}
            automaton = build_automaton(bound.pattern)
            sequences = tuple(step_sequences_of(automaton, wanted_names(bound)))
            return Text(bound, sequences, is_plain(automaton.root, types))

        return _remembered(self._texts, (written, repr(params)), compiled)

    def prepared(self, pattern: object, params: Mapping[str, Any] | None) -> Any:
        """Return a query that is bound to the events of exact answers; the last few are remembered."""
        written = str(pattern)
        manifest = self.manifest
        made = partial(
            provided("local engine").prepare, written, schema_with_ids(manifest),
            time=(manifest.time, *manifest.tie_breakers), type=manifest.type, event_id=manifest.event_id or POSITION,
            params=params,
        )  # fmt: skip
        return _remembered(self._prepared, (written, repr(params)), made)

    def search(self, text: Text, options: QuestionOptions) -> LeafSearch:
        """Return the search for the answers of a text in the leaves, or in blocks of them."""
        options.check()
        chosen = POLICIES[text.bound.select] if options.policy is None else Policy(options.policy)
        if not text.plain:  # other events may lie between the steps that there must be
            chosen = Policy.ANY
        if options.starts == "after" and chosen is not Policy.NEXT:
            raise UsageError("starts=after is a list of skip-till-next", "Use it with policy=skip-till-next.")
        if options.pairs and chosen is Policy.NEXT:
            raise UsageError("skip-till-next has one end for each start", "Use pairs with policy=skip-till-any.")
        low, high = (None if one is None else self.number(one) for one in (options.begin, options.end))
        if low is not None and high is not None and low > high:
            raise UsageError(f"no time is from {options.begin} to {options.end}", "Give the earlier one first.")
        within = _span_limit(text.bound)
        if options.within_events is not None:
            if within is not None:
                raise UsageError("a span of events goes with no WITHIN", "Leave one of them out.")
            within = SpanLimit(options.within_events, in_positions=True)
        question = Question(
            text.sequences, chosen, Reading(options.same_leaf), within, low, high, options.first, options.last,
            bool(text.partition),
        )  # fmt: skip
        factor = self.manifest.fan_out**options.level
        leaves = self._leaves_for(text, question, options)
        return LeafSearch(question, leaves if options.level == 0 else leaves.coarser(factor))

    def number(self, moment: Any) -> Any:
        """Return a time that the user gave as a number."""
        time = self.schema.time_type
        try:
            if not time.temporal:
                return float(moment) if time.kind is Kind.DOUBLE else int(moment)
            array = pa.array([moment])
            if pa.types.is_string(array.type):
                array = array.cast(pa.timestamp("us"))
            return array.cast(pa.timestamp("us")).cast(pa.int64())[0].as_py()
        except (ValueError, TypeError, pa.ArrowException):
            raise UsageError(
                f"`{moment}` is not a time of this history",
                "Write it like the times of the events: 2024-05-01T09:00:00.",
            ) from None

    def times(self, numbers: NDArray[Any]) -> pa.Array:
        """Return numbers as the times that they are."""
        time = self.schema.time_type
        if time.temporal:
            return pa.array(numbers, pa.int64()).cast(pa.timestamp("us", None if time.naive else "UTC"))
        return pa.array(numbers)

    # --- Answers ----------------------------------------------------------------------------------------------

    def exists(self, text: Text, options: QuestionOptions) -> Answer:
        """Return whether the pattern happened."""
        search = self.search(text, options)
        answer = search.simple()
        if not text.plain and answer is not Answer.NO:
            answer = Answer.MAYBE
        if answer is Answer.NO or not self._is_by_key(text, search.question, options):
            return answer
        may = self.contents.keyless or len(self.key_intervals(text, search.question.reading).key)
        return Answer.MAYBE if may else Answer.NO

    def find(self, text: Text, options: QuestionOptions) -> pa.Table:
        """Return where the pattern may have happened."""
        search = self.search(text, options)
        if self._is_by_key(text, search.question, options):
            return self._rows_of_keys(text, search).slice(0, options.limit)
        if options.pairs:
            intervals = search.pairs(options.limit)
        else:
            intervals = (
                search.after() if options.starts == "after" else search.minimal() if options.minimal
                else search.intervals()
            )  # fmt: skip
        rows = self._rows(search.leaves, intervals.some(slice(0, options.limit)))
        if isinstance(search.leaves.index, WalkedTree | ChosenLeaves):
            return rows.replace_schema_metadata({"visited": str(search.leaves.index.visited)})
        return rows

    def _is_by_key(self, text: Text, question: Question, options: QuestionOptions) -> bool:
        """Return whether a question is of single keys, and one walk answers it for all of them."""
        bounds = (question.within, question.begin, question.end, question.first, question.last)
        plain = options.level == 0 and not (options.pairs or options.minimal or options.starts == "after")
        return (
            plain and text.partition == [self.manifest.key] and all(bound is None for bound in bounds)
            and not text.untyped and question.policy in (Policy.ANY, Policy.NEXT)
        )  # fmt: skip

    def key_intervals(self, text: Text, reading: Reading) -> KeyIntervals:
        """Return the keys to which the pattern may have happened."""
        contents = self.contents
        earliest = np.arange(len(self.leaves)) + (reading is Reading.NO)
        return walk(text.sequences, earliest, contents.keys, contents.filters, contents.first_leaves)

    def _likely_keys(self, text: Text) -> Ints:
        """Return the keys whose steps are found in leaves that are strictly later each: only filters can be wrong."""
        contents, leaves = self.contents, self.leaves
        later = np.searchsorted(leaves.since, leaves.until, side="right")
        return walk(text.sequences, later, contents.keys, contents.filters, contents.first_leaves).key

    def _rows_of_keys(self, text: Text, search: LeafSearch) -> pa.Table:
        """Return a row for each key to which it may have happened: the leaves of its first and last step.

        `answer` is `likely` where the steps were found in leaves that are strictly later each: only a mistake of a
        filter or a condition can deny it. It is `maybe` where the order inside a leaf can.
        Which leaves have events without a key is not known: these have one row, as if all events had none.
        """
        intervals, leaves, capacity = (
            self.key_intervals(text, search.question.reading),
            self.leaves,
            self.manifest.capacity,
        )
        if self.contents.keyless and len(every := search.intervals()):
            place = np.array([-1]), every.start[:1], np.array([every.last_end.max()])
            intervals = KeyIntervals(*map(np.concatenate, zip(vars(intervals).values(), place, strict=True)))
        likely = np.isin(intervals.key, self._likely_keys(text)) & (not text.forbidden)
        return pa.table(
            {
                "key": self.contents.keys.values.take(pa.array(intervals.key, mask=intervals.key < 0)),
                "answer": pa.array(["maybe", "likely"]).take(pa.array(likely.view(np.int8))),
                "start_leaf": leaves.first[intervals.start] // capacity,
                "end_leaf": leaves.last[intervals.end] // capacity,
                "first_position": leaves.first[intervals.start],
                "last_position": leaves.last[intervals.end],
                "since": self.times(leaves.since[intervals.start]),
                "until": self.times(leaves.until[intervals.end]),
                "negation": pa.repeat("open" if text.forbidden else "clear", len(intervals.key)),
            }
        )

    def _rows(self, leaves: Leaves, intervals: LeafIntervals) -> pa.Table:
        begins, ends = self._numbers if leaves is self.leaves else self._numbers_of(leaves)
        plainly = intervals.clear.all() and len(intervals) <= len(self._clear)
        return pa.table(
            {
                "start_leaf": begins[intervals.start],
                "end_leaf": ends[intervals.end],
                "last_end_leaf": ends[intervals.last_end],
                "ends": intervals.ends,
                "first_position": leaves.first[intervals.start],
                "last_position": leaves.last[intervals.last_end],
                "since": self.times(leaves.since[intervals.start]),
                "until": self.times(leaves.until[intervals.last_end]),
                "negation": self._clear.slice(0, len(intervals)) if plainly else _negation(intervals),
            }
        )

    @cached_property
    def _numbers(self) -> tuple[Ints, Ints]:
        return self._numbers_of(self.leaves)

    def _numbers_of(self, leaves: Leaves) -> tuple[Ints, Ints]:
        """Return the numbers of the first and the last leaf of each entry or block."""
        return leaves.first // self.manifest.capacity, leaves.last // self.manifest.capacity

    @cached_property
    def _clear(self) -> pa.Array:
        """The negation of rows that are all clear, as they mostly are."""
        return pa.repeat("clear", len(self.leaves))


def _remembered(known: dict[Any, Any], key: Any, make: Callable[[], Any]) -> Any:
    """Return the value of a key, which is made if it is not known; the one asked for longest ago is forgotten."""
    known[key] = known.pop(key) if key in known else make()
    while len(known) > REMEMBERED:
        del known[next(iter(known))]
    return known[key]


def _negation(intervals: LeafIntervals) -> pa.Array:
    return pa.array(["open", "clear"]).take(pa.array(intervals.clear.view(np.int8)))


def _span_limit(bound: BoundQuery) -> SpanLimit | None:
    window = bound.window
    if window.kind is WindowKind.WHOLE or window.size is None:
        return None
    size = window.size if isinstance(window.size, int) else float(window.size)
    if window.slide is None:
        return SpanLimit(size)
    slide = window.slide if isinstance(window.slide, int) else float(window.slide)
    doubles = DoubleWindows(window.size, window.slide) if bound.known_schema.time_type.kind is Kind.DOUBLE else None
    return SpanLimit(size, slide, doubles=doubles)
