"""Laundering transfers: the labelled cycles that run in time order lie on chains of transfers, the others do not."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import trellis
from tests.data.places import data_file
from trellis.io.read import read_table

pytestmark = pytest.mark.data

CHAIN = "c[i].from_account = c[i-1].to_account"
BACKWARDS = {37, 71, 128, 231, 294}  # attempts that do not run in time order, by the description of the data


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """The transfers of the money-laundering data."""
    return read_table(data_file("aml", "laundering_transactions.csv"), text_columns=["from_bank", "to_bank"])


@pytest.fixture(scope="module")
def attempts(table: pa.Table) -> dict[int, list[dict[str, Any]]]:
    """The transfers of each CYCLE attempt in time order."""
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in table.to_pylist():
        if row["attempt_family"] == "CYCLE":
            found[row["attempt_id"]].append(row)
    assert len(found) == 54
    return {number: sorted(rows, key=lambda row: row["timestamp"]) for number, rows in found.items()}


def places_of(trends: Any) -> np.ndarray:
    """Return for each event the attempt whose CYCLE it belongs to, or -1."""
    family = np.array(trends.events["attempt_family"].to_pylist())
    return np.where(family == "CYCLE", trends.events["attempt_id"].to_numpy(), -1)


def test_cycles_in_time_order_are_chains_of_their_attempt(
    table: pa.Table, attempts: dict[int, list[dict[str, Any]]]
) -> None:
    text = f"PATTERN Transfer+ c[] WHERE [attempt_id] AND c.attempt_family = 'CYCLE' AND {CHAIN} REPORT any"
    trends = trellis.query(text + " RETURN c.position_in_attempt").detect(table)
    whole = {
        row["attempt_id"]: row["c_position_in_attempt"]
        for row in trends.to_arrow().to_pylist()
        if row["length"] == len(attempts[row["attempt_id"]])
    }
    assert whole == {number: list(range(len(rows))) for number, rows in attempts.items() if number not in BACKWARDS}
    for number in whole:
        assert attempts[number][-1]["to_account"] == attempts[number][0]["from_account"]


def test_money_that_comes_back(table: pa.Table, attempts: dict[int, list[dict[str, Any]]]) -> None:
    """A first transfer, a chain, and a last one that pays into the account where it began."""
    trends = trellis.query("""
        PATTERN SEQ(Transfer first, Transfer+ via[], Transfer last)
        WHERE [attempt_id] AND first.attempt_family = 'CYCLE' AND FIRST(via).from_account = first.to_account
          AND via.to_account = NEXT(via).from_account AND LAST(via).to_account = last.from_account
          AND last.to_account = first.from_account
        RETURN first.position_in_attempt AS head, via.position_in_attempt AS middle, last.position_in_attempt AS tail
    """).detect(table)
    whole = {
        row["attempt_id"]: [row["head"], *row["middle"], row["tail"]]
        for row in trends.to_arrow().to_pylist()
        if row["length"] == len(attempts[row["attempt_id"]])
    }
    closed = {n: list(range(len(rows))) for n, rows in attempts.items() if n not in BACKWARDS and len(rows) > 2}
    assert whole == closed
    assert len(whole) > 20


def test_cycles_in_time_order_lie_inside_chains_of_all_transfers(
    table: pa.Table, attempts: dict[int, list[dict[str, Any]]]
) -> None:
    """What lies inside some chain lies inside a maximal one; these can be listed, three million of them."""
    trends = trellis.query(f"PATTERN Transfer+ c[] WHERE {CHAIN} REPORT maximal").detect(table)
    attempt_of = places_of(trends)
    size = np.zeros(attempt_of.max() + 1, np.int64)
    for number, rows in attempts.items():
        size[number] = len(rows)
    found: set[int] = set()
    listed = 0
    for batch in trends.batches(columns=["events"], positions=True):
        lists = batch.column(0)
        lengths = lists.value_lengths().to_numpy()
        row, attempt = np.repeat(np.arange(len(lists)), lengths), attempt_of[lists.flatten().to_numpy()]
        pairs, times = np.unique((row * len(size) + attempt)[attempt >= 0], return_counts=True)
        found.update((pairs % len(size))[times == size[pairs % len(size)]].tolist())
        listed += len(lists)
    assert found == set(attempts) - BACKWARDS
    assert listed == trends.count()


def test_the_chains_of_three_days(table: pa.Table) -> None:
    """Chains by banks too: fewer; each is one by accounts alone, and all that is listed is counted."""
    both = trellis.query(f"PATTERN T+ c[] WHERE {CHAIN} AND c[i].from_bank = c[i-1].to_bank WITHIN 3 days")
    trends = both.detect(table)
    accounts = trellis.query(f"PATTERN T+ c[] WHERE {CHAIN} WITHIN 3 days").detect(table)
    rows = {tuple(ids) for ids in trends.to_arrow()["events"].to_pylist()}
    assert len(rows) == trends.count() <= accounts.count()
    for a, b in pairwise(trends.explode().to_pylist()):
        if b["place"] > 1:
            assert (a["to_account"], a["to_bank"]) == (b["from_account"], b["from_bank"])
            assert a["timestamp"] < b["timestamp"]
