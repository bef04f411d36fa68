"""From the text of a question to what is asked of leaves, and from leaves to rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.archive.contents import Contents
from trellis.archive.events import schema_of
from trellis.archive.keys import OfKeys, walk
from trellis.archive.leaves import Answer, Asked, Found, Ints, Leaves, Policy, Reading, Within
from trellis.archive.questions import Question
from trellis.archive.store import Manifest
from trellis.archive.words import Word, words_of
from trellis.errors import UsageError, did_you_mean
from trellis.events.columns.windows import DoubleWindows
from trellis.language import syntax as s
from trellis.language.binder import bind
from trellis.language.bound import BoundQuery, WindowKind
from trellis.language.parser import parse
from trellis.language.schema import Kind, Schema
from trellis.plan.automaton import build_automaton

POLICIES = {s.Select.ANY: Policy.ANY, s.Select.NEXT: Policy.NEXT, s.Select.CONTIGUOUS: Policy.CONTIGUOUS}
REMEMBERED = 1024  # texts
STARTS = ("every", "after")


@dataclass(frozen=True)
class Text:
    """The text of a question: what it means to the engine, and its words."""

    bound: BoundQuery
    words: tuple[Word, ...]

    @property
    def partition(self) -> list[str]:
        """The columns of its partition."""
        return [name for name, _ in self.bound.partition]

    @property
    def untyped(self) -> bool:
        """Whether any name fits some step."""
        return any(word.untyped for word in self.words)

    @property
    def forbidden(self) -> frozenset[str]:
        """All names that it forbids somewhere."""
        return frozenset().union(*(names for word in self.words for names in word.forbidden))


@dataclass(frozen=True)
class Options:
    """How a question is asked: see `Archive.find`."""

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

    def check(self) -> None:
        """Refuse what cannot be."""
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


class Asker:
    """Answers questions from what is known of the events of a history."""

    def __init__(self, manifest: Manifest, contents: Contents) -> None:
        self.manifest, self.contents = manifest, contents
        self._texts: dict[tuple[str, str], Text] = {}

    @cached_property
    def leaves(self) -> Leaves:
        """The leaves, as questions see them."""
        entries = self.contents.entries
        return Leaves(
            self.contents.filters, self.manifest.capacity, np.asarray(entries["at"]),
            np.asarray(entries["at"] + entries["events"] - 1), np.asarray(entries["since"]),
            np.asarray(entries["until"]),
        )  # fmt: skip

    @cached_property
    def schema(self) -> Schema:
        """The schema of the events."""
        manifest = self.manifest
        return schema_of(manifest.arrow, manifest.time, manifest.type, manifest.event_id)

    # --- What is asked ----------------------------------------------------------------------------------------

    def text(self, pattern: str, params: Mapping[str, Any] | None) -> Text:
        """Return what a text means; the last few are remembered."""
        key = pattern, repr(params)
        known = self._texts.pop(key, None)
        if known is None:
            bound = bind(parse(pattern), pattern, self.schema, params, None)
            types = {variable.name: variable.type for variable in bound.variables}
            known = Text(bound, tuple(words_of(build_automaton(bound.pattern), types)))
        self._texts[key] = known
        while len(self._texts) > REMEMBERED:
            del self._texts[next(iter(self._texts))]
        return known

    def question(self, text: Text, options: Options) -> Question:
        """Return a question of the leaves, or of blocks of them."""
        options.check()
        chosen = POLICIES[text.bound.select] if options.policy is None else Policy(options.policy)
        if options.starts == "after" and chosen is not Policy.NEXT:
            raise UsageError("starts=after is a list of skip-till-next", "Use it with policy=skip-till-next.")
        if options.pairs and chosen is Policy.NEXT:
            raise UsageError("skip-till-next has one end for each start", "Use pairs with policy=skip-till-any.")
        low, high = (None if one is None else self.number(one) for one in (options.begin, options.end))
        if low is not None and high is not None and low > high:
            raise UsageError(f"no time is from {options.begin} to {options.end}", "Give the earlier one first.")
        within = _within(text.bound)
        if options.within_events is not None:
            if within is not None:
                raise UsageError("a span of events goes with no WITHIN", "Leave one of them out.")
            within = Within(options.within_events, in_positions=True)
        asked = Asked(
            text.words, chosen, Reading(options.same_leaf), within, low, high, options.first, options.last,
            bool(text.partition),
        )  # fmt: skip
        factor = self.manifest.fan_out**options.level
        return Question(asked, self.leaves if options.level == 0 else self.leaves.coarser(factor))

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
                f"`{moment}` is no time of this history", "Write it like the times of the events: 2024-05-01T09:00:00."
            ) from None

    def times(self, numbers: NDArray[Any]) -> pa.Array:
        """Return numbers as the times that they are."""
        if self.schema.time_type.temporal:
            return pa.array(numbers, pa.int64()).cast(pa.timestamp("us", tz="UTC"))
        return pa.array(numbers)

    # --- Answers ----------------------------------------------------------------------------------------------

    def exists(self, text: Text, options: Options) -> Answer:
        """Return whether it happened."""
        question = self.question(text, options)
        answer = question.simple()
        if answer is Answer.NO or not self._is_by_key(text, question.asked, options):
            return answer
        may = self.contents.keyless or len(self.walked(text, question.asked.reading).key)
        return Answer.MAYBE if may else Answer.NO

    def find(self, text: Text, options: Options) -> pa.Table:
        """Return where it may have happened."""
        question = self.question(text, options)
        if self._is_by_key(text, question.asked, options):
            return self._rows_of_keys(text, question).slice(0, options.limit)
        if options.pairs:
            found = question.pairs(options.limit)
        else:
            found = (
                question.after() if options.starts == "after" else question.minimal() if options.minimal
                else question.found()
            )  # fmt: skip
        return self._rows(question.leaves, found.some(slice(0, options.limit)))

    def _is_by_key(self, text: Text, asked: Asked, options: Options) -> bool:
        """Return whether a question is of single keys, and one walk answers it for all of them."""
        bounds = (asked.within, asked.begin, asked.end, asked.first, asked.last)
        plain = options.level == 0 and not (options.pairs or options.minimal or options.starts == "after")
        return (
            plain and text.partition == [self.manifest.key] and all(bound is None for bound in bounds)
            and not text.untyped and asked.policy in (Policy.ANY, Policy.NEXT)
        )  # fmt: skip

    def walked(self, text: Text, reading: Reading) -> OfKeys:
        """Return the keys to which it may have happened."""
        contents = self.contents
        return walk(text.words, reading, contents.keys, contents.filters, contents.first_leaves)

    def _rows_of_keys(self, text: Text, question: Question) -> pa.Table:
        """Return a row for each key to which it may have happened: the leaves of its first and last step.

        Which leaves have events without a key is not known: these have one row, as if all events had none.
        """
        found, leaves, capacity = self.walked(text, question.asked.reading), self.leaves, self.manifest.capacity
        if self.contents.keyless and len(every := question.found()):
            place = np.array([-1]), every.start[:1], np.array([every.last_end.max()])
            found = OfKeys(*map(np.concatenate, zip(vars(found).values(), place, strict=True)))
        return pa.table(
            {
                "key": self.contents.keys.values.take(pa.array(found.key, mask=found.key < 0)),
                "start_leaf": leaves.first[found.start] // capacity,
                "end_leaf": leaves.last[found.end] // capacity,
                "first_position": leaves.first[found.start],
                "last_position": leaves.last[found.end],
                "since": self.times(leaves.since[found.start]),
                "until": self.times(leaves.until[found.end]),
                "negation": pa.repeat("open" if text.forbidden else "clear", len(found.key)),
            }
        )

    def _rows(self, leaves: Leaves, found: Found) -> pa.Table:
        begins, ends = self._numbers if leaves is self.leaves else self._numbers_of(leaves)
        plainly = found.clear.all() and len(found) <= len(self._clear)
        return pa.table(
            {
                "start_leaf": begins[found.start],
                "end_leaf": ends[found.end],
                "last_end_leaf": ends[found.last_end],
                "ends": found.ends,
                "first_position": leaves.first[found.start],
                "last_position": leaves.last[found.last_end],
                "since": self.times(leaves.since[found.start]),
                "until": self.times(leaves.until[found.last_end]),
                "negation": self._clear.slice(0, len(found)) if plainly else _negation(found),
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


def _negation(found: Found) -> pa.Array:
    return pa.array(["open", "clear"]).take(pa.array(found.clear.view(np.int8)))


def _within(bound: BoundQuery) -> Within | None:
    window = bound.window
    if window.kind is WindowKind.WHOLE or window.size is None:
        return None
    size = window.size if isinstance(window.size, int) else float(window.size)
    if window.slide is None:
        return Within(size)
    slide = window.slide if isinstance(window.slide, int) else float(window.slide)
    assert bound.schema is not None
    doubles = DoubleWindows(window.size, window.slide) if bound.schema.time_type.kind is Kind.DOUBLE else None
    return Within(size, slide, doubles=doubles)
