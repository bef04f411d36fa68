"""The mirror of a query: the same matches, read backwards in time, where that must remember less of a match so far.

`SEQ(A+ a[], B b)` with `ABS(a.x - b.x) < 1` remembers the least and the greatest `a` until `b` comes; read backwards,
`b` comes first, and that is all there is to remember. What is counted does not change: under skip-till-any a match, and
whether something can be put before or after it, look the same in both directions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import cast

from trellis.language import syntax as s
from trellis.language.bound import BoundQuery, Column, Condition, Value, WindowKind, columns_of, with_columns
from trellis.language.once import once
from trellis.language.schema import Kind
from trellis.plan import spec as o
from trellis.plan.carried import counts_alone, counts_beside, kept_registers
from trellis.plan.choice import pattern_plan
from trellis.plan.plan import Plan
from trellis.plan.registers import Register, RegisterKind, register_text, variables_behind

TURNED = {
    s.Which.EACH: s.Which.EACH, s.Which.WHOLE: s.Which.WHOLE, s.Which.FIRST: s.Which.LAST, s.Which.LAST: s.Which.FIRST,
    s.Which.EARLIER: s.Which.LATER, s.Which.LATER: s.Which.EARLIER,
}  # fmt: skip
"""Which of a variable's events is named, read backwards; what is missing has no name then."""
FUNCTIONS = ("", "COUNT", "MIN", "MAX", "LENGTH", "SUM")  # of whole numbers that fit; else a sum depends on the order
MANY, SEVERAL, BESIDE, GRAPH = 100.0, 0.5, 0.5, 2.0
OF_NUMBERS = (RegisterKind.COUNT, RegisterKind.TALLY, RegisterKind.LENGTH, RegisterKind.NUMBER)
OF_SETS = (RegisterKind.SET, RegisterKind.PAIRS, RegisterKind.TUPLES)
WEIGHTS = {RegisterKind.MET: 0.1} | dict.fromkeys(OF_NUMBERS, SEVERAL) | dict.fromkeys(OF_SETS, MANY)
"""How registers multiply what is remembered: 1 stands for as many values as there are events."""


@once
def mirrored(plan: Plan) -> Plan | None:
    """Return the plan of a query read backwards, if its matches are counted with less to remember; else None."""
    if plan.operator.name != o.PATTERNS or plan.operator.method == o.INDEX or not _may_be_turned(plan):
        return None
    turned = replace(pattern_plan(_turned(plan.bound)), columns=plan.columns, sizes=plan.sizes)
    return turned if exponent_of(turned) < exponent_of(plan) else None


def mirror_texts(plan: Plan) -> dict[str, str]:
    """Say what is remembered of matches that are counted backwards in time."""
    turned = mirrored(plan)
    if turned is None:
        return {}
    texts = dict.fromkeys(register_text(register, one.singles) for one, register in kept_registers(turned))
    return {"backwards": f"counted backwards in time, with less to remember: {', '.join(texts) or 'nothing'}"}


def _may_be_turned(plan: Plan) -> bool:
    """Return whether a query asks the same when it is read backwards."""
    bound = plan.bound
    plain = bound.select is s.Select.ANY and bound.report is not s.Report.MAXIMAL and bound.after_match is None
    if not plain or plan.automaton.worded or bound.groups or any(v.absent for v in bound.variables):
        return False
    columns = [c for condition in (*bound.conditions, *bound.filters) for c in columns_of(condition.value)]
    return all(map(_has_mirror, columns))


def _has_mirror(column: Column) -> bool:
    if column.function == "SUM" and column.type.kind not in (Kind.INTEGER, Kind.UNKNOWN):
        return False
    return column.which in TURNED and column.function in FUNCTIONS and column.at is None


def exponent_of(plan: Plan) -> float:
    """Return the exponent of the number of events in the number of matches so far that are told apart, about."""
    if plan.operator.method == o.INDEX:
        return 0.0
    if plan.positions is not None and plan.positions.indexable_apart:
        return 1.0
    behind = variables_behind(plan.automaton)
    registers = {register for _, register in kept_registers(plan) if _is_read_later(register, behind)}
    kept = sum(WEIGHTS.get(register.kind, 1.0) for register in registers)
    if plan.bound.window.kind is WindowKind.SPAN:
        firsts = {one.variable for one in plan.automaton.transitions if one.source == 0}
        kept += not firsts <= {register.variable for register in registers if register.kind is RegisterKind.FIRST}
    if counts_alone(plan):
        return kept
    return kept + (BESIDE if counts_beside(plan) else GRAPH)


def _is_read_later(register: Register, behind: Mapping[str, frozenset[str]]) -> bool:
    """Return whether a register is read when other events have come, and not only when a match may end."""
    if not register.variable or register.variable not in behind:
        return True
    own = {register.variable} if register.kind is RegisterKind.LAST else set()
    return bool(behind[register.variable] - own)


# --- The query read backwards -----------------------------------------------------------------------------------


def _turned(bound: BoundQuery) -> BoundQuery:
    return replace(
        bound,
        pattern=_turned_pattern(bound.pattern),
        variables=bound.variables[::-1],
        conditions=tuple(_turned_conditions(bound.conditions)),
        filters=tuple(_turned_conditions(bound.filters)),
    )


def _turned_pattern(pattern: s.Pattern) -> s.Pattern:
    def turned(node: s.Node) -> s.Node | None:
        if not isinstance(node, s.Seq):
            return None
        return replace(node, parts=tuple(_turned_pattern(part) for part in node.parts[::-1]))

    return cast(s.Pattern, s.rebuild(pattern, turned))


def _turned_conditions(conditions: Iterable[Condition]) -> Iterator[Condition]:
    return (replace(one, variables=one.variables[::-1], value=_turned_value(one.value)) for one in conditions)


def _turned_value(value: Value) -> Value:
    def turned(column: Column) -> Column:
        return replace(column, which=TURNED[column.which])

    return with_columns(value, turned)
