"""Counts and aggregates as rows."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.digits import digits_of
from trellis.events.columns.ordering import group_codes
from trellis.events.columns.types import physical
from trellis.language.bound import COUNTING, BoundQuery, Output, WindowKind
from trellis.language.schema import Kind
from trellis.plan.plan import Plan
from trellis.results.rows import COUNT, RowMaker, arrow_type, group_schema, id_arrow_type, lead_schema
from trellis.results.taken import MOST_BYTES, present

if TYPE_CHECKING:
    from trellis.operators.aggregates import Aggregates
    from trellis.operators.wide import WideNumbers

LARGEST = 10**38
EXACT = Context(prec=100_000)


def count_schema(bound: BoundQuery) -> pa.Schema:
    """Return the schema of counts by window and partition."""
    return pa.schema([*lead_schema(bound), pa.field("count", COUNT), pa.field("count_text", pa.string())])


def count_rows(maker: RowMaker, counts: Sequence[int]) -> pa.Table:
    """Return one row per group that has a result."""
    filled = [g for g, count in enumerate(counts) if count]
    columns = [*maker.lead(np.array(filled, np.int64)), *count_columns([counts[g] for g in filled])]
    return pa.Table.from_arrays(columns, schema=count_schema(maker.bound))


def count_columns(counts: Sequence[int]) -> list[pa.Array]:
    """Return exact counts as decimals (NULL beyond 38 digits) and as text with all digits."""
    try:
        whole = pa.array(np.array(counts, np.int64))
    except OverflowError:  # a number needs more than 64 bits
        return exact_columns(counts, 0)
    return [whole.cast(COUNT), whole.cast(pa.string())]


def aggregate_schema(bound: BoundQuery) -> pa.Schema:
    """Return the schema of AGGREGATE's rows."""
    fields = [*group_schema(bound)]
    if bound.per_event is not None:
        fields.append(pa.field("event", id_arrow_type(bound)))
    for named in bound.aggregates:
        fields += [pa.field(named.name + suffix, type_) for suffix, type_ in _types(named.output)]
    return pa.schema(fields)


def is_exact(output: Output) -> bool:
    """Return whether an aggregate has its digits as text beside it."""
    return output.function in COUNTING or (
        output.function == "SUM" and output.type.kind in (Kind.INTEGER, Kind.DECIMAL)
    )


def _types(output: Output) -> list[tuple[str, pa.DataType]]:
    if is_exact(output):
        return [("", pa.decimal128(38, output.type.scale)), ("_text", pa.string())]
    return [("", arrow_type(output.type))]


def aggregate_rows(plan: Plan, maker: RowMaker, numbers: Sequence[Aggregates]) -> pa.Table:
    """Return one row per window and partition with a result, or a window and value of the GROUP BY attributes."""
    from trellis.operators.aggregates import join  # here and below: counts go without

    bound, groups = plan.bound, maker.events.groups
    filled = [g for g, n in enumerate(numbers) if n.count]
    keys = _group_keys(bound, maker, np.array(filled, np.int64))
    members: dict[tuple[int, int], list[int]] = {}
    for key, group in sorted(zip(keys, filled, strict=True)):
        members.setdefault(key, []).append(group)
    joined = [numbers[gs[0]] if len(gs) == 1 else join(plan, [numbers[g] for g in gs]) for gs in members.values()]
    firsts = np.array([gs[0] for gs in members.values()], np.int64)
    if not joined and always_one_row(bound):
        return aggregate_table(plan, [], [join(plan, [])])
    names = [f.name for f in lead_schema(bound)]
    kept = [f.name for f in group_schema(bound)]
    lead = [column for name, column in zip(names, maker.lead(firsts), strict=True) if name in kept]
    assert len(groups.lo) == len(numbers)
    return aggregate_table(plan, lead, joined)


def always_one_row(bound: BoundQuery) -> bool:
    """Whether AGGREGATE gives a row even where there is no result."""
    return bound.window.kind is not WindowKind.SLIDING and not bound.partition and bound.per_event is None


def _group_keys(bound: BoundQuery, maker: RowMaker, groups: np.ndarray) -> list[tuple[int, int]]:
    events = maker.events
    names = list(bound.group_by) or [n for n, _ in bound.partition]
    firsts = pa.array(events.groups.lo[groups])
    codes = np.zeros(len(groups), np.int64)
    if names and len(groups):
        columns = [events.columns[n].take(firsts) for n, _ in bound.partition if n in names]
        codes = group_codes(columns)[0]
    return list(zip(events.groups.number[groups].tolist(), codes.tolist(), strict=True))


