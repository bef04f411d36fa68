"""Joins of partial matches in a tree plan: pair by pair, or once for each pair of groups with equal values.

A partial match of neighbouring variables is a row with its first and last event; rows of the right side are sorted by
first event. Conditions between the sides compare codes of the rows, one row of codes for each condition.
"""

from __future__ import annotations

from numba import njit

from trellis.kernels.arrays import first_at_least_in
from trellis.kernels.sequence.walk import EQUAL, GREATER


@njit(cache=True, nogil=True)
def _accepts(kinds, left, a, right, b):
    for c in range(kinds.shape[0]):
        if kinds[c] == EQUAL:
            if left[c, a] != right[c, b]:
                return False
        elif kinds[c] == GREATER:
            if right[c, b] <= left[c, a]:
                return False
        elif left[c, a] == right[c, b]:
            return False
    return True


@njit(cache=True, nogil=True)
def join_pairs(
    kinds, left, after, until, weights, right, starts, ends, right_weights, rows, by_code, out_left, out_right
):
    """Write the pairs of rows that match, testing every pair in reach; return their number, weight and the tests made.

    The right row must begin from event `after` of the left one on, and end before `until`. `rows` are the right rows by
    first event or, with `by_code`, by the code of the first condition, an equality, and then by first event: those
    with code `v` begin at `by_code[v]`. What does not fit into `out_left` is not written, but counted.
    """
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
                if _accepts(kinds, left, a, right, b):
                    if found < room:
                        out_left[found], out_right[found] = a, b
                    found += 1
                    weight += weights[a] * right_weights[b]
    return found, weight, tests


@njit(cache=True, nogil=True)
def join_groups(
    kinds, left, begins, members, after, until, weights, right, right_begins, right_members, starts, ends,
    right_weights, by_code, out_left, out_right,
):  # fmt: skip
    """Do what `join_pairs` does with one test for each pair of groups.

    Group `g` of the left has the rows `members[begins[g] : begins[g + 1]]`, that of the right likewise, by first event;
    `left` and `right` have the codes of groups. With `by_code`, the right groups with code `v` of the first condition
    begin at `by_code[v]`.
    """
    found = tests = 0
    weight = 0.0
    room, keyed = out_left.shape[0], by_code.shape[0] > 0
    for g in range(begins.shape[0] - 1):
        low, high = 0, right_begins.shape[0] - 1
        if keyed:
            low, high = by_code[left[0, g]], by_code[left[0, g] + 1]
        for h in range(low, high):
            tests += 1
            if not _accepts(kinds, left, g, right, h):
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
