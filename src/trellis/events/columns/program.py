"""Compiles conditions on several events to tables of instructions (see `trellis.kernels.expression`).

Whatever reads one event alone is evaluated once for all events, as a column; so a comparison of two events is one
instruction, and only arithmetic or logic over several events takes more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trellis.errors import OverflowInCondition
from trellis.events.columns import decimals
from trellis.events.columns.arrow import is_valid, numbers
from trellis.events.columns.evaluate import evaluate
from trellis.events.columns.functions import SCALARS
from trellis.events.columns.ordering import MISSING, order_codes
from trellis.events.columns.program_tables import ProgramTables, TooWideForKernels
from trellis.events.columns.program_values import as_attribute, is_of_one, of_each, plain_value
from trellis.kernels.expression import program as kernel
from trellis.language.bound import (
    Column,
    Constant,
    Operation,
    Reference,
    Value,
    columns_of,
    references_of,
)
from trellis.language.schema import BOOLEAN, INTEGER, Kind

COMPARISONS = {
    "=": kernel.EQUAL,
    "!=": kernel.DIFFERENT,
    "<": kernel.LESS,
    "<=": kernel.AT_MOST,
    ">": kernel.GREATER,
    ">=": kernel.AT_LEAST,
}
MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
WHOLE_OPERATIONS = {
    "+": kernel.ADD,
    "-": kernel.SUBTRACT,
    "*": kernel.MULTIPLY,
    "%": kernel.REMAINDER,
    "negative": kernel.NEGATIVE,
    "abs": kernel.ABSOLUTE,
}
REAL_OPERATIONS = {
    "+": kernel.ADD_REAL,
    "-": kernel.SUBTRACT_REAL,
    "*": kernel.MULTIPLY_REAL,
    "/": kernel.DIVIDE_REAL,
    "%": kernel.REMAINDER_REAL,
    "negative": kernel.NEGATIVE_REAL,
    "abs": kernel.ABSOLUTE_REAL,
}
FUNCTIONS = {
    "floor": kernel.FLOOR,
    "ceil": kernel.CEIL,
    "sqrt": kernel.ROOT,
    "ln": kernel.LOGARITHM,
    "exp": kernel.EXPONENTIAL,
    "round": kernel.ROUND,
}
LARGEST_POWER = 18  # of ten in 64 bits
LARGEST_REAL_POWER = 22  # of ten that a double holds exactly
Slot = Callable[[int, Reference], int]


class Form(Enum):
    """How a value is held."""

    WHOLE = auto()  # integers, times, durations, booleans
    REAL = auto()
    DECIMAL = auto()
    TEXT = auto()
    NULL = auto()


@dataclass(frozen=True)
class ProgramPart:
    """A value that an instruction leaves: which one, how it is held, and the digits of a decimal behind the point."""

    place: int
    form: Form
    scale: int = 0


_FORMS = {Kind.DOUBLE: Form.REAL, Kind.DECIMAL: Form.DECIMAL, Kind.STRING: Form.TEXT, Kind.UNKNOWN: Form.NULL}


def compile_programs(values: Sequence[Value], slot: Slot, columns: Mapping[str, pa.Array], size: int) -> ProgramTables:
    """Return conditions as programs.

    Parameters
    ----------
    values
        The conditions, one for each program.
    slot
        Gives for a program and a reference of it its place among the events of the program.
    columns
        The normalised columns of all events, by name.
    size
        The number of events.

    Raises
    ------
    TooWideForKernels
        If arithmetic over several events meets decimals beyond 64 bits.
    """
    compiler = _ProgramCompiler(columns, size)
    begins = [0]
    for number, value in enumerate(values):
        compiler.begin(number, slot)
        compiler.condition(value)
        if value.type.kind is Kind.BOOLEAN:
            compiler.end()
        begins.append(len(compiler.code))
    return ProgramTables(compiler.programs(begins), tuple(values), columns)


class _ProgramCompiler:
    """Collects instructions, constants and columns."""

    def __init__(self, columns: Mapping[str, pa.Array], size: int) -> None:
        self._columns, self._size = columns, size + 1  # the last row stands for no event
        self._padded: dict[str, pa.Array] = {}
        self.code: list[list[int]] = []
        self._first, self._number = 0, 0
        self._slot: Slot = lambda number, reference: 0
        self._real: list[float] = []
        self._ints: list[NDArray[np.int64]] = []
        self._there: list[NDArray[np.bool_]] = []
        self._reals: list[NDArray[np.float64]] = []
        self._texts: list[tuple[pa.Array, int, bool]] = []  # the texts, and the column or instruction that they are
        self._held: dict[Value, tuple[Form, int, int] | None] = {}
        self._arrays: dict[Value, pa.Array | None] = {}
        self._ones = -1

    def begin(self, number: int, slot: Slot) -> None:
        """Begin a program."""
        self._first, self._number, self._slot = len(self.code), number, slot

    def end(self) -> None:
        """End the program of a condition: if it is known of one event, it is compared with a column of ones."""
        if len(self.code) == self._first + 1 and self.code[-1][0] == kernel.LOAD_WHOLE:
            if self._ones < 0:
                self._ones = self._add_ints(np.ones(self._size, np.int64), np.ones(self._size, np.bool_))
            _, own, place, *_ = self.code.pop()
            self._emit(kernel.COMPARE_COLUMNS, kernel.EQUAL, own, place, self._ones, place)

    def programs(self, begins: list[int]) -> kernel.Programs:
        """Return all that was collected."""
        if self._texts:
            for (_, at, constant), codes in zip(
                self._texts, order_codes([array for array, _, _ in self._texts]), strict=True
            ):
                if constant:
                    self.code[at][1] = int(codes[0])
                else:
                    self._ints[at], self._there[at] = codes, codes != MISSING
        places = np.array(begins, np.int64) * kernel.FIELDS + len(begins)
        code = np.array([number for row in self.code for number in row], np.int64)
        return kernel.Programs(
            np.concatenate([places, code]),
            np.array(self._real, np.float64),
            np.array(self._ints, np.int64).reshape(-1, self._size),
            np.array(self._there, np.bool_).reshape(-1, self._size),
            np.array(self._reals, np.float64).reshape(-1, self._size),
            np.empty(0, np.int64),
            np.empty(0, np.int64),
        )

    def _emit(self, op: int, *operands: int) -> int:
        self.code.append([op, *operands, *[0] * (kernel.FIELDS - 1 - len(operands))])
        return len(self.code) - 1 - self._first

    # --- Columns and constants --------------------------------------------------------------------------------

    def _array(self, value: Value) -> pa.Array | None:
        """Return the values of what reads one event, for all events; None if one overflows."""
        value = plain_value(value)
        if value not in self._arrays:
            try:
                self._arrays[value] = evaluate(value, self._resolve, self._size)
            except OverflowInCondition:
                self._arrays[value] = None  # perhaps none that is asked
        return self._arrays[value]

    def _resolve(self, column: Column) -> pa.Array:
        name = column.name
        if name not in self._padded:
            values = self._columns[name]
            self._padded[name] = pa.concat_arrays([values, pa.nulls(1, values.type)])
        return self._padded[name]

    def _column(self, value: Value) -> ProgramPart | None:
        """Load what reads one event; None where it must be computed."""
        plain = plain_value(value)
        if plain not in self._held:
            array = self._array(value)
            self._held[plain] = None if array is None else self._hold(array, value)
        held = self._held[plain]
        if held is None:
            return None
        form, at, scale = held
        if form is Form.NULL:
            return ProgramPart(self._emit(kernel.NULL), Form.NULL)
        load = kernel.LOAD_REAL if form is Form.REAL else kernel.LOAD_WHOLE
        return ProgramPart(self._emit(load, at, self._place(references_of(value)[0])), form, scale)

    def _place(self, reference: Reference) -> int:
        return self._slot(self._number, reference)

    def _aggregate(self, column: Column) -> ProgramPart:
        """Load a number that is remembered."""
        places = [self._place(reference) for reference in column.references]
        if len(places) == 1:
            return ProgramPart(self._emit(kernel.LOAD_NUMBER, *places), Form.WHOLE)
        array = self._columns[column.name]
        if pa.types.is_null(array.type):
            return ProgramPart(self._emit(kernel.NULL), Form.NULL)
        mean = column.function.endswith("AVG")
        if column.function.startswith("F"):
            op = kernel.LOAD_EXACT_MEAN if mean else kernel.LOAD_EXACT_SUM
            return ProgramPart(self._emit(op, *places), Form.REAL)
        if pa.types.is_floating(array.type):
            return ProgramPart(self._emit(kernel.LOAD_REAL_SUM, *places, int(mean)), Form.REAL)
        scale = array.type.scale if pa.types.is_decimal(array.type) else 0
        if mean:
            return ProgramPart(self._emit(kernel.LOAD_MEAN, *places, self._real_power(scale)), Form.REAL)
        form = Form.DECIMAL if pa.types.is_decimal(array.type) else Form.WHOLE
        return ProgramPart(self._emit(kernel.LOAD_SUM, *places), form, scale)

    def _in_list(self, value: Operation) -> ProgramPart:
        """Say whether a value of one event is among those of a set of events, by their joint codes."""
        sides = value.arguments
        arrays = [self._array(as_attribute(side)) for side in sides]
        if any(array is None for array in arrays):
            raise TooWideForKernels(value.source)
        if any(array is None or pa.types.is_null(array.type) for array in arrays):
            codes = [np.full(self._size, MISSING, np.int64)] * 2
        else:
            codes = order_codes(arrays)
        columns = [self._add_ints(one, one != MISSING) for one in codes]
        places = [self._place(references_of(side)[0]) for side in sides]
        return ProgramPart(self._emit(kernel.IN_LIST, columns[0], places[0], columns[1], places[1]), Form.WHOLE)

    def _hold(self, array: pa.Array, value: Value) -> tuple[Form, int, int] | None:
        form = Form.NULL if pa.types.is_null(array.type) else _FORMS.get(value.type.kind, Form.WHOLE)
        if form is Form.NULL:
            return form, 0, 0
        if form is Form.REAL:
            self._reals.append(numbers(array, np.nan))
            return form, len(self._reals) - 1, 0
        if form is Form.TEXT:
            self._texts.append((array, len(self._ints), False))
            return form, self._add_ints(np.zeros(self._size, np.int64), np.zeros(self._size, np.bool_)), 0
        if form is Form.DECIMAL:
            digits = decimals.as_int64(array)
            if digits is None:
                if isinstance(value, Column):
                    raise TooWideForKernels(value.name)
                return None
            return form, self._add_ints(digits, is_valid(array)), array.type.scale
        return form, self._add_ints(_whole_numbers(array), is_valid(array)), 0

    def _add_ints(self, values: NDArray[np.int64], there: NDArray[np.bool_]) -> int:
        self._ints.append(values)
        self._there.append(there)
        return len(self._ints) - 1

    def _constant(self, value: Value) -> ProgramPart:
        array = evaluate(value, lambda column: self._columns[column.name], 1)
        form = _FORMS.get(value.type.kind, Form.WHOLE)
        if array.null_count or pa.types.is_null(array.type):
            return ProgramPart(self._emit(kernel.NULL), Form.NULL)
        if form is Form.REAL:
            return ProgramPart(self._emit(kernel.CONSTANT_REAL, self._add_real(array[0].as_py())), form)
        if form is Form.TEXT:
            self._texts.append((array, len(self.code), True))
            return ProgramPart(self._emit(kernel.CONSTANT_WHOLE), form)
        digits = decimals.as_int64(array) if form is Form.DECIMAL else _whole_numbers(array)
        if digits is None:
            raise TooWideForKernels(str(array[0].as_py()))
        scale = array.type.scale if form is Form.DECIMAL else 0
        return ProgramPart(self._emit(kernel.CONSTANT_WHOLE, int(digits[0])), form, scale)

    def _add_real(self, value: float) -> int:
        self._real.append(value)
        return len(self._real) - 1

    # --- Values -----------------------------------------------------------------------------------------------

    def condition(self, value: Value) -> ProgramPart:
        """Add the instructions of a value."""
        if not any(columns_of(value)):
            return self._constant(value)
        if is_of_one(value):
            part = self._column(value)
            if part is not None:
                return part
        if isinstance(value, Column):
            return self._aggregate(value)
        assert isinstance(value, Operation)
        function = value.function
        if function == "in list":
            return self._in_list(value)
        if function in COMPARISONS:
            return self._comparison(value)
        if function == "like":
            return self._like(value)
        if function in SCALARS:
            return self._scalar(value)
        parts = [self.condition(argument) for argument in value.arguments]
        if function == "case":
            return self._case(value, parts)
        if function in ("and", "or"):
            return self._folded(kernel.AND if function == "and" else kernel.OR, parts, Form.WHOLE, 0)
        if function in ("not", "is null"):
            op = kernel.NOT if function == "not" else kernel.IS_NULL
            return ProgramPart(self._emit(op, parts[0].place), Form.WHOLE)
        if function == "coalesce":
            return self._coalesce(value, parts)
        return self._arithmetic(value, parts)

    def _folded(self, op: int, parts: list[ProgramPart], form: Form, scale: int) -> ProgramPart:
        found = parts[0].place
        for part in parts[1:]:
            found = self._emit(op, found, part.place)
        return ProgramPart(found, form, scale)

    def _like(self, value: Operation) -> ProgramPart:
        """LIKE over several events, of which COALESCE or CASE make one text: asked of each of them."""
        each = of_each(value)
        if each is None:
            raise TooWideForKernels(value.source or value.function)
        return self.condition(each)

    def _scalar(self, value: Operation) -> ProgramPart:
        each = of_each(value)
        if each is not None:
            return self.condition(each)
        part = self.condition(value.arguments[0])
        if part.form is Form.NULL:
            return part
        digits = value.arguments[1] if len(value.arguments) > 1 else Constant(0, INTEGER)
        places = digits.value if isinstance(digits, Constant) else None
        if value.function not in FUNCTIONS or not isinstance(places, int):
            raise TooWideForKernels(value.source or value.function)
        if value.function in ("floor", "ceil", "round") and part.form is not Form.REAL:
            if part.form is Form.WHOLE and places >= 0:
                return part
            raise TooWideForKernels(value.source or value.function)
        return ProgramPart(self._emit(FUNCTIONS[value.function], self._as_real(part).place, places), Form.REAL)

    def _case(self, value: Operation, parts: list[ProgramPart]) -> ProgramPart:
        """Take the first value whose test is true, from the last test to the first."""
        form = _FORMS.get(value.type.kind, Form.WHOLE)
        scale = value.type.scale if form is Form.DECIMAL else 0

        def converted(part: ProgramPart) -> int:
            if form is Form.REAL:
                return self._as_real(part).place
            return self._rescaled(part, scale, value).place if form is Form.DECIMAL else part.place

        tests, values = parts[:-1:2], [converted(part) for part in (*parts[1::2], parts[-1])]
        op = kernel.CHOOSE_REAL if form is Form.REAL else kernel.CHOOSE_WHOLE
        found = values[-1]
        for test, chosen in zip(reversed(tests), reversed(values[:-1]), strict=True):
            found = self._emit(op, test.place, chosen, found)
        return ProgramPart(found, form, scale)

    def _coalesce(self, value: Operation, parts: list[ProgramPart]) -> ProgramPart:
        form = _FORMS.get(value.type.kind, Form.WHOLE)
        if form is Form.REAL:
            return self._folded(kernel.COALESCE_REAL, [self._as_real(p) for p in parts], form, 0)
        scale = value.type.scale if form is Form.DECIMAL else 0
        if form is Form.DECIMAL:
            parts = [self._rescaled(p, scale, value) for p in parts]
        return self._folded(kernel.COALESCE_WHOLE, parts, form, scale)

    def _arithmetic(self, value: Operation, parts: list[ProgramPart]) -> ProgramPart:
        function = value.function
        if any(part.form is Form.NULL for part in parts):
            return ProgramPart(self._emit(kernel.NULL), Form.NULL)
        if function == "/" or value.type.kind is Kind.DOUBLE:
            return ProgramPart(
                self._emit(REAL_OPERATIONS[function], *(self._as_real(p).place for p in parts)), Form.REAL
            )
        scale = 0
        if value.type.kind is Kind.DECIMAL:
            scale = sum(p.scale for p in parts) if function == "*" else max(p.scale for p in parts)
            if function != "*":
                parts = [self._rescaled(p, scale, value) for p in parts]
        form = _FORMS.get(value.type.kind, Form.WHOLE)
        return ProgramPart(self._emit(WHOLE_OPERATIONS[function], *(p.place for p in parts)), form, scale)

    def _rescaled(self, part: ProgramPart, scale: int, value: Value) -> ProgramPart:
        if part.form is Form.NULL or part.scale == scale:
            return part
        return ProgramPart(
            self._emit(kernel.SCALE, part.place, self._power(scale - part.scale, value)), Form.DECIMAL, scale
        )

    def _power(self, digits: int, value: Value) -> int:
        if digits > LARGEST_POWER:
            raise TooWideForKernels(getattr(value, "source", "") or "the condition")
        return int(10**digits)

    def _as_real(self, part: ProgramPart) -> ProgramPart:
        if part.form in (Form.REAL, Form.NULL):
            return part
        return ProgramPart(self._emit(kernel.TO_REAL, part.place, self._real_power(part.scale)), Form.REAL)

    def _real_power(self, scale: int) -> int:
        """Return the constant to divide digits by; -1 for none."""
        if scale > LARGEST_REAL_POWER:
            raise TooWideForKernels("the condition")
        return self._add_real(10.0**scale) if scale else -1

    # --- Comparisons ------------------------------------------------------------------------------------------

    def _comparison(self, value: Operation) -> ProgramPart:
        direct = self._of_columns(value)
        if direct is not None:
            return direct
        function = value.function
        left, right = (self.condition(argument) for argument in value.arguments)
        if Form.NULL in (left.form, right.form):
            return ProgramPart(self._emit(kernel.NULL), Form.NULL)
        if left.form is Form.REAL and right.form is not Form.REAL:
            left, right, function = right, left, MIRRORED[function]
        op = COMPARISONS[function]
        if left.form is Form.REAL:
            place = self._emit(kernel.COMPARE_REAL, op, left.place, right.place)
        elif right.form is Form.REAL:
            place = self._emit(kernel.COMPARE_MIXED, op, left.place, right.place, self._real_power(left.scale))
        elif left.scale != right.scale:
            scale = max(left.scale, right.scale)
            powers = [self._power(scale - part.scale, value) for part in (left, right)]
            place = self._emit(kernel.COMPARE_SCALED, op, left.place, right.place, *powers)
        else:
            place = self._emit(kernel.COMPARE_WHOLE, op, left.place, right.place)
        return ProgramPart(place, Form.WHOLE)

    def _of_columns(self, value: Operation) -> ProgramPart | None:
        """Compare two values of one event each by their joint codes, or None."""
        sides = value.arguments
        if not all(map(is_of_one, sides)):
            return None
        arrays = [self._array(side) for side in sides]
        if any(array is None or pa.types.is_null(array.type) for array in arrays):
            return None
        keys = [
            Operation("codes", (plain_value(side), plain_value(sides[1 - i])), BOOLEAN, str(i))
            for i, side in enumerate(sides)
        ]
        if plain_value(sides[0]) == plain_value(sides[1]):
            keys = [keys[0]] * 2
        if any(key not in self._held for key in keys):
            for key, codes in zip(keys, order_codes(arrays), strict=True):
                if key not in self._held:
                    self._held[key] = Form.WHOLE, self._add_ints(codes, codes != MISSING), 0
        operands = [COMPARISONS[value.function]]
        for key, side in zip(keys, sides, strict=True):
            held = self._held[key]
            assert held is not None
            operands += [held[1], self._place(references_of(side)[0])]
        return ProgramPart(self._emit(kernel.COMPARE_COLUMNS, *operands), Form.WHOLE)


def _whole_numbers(array: pa.Array) -> NDArray[np.int64]:
    values = array.cast(pa.int8()) if pa.types.is_boolean(array.type) else array
    return numbers(values, 0).astype(np.int64, copy=False)
