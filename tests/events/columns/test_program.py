"""Programs of conditions on several events give what Arrow gives for each combination of them."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trellis.errors import OverflowInCondition
from trellis.events.columns.evaluate import evaluate
from trellis.events.columns.program import compile_programs
from trellis.events.columns.program_tables import ProgramTables, TooWideForKernels
from trellis.events.columns.types import from_arrow, normalise
from trellis.kernels.expression.program import MISFIT, TRUE, is_true
from trellis.language.bound import Column, Constant, Operation, Value
from trellis.language.schema import BOOLEAN, DOUBLE, DURATION, INTEGER, STRING, TIMESTAMP, Kind, Type, decimal
from trellis.language.syntax import Which

HUGE = 2**62 + 3
TYPES: dict[str, Any] = {
    "i": pa.int64(),
    "d": pa.float64(),
    "m": pa.decimal128(10, 2),
    "s": pa.string(),
    "f": pa.bool_(),
    "t": pa.timestamp("us"),
}
VALUES: dict[str, list[Any]] = {
    "i": [None, 0, 1, -1, 3, 7, HUGE, -(2**63), 2**53 + 1],
    "d": [None, 0.0, -0.0, 0.1, 1.0, 3.5, float("nan"), float("inf"), 2.0**53, -7.25],
    "m": [None, Decimal("0.10"), Decimal("1.00"), Decimal("-3.25"), Decimal("3.50")],
    "s": [None, "", "a", "ab", "é"],
    "f": [None, True, False],
    "t": [None, 0, 10**15, -5, 2**62],
}
KINDS = {"i": INTEGER, "d": DOUBLE, "m": decimal(2), "s": STRING, "f": BOOLEAN, "t": TIMESTAMP}
CONSTANTS: dict[str, list[Any]] = {
    "i": [0, 2, HUGE, None],
    "d": [0.5, 0.0, 3.5],
    "m": [Decimal("1.10")],
    "s": ["ab", "b"],
    "f": [True],
    "t": [0, 7],
}
NUMERIC = "idm"


@st.composite
def tables(draw: Any) -> dict[str, pa.Array]:
    size = draw(st.integers(1, 4))
    columns = {}
    for name, type_ in TYPES.items():
        rows = [draw(st.sampled_from(VALUES[name])) for _ in range(size)]
        array = pa.array(rows, type_, from_pandas=False)
        columns[name] = normalise(array, from_arrow(type_))
    return columns


def leaf(draw: Any, name: str) -> Value:
    if draw(st.integers(0, 4)) == 0:
        return Constant(draw(st.sampled_from(CONSTANTS[name])), KINDS[name])
    return Column(draw(st.sampled_from("abc")), name, Which.EACH, None, KINDS[name])


def number(draw: Any, depth: int) -> Value:
    kind = draw(st.integers(0, 8)) if depth else 0
    if kind <= 1:
        return leaf(draw, draw(st.sampled_from(NUMERIC)))
    if kind == 2:
        one = number(draw, depth - 1)
        return Operation(draw(st.sampled_from(["negative", "abs"])), (one,), one.type)
    x, y = number(draw, depth - 1), number(draw, depth - 1)
    if kind == 7:
        return Operation("case", (condition(draw, 0), x, y), _common(x.type, y.type, "+"))
    if kind == 8:
        name = draw(st.sampled_from(["floor", "ceil", "sqrt", "ln", "exp", "round"]))
        quotient = Operation("/", (x, y), DOUBLE)
        digits = (Constant(draw(st.sampled_from([0, 2, -1])), INTEGER),) if name == "round" else ()
        return Operation(name, (quotient, *digits), DOUBLE)
    if kind == 3:
        return Operation("coalesce", (x, y), _common(x.type, y.type, "+"))
    function = draw(st.sampled_from("+-*/%"))
    return Operation(function, (x, y), _common(x.type, y.type, function))


def _common(x: Type, y: Type, function: str) -> Type:
    if function == "/" or Kind.DOUBLE in (x.kind, y.kind):
        return DOUBLE
    if Kind.DECIMAL in (x.kind, y.kind):
        return decimal(x.scale + y.scale if function == "*" else max(x.scale, y.scale))
    return INTEGER


def condition(draw: Any, depth: int = 2) -> Value:
    kind = draw(st.integers(0, 9)) if depth else draw(st.integers(0, 5))
    compared = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
    if kind <= 2:
        return Operation(compared, (number(draw, 2), number(draw, 2)))
    if kind <= 4:
        name = draw(st.sampled_from("sft"))
        return Operation(compared, (leaf(draw, name), leaf(draw, name)))
    if kind == 5:
        gap = Operation("-", (leaf(draw, "t"), leaf(draw, "t")), DURATION)
        return Operation(compared, (gap, Constant(7, DURATION)))
    if kind == 6:
        text = Operation("coalesce", (leaf(draw, "s"), leaf(draw, "s")), STRING)
        return Operation("like", (text, Constant("a%", STRING)))
    if kind == 7:
        return Operation("not", (condition(draw, depth - 1),))
    if kind == 8:
        return Operation("is null", (number(draw, 1),))
    arms = tuple(condition(draw, depth - 1) for _ in range(draw(st.integers(2, 3))))
    return Operation(draw(st.sampled_from(["and", "or"])), arms)


def answer(tables: ProgramTables, program: int, events: list[int]) -> int:
    return int(is_true(tables.programs, program, np.array(events), 0, *tables.scratch()))


def expected(value: Value, columns: dict[str, pa.Array], events: list[int]) -> bool | None:
    def resolve(column: Column) -> pa.Array:
        event, values = events["abc".index(column.var)], columns[column.name]
        return pa.nulls(1, values.type) if event < 0 else values.slice(event, 1)

    try:
        return evaluate(value, resolve, 1)[0].as_py() is True
    except OverflowInCondition:
        return None


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_programs_agree_with_arrow(data: Any) -> None:
    columns = data.draw(tables())
    value = condition(data.draw)
    size = len(columns["i"])
    try:
        found = compile_programs([value], lambda _, column: "abc".index(column.var), columns, size)
    except (TooWideForKernels, OverflowInCondition):
        return
    for events in product(range(-1, size), repeat=3):
        right, got = expected(value, columns, [*events]), answer(found, 0, [*events])
        if got == MISFIT:
            if right is not None:
                assert isinstance(found.misfit(0, lambda c, at=events: at["abc".index(c.var)]), TooWideForKernels)
        else:
            assert right is not None
            assert (got == TRUE) == right


def test_an_overflow_is_told_as_arrow_tells_it() -> None:
    columns = {"i": pa.array([2**62, 2**62, 5])}
    total = Operation("+", (Column("a", "i", Which.EACH, None, INTEGER), Column("b", "i", Which.EACH, None, INTEGER)),
                      INTEGER, "a.i + b.i")  # fmt: skip
    value = Operation(">", (total, Constant(7, INTEGER)))
    found = compile_programs([value], lambda _, column: "ab".index(column.var), columns, 3)
    assert answer(found, 0, [0, 2]) == TRUE
    assert answer(found, 0, [0, 1]) == MISFIT
    with pytest.raises(OverflowInCondition, match=r"`a.i \+ b.i` does not fit 64 bits"):
        raise found.misfit(0, lambda c: "ab".index(c.var))
