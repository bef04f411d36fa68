"""Joins of partial matches in a tree plan: pair by pair, or once for each pair of groups with equal values.

A partial match of neighbouring variables is a row with its first and last event; rows of the right side are sorted by
first event. Conditions between the sides compare codes of the rows, one row of codes for each condition.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trellis.kernels.arrays import first_at_least_in
from trellis.kernels.jit import njit
from trellis.kernels.sequence.walk import accepts


class LeftRows(NamedTuple):
    """The left rows of a join: the first event that may begin a right one, the first too late to end one, weights.

    `after` and `until` are int64 (rows,), `weights` float64 (rows,).
    """

    after: np.ndarray  # int64 (rows,)
    until: np.ndarray  # int64 (rows,)
    weights: np.ndarray  # float64 (rows,)


class RightRows(NamedTuple):
    """The right rows of a join, by first event: first and last events, int64 (rows,), and weights, float64 (rows,)."""

    starts: np.ndarray  # int64 (rows,)
    ends: np.ndarray  # int64 (rows,)
    weights: np.ndarray  # float64 (rows,)


class RowGroups(NamedTuple):
    """Rows with equal codes: those of group g are `members[begins[g]:begins[g + 1]]`, by first event.

    `codes` is int64 (conditions, groups), `begins` int64 (groups + 1,), `members` int64 (rows,).
    """

    codes: np.ndarray  # int64 (conditions, groups)
    begins: np.ndarray  # int64 (groups + 1,)
    members: np.ndarray  # int64 (rows,)


@njit(cache=True, nogil=True)
def join_pairs(kinds, left, left_rows, right, right_rows, order, by_code, out_left, out_right):
    """Write the pairs of rows that match, testing every pair in reach; return their number, weight and the tests made.

    Parameters
    ----------
    kinds : int64 (conditions,)
        What each condition asks: `EQUAL`, `GREATER` or `DIFFERENT`.
    left, right : int64 (conditions, rows)
        The codes of either side.
    left_rows, right_rows : LeftRows, RightRows
        The rows of either side.
    order, by_code : int64 (right rows,), int64 (codes + 1,) or empty
        The right rows by first event or, with `by_code`, by the code of the first condition, an equality, and then by
        first event: those with code `v` begin at `by_code[v]`.
    out_left, out_right : int64 (room,)
        Get the pairs; what does not fit is not written, but counted.
    """
    after, until, weights = left_rows.after, left_rows.until, left_rows.weights
    starts, ends, right_weights, rows = right_rows.starts, right_rows.ends, right_rows.weights, order
    found = tests = 0
    weight = 0.0
    room, keyed = out_left.shape[0], by_code.shape[0] > 0
    for a in range(after.shape[0]):
        low, high = 0, rows.shape[0]
        if keyed:
            low, high = by_code[left[0, a]], by_code[left[0, a] + 1]
        for i in range(first_at_least_in(rows, starts, low, high, after[a]), high):
            b = rows[i]
            if starts[b] >= until[a]:
                break
            if ends[b] < until[a]:
                tests += 1
                if accepts(kinds, 0, kinds.shape[0], left, a, right, b):
                    if found < room:
                        out_left[found], out_right[found] = a, b
                    found += 1
                    weight += weights[a] * right_weights[b]
    return found, weight, tests


@njit(cache=True, nogil=True)
def join_groups(kinds, left, left_rows, right, right_rows, by_code, out_left, out_right):
    """Do what `join_pairs` does with one test for each pair of groups.

    Parameters
    ----------
    left, right : RowGroups
        The groups of either side; with `by_code`, the right groups with code `v` of the first condition begin at
        `by_code[v]`.
    kinds, left_rows, right_rows, by_code, out_left, out_right
        As `join_pairs` takes them.
    """
    after, until, weights = left_rows.after, left_rows.until, left_rows.weights
    starts, ends, right_weights = right_rows.starts, right_rows.ends, right_rows.weights
    begins, members, right_begins, right_members = left.begins, left.members, right.begins, right.members
    codes, right_codes = left.codes, right.codes
    found = tests = 0
    weight = 0.0
    room, keyed = out_left.shape[0], by_code.shape[0] > 0
    for g in range(begins.shape[0] - 1):
        low, high = 0, right_begins.shape[0] - 1
        if keyed:
            low, high = by_code[codes[0, g]], by_code[codes[0, g] + 1]
        for h in range(low, high):
            tests += 1
            if not accepts(kinds, 0, kinds.shape[0], codes, g, right_codes, h):
                continue
            for i in range(begins[g], begins[g + 1]):
                a = members[i]
                for j in range(
                    first_at_least_in(right_members, starts, right_begins[h], right_begins[h + 1], after[a]),
                    right_begins[h + 1],
                ):
                    b = right_members[j]
                    if starts[b] >= until[a]:
                        break
                    if ends[b] < until[a]:
                        if found < room:
                            out_left[found], out_right[found] = a, b
                        found += 1
                        weight += weights[a] * right_weights[b]
    return found, weight, tests


@njit(cache=True, nogil=True)
def pairs_in_reach(left, after, until, starts, rows, by_code):
    """Return how many pairs of rows `join_pairs` would look at."""
    total, keyed = 0, by_code.shape[0] > 0
    for a in range(after.shape[0]):
        low, high = 0, rows.shape[0]
        if keyed:
            low, high = by_code[left[0, a]], by_code[left[0, a] + 1]
        first = first_at_least_in(rows, starts, low, high, after[a])
        total += max(0, first_at_least_in(rows, starts, first, high, until[a]) - first)
    return total
