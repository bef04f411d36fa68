"""Why a sequence of events matches or not: every condition with the values that it met."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import islice, pairwise, product
from typing import Any

import pyarrow as pa

from trellis.errors import OverflowInCondition
from trellis.events.columns.aggregates import aggregate_of, aggregate_text, spelled_out
from trellis.events.columns.evaluate import evaluate
from trellis.events.columns.types import from_arrow, normalise
from trellis.language.bound import BoundQuery, Column, Condition, Constant, Operation, Value, columns_of
from trellis.language.durations import to_text
from trellis.language.schema import Kind
from trellis.language.syntax import Which
from trellis.results.choices import IterationPlaces
from trellis.results.display import html_page, shown_in_line, value_text

MOST_CHECKS = 1000  # of one condition: a product of Kleene variables has many
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
NEIGHBOURS = (Which.EARLIER, Which.LATER)


@dataclass(frozen=True)
class Check:
    """One condition, asked of certain events.

    Attributes
    ----------
    condition
        The condition as the query has it.
    holds
        Whether it is true; None where it is unknown, which is not enough to match.
    values
        The values it was asked of, by what they are called: `s[2].price`.
    events
        The ids of the events it was asked of.
    needed
        What would have made it true, where that is a comparison.
    """

    condition: str
    holds: bool | None
    values: Mapping[str, Any] = field(default_factory=dict)
    events: tuple[Any, ...] = ()
    needed: str | None = None

    def __str__(self) -> str:
        met = "holds" if self.holds else "fails" if self.holds is False else "is unknown, so it fails"
        values = ", ".join(f"{name} = {value_text(value)}" for name, value in self.values.items())
        needed = f"; needed: {self.needed}" if self.needed is not None and not self.holds else ""
        return shown_in_line(f"{self.condition} {met}{': ' if values else ''}{values}{needed}")


class Reasons(Sequence[Check]):
    """Checks under a heading: prints as text, shows as a list in a notebook."""

    def __init__(self, heading: str, checks: Sequence[Check]) -> None:
        self.heading, self._checks = heading, tuple(checks)

    def __getitem__(self, place: Any) -> Any:
        return self._checks[place]

    def __len__(self) -> int:
        return len(self._checks)

    @property
    def failing(self) -> list[Check]:
        """The checks that do not hold."""
        return [check for check in self if not check.holds]

    def __str__(self) -> str:
        return "\n".join([shown_in_line(self.heading), *(f"  {check}" for check in self)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{escape(str(check))}</li>" for check in self)
        return html_page(f"<p>{escape(shown_in_line(self.heading))}</p><ul>{items}</ul>")


class Candidate:
    """Events bound to variables, of which conditions can be asked.

    Parameters
    ----------
    bound
        The query.
    events
        The events in the order of time, with their columns.
    ids
        Their ids.
    variables
        The variable that takes each of them.
    iterations
        For a pattern with repeated groups, the iterations of each as rows tell them: `2.1`.
    """

    def __init__(
        self, bound: BoundQuery, events: pa.Table, ids: Sequence[Any], variables: Sequence[str],
        iterations: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        self.bound, self.ids, self.variables = bound, list(ids), list(variables)
        self.columns = {f.name: normalise(events[f.name], from_arrow(f.type)) for f in events.schema}
        self._iterations = IterationPlaces(bound, variables, iterations or [""] * len(variables))

    def _places(self, column: Column) -> list[int]:
        """Return the events that a column may speak of."""
        return self._iterations.places(column.var, column.at)

    def checks(self) -> list[Check]:
        """Return every condition of WHERE, asked of every event or combination of events it speaks of."""
        asked = list[Condition]()
        for condition in (*self.bound.conditions, *self.bound.counted):
            if (written := condition.written or condition) not in asked:
                asked.append(written)
        return [check for condition in asked for check in self._checks_of(condition)]

    def _checks_of(self, condition: Condition) -> Iterator[Check]:
        names = [v for v in condition.variables if not self.bound.variable(v).absent]
        needed = {c.var for c in columns_of(condition.value) if not (c.function == "COUNT" and c.which is Which.WHOLE)}
        if len(names) < len(condition.variables):
            return  # it speaks of a NOT
        for _ in self._iterations.choices(columns_of(condition.value)):
            if all(self._places(column) for column in columns_of(condition.value) if column.var in needed):
                for chosen in islice(self._choices(condition, names), MOST_CHECKS):
                    yield self._check(condition, chosen)

    def _choices(self, condition: Condition, names: Sequence[str]) -> Iterator[dict[tuple[str, Which], int]]:
        """Yield which events the references to each variable mean."""
        own = [column for column in columns_of(condition.value) if column.at is None]
        which = {name: {c.which for c in own if c.var == name} for name in names}
        options: list[list[dict[tuple[str, Which], int]]] = []
        for name in names:
            places = self._iterations.places(name)
            if which[name] & set(NEIGHBOURS):
                pairs = pairwise(places)
                options.append([{(name, Which.EARLIER): a, (name, Which.LATER): b} for a, b in pairs])
            elif which[name] & {Which.EACH, Which.BEFORE, Which.UPTO}:
                first = 1 if Which.BEFORE in which[name] else 0
                options.append([{(name, Which.EACH): place} for place in places[first:]])
        for choice in product(*options):
            yield {key: place for part in choice for key, place in part.items()}

    def _place(self, column: Column, chosen: Mapping[tuple[str, Which], int]) -> int | None:
        places = self._places(column)
        if not places:
            return None
        if column.at is not None:
            return places[0]
        match column.which:
            case Which.FIRST:
                return places[0]
            case Which.LAST:
                return places[-1]
            case Which.NTH:
                nth = (column.nth or 1) - 1
                return places[nth] if nth < len(places) else None
        return chosen.get((column.var, column.which), places[0])

    def filters(self) -> list[Check]:
        """Return the conditions of HAVING, but for bounds of the length."""
        return [self._check(condition, {}) for condition in self.bound.filters]

    def _members(self, column: Column, chosen: Mapping[tuple[str, Which], int]) -> list[int]:
        """Return the events that an aggregate is over."""
        if column.function == "LENGTH":
            return [*range(len(self.ids))]
        places = self._places(column)
        if column.which is Which.WHOLE:
            return places
        here = chosen.get((column.var, Which.LATER), chosen.get((column.var, Which.EACH), places[0]))
        return [place for place in places if place < here or (place == here and column.which is Which.UPTO)]

    def _check(self, condition: Condition, chosen: Mapping[tuple[str, Which], int]) -> Check:
        def resolve(column: Column) -> pa.Array:
            if column.function:
                values = self.columns[column.name].take(pa.array(self._members(column, chosen), pa.int64()))
                return aggregate_of(column, values)
            place = self._place(column, chosen)
            whole = self.columns[column.name]
            return pa.nulls(1, whole.type) if place is None else whole.slice(place, 1)

        def computed(value: Value) -> Any:
            return _python(evaluate(spelled_out(value, resolve), resolve, 1), value)

        values: dict[str, Any] = {}
        places: set[int] = set()
        for column in columns_of(condition.value):
            if column.function:
                members = self._members(column, chosen)
                values[self._aggregate_label(column, len(members))] = aggregate_text(column, resolve(column))
                places |= set(members)
                continue
            place = self._place(column, chosen)
            values[self._label(column, place)] = computed(column)
            places |= set() if place is None else {place}
        try:
            holds = computed(condition.value)
        except OverflowInCondition:
            holds = None
        events = tuple(self.ids[place] for place in sorted(places))
        return Check(condition.text, holds, values, events, self._needed(condition.value, chosen, computed))

    def _needed(self, value: Value, chosen: Mapping[tuple[str, Which], int], computed: Any) -> str | None:
        if not isinstance(value, Operation) or value.function not in COMPARISONS or not any(columns_of(value)):
            return None
        left, right = value.arguments
        if not any(columns_of(left)):
            return f"{value_text(computed(left))} {value.function} {self._text(right, chosen)}"
        return f"{self._text(left, chosen)} {value.function} {value_text(computed(right))}"

    def _text(self, value: Value, chosen: Mapping[tuple[str, Which], int]) -> str:
        if isinstance(value, Column) and value.function:
            return self._aggregate_label(value, len(self._members(value, chosen)))
        if isinstance(value, Column):
            return self._label(value, self._place(value, chosen))
        if isinstance(value, Constant):
            return value_text(value.value)
        parts = [self._text(argument, chosen) for argument in value.arguments]
        infix = len(parts) == 2 and not value.function.isalpha()
        return f" {value.function} ".join(parts) if infix else f"{value.function}({', '.join(parts)})"

    def _aggregate_label(self, column: Column, number: int) -> str:
        """Return the name of an aggregate: `SUM(a.amount)`, `AVG(s[..3].price)`."""
        if column.function == "LENGTH":
            return "LENGTH"
        so_far = "" if column.which is Which.WHOLE else f"[..{number}]"
        name = f"{column.var}{so_far}" + ("" if column.function == "COUNT" else f".{column.name}")
        return name if column.function == "LIST" else f"{column.function.removeprefix('F')}({name})"

    def _label(self, column: Column, place: int | None) -> str:
        """Return the name of a reference: `s[2].price`, `a.price`."""
        of = self._iterations.label(column, place)
        if not self.bound.variable(column.var).kleene:
            return f"{of}{column.var}.{column.name}"
        nth = column.nth if place is None else self._places(column).index(place) + 1
        return f"{of}{column.var}[{nth}].{column.name}"


def _python(array: pa.Array, value: Value) -> Any:
    """Return the one value of an array as people read it; a duration as the language writes it."""
    if value.type.kind is Kind.DURATION:
        micros = array.cast(pa.int64())[0].as_py()
        return None if micros is None else to_text(micros)
    try:
        return array[0].as_py()
    except (ValueError, OverflowError):
        return array.cast(pa.string())[0].as_py()


def partition_check(bound: BoundQuery, values: Mapping[str, Sequence[Any]]) -> list[Check]:
    """Return whether events agree in the attributes of the partition, and in which values."""
    checks = []
    for name, _ in bound.partition:
        distinct = list(dict.fromkeys(map(value_text, values[name])))
        checks.append(Check(f"[{name}]", len(distinct) <= 1, {name: " and ".join(distinct)}))
    return checks


def having_checks(bound: BoundQuery, length: int) -> list[Check]:
    """Return the bounds of HAVING on the length."""
    holds = {"=": length.__eq__, "!=": length.__ne__, "<": length.__lt__, "<=": length.__le__}
    more = {">": length.__gt__, ">=": length.__ge__, "<>": length.__ne__}
    return [
        Check(f"LENGTH {b.op} {b.value}", bool({**holds, **more}[b.op](b.value)), {"LENGTH": length})
        for b in bound.having
    ]
