"""Survey: shapes of patterns with kinds of conditions, counted, listed and explained: which end in a few seconds.

A cliff is found where nobody looked for it. So this goes through what people may write, shape by shape, and says how
many queries were answered or refused in time, and which were not. One in `STEP` of all queries is asked; `--large` asks
all of them, in some hours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import trellis
from benchmarks import Row, Table, Target, at_most
from benchmarks.cliff import detected, trades
from benchmarks.limited import Done, Piece, timed_within
from trellis.errors import TrellisError

SIZE, QUICK_SIZE, SMALL = 10_000, 200, 60
SECONDS, EXPLAINED = 5.0, 1.0  # of all cores, where results are asked for, and where a query is explained
STEP, QUICK_STEP = 13, 241  # shares no factor with the numbers of windows, conditions and ways to ask
WINDOWS = {"the whole input": "", "windows of 300": "WITHIN 300 SLIDE 300", "spans of 300": "WITHIN 300"}
RISING = {"no condition": "", "rising": "{r}[i].price > {r}[i-1].price", "equal": "{r}[i].sym = {r}[i-1].sym"}
PAIR = {
    "no condition": "",
    "below": "a.price < b.price",
    "equal": "a.sym = b.sym",
    "difference": "b.price - a.price > 0.5",
    "ABS": "ABS(a.price - b.price) < 0.5",
    "OR": "a.price < b.price OR a.sym = b.sym",
    "unequal": "a.sym != b.sym",
}
REPEATED = {
    "rising": "{r}[i].price > {r}[i-1].price",
    "rising, below": "{r}[i].price > {r}[i-1].price AND a.price < b.price",
    "last above": "LAST({r}).price > {o}.price",
    "first and last": "FIRST({r}).price < LAST({r}).price",
    "greatest": "MAX({r}.price) > {o}.price",
    "least above": "MIN({r}.price) > {o}.price",
    "sum": "SUM({r}.volume) < 5 * {o}.volume",
    "average": "AVG({r}.price) > {o}.price",
    "count": "COUNT({r}) >= 3",
    "second": "{r}[2].price > {o}.price",
    "so far": "{r}[i].price > AVG({r}[..i-1].price)",
}
ABSENT = {"no condition": "", "compared": "{n}.price > a.price", "equal": "{n}.sym = a.sym",
          "compared with both": "{n}.price > a.price AND {n}.price < {z}.price"}  # fmt: skip
ITERATED = {
    "no condition": "", "in the iteration": "a.price < b.price", "between": "g[i].a.price > g[i-1].b.price",
    "equal between": "g[i].a.sym = g[i-1].b.sym", "with what follows": "b.price < c.price",
    "first with what follows": "FIRST(g).a.price < c.price",
}  # fmt: skip


def _named(conditions: dict[str, str], **names: str) -> dict[str, str]:
    return {title: text.format(**names) for title, text in conditions.items()}


SHAPES: dict[str, dict[str, str]] = {
    "A+ a[]": _named(RISING, r="a") | {
        "difference": "a[i].price - a[i-1].price > 0.5", "quotient": "a[i].price / a[i-1].price > 1.005",
        "ABS": "ABS(a[i].price - a[i-1].price) < 0.5", "OR": "a[i].price > a[i-1].price OR a[i].sym = a[i-1].sym",
        "two": "a[i].price > a[i-1].price AND a[i].volume > a[i-1].volume",
        "so far": "a[i].price > AVG(a[..i-1].price)",
        "as the first": "a[i].sym = FIRST(a).sym", "not before": "a[i].sym NOT IN (a[..i-1].sym)",
        "sum": "SUM(a.volume) < 3000", "first and last": "FIRST(a).price < LAST(a).price",
    },
    "SEQ(A a, B b)": PAIR,
    "SEQ(A a, B b, C c)": PAIR | {
        "crossing": "a.price < b.price AND a.price < c.price AND b.price > c.price",
        "arithmetic": "a.price + b.price < 2 * c.price", "OR of three": "a.price < b.price OR b.price < c.price",
    },
    "SEQ(A+ a[], B b)": PAIR | _named(REPEATED, r="a", o="b"),
    "SEQ(A a, B+ b[])": PAIR | _named(REPEATED, r="b", o="a"),
    "SEQ(A a, B+ b[], C c)": PAIR | _named(REPEATED, r="b", o="c") | {
        "ends": "a.sym = c.sym", "ends rise": "a.price < c.price"},
    "SEQ(A+ a[], B+ b[])": PAIR | _named(REPEATED, r="a", o="LAST(b)") | {
        "sums": "SUM(a.volume) < SUM(b.volume)",
        "greatest of both": "MAX(a.price) < MAX(b.price)", "last and first": "LAST(a).price < FIRST(b).price"},
    "SEQ(A+ a[], B b, C+ c[])": PAIR | {"outer": "a.price < c.price", "sums": "SUM(a.volume) < SUM(c.volume)",
        "chain": "LAST(a).price < b.price AND b.price < FIRST(c).price",
        "rising": "a[i].price > a[i-1].price AND c[i].price > c[i-1].price"},
    "SEQ(A{3} a[], B b)": PAIR,
    "SEQ(A a, B? b, C c)": PAIR | {"ends": "a.price < c.price"},
    "SEQ(A a, OR(B b, C c), D d)": PAIR | {
        "ends": "a.price < d.price", "both arms": "a.price < b.price AND a.price > c.price"},
    "SEQ(A a, NOT(B n), C c)": _named(ABSENT, n="n", z="c"),
    "SEQ(A+ a[], NOT(B n), C c)": _named(ABSENT, n="n", z="c"),
    "SEQ(A a, NOT(B n), C+ c[])": _named(ABSENT, n="n", z="c"),
    "SEQ(NOT(B n), A a, C c)": _named(ABSENT, n="n", z="c"),
    "SEQ(A a, C c, NOT(B n))": _named(ABSENT, n="n", z="c"),
    "SEQ(NOT(B n), A+ a[])": _named(ABSENT, n="n", z="a"),
    "AND(A a, B b)": PAIR,
    "AND(A a, B b, C c)": PAIR | {"crossing": "a.price < b.price AND a.price < c.price AND b.price > c.price"},
    "AND(A+ a[], B b)": PAIR | {"rising": "a[i].price > a[i-1].price"},
    "AND(A+ a[], B+ b[])": PAIR | {"rising": "a[i].price > a[i-1].price"},
    "SEQ(SEQ(A a, B b)+ g[], C c)": ITERATED,
}  # fmt: skip
SELECTIONS = {"skip-till-any": "", "skip-till-next": "SELECT skip-till-next", "contiguous": "SELECT contiguous"}
REPORTS = {"unextendable": "", "any": "REPORT any"}


@dataclass(frozen=True)
class Asked:
    """A query, how it is asked, and in which windows."""

    text: str
    how: str
    window: str

    def answer(self, size: int) -> str:
        """Ask it over so many events; return what became of it."""
        try:
            if self.how == "explained":
                str(trellis.query(self.text).explain(trades(size), time="ts", event_id="id", type="kind"))
                return "answered"
            results = detected(self.text, trades(size))
            if self.how == "counted":
                results.count()
            else:
                results.to_arrow()
        except TrellisError as error:
            return type(error).__name__
        return "answered"

    @property
    def seconds(self) -> float:
        """Seconds of all cores that an answer may take."""
        return EXPLAINED if self.how == "explained" else SECONDS

    def name(self) -> str:
        """Return it in one line."""
        return f"{self.how}: `{self.text}`"


def asked() -> Iterator[Asked]:
    """Yield all there is to ask."""
    for shape, conditions in SHAPES.items():
        for condition in conditions.values():
            for window, within in WINDOWS.items():
                for selection in SELECTIONS.values():
                    for report in REPORTS.values():
                        where = condition and f"WHERE {condition}"
                        text = " ".join(part for part in (f"PATTERN {shape}", where, selection, report, within) if part)
                        if selection and report:
                            continue
                        yield Asked(text, "counted", window)
                        if not selection:
                            yield Asked(f"{text} LIMIT 10", "listed", window)
                        if not selection and not report:
                            yield Asked(text, "explained", window)
                            yield Asked(f"{text} ORDER BY LENGTH DESC LIMIT 10", "listed by length", window)


def pieces(quick: bool) -> Iterator[Piece]:
    """Yield some of what there is to ask as pieces of work."""
    return _pieces(some_asked(quick), quick)


def all_pieces(quick: bool) -> Iterator[Piece]:
    """Yield all there is to ask as pieces of work."""
    return _pieces(list(asked()), quick)


def some_asked(quick: bool) -> list[Asked]:
    """Return one in so many of what there is to ask."""
    return list(asked())[:: QUICK_STEP if quick else STEP]


def _pieces(questions: list[Asked], quick: bool) -> Iterator[Piece]:
    size = QUICK_SIZE if quick else SIZE
    for one in questions:
        yield Piece(one.name(), lambda one=one: one.answer(SMALL),
                    lambda one=one: int(one.answer(size) != "answered"), one.seconds)  # fmt: skip


def run(quick: bool, large: bool = False) -> list[Table]:
    """Ask one in so many of all questions, or all of them."""
    questions = list(asked()) if large else some_asked(quick)
    ends = timed_within("benchmarks.survey", "all_pieces" if large else "pieces", quick)
    done = list(zip(questions, ends, strict=True))
    return [_tally(done), _slowest(done)]


def _tally(done: list[tuple[Asked, Done]]) -> Table:
    rows = []
    for how in dict.fromkeys(one.how for one, _ in done):
        for window in WINDOWS:
            fates = Counter(_fate(end) for one, end in done if (one.how, one.window) == (how, window))
            told = ", ".join(
                f"{fates[fate]} {fate}" for fate in ("answered", "refused", "over the limit") if fates[fate]
            )
            limit = EXPLAINED if how == "explained" else SECONDS
            targets: list[Target] = [
                at_most(0, f"queries that take longer than {limit:.0f} s", fates["over the limit"])
            ]
            rows.append(Row(f"{how}, {window}: {told}", None, targets=targets))
    return Table(f"Queries over {SIZE:,} events", rows)


def _fate(end: Done) -> str:
    if end.timing is None:
        return "over the limit"
    return "refused" if end.answer else "answered"


def _slowest(done: list[tuple[Asked, Done]]) -> Table:
    slow = [(one, end) for one, end in done if end.timing is None or end.timing.cpu > 1]
    slow.sort(key=lambda pair: -(pair[1].timing.cpu if pair[1].timing else SECONDS * 100))
    rows = [Row(f"{one.name()}: {_fate(end)}", end.timing) for one, end in slow]
    return Table("Those that take longer than a second", rows)