def aggregate_table(plan: Plan, lead: list[pa.Array], numbers: Sequence[Aggregates]) -> pa.Table:
    """Return numbers as rows behind the columns that tell window and partition."""
    from trellis.operators.aggregates import value_of

    columns = list(lead)
    for i, named in enumerate(plan.bound.aggregates):
        values = [value_of(named.output, n.states[i]) for n in numbers]
        if is_exact(named.output):
            columns += exact_columns(values, named.output.type.scale)
        else:
            type_ = named.output.type
            columns.append(present(pa.array(values, physical(type_)), arrow_type(type_)))
    return pa.Table.from_arrays(columns, schema=aggregate_schema(plan.bound))


def exact_columns(values: Sequence[Any], scale: int, valid: NDArray[np.bool_] | None = None) -> list[pa.Array]:
    """Return exact numbers as decimals (NULL beyond 38 digits) and as text with all digits.

    Parameters
    ----------
    values
        The numbers; `WideNumbers` are units of the last digit.
    scale
        The digits behind the point.
    valid
        Which of `WideNumbers` are there; the others are NULL.
    """
    from trellis.operators.wide import WideNumbers  # late: counts go without

    words = _words(values) if scale == 0 and not isinstance(values, WideNumbers) else None
    if words is not None:
        values = WideNumbers(words)
    if isinstance(values, WideNumbers):
        found = _written(values, scale, valid)
        if found is not None:
            return found
        there = [True] * len(values) if valid is None else valid.tolist()
        values = [Fraction(value, 10**scale) if own else None for value, own in zip(values, there, strict=True)]
    decimals: list[Decimal | None] = []
    texts: list[str | None] = []
    for value in values:
        if value is None:
            decimals.append(None)
            texts.append(None)
            continue
        whole = value * 10**scale if isinstance(value, int) else int(Fraction(value) * 10**scale)
        decimals.append(Decimal(whole).scaleb(-scale, EXACT) if abs(whole) < LARGEST else None)
        texts.append(exact_text(whole, scale))
    return [pa.array(decimals, pa.decimal128(38, scale)), pa.array(texts, pa.string())]


def _words(values: Sequence[Any]) -> NDArray[np.uint64] | None:
    """Return whole numbers as words, if they are such and fit one each."""
    if not set(map(type, values)) <= {int}:
        return None
    try:
        return np.array(values, np.uint64).reshape(-1, 1)
    except OverflowError:
        return None


def _written(values: WideNumbers, scale: int, valid: NDArray[np.bool_] | None) -> list[pa.Array] | None:
    """Return `exact_columns` of numbers that are there as words; None where all digits are longer than Arrow allows."""
    from trellis.kernels.count.wide import write_digits

    words, negative = values.magnitudes().words, values.negative
    number, room = len(words), 20 * words.size
    if room + number * (scale + 2) > MOST_BYTES:
        return None
    ends, texts = np.empty(number + 1, np.int32), np.empty(room, np.uint8)
    decimals, known = np.zeros((number, 2), np.uint64), np.empty(number, np.bool_)
    used = write_digits(np.ascontiguousarray(words), ends, texts, decimals, known)
    digits = pa.StringArray.from_buffers(number, pa.py_buffer(ends), pa.py_buffer(texts[:used]))
    if scale:
        digits = pc.utf8_lpad(digits, scale + 1, "0")
        parts = (pc.utf8_slice_codeunits(digits, 0, -scale), pc.utf8_slice_codeunits(digits, -scale))
        digits = pc.binary_join_element_wise(*parts, ".")
    if negative.any():
        signs = pc.if_else(pa.array(negative), "-", "")
        digits = pc.binary_join_element_wise(signs, digits, "")
        turned = ~decimals[negative]
        turned[:, 0] += np.uint64(1)
        turned[:, 1] += turned[:, 0] == 0
        decimals[negative] = turned
    if valid is not None:
        known &= valid
        digits = pc.if_else(pa.array(valid), digits, None)
    mask = None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
    whole = pa.Array.from_buffers(pa.decimal128(38, scale), number, [mask, pa.py_buffer(decimals)])
    return [whole, digits]


def exact_text(whole: int, scale: int) -> str:
    """Return a whole number of units of 10**-scale with all its digits."""
    if not scale and whole >= 0:
        return digits_of(whole)
    digits = digits_of(abs(whole)).rjust(scale + 1, "0")
    text = f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits
    return f"-{text}" if whole < 0 else text
