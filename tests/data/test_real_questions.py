"""Questions that people ask of real data, as `examples/questions` writes them, beside answers in plain Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import trellis
from tests.data.places import data_file
from trellis.io.read import read_table
from trellis.language.parser import parse
from trellis.language.printer import to_query_text

QUESTIONS = Path(__file__).parents[2] / "examples" / "questions"
CASE, ACTIVITY, TIME = "case:concept:name", "concept:name", "time:timestamp"
SUBMITTED, APPROVED, PAID = (
    "Declaration SUBMITTED by EMPLOYEE", "Declaration FINAL_APPROVED by SUPERVISOR", "Payment Handled",
)  # fmt: skip
real = pytest.mark.data


def ask(name: str, table: pa.Table, **options: Any) -> Any:
    """Return the results of a question."""
    return trellis.query((QUESTIONS / f"{name}.tq").read_text(encoding="utf-8")).detect(table, **options)


@pytest.mark.parametrize("path", sorted(QUESTIONS.glob("*.tq")), ids=lambda path: path.stem)
def test_prints_back_to_an_equal_tree(path: Path) -> None:
    tree = parse(path.read_text(encoding="utf-8"))
    assert parse(to_query_text(tree)) == tree


# --- Layering ---------------------------------------------------------------------------------------------------


@real
def test_layering_through_different_accounts() -> None:
    table = read_table(data_file("aml", "laundering_transactions.csv"), text_columns=["from_bank", "to_bank"])
    rows = sorted(table.to_pylist(), key=itemgetter("timestamp"))
    by_source: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_source[row["from_account"]].append(row)

    def chains(last: dict[str, Any], accounts: frozenset[str]) -> Iterator[int]:
        """Yield the length of each chain that begins like this one."""
        yield len(accounts) - 1
        for row in by_source[last["to_account"]]:
            shrinks = 0.9 * last["amount_paid"] <= row["amount_paid"] <= last["amount_paid"]
            if row["timestamp"] > last["timestamp"] and shrinks and row["to_account"] not in accounts:
                yield from chains(row, accounts | {row["to_account"]})

    starts = [row for row in rows if row["from_account"] != row["to_account"]]
    lengths = Counter(n for row in starts for n in chains(row, frozenset({row["from_account"], row["to_account"]})))
    wanted = {n: number for n, number in lengths.items() if n >= 3}
    found = ask("layering", table, time="timestamp")
    assert sum(wanted.values()) > 20
    assert found.count() == sum(wanted.values())
    assert Counter(found.to_arrow()["length"].to_pylist()) == wanted


# --- Prices -----------------------------------------------------------------------------------------------------


@real
def test_five_rises_in_a_row_and_a_fall() -> None:
    table = read_table(data_file("ticks", "trades_aig_bac_ibm_2013-10-07.csv.gz"))
    numbered = table.append_column("seq", pa.array(range(table.num_rows)))  # the order of the file breaks ties
    prices: dict[str, list[float]] = defaultdict(list)
    for symbol, price in zip(table["symbol"].to_pylist(), table["price"].to_pylist(), strict=True):
        prices[symbol].append(price)
    wanted = {}
    for symbol, some in prices.items():
        signs = [(b > a) - (b < a) for a, b in pairwise(some)]
        wanted[symbol] = sum(signs[i : i + 6] == [1, 1, 1, 1, 1, -1] for i in range(len(signs) - 5))
    counts = ask("five_rises", numbered, time="seq").counts().to_arrow().to_pylist()
    assert any(wanted.values())
    assert {row["symbol"]: int(row["count_text"]) for row in counts} == {s: n for s, n in wanted.items() if n}


# --- Cases ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def declarations() -> pa.Table:
    """The events of travel declarations."""
    return read_table(data_file("event_logs", "DomesticDeclarations.xes.gz"))


def cases(table: pa.Table) -> Iterator[tuple[str, list[tuple[Any, str]]]]:
    """Yield each case with its times and activities."""
    rows = sorted(zip(*(table[name].to_pylist() for name in (CASE, TIME, ACTIVITY)), strict=True))
    for case, some in groupby(rows, key=itemgetter(0)):
        yield case, [(time, activity) for _, time, activity in some]


@real
def test_cases_that_are_paid_without_approval(declarations: pa.Table) -> None:
    wanted = {}
    for case, some in cases(declarations):
        pairs = [(s, p) for s, a in some if a == SUBMITTED for p, b in some if b == PAID and s < p]
        wanted[case] = sum(not any(s < t < p and a == APPROVED for t, a in some) for s, p in pairs)
    found = ask("without_approval", declarations, time=TIME, type=ACTIVITY).counts().to_arrow().to_pylist()
    assert {row[CASE]: int(row["count_text"]) for row in found} == {case: n for case, n in wanted.items() if n}


@real
def test_cases_that_were_sent_more_than_three_times(declarations: pa.Table) -> None:
    found = ask("sent_again", declarations, time=TIME, type=ACTIVITY).to_arrow().to_pylist()
    wanted = {case: len({t for t, a in some if a == SUBMITTED}) for case, some in cases(declarations)}
    assert {row[CASE]: row["length"] for row in found} == {case: n for case, n in wanted.items() if n > 3}
    assert len(found) > 10


# --- Heart rates ------------------------------------------------------------------------------------------------


@real
def test_heart_rates_above_the_average_so_far() -> None:
    table = read_table(data_file("heart_rate", "heart_rate_all.csv.gz"))
    table = table.filter(pc.equal(table["subject"], "S5")).slice(0, 6000)
    wanted: list[int] = []
    rows = zip(
        table["session"].to_pylist(), table["epoch_s"].to_pylist(), table["heart_rate_bpm"].to_pylist(), strict=True
    )
    for _, some in groupby(sorted(rows), key=itemgetter(0)):
        wanted += runs([rate for _, _, rate in some])
    assert len(wanted) > 10
    found = ask("above_average", table, time="epoch_s")
    assert sorted(found.to_arrow()["length"].to_pylist()) == sorted(wanted)


def runs(rates: list[float]) -> list[int]:
    """Return the lengths of the runs above their own average that nothing lengthens, in front or behind."""
    ends = []
    for start, rate in enumerate(rates):
        total, end = rate, start + 1
        while end < len(rates) and rates[end] > total / (end - start):
            total += rates[end]
            end += 1
        ends.append(end)
    found, farthest = [], 0  # one event or several in front lengthen a run if they make a run that reaches its end
    for start, end in enumerate(ends):
        if end > farthest and end - start >= 10 and rates[end - 1] - rates[start] >= 5:
            found.append(end - start)
        farthest = max(farthest, end)
    return found
