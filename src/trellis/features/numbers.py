"""Answers PER EVENT as arrays: one row an event, logarithms of numbers of any size, several windows made one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from trellis.features.queries import Feature, FeatureKind

Floats = NDArray[np.float64]
LEADING = 17  # digits that a double keeps
LARGEST = float(np.finfo(np.float64).max)


def values_of(feature: Feature, answer: pa.Table, rows: NDArray[np.int64], size: int) -> Floats:
    """Return a feature of `size` events; `rows` tells the event that each row of the answer is about."""
    if feature.kind is FeatureKind.COUNT:
        logarithms = np.full(size, -np.inf)
        np.logaddexp.at(logarithms, rows, _logarithms(answer, feature.column))
        return np.logaddexp(0.0, logarithms)
    numbers = _doubles(answer, feature)
    if feature.kind is FeatureKind.SUM:
        totals = np.zeros(size)
        with np.errstate(over="ignore"):
            np.add.at(totals, rows, np.nan_to_num(numbers, nan=0.0, posinf=LARGEST, neginf=-LARGEST))
        totals = np.clip(totals, -LARGEST, LARGEST)
        return np.sign(totals) * np.log1p(np.abs(totals))
    found = np.full(size, np.nan)
    better = np.fmin if feature.kind is FeatureKind.LEAST else np.fmax
    better.at(found, rows, numbers)
    return np.where(np.isnan(found), feature.absent, found)


def exact_values(feature: Feature, answer: pa.Table, rows: NDArray[np.int64], size: int) -> list[int]:
    """Return the numbers behind a feature that counts, with all their digits."""
    totals = [0] * size
    for row, number in zip(rows.tolist(), _whole_numbers(answer, feature.column), strict=True):
        totals[row] += number
    return totals


def _whole_numbers(answer: pa.Table, column: str) -> Sequence[int]:
    from trellis.results.display import exact_values as digits

    return digits(answer, column)


def _logarithms(answer: pa.Table, column: str) -> Floats:
    """Return the logarithms of whole numbers; those of more than 38 digits by their leading ones."""
    number, text = answer[column], answer[f"{column}_text"]
    with np.errstate(divide="ignore"):
        found = np.log(number.cast(pa.float64()).to_numpy())
    beyond = np.flatnonzero(pc.is_null(number).to_numpy())
    if len(beyond):
        digits = text.take(pa.array(beyond))
        leading = pc.utf8_slice_codeunits(digits, 0, LEADING).cast(pa.float64()).to_numpy()
        found[beyond] = np.log(leading) + (pc.utf8_length(digits).to_numpy() - LEADING) * math.log(10)
    return found


def _doubles(answer: pa.Table, feature: Feature) -> Floats:
    """Return a column of numbers, NaN for NULL."""
    column: Any = answer[feature.column]
    if feature.exact:  # beyond 38 digits there is only the text
        column = pc.coalesce(column.cast(pa.float64()), answer[f"{feature.column}_text"].cast(pa.float64()))
    return pc.fill_null(column.cast(pa.float64()), math.nan).to_numpy()
