"""The plan of a query: what is pushed to the split, what the operator does, what comes out. Both engines run it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from trellis.language import syntax as s
from trellis.language.bound import BoundQuery, Condition, ConditionKind, Output, columns_of
from trellis.language.once import MadeOnce, once
from trellis.language.schema import Kind
from trellis.plan.automaton import Automaton
from trellis.plan.join import FixedJoin
from trellis.plan.positions import PositionGraph
from trellis.plan.relation import Relation, relation_of
from trellis.plan.sequence import FixedSequence
from trellis.plan.settings import AlgorithmSettings
from trellis.plan.sizes import USUAL, Sizes
from trellis.plan.spec import OperatorSpec


@dataclass(frozen=True, slots=True)
class Plan:
    """A bound query with what the engines need to know of it.

    Attributes
    ----------
    constant
        Conditions on single events; the split applies them before any Python runs (under `contiguous` they become a
        flag, since an event that fails them still breaks a trend).
    adjacent
        Conditions on two consecutive events.
    other
        Conditions that tie together several variables or fixed events.
    columns
        The columns that must be read, in no particular order but always the same.
    keep_failing
        Whether events that fail the constant conditions are kept, as breaks.
    one_kleene
        Whether the pattern is `E+ v[]` and no more, and each event is asked about its neighbours only.
    positions, sequence, join
        The pattern as positions and guarded steps, as a fixed sequence, and as joins, where it is such.
    operator
        Which operator finds the results, how, why, and at what cost.
    sizes
        The sizes at which operators change their way.
    """

    bound: BoundQuery
    automaton: Automaton
    constant: tuple[Condition, ...]
    adjacent: tuple[Condition, ...]
    other: tuple[Condition, ...]
    columns: tuple[str, ...]
    keep_failing: bool
    one_kleene: bool
    positions: PositionGraph | None
    sequence: FixedSequence | None
    join: FixedJoin | None
    operator: OperatorSpec
    sizes: Sizes = USUAL
    made: MadeOnce = field(default_factory=MadeOnce, init=False, repr=False, compare=False)

    @property
    def algorithm(self) -> str:
        """The algorithm that was asked for, by name; see `trellis.methods`."""
        return self.operator.algorithm

    @property
    def relation(self) -> Relation:
        """The adjacent conditions by what they are to an index."""
        return _relation(self)

    @property
    def settings(self) -> AlgorithmSettings:
        """The settings of a named algorithm."""
        return self.operator.settings


@once
def _relation(plan: Plan) -> Relation:
    return relation_of(plan.adjacent)


@once
def with_all_columns(plan: Plan) -> Plan:
    """Return the plan, reading every column of the events that has a type conditions can use."""
    tables = plan.bound.known_schema.tables
    names = dict.fromkeys(n for table in tables for n, t in table.columns.items() if t.kind is not Kind.OTHER)
    return replace(plan, columns=tuple(dict.fromkeys([*plan.columns, *names])))


@once
def counting_plan(plan: Plan) -> Plan:
    """Return the plan, reading no more than the conditions do: enough to count."""
    asked = plan.bound.conditions + plan.bound.filters
    names = {c.name for condition in asked for c in columns_of(condition.value)}
    names.update(_type_columns(plan.bound))
    if plan.bound.after_match is not None:  # which chooses by ORDER BY
        names.update(name for key in plan.bound.order_by for name in _output_columns(key.output))
    return replace(plan, columns=tuple(name for name in plan.columns if name in names))


def is_one_kleene(bound: BoundQuery) -> bool:
    """Return whether a trend is a path of events, each asked about its neighbours only: `E+ v[]` and no more."""
    pattern = bound.pattern
    if not isinstance(pattern, s.Kleene) or pattern != s.Kleene(pattern.type, pattern.var) or bound.filters:
        return False
    return all(c.kind in (ConditionKind.CONSTANT, ConditionKind.ADJACENT) for c in bound.conditions)


def read_columns(bound: BoundQuery) -> tuple[str, ...]:
    """Return the columns that must be read, in no particular order but always the same."""
    names: dict[str, None] = {}
    if bound.schema is not None:
        roles = (bound.schema.time, *bound.schema.tie_breakers, bound.schema.type, bound.schema.event_id)
        names.update(dict.fromkeys(r for r in roles if r is not None))
        names.update(dict.fromkeys(_type_columns(bound)))
    names.update(dict.fromkeys(name for name, _ in bound.partition))
    for condition in bound.conditions + bound.filters:
        names.update(dict.fromkeys(c.name for c in columns_of(condition.value)))
    outputs = [n.output for n in bound.returns + bound.aggregates] + [o.output for o in bound.order_by]
    outputs += bound.limit_per
    for output in outputs:
        names.update(dict.fromkeys(_output_columns(output)))
    return tuple(names)


def _type_columns(bound: BoundQuery) -> list[str]:
    """Return the column that tells which of several variables an event may fill, if one does."""
    name = None if bound.schema is None or is_one_kleene(bound) else bound.schema.type_column
    return [] if name is None else [name]


def _output_columns(output: Output) -> list[str]:
    own = [output.column.name] if output.column else []
    if output.column and output.value is not None:
        own = [column.name for column in columns_of(output.value)]
    return own + [name for argument in output.arguments for name in _output_columns(argument)]
