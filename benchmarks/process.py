"""Process logs beside pm4py, which is asked where it is installed: cases in which one activity follows another.

Its licence is its own (AGPL), so nothing here depends on it and nothing fetches it: `pip install pm4py` into an
environment of your own, and run `trellis bench process` there. Recipes that were tried of
`filter_eventually_follows_relation`, over a million events, CPU seconds; the best counts:

| frame | pm4py |
| --- | --- |
| cases and activities as text | 0.36 |
| cases as whole numbers | 0.21 |
| the rows of the two activities alone | 0.11 |
| cases and activities as categories | 0.06 |

It takes rows in the order in which they come: shuffled, they give other cases.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pandas as pd

import trellis
from benchmarks import Peer, Row, Table, best_of

ABSENT = "pm4py is not installed, so it is not asked; see the first lines of benchmarks/process.py."
CASE, ACTIVITY, TIME = "case:concept:name", "concept:name", "time:timestamp"
FOLLOWS = f"""
    PATTERN SEQ(a3 x, a7 y) WHERE [`{CASE}`] REPORT any AGGREGATE COUNT(*) GROUP BY `{CASE}`
"""


def run(quick: bool) -> list[Table]:
    """Ask in which cases of a log one activity comes after another."""
    cases = 200 if quick else 50_000
    frame = log(cases).astype({CASE: "category", ACTIVITY: "category"})  # the best recipe of the peer's

    def ours() -> list[str]:
        return trellis.query(FOLLOWS).detect(frame, time=TIME, type=ACTIVITY).aggregates().to_arrow()[CASE].to_pylist()

    wanted = sorted(ours())

    def by_pandas() -> list[str]:
        times = {name: frame[frame[ACTIVITY] == name].groupby(CASE, observed=True)[TIME] for name in ("a3", "a7")}
        first, last = times["a3"].min(), times["a7"].max()
        return list(first.index[first < last.reindex(first.index)])

    assert sorted(by_pandas()) == wanted
    peers = [Peer("pandas, the first a3 before the last a7", best_of("pandas", by_pandas, quick=quick))]
    notes = [ABSENT]
    if find_spec("pm4py") is not None:
        pm4py = import_module("pm4py")

        def theirs() -> list[str]:
            kept = pm4py.filter_eventually_follows_relation(frame, [("a3", "a7")])
            return list(kept[CASE].unique())

        assert sorted(theirs()) == wanted
        peers.append(Peer("pm4py", best_of("pm4py", theirs, quick=quick)))
        notes = []
    row = Row(
        f"{len(frame):,} events: {len(wanted):,} of {cases:,} cases", best_of("Trellis", ours, quick=quick), peers=peers
    )
    return [Table("cases in which a7 comes after a3", [row], notes)]


def log(cases: int) -> pd.DataFrame:
    """Return a log of cases with some twenty activities each, of thirty, one every minute."""
    rng = np.random.default_rng(7)
    sizes = rng.integers(5, 36, cases)
    of_case = np.repeat(np.arange(cases), sizes)
    place = np.arange(len(of_case)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return pd.DataFrame({
        CASE: np.char.add("c", of_case.astype(str)),
        ACTIVITY: np.char.add("a", rng.integers(0, 30, len(of_case)).astype(str)),
        TIME: pd.Timestamp("2024-01-01", tz="UTC") + pd.to_timedelta(place, unit="min"),
    })  # fmt: skip
