"""Features: what listing the trends tells of each event, as scikit-learn, arrivals and Spark ML give it."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trellis
from trellis.errors import UsageError
from trellis.features import TrendFeatures

RISING = "PATTERN E+ s[] WHERE [g] AND s[i].x > s[i-1].x REPORT any WITHIN {within}"
THEN = "PATTERN SEQ(E a, E+ b[]) WHERE [g] AND a.x < b.x WITHIN {within}"


def events(size: int, seed: int = 3) -> pd.DataFrame:
    dice = np.random.default_rng(seed)
    values = {"t": dice.integers(0, size, size), "g": dice.choice(["a", "b"], size), "x": dice.integers(0, 9, size)}
    return pd.DataFrame(values, index=dice.permutation(size) + 100)


def by_listing(text: str, frame: pd.DataFrame, variable: str) -> list[dict[str, float]]:
    """The numbers of each event by going through all trends, window by window."""
    numbered = frame.assign(row=range(len(frame)))
    rows = trellis.query(text).detect(numbered, time="t", event_id="row", type=None).to_pandas()
    values = frame["x"].tolist()
    found = []
    windows = ["window_start"] if "window_start" in rows else []
    if "bindings" not in rows:
        rows["bindings"] = [[variable] * len(ids) for ids in rows["events"]]
    sizes = {key: len(part) for key, part in rows.groupby([*windows, "g"])}
    for row in range(len(frame)):
        own = rows[np.array([row in ids for ids in rows["events"]], bool)]
        bound = [
            [values[e] for e, v in zip(ids, names, strict=True) if v == variable]
            for ids, names in zip(own["events"], own["bindings"], strict=True)
        ]
        shares = [len(part) / sizes[key] for key, part in own.groupby([*windows, "g"])]
        found.append(
            {
                "log_count": math.log1p(len(own)), "share": max(shares, default=0.0),
                "longest": max(own["length"], default=0),
                "log_begins": math.log1p(sum(ids[0] == row for ids in own["events"])),
                "log_ends": math.log1p(sum(ids[-1] == row for ids in own["events"])),
                f"log_sum_{variable}_x": math.log1p(sum(map(sum, bound))),
                f"min_{variable}_x": min((v for b in bound for v in b), default=math.nan),
                f"max_{variable}_x": max((v for b in bound for v in b), default=math.nan),
            }
        )  # fmt: skip
    return found


@settings(max_examples=20)
@given(st.integers(0, 12), st.integers(0, 1000), st.sampled_from(["6", "6 SLIDE 3", "5 SLIDE 5"]))
def test_features_are_what_listing_tells(size: int, seed: int, within: str) -> None:
    frame = events(size, seed)
    queries = {"up": RISING.format(within=within), "then": THEN.format(within=within)}
    made = TrendFeatures(queries, time="t", attributes=["x"]).set_output(transform="pandas").fit(events(3))
    found = made.transform(frame)
    assert list(found.index) == list(frame.index)
    for name, variable in (("up", "s"), ("then", "b")):
        wanted = by_listing(queries[name], frame, variable)
        for column in wanted[0] if wanted else ():
            np.testing.assert_allclose(found[f"{name}_{column}"], [row[column] for row in wanted], err_msg=column)


def test_numbers_of_any_size_and_exactly() -> None:
    size = 300
    frame = pd.DataFrame({"t": range(size), "x": range(size)})
    made = TrendFeatures(["PATTERN E+ s[] WHERE s[i].x > s[i-1].x REPORT any"], time="t").fit(frame)
    found = dict(zip(made.get_feature_names_out(), made.transform(frame).T, strict=True))
    np.testing.assert_allclose(found["q1_log_count"], (size - 1) * math.log(2))
    np.testing.assert_allclose(found["q1_log_ends"], [math.log1p(2**x) for x in range(size)])
    exact = made.exact(frame)
    assert exact["q1_count"].tolist() == [2 ** (size - 1)] * size
    assert exact["q1_begins"].tolist() == [2 ** (size - 1 - x) for x in range(size)]


def test_scikit_learn_takes_it() -> None:
    from sklearn.base import clone
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.pipeline import make_pipeline

    frame = events(60)
    made = TrendFeatures({"up": trellis.query(RISING.format(within=9))}, time="t", per_partition=True)
    copy = clone(made)
    assert copy.get_params()["time"] == "t"
    assert not hasattr(copy, "feature_names_")
    wanted = copy.fit_transform(frame)
    model = make_pipeline(copy, HistGradientBoostingClassifier(max_iter=5)).fit(frame, frame["x"] > 4)
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(frame) == model.predict(frame)).all()
    np.testing.assert_array_equal(again[0].transform(frame), wanted)
    names = list(again[0].get_feature_names_out())
    counts = trellis.query(RISING.format(within=9)).detect(frame, time="t").counts().to_pandas().set_index("g")["count"]
    totals = wanted[:, names.index("up_log_partition_count")]
    np.testing.assert_allclose(totals, [math.log1p(counts.get(g, 0)) for g in frame["g"]])
    own = TrendFeatures(["PATTERN E+ s[] WHERE [g] AGGREGATE AVG(s.x), COUNT(s) PER EVENT"], time="t").fit(frame)
    assert list(own.get_feature_names_out()) == ["q1_avg_s_x", "q1_log_count_s"]


def test_without_scikit_learn() -> None:
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import pandas as pd; from trellis.features import TrendFeatures\n"
        "f = TrendFeatures(['PATTERN E+ s[] WITHIN 3'], time='t')\n"
        "print(f.set_params(time='u').fit_transform(pd.DataFrame({'u': [1, 2]})).tolist(), sorted(f.get_params()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[[0.69")


@pytest.mark.parametrize("within", ["7", "7 SLIDE 3"])
def test_arrivals_tell_of_the_events_so_far(within: str) -> None:
    frame = events(60).sort_values("t", kind="stable")
    frame["t"] = np.arange(len(frame))
    made = TrendFeatures({"up": RISING.format(within=within)}, time="t", attributes=["x"]).fit(frame)
    arriving = made.arrivals()
    steady = [i for i, name in enumerate(made.get_feature_names_out()) if "SLIDE" in within or "share" not in name]
    for begin in range(0, len(frame), 11):
        taken = arriving.take(frame.iloc[begin : begin + 11])
        wanted = made.transform(frame.iloc[: begin + 11])[begin:]
        np.testing.assert_allclose(taken[:, steady], wanted[:, steady])
        assert arriving.held <= 8
    with pytest.raises(trellis.DataError, match="earlier than one of an earlier batch"):
        arriving.take(frame.iloc[:1])


WRONG: list[tuple[str, Callable[[], Any], str]] = [
    ("no query", lambda: TrendFeatures({}).fit(events(3)), "need a query"),
    ("LIMIT", lambda: TrendFeatures(["PATTERN E+ s[] LIMIT 3"]).fit(events(3)), "has LIMIT"),
    (
        "a text",
        lambda: TrendFeatures(["PATTERN E+ s[] AGGREGATE MAX(s.g) PER EVENT"], time="t").fit(events(3)),
        "numbers",
    ),
    ("not fitted", lambda: TrendFeatures(["PATTERN E+ s[]"]).transform(events(3)), "have seen no events"),
    ("no WITHIN", lambda: TrendFeatures(["PATTERN E+ s[]"], time="t").fit(events(3)).arrivals(), "has no WITHIN"),
]


@pytest.mark.parametrize(("make", "message"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_what_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()


def test_spark_ml_gives_the_same(spark: Any, tmp_path: Any) -> None:
    from trellis.features import SparkTrendFeatures

    frame = events(40).reset_index(names="id")
    queries = {"up": RISING.format(within="7 SLIDE 3"), "then": THEN.format(within="6")}
    here = TrendFeatures(queries, time="t", event_id="id", attributes=["x"]).fit(frame)
    stage = SparkTrendFeatures(queries=queries, time="t", eventId="id", attributes=["x"])
    stage.write().overwrite().save(str(tmp_path / "stage"))
    there = SparkTrendFeatures.load(str(tmp_path / "stage")).transform(spark.createDataFrame(frame)).toPandas()
    assert list(there.columns) == [*frame.columns, *here.get_feature_names_out()]
    found = there.set_index("id").loc[frame["id"], list(here.get_feature_names_out())]
    np.testing.assert_allclose(found.to_numpy(float), here.transform(frame), rtol=1e-9)
