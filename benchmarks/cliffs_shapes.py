"""Cliffs of patterns: policies of selection, AND, conditions of several variables, parts compared, carried values."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pyarrow as pa

from benchmarks.cliff import Cliff, columns

A, B, C, D = range(4)
IN_PARTS = "[part] AND "

# --- 3: one event follows, and it is the next -------------------------------------------------------------------------


@numba.njit(cache=True)
def _next_in_row(kind: Any, price: Any, part: Any) -> int:
    """Count `SEQ(A a, B b, C c)` with rising prices, where a match goes on with the first event that fits."""
    found = 0
    n = len(kind)
    for a in range(n):
        if kind[a] != A:
            continue
        b = a + 1
        while b < n and part[b] == part[a] and not (kind[b] == B and price[b] > price[a]):
            b += 1
        if b == n or part[b] != part[a]:
            continue
        c = b + 1
        while c < n and part[c] == part[a] and not (kind[c] == C and price[c] > price[b]):
            c += 1
        found += c < n and part[c] == part[a]
    return found


@numba.njit(cache=True)
def _next_with_kleene(kind: Any, price: Any, part: Any) -> int:
    """Count `SEQ(A a, B+ b[], C c)` with rising prices of `b`, where a match goes on with the first event that fits."""
    found = 0
    n = len(kind)
    for a in range(n):
        if kind[a] != A:
            continue
        at, any_b = a, False
        for i in range(a + 1, n):
            if part[i] != part[a]:
                break
            if kind[i] == B and (not any_b or price[i] > price[at]):
                at, any_b = i, True
            elif any_b and kind[i] == C:
                found += 1
                break
    return found


def _whole(events: pa.Table) -> Any:
    kind, price = columns(events, "kind", "price")
    return kind, price, np.zeros(len(kind), np.int64)


def _parted(events: pa.Table) -> Any:
    return columns(events, "kind", "price", "part")


NEXT = "PATTERN SEQ(A a, B b, C c) WHERE {}a.price < b.price AND b.price < c.price SELECT skip-till-next"
KLEENE_NEXT = "PATTERN SEQ(A a, B+ b[], C c) WHERE {}b.price < NEXT(b).price SELECT skip-till-next"

NEXT_ROWS = (
    Cliff(
        3, "SEQ under skip-till-next, parts of 1,000", NEXT.format(IN_PARTS),
        lambda events: _next_in_row(*_parted(events)),
        rewordings=(
            NEXT.format(IN_PARTS).replace("<", "<="),
            NEXT.format(IN_PARTS).replace("b.price < c.price", "b.price < 1.001 * c.price"),
            NEXT.format("[part, sym] AND "),
        ),
    ),
    Cliff(
        3, "SEQ under skip-till-next, the whole input", NEXT.format(""), lambda events: _next_in_row(*_whole(events)),
        rewordings=(NEXT.format("").replace("<", "<="), NEXT.format("").replace("b.price < c", "b.price > c"),
                    NEXT.format("[sym] AND ")),
    ),
    Cliff(
        3, "SEQ with Kleene under skip-till-next, the whole input", KLEENE_NEXT.format(""),
        lambda events: _next_with_kleene(*_whole(events)),
        rewordings=(KLEENE_NEXT.format("").replace("<", "<="), KLEENE_NEXT.format("").replace("<", "<= 1.001 *"),
                    KLEENE_NEXT.format("[sym] AND ")),
    ),
)  # fmt: skip

# --- 4: AND, and conditions of several variables ----------------------------------------------------------------------


def _product(events: pa.Table) -> int:
    kind = columns(events, "kind")[0]
    return int((kind == A).sum()) * int((kind == B).sum()) * int((kind == C).sum())


def _five(events: pa.Table) -> int:
    kind = columns(events, "kind")[0]
    return int(np.prod([int((kind == one).sum()) for one in range(5)]))


def _kinds_of_five(n: int) -> pa.Table:
    from benchmarks.cliff import trades

    return trades(n, kinds=5)


@numba.njit(cache=True)
def _three(kind: Any, price: Any, how: int, size: int) -> int:
    """Count `SEQ(A a, B b, C c)` in windows of a size, by a condition of three events."""
    found = 0
    n = len(kind)
    for begin in range(0, n, size):
        end = min(begin + size, n)
        for a in range(begin, end):
            if kind[a] != A:
                continue
            for b in range(a + 1, end):
                if kind[b] != B:
                    continue
                for c in range(b + 1, end):
                    if kind[c] == C:
                        if how == 0:
                            found += price[a] + price[b] < 2 * price[c]
                        elif how == 1:
                            found += price[a] < price[b] or price[b] < price[c]
                        else:
                            found += abs(price[a] - price[c]) < 0.5
    return found


@numba.njit(cache=True)
def _not_above(kind: Any, price: Any, size: int) -> int:
    """Count `SEQ(A a, NOT(B b), C c)` without a `b` above `a`, in windows of a size."""
    found = 0
    n = len(kind)
    for begin in range(0, n, size):
        end = min(begin + size, n)
        for a in range(begin, end):
            if kind[a] != A:
                continue
            for i in range(a + 1, end):
                if kind[i] == B and price[i] > price[a]:
                    break
                found += kind[i] == C
    return found


WINDOW = 200
IN_WINDOWS = f"WITHIN {WINDOW} SLIDE {WINDOW}"
SEQUENCE = f"PATTERN SEQ(A a, B b, C c) WHERE {{}} {IN_WINDOWS}"


def _of_three(title: str, condition: str, how: int, *others: str) -> Cliff:
    return Cliff(
        4, title, SEQUENCE.format(condition),
        lambda events: _three(*columns(events, "kind", "price"), how, WINDOW),
        rewordings=tuple(SEQUENCE.format(other) for other in others),
    )  # fmt: skip


JOIN_ROWS = (
    Cliff(
        4, "AND of three without conditions", "PATTERN AND(A a, B b, C c)", _product, "three counts",
        rewordings=("PATTERN AND(A a, C b, D c)", "PATTERN AND(A a, B b, C c) WHERE [part]",
                    "PATTERN AND(A a, B b)"),
        limit=None,
        bound="three counts over known codes take no time; the events are read and their kinds compared once",
    ),
    Cliff(
        4, "AND of five over 80 events", "PATTERN AND(A a, B b, C c, D d, E e)", _five, "five counts", sizes=(80,),
        events=_kinds_of_five,
        rewordings=("PATTERN AND(E a, D b, C c, B d, A e)", "PATTERN AND(A a, B b, C c, D d)",
                    "PATTERN AND(A a, B b, C c, D d, E e) WHERE [part]"),
        limit=None,
        bound="a call costs about a millisecond, whatever is asked",
    ),
    _of_three("arithmetic of three variables", "a.price + b.price < 2 * c.price", 0,
              "a.price + b.price <= 2 * c.price", "a.price + b.price < 2.01 * c.price",
              "[part] AND a.price + b.price < 2 * c.price"),
    _of_three("OR of three variables", "a.price < b.price OR b.price < c.price", 1,
              "a.price <= b.price OR b.price < c.price", "a.price < b.price OR 1.01 * b.price < c.price",
              "[part] AND (a.price < b.price OR b.price < c.price)"),
    _of_three("ABS between the first and the third", "ABS(a.price - c.price) < 0.5", 2,
              "ABS(a.price - c.price) <= 0.5", "ABS(a.price - c.price) < 0.7",
              "[part] AND ABS(a.price - c.price) < 0.5"),
    Cliff(
        4, "NOT compared with the first", f"PATTERN SEQ(A a, NOT(B b), C c) WHERE b.price > a.price {IN_WINDOWS}",
        lambda events: _not_above(*columns(events, "kind", "price"), WINDOW),
        rewordings=tuple(
            f"PATTERN SEQ(A a, NOT(B b), C c) WHERE {condition} {IN_WINDOWS}"
            for condition in ("b.price >= a.price", "b.price > 1.01 * a.price", "[part] AND b.price > a.price")
        ),
    ),
)  # fmt: skip

# --- 5: parts compared ------------------------------------------------------------------------------------------------


@numba.njit(cache=True)
def _two_parts(kind: Any, price: Any, size: int) -> Any:
    """Count `SEQ(A+ a[], B+ b[])` in windows of a size, each `a` below each `b`, modulo 2^64."""
    found = np.uint64(0)
    n = len(kind)
    for begin in range(0, n, size):
        end = min(begin + size, n)
        order = np.argsort(price[begin:end], kind="mergesort")
        rank = np.empty(end - begin, np.int64)
        for i in range(end - begin):
            rank[order[i]] = (
                i if i == 0 or price[begin + order[i]] != price[begin + order[i - 1]] else rank[order[i - 1]]
            )
        first = np.zeros(end - begin, np.uint64)  # runs of `a`, by their greatest price
        both = np.zeros(end - begin, np.uint64)  # with `b` after them
        for i in range(end - begin):
            r = rank[i]
            if kind[begin + i] == A:
                below = np.uint64(1)
                for m in range(r):
                    below += first[m]
                first[r] += first[r] + below
                for m in range(r + 1, end - begin):
                    first[m] += first[m]
            elif kind[begin + i] == B:
                for m in range(r):
                    both[m] += both[m] + first[m]
        found += both.sum()
    return found


@numba.njit(cache=True)
def _second(kind: Any, price: Any, size: int) -> Any:
    """Count `SEQ(A a, B+ b[])` in windows of a size, where the second `b` is above `a`, modulo 2^64."""
    found = np.uint64(0)
    n = len(kind)
    for begin in range(0, n, size):
        end = min(begin + size, n)
        for a in range(begin, end):
            if kind[a] != A:
                continue
            one, more = np.uint64(0), np.uint64(0)
            for i in range(a + 1, end):
                if kind[i] == B:
                    more += more + (one if price[i] > price[a] else np.uint64(0))
                    one += np.uint64(1)
            found += more
    return found


@numba.njit(cache=True)
def _unheralded(kind: Any, price: Any, span: int) -> int:
    """Count `SEQ(NOT(C c), A a, B b)` with a rising price within a span."""
    found = 0
    n = len(kind)
    last = np.empty(n, np.int64)  # the last C before each event
    at = -1
    for i in range(n):
        last[i] = at
        if kind[i] == C:
            at = i
    for a in range(n):
        if kind[a] == A:
            for b in range(a + 1, min(a + span + 1, n)):
                found += kind[b] == B and price[b] > price[a] and last[a] < b - span
    return found


@numba.njit(cache=True)
def _three_rising(kind: Any, price: Any, size: int) -> Any:
    """Count `SEQ(A a, B+ b[], C c)` in windows of a size, with at least three `b`, which rise, modulo 2^64."""
    found, runs = np.uint64(0), np.zeros((3, size), np.uint64)  # of one, two and more events, by the last of them
    for begin in range(0, len(kind), size):
        begun, going = np.uint64(0), np.uint64(0)
        for i in range(begin, min(begin + size, len(kind))):
            if kind[i] == A:
                begun += np.uint64(1)
            elif kind[i] == C:
                found += going
            elif kind[i] == B:
                one, two, more = begun, np.uint64(0), np.uint64(0)
                for j in range(begin, i):
                    if kind[j] == B and price[j] < price[i]:
                        two += runs[0, j - begin]
                        more += runs[1, j - begin] + runs[2, j - begin]
                runs[0, i - begin], runs[1, i - begin], runs[2, i - begin] = one, two, more
                going += more
    return found


IN_TEN_MINUTES = "REPORT any WITHIN 600 SLIDE 600"
COUNTED = "PATTERN SEQ(A a, B+ b[], C c) WHERE {} WITHIN 300 SLIDE 300"
PARTS = f"PATTERN SEQ(A+ a[], B+ b[]) WHERE {{}} {IN_TEN_MINUTES}"
SECOND = f"PATTERN SEQ(A a, B+ b[]) WHERE {{}} {IN_TEN_MINUTES}"
EDGE = "PATTERN SEQ(NOT(C c), A a, B b) WHERE {} WITHIN 20"

REGISTER_ROWS = (
    Cliff(
        5, "two Kleene parts compared", PARTS.format("a.price < b.price"),
        lambda events: int(_two_parts(*columns(events, "kind", "price"), 600)),
        rewordings=tuple(map(PARTS.format, ("a.price <= b.price", "1.001 * a.price < b.price",
                                            "[part] AND a.price < b.price"))),
    ),
    Cliff(
        5, "the second event of a Kleene part", SECOND.format("b[2].price > a.price"),
        lambda events: int(_second(*columns(events, "kind", "price"), 600)),
        rewordings=tuple(map(SECOND.format, ("b[2].price >= a.price", "b[2].price > 1.001 * a.price",
                                             "[part] AND b[2].price > a.price"))),
    ),
    Cliff(
        5, "three rising events or more", COUNTED.format("b[i].price > b[i-1].price AND COUNT(b) >= 3"),
        lambda events: int(_three_rising(*columns(events, "kind", "price"), 300)),
        rewordings=tuple(map(COUNTED.format, ("b[i].price >= b[i-1].price AND COUNT(b) > 3",
                                              "b[i].price > b[i-1].price AND COUNT(b) BETWEEN 2 AND 4",
                                              "[part] AND b[i].price > b[i-1].price AND COUNT(b) >= 3"))),
    ),
    Cliff(
        5, "NOT at the start of a span", EDGE.format("a.price < b.price"),
        lambda events: _unheralded(*columns(events, "kind", "price"), 20),
        rewordings=tuple(map(EDGE.format, ("a.price <= b.price", "1.001 * a.price < b.price",
                                           "[part] AND a.price < b.price"))),
    ),
)  # fmt: skip

# --- 8: a value that is carried ---------------------------------------------------------------------------------------


@numba.njit(cache=True)
def _same_symbol(kind: Any, sym: Any) -> Any:
    """Count `SEQ(A a, B+ b[], C c)` where `c` has the symbol of `a`, modulo 2^64."""
    most = sym.max() + 1
    begun, going = np.zeros(most, np.uint64), np.zeros(most, np.uint64)
    found = np.uint64(0)
    for i in range(len(kind)):
        if kind[i] == A:
            begun[sym[i]] += np.uint64(1)
        elif kind[i] == B:
            for s in range(most):
                going[s] += going[s] + begun[s]
        elif kind[i] == C:
            found += going[sym[i]]
    return found


CARRIED = "PATTERN SEQ(A a, B+ b[], C c) WHERE {} WITHIN 2000 SLIDE 2000"


@numba.njit(cache=True)
def _same_symbol_in_windows(kind: Any, sym: Any, size: int) -> Any:
    found = np.uint64(0)
    for begin in range(0, len(kind), size):
        found += _same_symbol(kind[begin : begin + size], sym[begin : begin + size])
    return found


@numba.njit(cache=True)
def _greatest_below(kind: Any, price: Any, size: int) -> Any:
    """Count `SEQ(A a, B+ b[], C c)` in windows of a size, each `b` below `a`, modulo 2^64."""
    found = np.uint64(0)
    for a in range(len(kind)):
        if kind[a] != A:
            continue
        going = np.uint64(0)
        for i in range(a + 1, min(len(kind), (a // size + 1) * size)):
            if kind[i] == B and price[i] < price[a]:
                going += going + np.uint64(1)
            elif kind[i] == C:
                found += going
    return found


@numba.njit(cache=True)
def _greatest_above(kind: Any, price: Any, size: int) -> Any:
    """Count `SEQ(A a, B+ b[], C c)` in windows of a size, some `b` above `a`, modulo 2^64."""
    found = np.uint64(0)
    for a in range(len(kind)):
        if kind[a] != A:
            continue
        below, above = np.uint64(0), np.uint64(0)
        for i in range(a + 1, min(len(kind), (a // size + 1) * size)):
            if kind[i] == B and price[i] > price[a]:
                above += above + below + np.uint64(1)
            elif kind[i] == B:
                above += above
                below += below + np.uint64(1)
            elif kind[i] == C:
                found += above
    return found


@numba.njit(cache=True)
def _even_number(kind: Any, size: int) -> Any:
    """Count `SEQ(A a, B+ b[], C c)` in windows of a size, with an even number of `b`, modulo 2^64."""
    found = np.uint64(0)
    for begin in range(0, len(kind), size):
        begun, odd, even = np.uint64(0), np.uint64(0), np.uint64(0)
        for i in range(begin, min(begin + size, len(kind))):
            if kind[i] == A:
                begun += np.uint64(1)
            elif kind[i] == B:
                odd, even = odd + even + begun, even + odd
            elif kind[i] == C:
                found += even
    return found


@numba.njit(cache=True)
def _same_symbol_rising(kind: Any, sym: Any, price: Any, size: int) -> Any:
    """Count `SEQ(A a, B+ b[], C c)` in windows of a size, `b` rising and `c` with the symbol of `a`, modulo 2^64."""
    found, most = np.uint64(0), sym.max() + 1
    for begin in range(0, len(kind), size):
        end = min(begin + size, len(kind))
        order = np.argsort(price[begin:end])
        rank = np.empty(end - begin, np.int64)
        for i in range(end - begin):
            before = i > 0 and price[begin + order[i]] == price[begin + order[i - 1]]
            rank[order[i]] = rank[order[i - 1]] if before else i
        begun, going = np.zeros(most, np.uint64), np.zeros(most, np.uint64)
        trees = np.zeros((most, end - begin + 1), np.uint64)  # of each symbol, runs of `b` by their last price
        for i in range(begin, end):
            if kind[i] == A:
                begun[sym[i]] += np.uint64(1)
            elif kind[i] == C:
                found += going[sym[i]]
            elif kind[i] == B:
                for s in range(most):
                    runs, r = begun[s], rank[i - begin]
                    while r > 0:
                        runs += trees[s, r]
                        r -= r & -r
                    going[s] += runs
                    r = rank[i - begin] + 1
                    while r <= end - begin and runs:
                        trees[s, r] += runs
                        r += r & -r
    return found


@numba.njit(cache=True)
def _run_above(kind: Any, price: Any, size: int) -> Any:
    """Count `SEQ(A a, B+ b[])` in windows of a size, `b` rising to above `a` and not to be continued, modulo 2^64."""
    found, runs = np.uint64(0), np.zeros(size, np.uint64)
    for a in range(len(kind)):
        begin, end = a // size * size, min(len(kind), (a // size + 1) * size)
        for i in range(a + 1, end if kind[a] == A else a):
            if kind[i] != B:
                continue
            runs[i - begin], ends = np.uint64(1), price[i] > price[a]
            for j in range(a + 1, i):
                if kind[j] == B and price[j] < price[i]:
                    runs[i - begin] += runs[j - begin]
            for j in range(i + 1, end):
                ends &= kind[j] != B or price[j] <= price[i]
            found += runs[i - begin] if ends else np.uint64(0)
    return found


ABOVE = "PATTERN SEQ(A a, B+ b[]) WHERE {} WITHIN 300 SLIDE 300"
RISING = "b[i].price > b[i-1].price AND "
GREATEST = "PATTERN SEQ(A a, B+ b[], C c) WHERE {} WITHIN 300 SLIDE 300"

CARRIED_ROWS = (
    Cliff(
        5, "the greatest value of a variable below another", GREATEST.format("MAX(b.price) < a.price"),
        lambda events: int(_greatest_below(*columns(events, "kind", "price"), 300)),
        rewordings=(GREATEST.format("b.price < a.price"), GREATEST.format("a.price >= MAX(b.price)"),
                    GREATEST.format("[part] AND MAX(b.price) < a.price")),
    ),
    Cliff(
        5, "the greatest value of a variable above another", GREATEST.format("MAX(b.price) > a.price"),
        lambda events: int(_greatest_above(*columns(events, "kind", "price"), 300)),
        rewordings=(GREATEST.format("a.price <= MAX(b.price)"), GREATEST.format("MIN(b.price) < 1.01 * a.price"),
                    GREATEST.format("[part] AND MAX(b.price) > a.price")),
    ),
    Cliff(
        5, "an even number of events", GREATEST.format("COUNT(b) % 2 = 0"),
        lambda events: int(_even_number(*columns(events, "kind"), 300)),
        rewordings=(GREATEST.format("COUNT(b) % 3 != 1"), GREATEST.format("COUNT(b) >= 3"),
                    GREATEST.format("[part] AND COUNT(b) % 2 = 0")),
    ),
    Cliff(
        8, "a run that rises above the first event", ABOVE.format(RISING + "LAST(b).price > a.price"),
        lambda events: int(_run_above(*columns(events, "kind", "price"), 300)),
        rewordings=(ABOVE.format(RISING + "LAST(b).price < 1.01 * a.price"),
                    ABOVE.format(RISING + "LAST(b).price > a.price") + " REPORT any",
                    ABOVE.format("b[i].sym = b[i-1].sym AND LAST(b).price > a.price")),
    ),
    Cliff(
        8, "a value carried over rising ones", CARRIED.format("c.sym = a.sym AND b[i].price > b[i-1].price"),
        lambda events: int(_same_symbol_rising(*columns(events, "kind", "sym", "price"), 2_000)),
        rewordings=(CARRIED.format("a.sym = c.sym AND b[i].price >= b[i-1].price"),
                    CARRIED.format("[part] AND c.sym = a.sym AND b[i].price > b[i-1].price")),
        sizes=(10_000,),
    ),
    Cliff(
        8, "a value of the first event carried to the last", CARRIED.format("c.sym = a.sym"),
        lambda events: int(_same_symbol_in_windows(*columns(events, "kind", "sym"), 2_000)),
        rewordings=(CARRIED.format("a.sym = c.sym"), CARRIED.format("c.sym = a.sym + 1"),
                    CARRIED.format("[part] AND c.sym = a.sym")),
    ),
)  # fmt: skip

# --- 11: four variables crossing --------------------------------------------------------------------------------------


@numba.njit(cache=True)
def _crossing(kind: Any, price: Any) -> Any:
    """Count `SEQ(A a, B b, C c, D d)` with `a` below `c` and `b` below `d`, over all pairs of `b` and `c`."""
    n = len(kind)
    order = np.argsort(price, kind="mergesort")
    rank = np.empty(n, np.int64)
    for i in range(n):
        rank[order[i]] = i if i == 0 or price[order[i]] != price[order[i - 1]] else rank[order[i - 1]]
    below = np.zeros(n + 1, np.int64)  # of the `a` so far, those with a lower rank
    found = np.uint64(0)
    for b in range(n):
        if kind[b] == A:
            for r in range(rank[b] + 1, n + 1):
                below[r] += 1
        if kind[b] == B:
            above = 0
            for i in range(n - 1, b, -1):
                if kind[i] == D and rank[i] > rank[b]:
                    above += 1
                elif kind[i] == C:
                    found += np.uint64(below[rank[i]] * above)
    return found


CROSSING = "PATTERN SEQ(A a, B b, C c, D d) WHERE {}a.price < c.price AND b.price < d.price"

CROSSING_ROWS = (
    Cliff(
        11, "four variables crossing, the whole input", CROSSING.format(""),
        lambda events: int(_crossing(*columns(events, "kind", "price"))),
        rewordings=(CROSSING.format("").replace("<", "<="),
                    CROSSING.format("").replace("a.price <", "1.01 * a.price <"), CROSSING.format("[part] AND ")),
    ),
)  # fmt: skip

ROWS = NEXT_ROWS + JOIN_ROWS + REGISTER_ROWS + CARRIED_ROWS + CROSSING_ROWS
